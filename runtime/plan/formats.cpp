// The most bytes that a value of a format may take, and formats in words.
#include <algorithm>
#include <bit>

#include "millrace/payload.h"
#include "plan/draft.h"

namespace millrace::plan {

uint64_t capacity_of(const mr_format& format) {
  const auto known = [](uint64_t bytes) { return std::min(bytes, kBytesMax); }; // UINT64_MAX means unknown
  switch (format.kind) {
    case MR_KIND_IMAGE: {
      if (!format.width || !format.height || std::popcount(format.pixel_formats) != 1) return UINT64_MAX;
      mr_image image{};
      return known(std::max(
          lay_out_image(static_cast<Pixel>(std::countr_zero(format.pixel_formats)), format.width, format.height, image),
          format.bytes_max));
    }
    case MR_KIND_TENSOR: {
      for (uint32_t d = 0; d < format.rank; ++d)
        if (format.shape[d] < 0 || format.shape_kind[d] == MR_DIM_UNKNOWN) return UINT64_MAX;
      const uint64_t bits = uint64_t{format.dtype_bits} * format.dtype_lanes;
      return bits ? known(bytes_of(elements_of({format.shape, format.rank}), bits)) : UINT64_MAX;
    }
    case MR_KIND_RECORDS:
      return format.record_count_max && format.record_size
                 ? known(bytes_of(format.record_count_max, 8 * std::min(format.record_size, kBytesMax)))
                 : UINT64_MAX;
    case MR_KIND_OBJECT: return 0;
    default: return format.bytes_max ? known(format.bytes_max) : UINT64_MAX;
  }
}

uint64_t copied_bytes(const mr_format& format) {
  const uint64_t bytes = capacity_of(format);
  return bytes == UINT64_MAX ? 0 : bytes + sizeof(mr_value);
}

std::string describe_pixels(uint64_t bits) {
  if (bits == 0) return "any pixel format";
  std::string text;
  for (uint32_t i = 1; i < MR_PIXEL_COUNT; ++i)
    if (bits >> i & 1) text += (text.empty() ? "" : ", ") + std::string(kPixelNames[i]);
  return text;
}

std::string describe_dtypes(uint32_t set) {
  std::string text;
  for (size_t i = 0; i < kDTypes.size(); ++i)
    if (set >> i & 1) text += (text.empty() ? "" : ", ") + name_of(kDTypes[i]);
  return text;
}

std::string describe_ranks(uint32_t set) {
  std::string text;
  for (uint32_t rank = 0; rank <= MR_RANK_MAX; ++rank)
    if (set >> rank & 1) text += (text.empty() ? "" : " or ") + std::to_string(rank);
  return text + (set == 2u ? " dimension" : " dimensions");
}

} // namespace millrace::plan
