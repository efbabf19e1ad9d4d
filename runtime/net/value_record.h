// An mr_value to bytes and back: the fields of its header, then those of its kind.
//
// The bytes come from a peer and are not trusted. Handlers loop over planes and rows, copy them into pictures that they
// lay out from width and height, and hand offsets to a GPU; so a value that passes here is one that all of that is safe
// with, whatever the peer wrote. The checks that every output meets are in millrace/sound_value.h and are used here.
// Those that only a link needs are added.
//
// Little endian, without padding:
//
//   header   schema u64 | layout u64 | kind u32 | stream u32 | pts_ns i64 | duration_ns i64 | flags u32 | present u32 |
//            extent_bytes u64
//   image    format, width, height, plane_count, color, range, primaries, transfer, aspect_num, aspect_den: u32 each |
//            for each plane: offset u64 | stride u32 | rows u32
//   tensor   dtype_code u8 | dtype_bits u8 | dtype_lanes u16 | rank u32 | shape, then strides: rank × i64 each
//   packet   codec u32 | dts_ns i64
//   records  count u64 | record_size u64
//
// A record has one spelling: a value that was read is written as the same bytes. Any thread may call these functions;
// they keep no state and allocate nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "millrace/abi.h"
#include "net/bytes.h"

namespace millrace::net {

inline constexpr size_t kValueHeaderBytes = 8 + 8 + 4 + 4 + 8 + 8 + 4 + 4 + 8;
inline constexpr size_t kImageFieldBytes = 10 * 4, kPlaneFieldBytes = 8 + 4 + 4;
inline constexpr size_t kTensorFieldBytes = 1 + 1 + 2 + 4, kDimensionFieldBytes = 8 + 8;
inline constexpr size_t kPacketFieldBytes = 4 + 8;
inline constexpr size_t kRecordsFieldBytes = 8 + 8;
// The longest record: a tensor of eight dimensions.
inline constexpr size_t kValueRecordBytesMax =
    kValueHeaderBytes +
    std::max({kImageFieldBytes + MR_PLANES_MAX * kPlaneFieldBytes,
              kTensorFieldBytes + MR_RANK_MAX* kDimensionFieldBytes, kPacketFieldBytes, kRecordsFieldBytes});
static_assert(kValueRecordBytesMax == 192);
static_assert(kValueRecordBytesMax <= 212, "limits.h counts with 212 bytes for a value");

// The first thing that is wrong with a value or its record.
enum class ValueFault : uint8_t {
  none,
  short_record,   // it ends before its last field
  kind,           // not the planned one, or one that does not cross: any, object
  schema,         // another type than planned
  layout,         // the type is laid out in another way than planned
  flags,          // a bit that is not in MR_FLAG_*
  present,        // neither 0 nor 1
  extent,         // more bytes than the block has, or than kValueBytesMax
  pixel_format,   // not a planned one, or none
  picture_size,   // not the planned size, more than it if that is the most, or one side alone is 0
  plane_count,    // not that of the pixel format
  plane_rows,     // not those of the pixel format and the height
  plane_extent,   // a plane begins or ends after the value's bytes, or its stride is less than a row
  plane_position, // an offset or a stride that cuts a sample or a pair of them
  color,          // matrix, range, primaries or transfer that no table has
  dtype,          // not the planned one
  rank,           // not the planned one, or more than MR_RANK_MAX
  shape,          // negative, not planned, or so large that its product wraps
  strides,        // negative, or so large that a position in bytes wraps
  elements,       // an element lies after the value's bytes, or there are more of them than bytes for them
  record_size,    // not the planned one; or 0, and there are records
  record_count,   // more than planned
  record_bytes,   // more than the value has
  packet_bytes,   // more than planned
  count,
};
// A sentence without its subject and full stop: "has a plane that ends after its bytes".
const char* sentence_of(ValueFault fault);

// The first fault of a value whose block has `capacity` bytes. A link's sender asks this before write_value(): a
// handler may give values that stay sound within one process, and that no peer would take.
ValueFault fault_of(const mr_value& value, const mr_format& planned, uint64_t capacity);

// Writes the record of a value without a fault, and returns how many bytes that takes. Fields of other kinds, planes
// after the last and the reserved field of a packet are not written.
size_t write_value(const mr_value& value, ByteWriter& writer);

// Reads a record and checks it as fault_of() does. All that the record does not carry is 0 in `value`; with a fault all
// of it is 0. The reader is left after the record, unless there was a fault.
ValueFault read_value(ByteReader& reader, const mr_format& planned, uint64_t capacity, mr_value& value);

} // namespace millrace::net
