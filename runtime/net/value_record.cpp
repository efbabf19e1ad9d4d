// Writes, reads and checks the record of a value; see value_record.h.
#include "net/value_record.h"

#include <cstring>

#include "millrace/payload.h"
#include "millrace/sound_value.h"
#include "net/limits.h"
#include "observe/error.h"

namespace millrace::net {
namespace {

constexpr uint32_t kFlagsKnown = MR_FLAG_KEYFRAME;
constexpr uint32_t kCodePointMax = 255; // ITU-T H.273 gives a code point eight bits
// The most elements that fit a value, of one bit each. Sizes and strides up to it, times the bytes of an element, are
// far from 64 bits.
constexpr uint64_t kElementsMax = kValueBytesMax * 8;

ValueFault header_fault(const mr_header& header, const mr_format& planned, uint64_t capacity) {
  if (header.kind != planned.kind || header.kind == MR_KIND_ANY || header.kind >= MR_KIND_OBJECT)
    return ValueFault::kind;
  if (planned.schema && header.schema != planned.schema) return ValueFault::schema;
  if (planned.layout && header.layout != planned.layout) return ValueFault::layout;
  if (header.flags & ~kFlagsKnown) return ValueFault::flags;
  if (header.present > 1) return ValueFault::present;
  if (header.extent_bytes > capacity || header.extent_bytes > kValueBytesMax) return ValueFault::extent;
  return ValueFault::none;
}

// ---- faults that sound_value.h does not look for -------------------------------------------------------------------

// Bytes that are read at once from a plane: a sample, a pixel of four bytes, or a pair of chroma samples. The kernels
// that mix pictures read each with one load, which has to be aligned.
uint32_t unit_of(Pixel pixel, uint32_t plane) {
  const bool is_chroma = plane > 0;
  switch (pixel) {
    case Pixel::rgba8:
    case Pixel::bgra8: return 4;
    case Pixel::nv12: return is_chroma ? 2 : 1;
    case Pixel::p010: return is_chroma ? 4 : 2;
    default: return 1;
  }
}

// Handlers copy plane by plane and row by row into a picture of the same width and height that they lay out themselves,
// so both numbers have to be those of the layout.
ValueFault fault_of_plane_numbers(const mr_image& image) {
  mr_image layout{};
  if (lay_out_image(static_cast<Pixel>(image.format), image.width, image.height, layout) == kTooManyBytes)
    return ValueFault::plane_extent;
  if (image.plane_count != layout.plane_count) return ValueFault::plane_count;
  for (uint32_t p = 0; p < image.plane_count; ++p)
    if (image.planes[p].rows != layout.planes[p].rows) return ValueFault::plane_rows;
  return ValueFault::none;
}

ValueFault wire_fault_of_image(const mr_value& value) {
  const mr_image& image = value.as.image;
  const auto pixel = static_cast<Pixel>(image.format);
  if (pixel == Pixel::none) return ValueFault::pixel_format;
  if (const ValueFault fault = fault_of_plane_numbers(image); fault != ValueFault::none) return fault;
  for (uint32_t p = 0; p < image.plane_count; ++p) {
    const mr_plane& plane = image.planes[p];
    if (plane.offset > value.header.extent_bytes) return ValueFault::plane_extent; // if it is empty
    const uint32_t unit = unit_of(pixel, p);
    if (plane.offset % unit || plane.stride % unit) return ValueFault::plane_position;
  }
  const bool is_known = image.color <= MR_COLOR_BT2020 && image.range <= MR_RANGE_LIMITED &&
                        image.primaries <= kCodePointMax && image.transfer <= kCodePointMax;
  return is_known ? ValueFault::none : ValueFault::color;
}

ValueFault wire_fault_of_tensor(const mr_tensor& tensor, const mr_format& planned) {
  if (!planned.dtype_bits) { // not settled: sets say what is accepted
    const uint32_t bit = bit_of(DType{tensor.dtype_code, tensor.dtype_bits, tensor.dtype_lanes});
    if (!bit || (planned.dtypes && !(planned.dtypes & bit))) return ValueFault::dtype;
    if (planned.ranks && !(planned.ranks >> tensor.rank & 1)) return ValueFault::rank;
  }
  // An empty tensor's other dimensions, and the stride of a dimension of one element, address nothing; but handlers
  // multiply them.
  uint64_t elements = 1;
  for (uint32_t d = 0; d < tensor.rank; ++d) {
    const uint64_t extent = std::max<uint64_t>(1, static_cast<uint64_t>(tensor.shape[d]));
    if (extent > kElementsMax / elements) return ValueFault::shape;
    elements *= extent;
    const auto stride = static_cast<uint64_t>(tensor.strides[d]); // a negative one is larger than any
    if (stride > kElementsMax) return ValueFault::strides;
  }
  return ValueFault::none;
}

// Records of no size take no bytes, so nothing else would bound their count.
ValueFault wire_fault_of_records(const mr_records& records) {
  return records.record_size == 0 && records.count > 0 ? ValueFault::record_size : ValueFault::none;
}

ValueFault wire_fault_of(const mr_value& value, const mr_format& planned) {
  switch (value.header.kind) {
    case MR_KIND_IMAGE: return wire_fault_of_image(value);
    case MR_KIND_TENSOR: return wire_fault_of_tensor(value.as.tensor, planned);
    case MR_KIND_RECORDS: return wire_fault_of_records(value.as.records);
    default: // a packet
      return planned.bytes_max && value.header.extent_bytes > planned.bytes_max ? ValueFault::packet_bytes
                                                                                : ValueFault::none;
  }
}

// The reason of find_fault(), which calls some of them by one name.
ValueFault reason_of(millrace::ValueFault fault, const mr_format& planned, const mr_value& value) {
  using Found = millrace::ValueFault;
  switch (fault) {
    case Found::none: return ValueFault::none;
    case Found::kind: return ValueFault::kind;
    case Found::type: return ValueFault::schema;
    case Found::bytes: return ValueFault::extent;
    case Found::pixels: return ValueFault::pixel_format;
    case Found::size: return ValueFault::picture_size;
    case Found::planes:
    case Found::layout: {
      const ValueFault numbers = fault_of_plane_numbers(value.as.image);
      return numbers != ValueFault::none ? numbers : ValueFault::plane_extent;
    }
    case Found::dtype: return ValueFault::dtype;
    case Found::rank: return ValueFault::rank;
    case Found::shape: return ValueFault::shape;
    case Found::elements: {
      const mr_tensor& tensor = value.as.tensor;
      const bool is_negative =
          std::any_of(tensor.strides, tensor.strides + tensor.rank, [](int64_t s) { return s < 0; });
      return is_negative ? ValueFault::strides : ValueFault::elements;
    }
    case Found::records: break;
  }
  const mr_records& records = value.as.records;
  if (planned.record_size && records.record_size != planned.record_size) return ValueFault::record_size;
  if (planned.record_count_max && records.count > planned.record_count_max) return ValueFault::record_count;
  return ValueFault::record_bytes;
}

// ---- fields
// ------------------------------------------------------------------------------------------------------------

void write_image(const mr_image& image, ByteWriter& writer) {
  MR_ASSERT(image.plane_count <= MR_PLANES_MAX, "a value that is written has no fault");
  for (const uint32_t field : {image.format, image.width, image.height, image.plane_count, image.color, image.range,
                               image.primaries, image.transfer, image.aspect_num, image.aspect_den})
    writer.put(field);
  for (uint32_t p = 0; p < image.plane_count; ++p) {
    writer.put(image.planes[p].offset);
    writer.put(image.planes[p].stride);
    writer.put(image.planes[p].rows);
  }
}

ValueFault read_image(ByteReader& reader, mr_image& image) {
  for (uint32_t* field : {&image.format, &image.width, &image.height, &image.plane_count, &image.color, &image.range,
                          &image.primaries, &image.transfer, &image.aspect_num, &image.aspect_den})
    *field = reader.get<uint32_t>();
  if (image.plane_count > MR_PLANES_MAX) return ValueFault::plane_count;
  for (uint32_t p = 0; p < image.plane_count; ++p) {
    image.planes[p].offset = reader.get<uint64_t>();
    image.planes[p].stride = reader.get<uint32_t>();
    image.planes[p].rows = reader.get<uint32_t>();
  }
  return ValueFault::none;
}

void write_tensor(const mr_tensor& tensor, ByteWriter& writer) {
  MR_ASSERT(tensor.rank <= MR_RANK_MAX, "a value that is written has no fault");
  writer.put(tensor.dtype_code);
  writer.put(tensor.dtype_bits);
  writer.put(tensor.dtype_lanes);
  writer.put(tensor.rank);
  for (uint32_t d = 0; d < tensor.rank; ++d) writer.put(tensor.shape[d]);
  for (uint32_t d = 0; d < tensor.rank; ++d) writer.put(tensor.strides[d]);
}

ValueFault read_tensor(ByteReader& reader, mr_tensor& tensor) {
  tensor.dtype_code = reader.get<uint8_t>();
  tensor.dtype_bits = reader.get<uint8_t>();
  tensor.dtype_lanes = reader.get<uint16_t>();
  tensor.rank = reader.get<uint32_t>();
  if (tensor.rank > MR_RANK_MAX) return ValueFault::rank;
  for (uint32_t d = 0; d < tensor.rank; ++d) tensor.shape[d] = reader.get<int64_t>();
  for (uint32_t d = 0; d < tensor.rank; ++d) tensor.strides[d] = reader.get<int64_t>();
  return ValueFault::none;
}

mr_header read_header(ByteReader& reader) {
  mr_header header{};
  header.schema = reader.get<uint64_t>();
  header.layout = reader.get<uint64_t>();
  header.kind = reader.get<uint32_t>();
  header.stream = reader.get<uint32_t>();
  header.pts_ns = reader.get<int64_t>();
  header.duration_ns = reader.get<int64_t>();
  header.flags = reader.get<uint32_t>();
  header.present = reader.get<uint32_t>();
  header.extent_bytes = reader.get<uint64_t>();
  return header;
}

// Reads the fields of value.header.kind.
ValueFault read_kind(ByteReader& reader, mr_value& value) {
  switch (value.header.kind) {
    case MR_KIND_IMAGE: return read_image(reader, value.as.image);
    case MR_KIND_TENSOR: return read_tensor(reader, value.as.tensor);
    case MR_KIND_PACKET:
      value.as.packet.codec = reader.get<uint32_t>();
      value.as.packet.dts_ns = reader.get<int64_t>();
      return ValueFault::none;
    default:
      value.as.records.count = reader.get<uint64_t>();
      value.as.records.record_size = reader.get<uint64_t>();
      return ValueFault::none;
  }
}

ValueFault read_checked(ByteReader& reader, const mr_format& planned, uint64_t capacity, mr_value& value) {
  value.header = read_header(reader);
  if (!reader.good()) return ValueFault::short_record;
  if (const ValueFault fault = header_fault(value.header, planned, capacity); fault != ValueFault::none) return fault;
  const ValueFault fault = read_kind(reader, value);
  if (!reader.good()) return ValueFault::short_record;
  return fault != ValueFault::none ? fault : fault_of(value, planned, capacity);
}

} // namespace

const char* sentence_of(ValueFault fault) {
  switch (fault) {
    case ValueFault::none: return "has no fault";
    case ValueFault::short_record: return "has a record that ends before its last field";
    case ValueFault::kind: return "is of another kind than planned";
    case ValueFault::schema: return "is of another type than planned";
    case ValueFault::layout: return "is laid out in another way than planned";
    case ValueFault::flags: return "has a flag that is not known";
    case ValueFault::present: return "says neither that it is present nor that it is not";
    case ValueFault::extent: return "has more bytes than there is room for";
    case ValueFault::pixel_format: return "is in another pixel format than planned";
    case ValueFault::picture_size: return "is a picture of another size than planned";
    case ValueFault::plane_count: return "has more or fewer planes than its pixel format";
    case ValueFault::plane_rows: return "has a plane with more or fewer rows than the picture";
    case ValueFault::plane_extent: return "has a plane that ends after its bytes, or rows that overlap";
    case ValueFault::plane_position: return "has a plane whose offset or stride cuts a sample";
    case ValueFault::color: return "has a matrix, range, primaries or transfer that is not known";
    case ValueFault::dtype: return "is of another element type than planned";
    case ValueFault::rank: return "has more or fewer dimensions than planned";
    case ValueFault::shape: return "has another shape than planned";
    case ValueFault::strides: return "has a stride that is negative or too large";
    case ValueFault::elements: return "has more elements than it has bytes for";
    case ValueFault::record_size: return "has records of another size than planned";
    case ValueFault::record_count: return "has more records than planned";
    case ValueFault::record_bytes: return "has more records than it has bytes for";
    case ValueFault::packet_bytes: return "is a packet of more bytes than planned";
    case ValueFault::count: break;
  }
  return "has a fault without a name";
}

ValueFault fault_of(const mr_value& value, const mr_format& planned, uint64_t capacity) {
  if (const ValueFault fault = header_fault(value.header, planned, capacity); fault != ValueFault::none) return fault;
  const millrace::ValueFault found = find_fault(planned, value, capacity);
  return found != millrace::ValueFault::none ? reason_of(found, planned, value) : wire_fault_of(value, planned);
}

size_t write_value(const mr_value& value, ByteWriter& writer) {
  const size_t before = writer.size();
  const mr_header& header = value.header;
  writer.put(header.schema);
  writer.put(header.layout);
  writer.put(header.kind);
  writer.put(header.stream);
  writer.put(header.pts_ns);
  writer.put(header.duration_ns);
  writer.put(header.flags);
  writer.put(header.present);
  writer.put(header.extent_bytes);
  switch (header.kind) {
    case MR_KIND_IMAGE: write_image(value.as.image, writer); break;
    case MR_KIND_TENSOR: write_tensor(value.as.tensor, writer); break;
    case MR_KIND_PACKET:
      writer.put(value.as.packet.codec);
      writer.put(value.as.packet.dts_ns);
      break;
    case MR_KIND_RECORDS:
      writer.put(value.as.records.count);
      writer.put(value.as.records.record_size);
      break;
    default: MR_ASSERT(false, "an object never crosses to another process");
  }
  return writer.size() - before;
}

ValueFault read_value(ByteReader& reader, const mr_format& planned, uint64_t capacity, mr_value& value) {
  std::memset(&value, 0, sizeof value);
  const ValueFault fault = read_checked(reader, planned, capacity, value);
  if (fault != ValueFault::none) std::memset(&value, 0, sizeof value);
  return fault;
}

} // namespace millrace::net
