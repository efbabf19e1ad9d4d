// Compares a value with the format that was planned for its output. The runtime, `check-handler` and tests of handlers
// share it. find_fault() allocates nothing; words_of() does.
#pragma once

#include <cstdint>
#include <string>

#include "millrace/abi.h"
#include "millrace/payload.h"

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {

enum class ValueFault : uint8_t {
  none,
  kind,
  type,
  bytes,
  pixels,
  size,
  planes,
  layout,
  dtype,
  rank,
  shape,
  elements,
  records
};

namespace detail {

// `layout`: handlers walk over the planes and rows that a picture says, so they are exactly those of its format and
// size. `planes`: a plane does not lie within the bytes of the value, with whole rows.
inline ValueFault plane_fault(const mr_image& image, uint64_t bytes) {
  const auto pixel = static_cast<Pixel>(image.format);
  const uint64_t half_width = (uint64_t{image.width} + 1) / 2, half_height = (uint64_t{image.height} + 1) / 2;
  uint32_t planes = 1;
  uint64_t chroma = 0; // bytes of a row of the planes after the first
  if (pixel == Pixel::nv12 || pixel == Pixel::p010) {
    planes = 2;
    chroma = half_width * (pixel == Pixel::p010 ? 4 : 2);
  } else if (pixel == Pixel::i420) {
    planes = 3;
    chroma = half_width;
  }
  if (image.plane_count != planes) return ValueFault::layout;
  for (uint32_t i = 0; i < planes; ++i) {
    const mr_plane& plane = image.planes[i];
    const uint64_t row = i == 0 ? uint64_t{image.width} * bytes_per_pixel(pixel) : chroma;
    const uint64_t rows = i == 0 ? image.height : half_height;
    if (plane.rows != rows) return ValueFault::layout;
    if (plane.stride < row || plane.offset > bytes) return ValueFault::planes;
    if ((rows - 1) * plane.stride + row > bytes - plane.offset) return ValueFault::planes;
  }
  return ValueFault::none;
}

inline ValueFault image_fault(const mr_format& planned, const mr_value& value) {
  const mr_image& image = value.as.image;
  if (image.format >= MR_PIXEL_COUNT || (planned.pixel_formats && !(planned.pixel_formats >> image.format & 1)))
    return ValueFault::pixels;
  if (image.width == 0 && image.height == 0) return ValueFault::none; // empty: there is nothing to read
  const bool fixed = planned.size_kind == MR_DIM_FIXED && planned.width && planned.height;
  const bool fits = image.width <= planned.width && image.height <= planned.height;
  if (fixed ? image.width != planned.width || image.height != planned.height : planned.width && !fits)
    return ValueFault::size;
  if (image.width == 0 || image.height == 0) return ValueFault::size;
  return plane_fault(image, value.header.extent_bytes);
}

// True if the last element that the strides reach lies within `elements`, and the shape counts no more than `elements`.
inline bool elements_fit(const mr_tensor& tensor, uint64_t elements) {
  uint64_t count = 1, last = 0;
  for (uint32_t d = 0; d < tensor.rank; ++d) {
    const auto extent = static_cast<uint64_t>(tensor.shape[d]);
    if (extent == 0) return true;
    uint64_t reach = 0;
    if (tensor.strides[d] < 0 && extent > 1) return false;
    if (__builtin_mul_overflow(count, extent, &count) ||
        __builtin_mul_overflow(extent - 1, static_cast<uint64_t>(tensor.strides[d]), &reach) ||
        __builtin_add_overflow(last, reach, &last))
      return false;
  }
  return count <= elements && last < elements;
}

inline ValueFault tensor_fault(const mr_format& planned, const mr_value& value) {
  const mr_tensor& tensor = value.as.tensor;
  if (tensor.rank > MR_RANK_MAX) return ValueFault::rank;
  const uint64_t bits = uint64_t{tensor.dtype_bits} * tensor.dtype_lanes;
  if (planned.dtype_bits && (tensor.dtype_code != planned.dtype_code || tensor.dtype_bits != planned.dtype_bits ||
                             tensor.dtype_lanes != planned.dtype_lanes))
    return ValueFault::dtype;
  if (planned.dtype_bits && tensor.rank != planned.rank) return ValueFault::rank;
  bool empty = false, meets = true;
  for (uint32_t d = 0; d < tensor.rank; ++d) {
    if (tensor.shape[d] < 0) return ValueFault::shape;
    empty = empty || tensor.shape[d] == 0;
    if (!planned.dtype_bits) continue;
    meets = meets && (planned.shape_kind[d] == MR_DIM_FIXED ? tensor.shape[d] == planned.shape[d]
                                                            : tensor.shape[d] <= planned.shape[d]);
  }
  if (empty) return ValueFault::none;
  if (!meets) return ValueFault::shape;
  if (!bits) return ValueFault::dtype;
  uint64_t bytes = value.header.extent_bytes;
  if (bytes > UINT64_MAX / 8) bytes = UINT64_MAX / 8;
  return elements_fit(tensor, bytes * 8 / bits) ? ValueFault::none : ValueFault::elements;
}

inline ValueFault records_fault(const mr_format& planned, const mr_value& value) {
  const mr_records& records = value.as.records;
  uint64_t bytes = 0;
  const bool unlike = planned.record_size && records.record_size != planned.record_size;
  const bool many = planned.record_count_max && records.count > planned.record_count_max;
  const bool wraps = __builtin_mul_overflow(records.count, records.record_size, &bytes);
  return unlike || many || wraps || bytes > value.header.extent_bytes ? ValueFault::records : ValueFault::none;
}

inline std::string shape_words(const int64_t* shape, uint32_t rank) {
  std::string words = "[";
  for (uint32_t d = 0; d < rank && d < MR_RANK_MAX; ++d) words += (d ? ", " : "") + std::to_string(shape[d]);
  return words + "]";
}
inline std::string pixel_words(uint64_t bits) {
  std::string words;
  for (uint32_t pixel = 1; pixel < MR_PIXEL_COUNT; ++pixel)
    if (bits >> pixel & 1) words += (words.empty() ? "" : " or ") + std::string(kPixelNames[pixel]);
  return words;
}

} // namespace detail

// The first fault of a value whose block has room for `capacity` bytes. A value without elements fits every format of
// its type: an empty initial value, and values that are made from it.
inline ValueFault find_fault(const mr_format& planned, const mr_value& value, uint64_t capacity) {
  const mr_header& header = value.header;
  if (header.extent_bytes > capacity) return ValueFault::bytes;
  if (planned.kind == MR_KIND_ANY) return ValueFault::none;
  if (header.kind != planned.kind) return ValueFault::kind;
  if (planned.schema && header.schema != planned.schema) return ValueFault::type;
  switch (header.kind) {
    case MR_KIND_IMAGE: return detail::image_fault(planned, value);
    case MR_KIND_TENSOR: return detail::tensor_fault(planned, value);
    case MR_KIND_RECORDS: return detail::records_fault(planned, value);
    default: return ValueFault::none;
  }
}

// The fault in words that follow the name of the output: "is 160x90, and 320x90 was planned".
inline std::string words_of(ValueFault fault, const mr_format& planned, const mr_value& value, uint64_t capacity) {
  const mr_image& image = value.as.image;
  const mr_tensor& tensor = value.as.tensor;
  const auto size = [](uint32_t width, uint32_t height) {
    return std::to_string(width) + "x" + std::to_string(height);
  };
  switch (fault) {
    case ValueFault::none: return "";
    case ValueFault::kind: return "carries another kind of value";
    case ValueFault::type: return "carries another type of value";
    case ValueFault::bytes:
      return "says that it has " + std::to_string(value.header.extent_bytes) + " bytes, and there is room for " +
             std::to_string(capacity);
    case ValueFault::pixels:
      return "is in " +
             std::string(image.format < MR_PIXEL_COUNT ? kPixelNames[image.format] : "no known pixel format") +
             ", and " + detail::pixel_words(planned.pixel_formats) + " was planned";
    case ValueFault::size:
      return "is " + size(image.width, image.height) + ", and " +
             (planned.size_kind == MR_DIM_FIXED ? "" : "at most ") + size(planned.width, planned.height) +
             " was planned";
    case ValueFault::planes: return "has a plane that ends past its bytes";
    case ValueFault::layout: return "has other planes or rows than its pixel format and height ask for";
    case ValueFault::dtype:
      return "is of " + name_of(DType{tensor.dtype_code, tensor.dtype_bits, tensor.dtype_lanes}) + ", and " +
             name_of(DType{planned.dtype_code, planned.dtype_bits, planned.dtype_lanes}) + " was planned";
    case ValueFault::rank:
      return "has " + std::to_string(tensor.rank) + " dimensions, and " + std::to_string(planned.rank) +
             " were planned";
    case ValueFault::shape:
      return "has the shape " + detail::shape_words(tensor.shape, tensor.rank) + ", and " +
             detail::shape_words(planned.shape, planned.rank) + " was planned";
    case ValueFault::elements: return "has more elements than it has bytes for";
    case ValueFault::records:
      return "counts " + std::to_string(value.as.records.count) + " records of " +
             std::to_string(value.as.records.record_size) + " bytes in " + std::to_string(value.header.extent_bytes) +
             ", and at most " + std::to_string(planned.record_count_max) + " of " +
             std::to_string(planned.record_size) + " were planned";
  }
  return "";
}

} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
