// Looks at one record of a value as a peer may send it: what is read lies within its block, and is written as the same
// bytes. The fuzzer and the tests of records share it.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "millrace/payload.h"
#include "net/limits.h"
#include "net/value_record.h"

namespace millrace::net {

// The places in planned_examples().
enum Example : size_t {
  kFixedNv12,
  kBoundedNv12,
  kEmptyNv12,
  kAnyImage,
  kBgra,
  kI420,
  kP010,
  kGray,
  kFixedTensor,
  kBoundedTensor,
  kEmptyTensor,
  kScalar,
  kEightDimensions,
  kUnsettledTensor,
  kBoxes,
  kUnsettledRecords,
  kPacket,
  kAnyPacket,
  kAnyKind, // this and the next cross to nobody
  kObject,
  kExampleCount
};

// A planned format with the size of its block, and a value that meets it.
struct PlannedExample {
  mr_format format{};
  uint64_t capacity = 0;
  mr_value value{}; // kind 0 if no value of this format crosses
};

namespace fuzz {

__extension__ typedef unsigned __int128 Wide; // no product of two fields of a record wraps

inline PlannedExample image_example(uint64_t pixels, Pixel pixel, uint32_t size_kind, uint32_t width, uint32_t height,
                                    uint32_t width_now, uint32_t height_now) {
  PlannedExample example;
  example.format.kind = MR_KIND_IMAGE;
  example.format.schema = schema_of(Image::kSchema);
  example.format.pixel_formats = pixels;
  example.format.size_kind = size_kind;
  example.format.width = width;
  example.format.height = height;
  mr_image largest{};
  example.capacity = lay_out_image(pixel, width ? width : 32, height ? height : 32, largest);
  example.value.header = {example.format.schema, 0, MR_KIND_IMAGE, 7, 40'000'000, 40'000'000, MR_FLAG_KEYFRAME, 1, 0};
  mr_image& image = example.value.as.image;
  example.value.header.extent_bytes = lay_out_image(pixel, width_now, height_now, image);
  image.color = MR_COLOR_BT709;
  image.range = MR_RANGE_LIMITED;
  image.primaries = image.transfer = 1;
  image.aspect_num = 16;
  image.aspect_den = 11;
  return example;
}

inline PlannedExample tensor_example(DType dtype, uint32_t shape_kind, const std::vector<int64_t>& most,
                                     const std::vector<int64_t>& now) {
  PlannedExample example;
  mr_format& format = example.format;
  format.kind = MR_KIND_TENSOR;
  format.schema = schema_of(Tensor::kSchema);
  format.dtype_code = dtype.code;
  format.dtype_bits = dtype.bits;
  format.dtype_lanes = dtype.lanes;
  format.rank = static_cast<uint32_t>(most.size());
  mr_tensor& tensor = example.value.as.tensor;
  tensor = {dtype.code, dtype.bits, dtype.lanes, format.rank, {}, {}};
  int64_t stride = 1;
  for (uint32_t d = format.rank; d-- > 0; stride *= now[d]) {
    format.shape[d] = most[d];
    format.shape_kind[d] = shape_kind;
    tensor.shape[d] = now[d];
    tensor.strides[d] = stride;
  }
  example.capacity = bytes_of(elements_of(most), dtype.bits);
  example.value.header = {format.schema, 0, MR_KIND_TENSOR, 0, -1, 0, 0, 1, bytes_of(elements_of(now), dtype.bits)};
  return example;
}

inline PlannedExample records_example(uint64_t size, uint64_t count_max, uint64_t count) {
  PlannedExample example;
  example.format.kind = MR_KIND_RECORDS;
  example.format.schema = schema_of(Box::kSchema);
  example.format.layout = layout_of<Box>();
  example.format.record_size = size;
  example.format.record_count_max = count_max;
  example.capacity = count_max ? count_max * sizeof(Box) : 1024;
  example.value.header = {example.format.schema, example.format.layout, MR_KIND_RECORDS, 0, 5, 0, 0, 1,
                          count * sizeof(Box)};
  example.value.as.records = {count, sizeof(Box)};
  return example;
}

inline PlannedExample packet_example(uint64_t schema, uint64_t bytes_max, uint64_t bytes) {
  PlannedExample example;
  example.format.kind = MR_KIND_PACKET;
  example.format.schema = schema;
  example.format.bytes_max = bytes_max;
  example.capacity = 1024;
  example.value.header = {schema_of(Packet::kSchema), 0, MR_KIND_PACKET, 0, 5, 0, MR_FLAG_KEYFRAME, 1, bytes};
  example.value.as.packet = {0x34363248, 0, 4}; // "H264"
  return example;
}

inline std::vector<PlannedExample> all_examples() {
  constexpr DType kFloat = dtype_of<float>(), kByte = dtype_of<uint8_t>(), kShort = dtype_of<int16_t>();
  const uint64_t nv12 = bit_of(Pixel::nv12), four = bit_of(Pixel::rgba8) | bit_of(Pixel::bgra8);
  std::vector<PlannedExample> all = {
      image_example(nv12, Pixel::nv12, MR_DIM_FIXED, 64, 48, 64, 48),
      image_example(nv12, Pixel::nv12, MR_DIM_BOUNDED, 64, 48, 31, 21),
      image_example(nv12, Pixel::nv12, MR_DIM_FIXED, 64, 48, 0, 0),
      image_example(0, Pixel::rgb8, MR_DIM_UNKNOWN, 0, 0, 10, 12),
      image_example(four, Pixel::bgra8, MR_DIM_BOUNDED, 20, 20, 7, 20),
      image_example(bit_of(Pixel::i420), Pixel::i420, MR_DIM_FIXED, 17, 9, 17, 9),
      image_example(bit_of(Pixel::p010), Pixel::p010, MR_DIM_BOUNDED, 40, 30, 39, 29),
      image_example(bit_of(Pixel::gray8), Pixel::gray8, MR_DIM_BOUNDED, 40, 30, 1, 1),
      tensor_example(kFloat, MR_DIM_FIXED, {1, 3, 4, 5}, {1, 3, 4, 5}),
      tensor_example(kByte, MR_DIM_BOUNDED, {16, 16, 3}, {8, 16, 3}),
      tensor_example(kFloat, MR_DIM_FIXED, {4, 4}, {0, 4}),
      tensor_example(dtype_of<double>(), MR_DIM_FIXED, {}, {}),
      tensor_example(kShort, MR_DIM_BOUNDED, {2, 2, 2, 2, 2, 2, 2, 2}, {2, 1, 2, 1, 2, 2, 2, 2}),
      tensor_example(kFloat, MR_DIM_UNKNOWN, {4, 4}, {2, 2}),
      records_example(sizeof(Box), 100, 3),
      records_example(0, 0, 2),
      packet_example(schema_of(Packet::kSchema), 1000, 700),
      packet_example(0, 0, 0),
      {},
      {},
  };
  mr_format& unsettled = all[kUnsettledTensor].format; // as a port declares it
  unsettled.dtype_code = unsettled.dtype_bits = 0;
  unsettled.dtype_lanes = 0;
  unsettled.rank = 0;
  unsettled.dtypes = MR_DTYPES_FLOAT32 | MR_DTYPES_UINT8;
  unsettled.ranks = 1u << 2 | 1u << 3;
  all[kObject].format.kind = MR_KIND_OBJECT;
  for (PlannedExample& example : all) example.format.size = sizeof(mr_format);
  return all;
}

// The bytes of a row and the rows of a plane; false if the pixel format has no such plane.
inline bool plane_numbers(const mr_image& image, uint32_t plane, uint64_t& row, uint64_t& rows) {
  const uint64_t half_width = (uint64_t{image.width} + 1) / 2, half_height = (uint64_t{image.height} + 1) / 2;
  row = image.width;
  rows = plane ? half_height : image.height;
  switch (image.format) {
    case MR_PIXEL_GRAY8: return plane < 1;
    case MR_PIXEL_RGB8:
    case MR_PIXEL_BGR8: return row *= 3, plane < 1;
    case MR_PIXEL_RGBA8:
    case MR_PIXEL_BGRA8: return row *= 4, plane < 1;
    case MR_PIXEL_NV12: return row = plane ? half_width * 2 : row, plane < 2;
    case MR_PIXEL_I420: return row = plane ? half_width : row, plane < 3;
    case MR_PIXEL_P010: return row = plane ? half_width * 4 : row * 2, plane < 2;
    default: return false;
  }
}

inline const char* broken_image_rule(const mr_value& value, const mr_format& format) {
  const mr_image& image = value.as.image;
  if (image.format >= MR_PIXEL_COUNT) return "the pixel format has a name";
  if (format.pixel_formats && !(format.pixel_formats >> image.format & 1)) return "the pixel format is planned";
  const bool is_empty = image.width == 0 && image.height == 0;
  if (!is_empty && (image.width == 0 || image.height == 0)) return "no side alone is 0";
  if (!is_empty && format.width && format.size_kind == MR_DIM_FIXED)
    if (image.width != format.width || image.height != format.height) return "the size is as planned";
  if (format.width && (image.width > format.width || image.height > format.height))
    return "the size is within its most";
  if (image.color > 3 || image.range > 1 || image.primaries > 255 || image.transfer > 255)
    return "its meaning is known";
  if (image.plane_count == 0) return "there is a plane";
  for (uint32_t p = 0; p < MR_PLANES_MAX; ++p) {
    uint64_t row = 0, rows = 0;
    if (plane_numbers(image, p, row, rows) != (p < image.plane_count))
      return "the planes are those of the pixel format";
    if (p >= image.plane_count) continue;
    const mr_plane& plane = image.planes[p];
    if (plane.rows != rows) return "a plane has the rows of the picture";
    if (rows && plane.stride < row) return "a stride is a row at least";
    const Wide end = plane.offset + (rows ? Wide(rows - 1) * plane.stride + row : 0);
    if (end > value.header.extent_bytes) return "a plane lies within the value";
    const bool is_wide = image.format == MR_PIXEL_P010, is_pair = p == 1 && (is_wide || image.format == MR_PIXEL_NV12);
    const bool is_word = image.format == MR_PIXEL_RGBA8 || image.format == MR_PIXEL_BGRA8;
    const uint32_t unit = is_word ? 4 : (is_wide ? 2 : 1) * (is_pair ? 2 : 1);
    if (plane.offset % unit || plane.stride % unit) return "samples are aligned";
  }
  return nullptr;
}

inline const char* broken_tensor_rule(const mr_value& value, const mr_format& format) {
  const mr_tensor& tensor = value.as.tensor;
  if (tensor.rank > MR_RANK_MAX) return "the rank has its most";
  const bool is_settled = format.dtype_bits != 0;
  if (is_settled && tensor.rank != format.rank) return "the rank is as planned";
  if (!is_settled && format.ranks && !(format.ranks >> tensor.rank & 1)) return "the rank is accepted";
  const DType dtype = {tensor.dtype_code, tensor.dtype_bits, tensor.dtype_lanes};
  if (is_settled && dtype != DType{format.dtype_code, format.dtype_bits, format.dtype_lanes})
    return "the dtype is planned";
  if (!is_settled && format.dtypes && !(format.dtypes & bit_of(dtype))) return "the dtype is accepted";
  bool is_empty = false;
  for (uint32_t d = 0; d < tensor.rank; ++d) is_empty = is_empty || tensor.shape[d] == 0;
  const Wide element_bits = Wide(tensor.dtype_bits) * tensor.dtype_lanes;
  Wide last = 0, product = 1;
  for (uint32_t d = 0; d < tensor.rank; ++d) {
    if (tensor.shape[d] < 0 || tensor.strides[d] < 0) return "shape and strides are not negative";
    if (!is_empty && is_settled && tensor.shape[d] > format.shape[d]) return "the shape is within its most";
    if (!is_empty && is_settled && format.shape_kind[d] == MR_DIM_FIXED && tensor.shape[d] != format.shape[d])
      return "the shape is as planned";
    if (Wide(tensor.strides[d]) * element_bits > INT64_MAX) return "a stride in bits fits 64 bits";
    if (tensor.shape[d] > 0) product *= static_cast<uint64_t>(tensor.shape[d]);
    if (product * element_bits > INT64_MAX) return "the size in bits fits 64 bits";
    if (!is_empty) last += Wide(tensor.shape[d] - 1) * static_cast<uint64_t>(tensor.strides[d]);
  }
  const Wide bits = Wide(value.header.extent_bytes) * 8;
  if (!is_empty && ((last + 1) * element_bits > bits || product * element_bits > bits))
    return "every element lies within the value";
  return nullptr;
}

inline const char* broken_records_rule(const mr_value& value, const mr_format& format) {
  const mr_records& records = value.as.records;
  if (format.record_size && records.record_size != format.record_size) return "the record size is as planned";
  if (format.record_count_max && records.count > format.record_count_max) return "the count is within its most";
  if (records.count && !records.record_size) return "a record has bytes";
  if (Wide(records.count) * records.record_size > value.header.extent_bytes) return "the records lie within the value";
  return nullptr;
}

inline bool are_zero(const void* from, const void* end) {
  for (auto at = static_cast<const uint8_t*>(from); at != end; ++at)
    if (*at) return false;
  return true;
}

// True if all that the record does not carry is 0.
inline bool is_zero_elsewhere(const mr_value& value) {
  const void* const end = &value + 1;
  const mr_tensor& tensor = value.as.tensor;
  switch (value.header.kind) {
    case MR_KIND_IMAGE: return are_zero(&value.as.image.planes[value.as.image.plane_count], end);
    case MR_KIND_TENSOR:
      return are_zero(tensor.shape + tensor.rank, tensor.shape + MR_RANK_MAX) &&
             are_zero(tensor.strides + tensor.rank, tensor.strides + MR_RANK_MAX) && are_zero(&tensor + 1, end);
    case MR_KIND_PACKET: return value.as.packet.reserved == 0 && are_zero(&value.as.packet + 1, end);
    default: return are_zero(&value.as.records + 1, end);
  }
}

} // namespace fuzz

// One example for each way a format can be planned.
inline const std::vector<PlannedExample>& planned_examples() {
  static const std::vector<PlannedExample> examples = fuzz::all_examples();
  return examples;
}

// A rule that a value breaks which was read for this format; null if it keeps all. It counts in 128 bits and shares
// nothing with the code under test.
inline const char* broken_rule(const mr_value& value, const mr_format& format, uint64_t capacity) {
  const mr_header& header = value.header;
  if (header.kind != format.kind) return "the kind is as planned";
  if (format.schema && header.schema != format.schema) return "the schema is as planned";
  if (format.layout && header.layout != format.layout) return "the layout is as planned";
  if (header.flags > 1 || header.present > 1) return "flags and present are known";
  if (header.extent_bytes > capacity || header.extent_bytes > kValueBytesMax) return "the value lies within its block";
  if (!fuzz::is_zero_elsewhere(value)) return "what the record does not carry is 0";
  switch (header.kind) {
    case MR_KIND_IMAGE: return fuzz::broken_image_rule(value, format);
    case MR_KIND_TENSOR: return fuzz::broken_tensor_rule(value, format);
    case MR_KIND_RECORDS: return fuzz::broken_records_rule(value, format);
    case MR_KIND_PACKET:
      return format.bytes_max && header.extent_bytes > format.bytes_max ? "a packet is within its most" : nullptr;
    default: return "the kind crosses";
  }
}

// Reads the bytes as a record of a value of this format. Returns null if the record is refused or keeps every rule, and
// the broken rule else.
inline const char* look_at_value_record(const PlannedExample& planned, Bytes bytes) {
  mr_value value, again;
  std::memset(&value, 0xA5, sizeof value);
  std::memset(&again, 0x5A, sizeof again);
  ByteReader reader(bytes);
  const ValueFault fault = read_value(reader, planned.format, planned.capacity, value);
  if (fault >= ValueFault::count || std::strlen(sentence_of(fault)) < 8) return "a fault has a sentence";
  if (fault != ValueFault::none) return fuzz::are_zero(&value, &value + 1) ? nullptr : "a refused value is 0";
  if (!reader.good()) return "a record that is read is complete";
  if (const char* rule = broken_rule(value, planned.format, planned.capacity)) return rule;
  if (fault_of(value, planned.format, planned.capacity) != ValueFault::none) return "a value that is read may be sent";
  std::array<std::byte, kValueRecordBytesMax> room{};
  ByteWriter writer(room);
  const Bytes read = bytes.first(bytes.size() - reader.rest().size());
  if (write_value(value, writer) != read.size() || !writer.fits()) return "a value is written as long as it was read";
  if (std::memcmp(writer.written().data(), read.data(), read.size()) != 0) return "a value is written as it was read";
  ByteReader second(writer.written());
  if (read_value(second, planned.format, planned.capacity, again) != ValueFault::none || !second.at_end())
    return "what was written is read";
  return std::memcmp(&value, &again, sizeof value) == 0 ? nullptr : "a value comes back the same";
}

// The first byte chooses the format, the others are the record.
inline const char* look_at_value_record(Bytes input) {
  if (input.empty()) return nullptr;
  const std::vector<PlannedExample>& examples = planned_examples();
  return look_at_value_record(examples[static_cast<size_t>(input[0]) % examples.size()], input.subspan(1));
}

} // namespace millrace::net
