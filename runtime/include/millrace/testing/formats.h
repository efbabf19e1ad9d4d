// The formats of edges in a test, as a plan would know them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "millrace/testing/value.h"

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {
namespace testing {
namespace detail {

// The format that a plan would have for an edge that carries this value.
inline mr_format format_of(const Value& value, const mr_format& accepts, uint32_t dims) {
  mr_format format = accepts;
  if (!value) return format;
  const mr_value& raw = value.raw();
  format.kind = raw.header.kind;
  format.schema = raw.header.schema;
  format.layout = raw.header.layout;
  if (format.kind == MR_KIND_IMAGE) {
    format.pixel_formats = 1ull << raw.as.image.format;
    format.width = raw.as.image.width;
    format.height = raw.as.image.height;
    format.size_kind = dims;
    format.color = raw.as.image.color;
    format.range = raw.as.image.range;
  } else if (format.kind == MR_KIND_TENSOR) {
    format.dtype_code = raw.as.tensor.dtype_code;
    format.dtype_bits = raw.as.tensor.dtype_bits;
    format.dtype_lanes = raw.as.tensor.dtype_lanes;
    format.rank = raw.as.tensor.rank;
    std::copy_n(raw.as.tensor.shape, MR_RANK_MAX, format.shape);
    std::fill_n(format.shape_kind, MR_RANK_MAX, dims);
  } else if (format.kind == MR_KIND_RECORDS) {
    format.record_size = raw.as.records.record_size;
    format.records = value.block()->record_type;
    // Counts vary from tick to tick. A plan has a bound, and the first value does not tell it.
    format.record_count_max = std::max<uint64_t>({accepts.record_count_max, raw.as.records.count, 1024});
  }
  return format;
}
inline bool accepted(const mr_format& accepts, const mr_format& given) {
  if (accepts.kind == MR_KIND_ANY) return true;
  if (accepts.kind != given.kind || (accepts.schema && accepts.schema != given.schema)) return false;
  const DType dtype{given.dtype_code, given.dtype_bits, given.dtype_lanes};
  const bool known = dtype.bits > 0; // false if the first value is empty
  if (known && accepts.dtypes && !(accepts.dtypes & bit_of(dtype))) return false;
  if (known && accepts.ranks && (given.rank > MR_RANK_MAX || !(accepts.ranks >> given.rank & 1))) return false;
  return accepts.pixel_formats == 0 || (accepts.pixel_formats & given.pixel_formats) == given.pixel_formats;
}

// Bytes of the largest value of a format; UINT64_MAX if nothing limits it.
inline uint64_t bytes_max(const mr_format& format) {
  if (format.kind == MR_KIND_IMAGE) {
    uint64_t largest = 0;
    for (uint32_t pixel = 1; pixel < MR_PIXEL_COUNT; ++pixel) {
      mr_image layout{};
      if (format.pixel_formats == 0 || (format.pixel_formats >> pixel & 1))
        largest = std::max(largest, lay_out_image(static_cast<Pixel>(pixel), format.width, format.height, layout));
    }
    return std::max(largest, format.bytes_max);
  }
  if (format.kind == MR_KIND_TENSOR && format.dtype_bits) {
    uint64_t bits = uint64_t{format.dtype_bits} * format.dtype_lanes;
    for (uint32_t d = 0; d < format.rank; ++d) bits *= static_cast<uint64_t>(format.shape[d]);
    return bits / 8;
  }
  if (format.kind == MR_KIND_RECORDS && format.record_count_max) return format.record_count_max * format.record_size;
  return format.bytes_max ? format.bytes_max : UINT64_MAX;
}

} // namespace detail
} // namespace testing
} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
