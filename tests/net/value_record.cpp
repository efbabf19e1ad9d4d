// Records of values: every kind comes back, every damaged field is refused with its reason, and no damage gets past.
#include "net/value_record.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/packed.h"
#include "tests/fuzz/value_record_fuzz.h"
#include "tests/part.h"
#include "tests/seed.h"

namespace millrace::net {
namespace {

using F = ValueFault;

std::vector<std::byte> record_of(const mr_value& value) {
  std::array<std::byte, kValueRecordBytesMax> room{};
  ByteWriter writer(room);
  const size_t size = write_value(value, writer);
  REQUIRE(writer.fits());
  REQUIRE(writer.size() == size);
  return {room.begin(), room.begin() + static_cast<ptrdiff_t>(size)};
}
std::vector<std::byte> record_of(Example example) { return record_of(planned_examples()[example].value); }

ValueFault fault_when_read(Bytes record, const PlannedExample& planned) {
  CHECK(look_at_value_record(planned, record) == nullptr);
  mr_value value;
  ByteReader reader(record);
  return read_value(reader, planned.format, planned.capacity, value);
}

// The fields of a record, by their first byte and how many there are.
struct Field {
  size_t at, bytes;
};
constexpr Field kSchema{0, 8}, kLayout{8, 8}, kKind{16, 4}, kStream{20, 4}, kPts{24, 8}, kDuration{32, 8},
    kFlags{40, 4}, kPresent{44, 4}, kExtent{48, 8};
constexpr Field kFormat{56, 4}, kWidth{60, 4}, kHeight{64, 4}, kPlaneCount{68, 4}, kColor{72, 4}, kRange{76, 4},
    kPrimaries{80, 4}, kTransfer{84, 4}, kAspectNum{88, 4}, kAspectDen{92, 4};
constexpr Field offset_of_plane(size_t p) { return {96 + 16 * p, 8}; }
constexpr Field stride_of_plane(size_t p) { return {104 + 16 * p, 4}; }
constexpr Field rows_of_plane(size_t p) { return {108 + 16 * p, 4}; }
constexpr Field kDtypeCode{56, 1}, kDtypeBits{57, 1}, kDtypeLanes{58, 2}, kRank{60, 4};
constexpr Field shape_of(size_t d) { return {64 + 8 * d, 8}; }
constexpr Field stride_of(size_t rank, size_t d) { return {64 + 8 * (rank + d), 8}; }
constexpr Field kCodec{56, 4}, kDts{60, 8};
constexpr Field kRecordCount{56, 8}, kRecordSize{64, 8};

constexpr uint64_t kMost32 = UINT32_MAX, kMost64 = UINT64_MAX, kMostSigned = INT64_MAX, kMinusOne = UINT64_MAX,
                   kLeastSigned = uint64_t{1} << 63, kMostElements = kValueBytesMax * 8;

void set_field(std::vector<std::byte>& record, Field field, uint64_t number) {
  REQUIRE(field.at + field.bytes <= record.size());
  for (size_t i = 0; i < field.bytes; ++i) record[field.at + i] = static_cast<std::byte>(number >> (8 * i));
}

// A field of the example's record is set to each of these numbers, and the record is read.
struct Damage {
  Example example;
  const char* name;
  Field field;
  std::vector<std::pair<uint64_t, ValueFault>> cases;
};

void check_damages(const std::vector<Damage>& damages) {
  for (const Damage& damage : damages) {
    INFO("example " << damage.example << ", " << damage.name);
    for (const auto& [number, expected] : damage.cases) {
      INFO("set to " << number << ", expected: " << sentence_of(expected));
      std::vector<std::byte> record = record_of(damage.example);
      set_field(record, damage.field, number);
      const ValueFault fault = fault_when_read(record, planned_examples()[damage.example]);
      CHECK_MESSAGE(fault == expected, sentence_of(fault));
    }
  }
}

} // namespace

TEST_CASE("a value of every kind that crosses comes back the same") {
  REQUIRE(planned_examples().size() == kExampleCount);
  for (size_t i = 0; i < kAnyKind; ++i) {
    CAPTURE(i);
    const PlannedExample& planned = planned_examples()[i];
    REQUIRE(fault_of(planned.value, planned.format, planned.capacity) == F::none);
    const std::vector<std::byte> record = record_of(planned.value);
    ByteReader reader(record);
    mr_value value;
    std::memset(&value, 0xA5, sizeof value);
    REQUIRE(read_value(reader, planned.format, planned.capacity, value) == F::none);
    CHECK(reader.at_end());
    CHECK(std::memcmp(&value, &planned.value, sizeof value) == 0);
    CHECK(look_at_value_record(planned, record) == nullptr);
  }
}

TEST_CASE("a record has the bytes that its kind takes") {
  CHECK(record_of(kGray).size() == 56 + 40 + 16);
  CHECK(record_of(kI420).size() == 56 + 40 + 3 * 16);
  CHECK(record_of(kScalar).size() == 56 + 8);
  CHECK(record_of(kEightDimensions).size() == kValueRecordBytesMax);
  CHECK(record_of(kPacket).size() == 56 + 12);
  CHECK(record_of(kBoxes).size() == 56 + 16);
}

TEST_CASE("a record leaves the reader at the byte after it") {
  std::vector<std::byte> bytes = record_of(kFixedTensor);
  const size_t first = bytes.size();
  const std::vector<std::byte> second = record_of(kPacket);
  bytes.insert(bytes.end(), second.begin(), second.end());
  ByteReader reader(bytes);
  mr_value value;
  const PlannedExample &tensor = planned_examples()[kFixedTensor], &packet = planned_examples()[kPacket];
  REQUIRE(read_value(reader, tensor.format, tensor.capacity, value) == F::none);
  CHECK(reader.rest().size() == bytes.size() - first);
  REQUIRE(read_value(reader, packet.format, packet.capacity, value) == F::none);
  CHECK(reader.at_end());
}

TEST_CASE("a record is not written beyond its room") {
  const PlannedExample& planned = planned_examples()[kI420];
  const std::vector<std::byte> whole = record_of(kI420);
  for (size_t size = 0; size < whole.size(); ++size) {
    std::vector<std::byte> room(size);
    ByteWriter writer(room);
    write_value(planned.value, writer);
    CHECK(!writer.fits());
  }
}

TEST_CASE("bytes that belong to no field of the kind are not written") {
  for (size_t i = 0; i < kAnyKind; ++i) {
    const mr_value& value = planned_examples()[i].value;
    mr_value dirty;
    std::memset(&dirty, 0xEE, sizeof dirty);
    dirty.header = value.header;
    switch (value.header.kind) {
      case MR_KIND_IMAGE: std::memcpy(&dirty.as.image, &value.as.image, 40 + 16 * value.as.image.plane_count); break;
      case MR_KIND_TENSOR:
        std::memcpy(&dirty.as.tensor, &value.as.tensor, 8 + 8 * value.as.tensor.rank);
        std::memcpy(&dirty.as.tensor.strides, &value.as.tensor.strides, 8 * value.as.tensor.rank);
        break;
      case MR_KIND_PACKET:
        dirty.as.packet.codec = value.as.packet.codec;
        dirty.as.packet.dts_ns = value.as.packet.dts_ns;
        break;
      default: dirty.as.records = value.as.records;
    }
    CHECK(record_of(dirty) == record_of(value));
  }
}

TEST_CASE("a record that ends early is refused, wherever it ends") {
  for (size_t i = 0; i < kAnyKind; ++i) {
    CAPTURE(i);
    const std::vector<std::byte> record = record_of(static_cast<Example>(i));
    for (size_t size = 0; size < record.size(); ++size) {
      CAPTURE(size);
      CHECK(fault_when_read(Bytes(record).first(size), planned_examples()[i]) == F::short_record);
    }
  }
}

TEST_CASE("a damaged header is refused with its reason") {
  const uint64_t image = schema_of(Image::kSchema), box = schema_of(Box::kSchema), boxes = layout_of<Box>();
  check_damages({
      {kBoundedNv12,
       "schema",
       kSchema,
       {{0, F::schema}, {image, F::none}, {image + 1, F::schema}, {kMost64, F::schema}}},
      {kBoundedNv12, "layout", kLayout, {{0, F::none}, {1, F::none}, {kMost64, F::none}}}, // no layout was planned
      {kBoundedNv12,
       "kind",
       kKind,
       {{0, F::kind}, {1, F::none}, {2, F::kind}, {5, F::kind}, {6, F::kind}, {kMost32, F::kind}}},
      {kBoundedNv12, "stream", kStream, {{0, F::none}, {1, F::none}, {kMost32, F::none}}},
      {kBoundedNv12, "pts_ns", kPts, {{0, F::none}, {kMostSigned, F::none}, {kLeastSigned, F::none}}},
      {kBoundedNv12, "duration_ns", kDuration, {{0, F::none}, {kMostSigned, F::none}, {kLeastSigned, F::none}}},
      {kBoundedNv12, "flags", kFlags, {{0, F::none}, {1, F::none}, {2, F::flags}, {3, F::flags}, {kMost32, F::flags}}},
      {kBoundedNv12, "present", kPresent, {{0, F::none}, {1, F::none}, {2, F::present}, {kMost32, F::present}}},
      {kBoxes, "schema", kSchema, {{0, F::schema}, {box, F::none}, {image, F::schema}}},
      {kBoxes, "layout", kLayout, {{0, F::layout}, {boxes, F::none}, {boxes + 1, F::layout}, {kMost64, F::layout}}},
      {kAnyPacket, "schema", kSchema, {{0, F::none}, {1, F::none}, {kMost64, F::none}}}, // no schema was planned
  });
}

TEST_CASE("damaged fields of a picture are refused with their reasons") {
  check_damages({
      // 31 × 21, at most 64 × 48: rows of 64 bytes, planes at 0 and 1,344, 2,048 bytes of 4,608.
      {kBoundedNv12,
       "extent",
       kExtent,
       {{0, F::plane_extent},
        {2015, F::plane_extent},
        {2016, F::none},
        {2048, F::none},
        {4608, F::none},
        {4609, F::extent},
        {kMost64, F::extent}}},
      {kBoundedNv12,
       "format",
       kFormat,
       {{0, F::pixel_format},
        {1, F::pixel_format},
        {6, F::none},
        {7, F::pixel_format},
        {8, F::pixel_format},
        {9, F::pixel_format},
        {64, F::pixel_format},
        {kMost32, F::pixel_format}}},
      {kBoundedNv12,
       "width",
       kWidth,
       {{0, F::picture_size}, {1, F::none}, {64, F::none}, {65, F::picture_size}, {kMost32, F::picture_size}}},
      {kBoundedNv12,
       "height",
       kHeight,
       {{0, F::picture_size},
        {1, F::plane_rows},
        {20, F::plane_rows},
        {21, F::none},
        {22, F::plane_rows},
        {48, F::plane_rows},
        {49, F::picture_size},
        {kMost32, F::picture_size}}},
      {kBoundedNv12,
       "plane_count",
       kPlaneCount,
       {{0, F::plane_count},
        {1, F::plane_count},
        {2, F::none},
        {3, F::short_record},
        {4, F::short_record},
        {5, F::plane_count},
        {kMost32, F::plane_count}}},
      {kBoundedNv12, "color", kColor, {{0, F::none}, {1, F::none}, {3, F::none}, {4, F::color}, {kMost32, F::color}}},
      {kBoundedNv12, "range", kRange, {{0, F::none}, {1, F::none}, {2, F::color}, {kMost32, F::color}}},
      {kBoundedNv12,
       "primaries",
       kPrimaries,
       {{0, F::none}, {1, F::none}, {255, F::none}, {256, F::color}, {kMost32, F::color}}},
      {kBoundedNv12,
       "transfer",
       kTransfer,
       {{0, F::none}, {1, F::none}, {255, F::none}, {256, F::color}, {kMost32, F::color}}},
      {kBoundedNv12, "aspect_num", kAspectNum, {{0, F::none}, {1, F::none}, {kMost32, F::none}}},
      {kBoundedNv12, "aspect_den", kAspectDen, {{0, F::none}, {1, F::none}, {kMost32, F::none}}},
  });
}

TEST_CASE("a picture of the wrong size or pixel format is refused with its reason") {
  check_damages({
      {kFixedNv12,
       "width",
       kWidth,
       {{0, F::picture_size}, {63, F::picture_size}, {64, F::none}, {65, F::picture_size}}},
      {kFixedNv12,
       "height",
       kHeight,
       {{0, F::picture_size}, {47, F::picture_size}, {48, F::none}, {49, F::picture_size}}},
      {kAnyImage,
       "format",
       kFormat, // gray and RGBA find room in the rows of 64 bytes
       {{0, F::pixel_format},
        {1, F::none},
        {2, F::none},
        {3, F::none},
        {4, F::none},
        {5, F::none},
        {6, F::plane_count},
        {7, F::plane_count},
        {8, F::plane_count},
        {9, F::pixel_format},
        {kMost32, F::pixel_format}}},
      {kAnyImage,
       "width",
       kWidth,
       {{0, F::picture_size},
        {1, F::none},
        {21, F::none},
        {22, F::plane_extent},
        {1u << 30, F::plane_extent},
        {kMost32, F::plane_extent}}},
      {kAnyImage,
       "height",
       kHeight,
       {{0, F::picture_size}, {1, F::plane_rows}, {12, F::none}, {13, F::plane_rows}, {kMost32, F::plane_rows}}},
      {kI420,
       "plane_count",
       kPlaneCount,
       {{1, F::plane_count}, {2, F::plane_count}, {3, F::none}, {4, F::short_record}}},
  });
}

TEST_CASE("damaged planes are refused with their reasons") {
  check_damages({
      {kBoundedNv12,
       "luma's offset",
       offset_of_plane(0),
       {{0, F::none},
        {1, F::none},
        {737, F::none},
        {738, F::plane_extent},
        {2049, F::plane_extent},
        {kMost64, F::plane_extent}}},
      {kBoundedNv12,
       "luma's stride",
       stride_of_plane(0),
       {{0, F::plane_extent},
        {1, F::plane_extent},
        {30, F::plane_extent},
        {31, F::none},
        {100, F::none},
        {101, F::plane_extent},
        {kMost32, F::plane_extent}}},
      {kBoundedNv12,
       "luma's rows",
       rows_of_plane(0),
       {{0, F::plane_rows},
        {1, F::plane_rows},
        {20, F::plane_rows},
        {21, F::none},
        {22, F::plane_rows},
        {kMost32, F::plane_rows}}},
      {kBoundedNv12,
       "chroma's offset",
       offset_of_plane(1), // planes may share bytes
       {{0, F::none},
        {1, F::plane_position},
        {2, F::none},
        {1376, F::none},
        {1377, F::plane_extent},
        {kMost64, F::plane_extent}}},
      {kBoundedNv12,
       "chroma's stride",
       stride_of_plane(1),
       {{0, F::plane_extent},
        {31, F::plane_extent},
        {32, F::none},
        {33, F::plane_position},
        {66, F::none},
        {67, F::plane_position},
        {68, F::plane_extent},
        {kMost32, F::plane_extent}}},
      {kBoundedNv12,
       "chroma's rows",
       rows_of_plane(1),
       {{0, F::plane_rows}, {10, F::plane_rows}, {11, F::none}, {12, F::plane_rows}, {kMost32, F::plane_rows}}},
      {kI420, "the last plane's rows", rows_of_plane(2), {{4, F::plane_rows}, {5, F::none}, {6, F::plane_rows}}},
      {kI420, "the last plane's offset", offset_of_plane(2), {{0, F::none}, {951, F::none}, {952, F::plane_extent}}},
      {kBgra,
       "offset",
       offset_of_plane(0),
       {{0, F::none}, {1, F::plane_position}, {2, F::plane_position}, {4, F::none}}},
      {kBgra,
       "stride",
       stride_of_plane(0),
       {{27, F::plane_extent}, {28, F::none}, {30, F::plane_position}, {64, F::none}}},
      {kP010, "luma's offset", offset_of_plane(0), {{0, F::none}, {1, F::plane_position}, {2, F::none}}},
      {kP010, "luma's stride", stride_of_plane(0), {{77, F::plane_extent}, {78, F::none}, {79, F::plane_position}}},
      {kP010, "chroma's offset", offset_of_plane(1), {{3712, F::none}, {3710, F::plane_position}, {3708, F::none}}},
      {kP010, "chroma's stride", stride_of_plane(1), {{79, F::plane_extent}, {80, F::none}, {82, F::plane_position}}},
  });
}

TEST_CASE("an empty picture has no rows and lies in its block") {
  check_damages({
      {kEmptyNv12, "extent", kExtent, {{0, F::none}, {1, F::none}, {4608, F::none}, {4609, F::extent}}},
      {kEmptyNv12, "width", kWidth, {{0, F::none}, {1, F::picture_size}, {64, F::picture_size}}},
      {kEmptyNv12, "format", kFormat, {{0, F::pixel_format}, {6, F::none}, {7, F::pixel_format}}},
      {kEmptyNv12, "plane_count", kPlaneCount, {{0, F::plane_count}, {1, F::plane_count}, {5, F::plane_count}}},
      {kEmptyNv12, "rows", rows_of_plane(0), {{0, F::none}, {1, F::plane_rows}, {kMost32, F::plane_rows}}},
      {kEmptyNv12, "stride", stride_of_plane(0), {{0, F::none}, {64, F::none}, {kMost32, F::none}}},
      {kEmptyNv12, "offset", offset_of_plane(0), {{0, F::none}, {1, F::plane_extent}, {kMost64, F::plane_extent}}},
  });
}

TEST_CASE("a plane that the pixel format does not have is refused") {
  for (const Example example : {kFixedNv12, kEmptyNv12, kI420, kGray}) {
    std::vector<std::byte> record = record_of(example);
    const auto count = static_cast<uint64_t>(record[kPlaneCount.at]);
    record.resize(record.size() + 16);
    set_field(record, kPlaneCount, count + 1);
    CHECK(fault_when_read(record, planned_examples()[example]) == F::plane_count);
  }
}

TEST_CASE("damaged fields of a tensor are refused with their reasons") {
  const auto fixed_stride = [](size_t d) { return stride_of(4, d); };
  check_damages({
      // float32, 1 × 3 × 4 × 5
      {kFixedTensor,
       "dtype_code",
       kDtypeCode,
       {{0, F::dtype}, {1, F::dtype}, {2, F::none}, {3, F::dtype}, {255, F::dtype}}},
      {kFixedTensor,
       "dtype_bits",
       kDtypeBits,
       {{0, F::dtype}, {16, F::dtype}, {32, F::none}, {33, F::dtype}, {255, F::dtype}}},
      {kFixedTensor, "dtype_lanes", kDtypeLanes, {{0, F::dtype}, {1, F::none}, {2, F::dtype}, {65535, F::dtype}}},
      {kFixedTensor,
       "rank",
       kRank,
       {{0, F::rank},
        {1, F::rank},
        {3, F::rank},
        {4, F::none},
        {5, F::short_record},
        {8, F::short_record},
        {9, F::rank},
        {kMost32, F::rank}}},
      {kFixedTensor,
       "shape[0]",
       shape_of(0), // 0: an empty tensor fits every format of its type
       {{0, F::none},
        {1, F::none},
        {2, F::shape},
        {kMostSigned, F::shape},
        {kMinusOne, F::shape},
        {kLeastSigned, F::shape}}},
      {kFixedTensor, "shape[3]", shape_of(3), {{0, F::none}, {4, F::shape}, {5, F::none}, {6, F::shape}}},
      {kFixedTensor,
       "strides[0]",
       fixed_stride(0),
       {{0, F::none},
        {1, F::none},
        {kMostElements, F::none},
        {kMostElements + 1, F::strides},
        {kMostSigned, F::strides},
        {kMinusOne, F::strides},
        {kLeastSigned, F::strides}}},
      {kFixedTensor,
       "strides[1]",
       fixed_stride(1),
       {{0, F::none}, {20, F::none}, {21, F::elements}, {kMostSigned, F::elements}, {kMinusOne, F::strides}}},
      {kFixedTensor,
       "strides[3]",
       fixed_stride(3),
       {{0, F::none}, {1, F::none}, {2, F::elements}, {kLeastSigned, F::strides}}},
      {kFixedTensor, "extent", kExtent, {{0, F::elements}, {239, F::elements}, {240, F::none}, {241, F::extent}}},
  });
}

TEST_CASE("a tensor with fewer elements than planned, or whose type is not settled, is checked as well") {
  check_damages({
      // uint8, 8 × 16 × 3, at most 16 × 16 × 3
      {kBoundedTensor,
       "shape[0]",
       shape_of(0),
       {{0, F::none},
        {1, F::none},
        {8, F::none},
        {9, F::elements},
        {16, F::elements},
        {17, F::shape},
        {kMinusOne, F::shape}}},
      {kBoundedTensor, "extent", kExtent, {{383, F::elements}, {384, F::none}, {768, F::none}, {769, F::extent}}},
      // float32, 0 × 4: nothing is read, but handlers multiply its numbers
      {kEmptyTensor, "shape[0]", shape_of(0), {{0, F::none}, {1, F::shape}, {4, F::elements}, {kMinusOne, F::shape}}},
      {kEmptyTensor,
       "shape[1]",
       shape_of(1),
       {{0, F::none},
        {1, F::none},
        {5, F::none},
        {kMostElements, F::none},
        {kMostElements + 1, F::shape},
        {kMostSigned, F::shape},
        {kMinusOne, F::shape}}},
      {kEmptyTensor,
       "strides[0]",
       stride_of(2, 0),
       {{0, F::none}, {kMostElements, F::none}, {kMostElements + 1, F::strides}, {kMinusOne, F::strides}}},
      {kScalar, "extent", kExtent, {{0, F::elements}, {7, F::elements}, {8, F::none}, {9, F::extent}}},
      {kScalar, "rank", kRank, {{0, F::none}, {1, F::short_record}, {9, F::rank}}},
      {kEightDimensions, "rank", kRank, {{7, F::rank}, {8, F::none}, {9, F::rank}}},
      {kEightDimensions, "shape[7]", shape_of(7), {{0, F::none}, {1, F::none}, {2, F::none}, {3, F::shape}}},
      // float32 or uint8 of two or three dimensions
      {kUnsettledTensor,
       "dtype_bits",
       kDtypeBits,
       {{0, F::dtype}, {8, F::dtype}, {16, F::dtype}, {32, F::none}, {64, F::elements}}},
      {kUnsettledTensor, "rank", kRank, {{0, F::rank}, {1, F::rank}, {2, F::none}, {3, F::short_record}, {9, F::rank}}},
      {kUnsettledTensor,
       "shape[0]",
       shape_of(0),
       {{0, F::none}, {2, F::none}, {3, F::elements}, {kMostSigned, F::elements}, {kMinusOne, F::shape}}},
  });
}

TEST_CASE("damaged fields of records and of a packet are refused with their reasons") {
  check_damages({
      // three boxes of 32 bytes, at most 100
      {kBoxes,
       "count",
       kRecordCount,
       {{0, F::none},
        {1, F::none},
        {3, F::none},
        {4, F::record_bytes},
        {100, F::record_bytes},
        {101, F::record_count},
        {kMost64, F::record_count}}},
      {kBoxes,
       "record_size",
       kRecordSize,
       {{0, F::record_size},
        {1, F::record_size},
        {31, F::record_size},
        {32, F::none},
        {33, F::record_size},
        {kMost64, F::record_size}}},
      {kBoxes,
       "extent",
       kExtent,
       {{0, F::record_bytes}, {95, F::record_bytes}, {96, F::none}, {3200, F::none}, {3201, F::extent}}},
      {kUnsettledRecords,
       "count",
       kRecordCount,
       {{0, F::none},
        {2, F::none},
        {3, F::record_bytes},
        {uint64_t{1} << 59, F::record_bytes},
        {kMost64, F::record_bytes}}},
      {kUnsettledRecords,
       "record_size",
       kRecordSize,
       {{0, F::record_size}, {1, F::none}, {32, F::none}, {33, F::record_bytes}, {kLeastSigned, F::record_bytes}}},
      {kPacket,
       "extent",
       kExtent,
       {{0, F::none},
        {1, F::none},
        {1000, F::none},
        {1001, F::packet_bytes},
        {1024, F::packet_bytes},
        {1025, F::extent}}},
      {kPacket, "codec", kCodec, {{0, F::none}, {1, F::none}, {kMost32, F::none}}},
      {kPacket, "dts_ns", kDts, {{0, F::none}, {kMostSigned, F::none}, {kLeastSigned, F::none}}},
      {kAnyPacket, "extent", kExtent, {{0, F::none}, {1024, F::none}, {1025, F::extent}, {kMost64, F::extent}}},
  });
}

TEST_CASE("a value has at most the bytes that a link carries, however large its block is") {
  PlannedExample planned = planned_examples()[kAnyPacket];
  planned.capacity = UINT64_MAX;
  planned.value.header.extent_bytes = kValueBytesMax;
  CHECK(fault_when_read(record_of(planned.value), planned) == F::none);
  planned.value.header.extent_bytes = kValueBytesMax + 1;
  CHECK(fault_when_read(record_of(planned.value), planned) == F::extent);
}

TEST_CASE("only pictures, tensors, packets and records cross, and each where it was planned") {
  for (size_t from = 0; from < kAnyKind; ++from) {
    std::vector<std::byte> record = record_of(static_cast<Example>(from));
    const uint32_t kind = planned_examples()[from].value.header.kind;
    for (size_t to = 0; to < kExampleCount; ++to)
      if (planned_examples()[to].format.kind != kind) CHECK(fault_when_read(record, planned_examples()[to]) == F::kind);
    set_field(record, kKind, MR_KIND_OBJECT);
    CHECK(fault_when_read(record, planned_examples()[kObject]) == F::kind);
    set_field(record, kKind, MR_KIND_ANY);
    CHECK(fault_when_read(record, planned_examples()[kAnyKind]) == F::kind);
  }
}

TEST_CASE("a sender finds the faults that its peer would find") {
  PlannedExample planned = planned_examples()[kFixedNv12];
  const auto fault = [&] { return fault_of(planned.value, planned.format, planned.capacity); };
  planned.value.as.image.plane_count = 200; // no record can say it
  CHECK(fault() == F::plane_count);
  planned.value.as.image.width = planned.value.as.image.height = 0;
  CHECK(fault() == F::plane_count);
  planned = planned_examples()[kFixedNv12];
  planned.value.header.flags = 4;
  CHECK(fault() == F::flags);
  planned = planned_examples()[kFixedTensor];
  planned.value.as.tensor.rank = 200;
  CHECK(fault() == F::rank);
}

TEST_CASE("every fault of a value has a sentence of its own") {
  std::vector<std::string> sentences;
  for (uint8_t i = 0; i <= static_cast<uint8_t>(F::count); ++i) {
    const std::string sentence = sentence_of(static_cast<ValueFault>(i));
    CHECK(sentence.size() > 8);
    CHECK(sentence.back() != '.');
    for (const std::string& other : sentences) CHECK(sentence != other);
    sentences.push_back(sentence);
  }
}

TEST_CASE("a damaged record is refused, or its value lies within its block and is written the same") {
  std::mt19937 random(random_seed());
  const auto below = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  const std::vector<uint64_t> telling = {
      0, 1, 2, 3, 8, 9, 64, 255, 256, 65535, kMostElements, 1u << 31, kMost32, kLeastSigned, kMostSigned, kMost64};
  for (int64_t n = millrace::test::part_of(200'000); n > 0; --n) {
    const size_t from = below(kAnyKind), to = below(8) ? from : below(kExampleCount);
    std::vector<std::byte> record = record_of(static_cast<Example>(from));
    for (size_t damages = 1 + below(4); damages > 0; --damages) {
      const size_t at = below(record.size()), unit = size_t{1} << below(4);
      switch (below(3)) {
        case 0: record[at] ^= std::byte{1} << static_cast<int>(below(8)); break;
        case 1: record[at] = static_cast<std::byte>(below(256)); break;
        default:
          set_field(record, {std::min(at / unit * unit, record.size() - unit), unit}, telling[below(telling.size())]);
      }
    }
    const char* broken = look_at_value_record(planned_examples()[to], record);
    REQUIRE_MESSAGE(broken == nullptr, broken << ", example " << from << " read as " << to << ", sample " << n);
  }
}

TEST_CASE("every record of the fuzzer's corpus is refused or keeps the rules") {
  const std::vector<std::string> inputs = unpacked(MILLRACE_SOURCE_DIR, "value_record.txt");
  CHECK(inputs.size() > 100);
  for (const std::string& input : inputs) {
    const char* broken = look_at_value_record(std::as_bytes(std::span(input)));
    CHECK_MESSAGE(broken == nullptr, broken);
  }
}

} // namespace millrace::net
