// Payload types as handler authors see them: typed views over the POD records of abi.h. Views own nothing and are
// valid until `process` or `finish` returns; `data` pointers are in the body's own domain.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "millrace/abi.h"

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {

// FNV-1a, 64 bit: names payload schemas across plugins and machines.
constexpr uint64_t schema_of(std::string_view name) {
  uint64_t hash = 14695981039346656037ull;
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash;
}

enum class Pixel : uint32_t {
  none = MR_PIXEL_NONE,
  gray8 = MR_PIXEL_GRAY8,
  rgb8 = MR_PIXEL_RGB8,
  bgr8 = MR_PIXEL_BGR8,
  rgba8 = MR_PIXEL_RGBA8,
  bgra8 = MR_PIXEL_BGRA8,
  nv12 = MR_PIXEL_NV12,
  i420 = MR_PIXEL_I420,
  p010 = MR_PIXEL_P010,
};

constexpr std::array<std::string_view, MR_PIXEL_COUNT> kPixelNames = {"none",  "gray8", "rgb8", "bgr8", "rgba8",
                                                                      "bgra8", "nv12",  "i420", "p010"};
constexpr std::string_view name_of(Pixel pixel) { return kPixelNames[static_cast<uint32_t>(pixel)]; }
constexpr uint64_t bit_of(Pixel pixel) { return 1ull << static_cast<uint32_t>(pixel); }

// What the numbers of a picture mean and how wide its pixels are, from one record or format to another.
template <class From, class To>
void take_over_meaning(const From& from, To& to) {
  to.color = from.color;
  to.range = from.range;
  to.primaries = from.primaries;
  to.transfer = from.transfer;
  to.aspect_num = from.aspect_num;
  to.aspect_den = from.aspect_den;
}

// Bytes of one pixel in plane 0 (interleaved formats), or of one luma sample (planar ones).
constexpr uint32_t bytes_per_pixel(Pixel pixel) {
  switch (pixel) {
    case Pixel::rgb8:
    case Pixel::bgr8: return 3;
    case Pixel::rgba8:
    case Pixel::bgra8: return 4;
    case Pixel::p010: return 2;
    default: return 1;
  }
}

// Rows begin at multiples of this many bytes: a cache line, and what GPU loads of 16 bytes need.
constexpr uint32_t kRowAlignment = 64;

// More than any block has: the bytes of what does not fit into 64 bits, or whose rows do not fit into a stride.
constexpr uint64_t kTooManyBytes = UINT64_MAX;

// Bytes of so many elements; saturates.
constexpr uint64_t bytes_of(uint64_t count, uint64_t bits) {
  if (bits > 0 && count > (kTooManyBytes - 7) / bits) return kTooManyBytes;
  return (count * bits + 7) / 8;
}
// Elements of a shape; saturates, also where a dimension is negative.
inline uint64_t elements_of(std::span<const int64_t> shape) {
  uint64_t count = 1;
  for (const int64_t extent : shape) {
    if (extent == 0) return 0;
    if (extent < 0 || count > kTooManyBytes / static_cast<uint64_t>(extent))
      count = kTooManyBytes;
    else
      count *= static_cast<uint64_t>(extent);
  }
  return count;
}

// The one memory layout of an image of this format and size: planes behind each other, rows aligned.
// Returns the total of bytes, saturated; fills `image` but for color and range.
inline uint64_t lay_out_image(Pixel pixel, uint32_t width, uint32_t height, mr_image& image) {
  const auto aligned = [](uint64_t bytes) {
    return static_cast<uint32_t>((bytes + kRowAlignment - 1) / kRowAlignment * kRowAlignment);
  };
  if (uint64_t{width} * 4 > UINT32_MAX - kRowAlignment) return kTooManyBytes; // no format has wider rows
  image.format = static_cast<uint32_t>(pixel);
  image.width = width;
  image.height = height;
  image.plane_count = 0;
  uint64_t offset = 0;
  const auto add_plane = [&](uint64_t row_bytes, uint32_t rows) {
    mr_plane& plane = image.planes[image.plane_count++];
    plane = {offset, aligned(row_bytes), rows};
    offset += uint64_t{plane.stride} * rows;
  };
  add_plane(uint64_t{width} * bytes_per_pixel(pixel), height);
  const uint64_t half_width = (uint64_t{width} + 1) / 2;
  const uint32_t half_height = height / 2 + height % 2;
  if (pixel == Pixel::nv12) add_plane(half_width * 2, half_height);
  if (pixel == Pixel::p010) add_plane(half_width * 4, half_height);
  if (pixel == Pixel::i420) {
    add_plane(half_width, half_height);
    add_plane(half_width, half_height);
  }
  return offset;
}

// ---- Image: up to four planes ------------------------------------------------------------------------------

// A picture. `Byte` is `const uint8_t` for inputs, `uint8_t` for outputs.
template <class Byte>
class BasicImage {
 public:
  BasicImage() = default;
  BasicImage(const mr_value* value, Byte* data) : value_(value), data_(data) {}

  uint32_t width() const { return value_->as.image.width; }
  uint32_t height() const { return value_->as.image.height; }
  Pixel pixel() const { return static_cast<Pixel>(value_->as.image.format); }
  uint32_t color() const { return value_->as.image.color; }
  uint32_t range() const { return value_->as.image.range; }
  uint32_t plane_count() const { return value_->as.image.plane_count; }
  uint32_t stride(uint32_t plane = 0) const { return value_->as.image.planes[plane].stride; }
  uint32_t rows(uint32_t plane = 0) const { return value_->as.image.planes[plane].rows; }
  Byte* plane(uint32_t plane) const { return data_ + value_->as.image.planes[plane].offset; }
  Byte* row(uint32_t y, uint32_t plane = 0) const { return this->plane(plane) + size_t{y} * stride(plane); }
  const mr_value& value() const { return *value_; }
  const mr_header& header() const { return value_->header; }
  Byte* data() const { return data_; }

  operator BasicImage<const uint8_t>() const requires(!std::is_const_v<Byte>) { return {value_, data_}; }

 private:
  const mr_value* value_ = nullptr;
  Byte* data_ = nullptr;
};
using ImageView = BasicImage<const uint8_t>;
using ImageSpan = BasicImage<uint8_t>;

// ---- Tensor: dtype, shape, strides -------------------------------------------------------------------------

struct DType {
  uint8_t code, bits;
  uint16_t lanes = 1;
  friend bool operator==(const DType&, const DType&) = default;
};
// Names of element types that C++ has no type for.
struct Float16;
struct BFloat16;
template <class T>
constexpr DType dtype_of() {
  static_assert(std::is_arithmetic_v<T>, "tensors hold numbers");
  const uint8_t code = std::is_floating_point_v<T> ? MR_DTYPE_FLOAT
                       : std::is_signed_v<T>       ? MR_DTYPE_INT
                                                   : MR_DTYPE_UINT;
  return {code, static_cast<uint8_t>(sizeof(T) * 8), 1};
}
template <>
constexpr DType dtype_of<Float16>() {
  return {MR_DTYPE_FLOAT, 16, 1};
}
template <>
constexpr DType dtype_of<BFloat16>() {
  return {MR_DTYPE_BFLOAT, 16, 1};
}

// Element types that a set can hold: kDTypes[i] is the bit 1u << i of MR_DTYPES_*.
constexpr std::array<DType, 12> kDTypes = {{{MR_DTYPE_INT, 8},
                                            {MR_DTYPE_INT, 16},
                                            {MR_DTYPE_INT, 32},
                                            {MR_DTYPE_INT, 64},
                                            {MR_DTYPE_UINT, 8},
                                            {MR_DTYPE_UINT, 16},
                                            {MR_DTYPE_UINT, 32},
                                            {MR_DTYPE_UINT, 64},
                                            {MR_DTYPE_FLOAT, 16},
                                            {MR_DTYPE_FLOAT, 32},
                                            {MR_DTYPE_FLOAT, 64},
                                            {MR_DTYPE_BFLOAT, 16}}};
// 0 where no set can hold it.
constexpr uint32_t bit_of(DType dtype) {
  for (size_t i = 0; i < kDTypes.size(); ++i)
    if (kDTypes[i] == dtype) return 1u << i;
  return 0;
}
// "float32"
inline std::string name_of(DType dtype) {
  constexpr std::array<const char*, 5> kKinds = {"int", "uint", "float", "?", "bfloat"};
  return std::string(dtype.code < kKinds.size() ? kKinds[dtype.code] : "?") + std::to_string(dtype.bits) +
         (dtype.lanes == 1 ? "" : "x" + std::to_string(dtype.lanes));
}

template <class Byte>
class BasicTensor {
 public:
  BasicTensor() = default;
  BasicTensor(const mr_value* value, Byte* data) : value_(value), data_(data) {}

  DType dtype() const {
    return {value_->as.tensor.dtype_code, value_->as.tensor.dtype_bits, value_->as.tensor.dtype_lanes};
  }
  std::span<const int64_t> shape() const { return {value_->as.tensor.shape, value_->as.tensor.rank}; }
  std::span<const int64_t> strides() const { return {value_->as.tensor.strides, value_->as.tensor.rank}; }
  int64_t element_count() const {
    int64_t count = 1;
    for (int64_t extent : shape()) count *= extent;
    return count;
  }
  Byte* data() const { return data_; }
  // The elements of a dense tensor; throws where T is not its dtype.
  template <class T>
  auto elements() const {
    if (dtype() != dtype_of<T>())
      throw std::invalid_argument("the tensor holds " + name_of(dtype()) + ", not " + name_of(dtype_of<T>()));
    using Element = std::conditional_t<std::is_const_v<Byte>, const T, T>;
    return std::span<Element>(reinterpret_cast<Element*>(data_), static_cast<size_t>(element_count()));
  }
  const mr_value& value() const { return *value_; }
  const mr_header& header() const { return value_->header; }

 private:
  const mr_value* value_ = nullptr;
  Byte* data_ = nullptr;
};
using TensorView = BasicTensor<const uint8_t>;
using TensorSpan = BasicTensor<uint8_t>;

// ---- Packet: a piece of bitstream --------------------------------------------------------------------------

template <class Byte>
struct BasicPacket {
  const mr_value* value = nullptr;
  std::span<Byte> bytes;
  int64_t pts_ns() const { return value->header.pts_ns; }
  int64_t dts_ns() const { return value->as.packet.dts_ns; }
  bool keyframe() const { return value->header.flags & MR_FLAG_KEYFRAME; }
};
using PacketView = BasicPacket<const uint8_t>;
using PacketSpan = BasicPacket<uint8_t>;

// ---- Records: a vector of trivially copyable structs, its count inside the buffer -------------------------------

// A record type names its schema once: `static constexpr std::string_view kSchema = "millrace.Box";`
template <class T>
concept Record = std::is_trivially_copyable_v<T> && requires {
  { T::kSchema } -> std::convertible_to<std::string_view>;
};

// Tells types of one name and another memory layout apart.
template <Record T>
constexpr uint64_t layout_of() {
  return schema_of(T::kSchema) ^ (sizeof(T) * 31 + alignof(T));
}

// A field of a record type, for its `fields()`: field("x", &Spot::x). A number, or an array of numbers.
template <class T, class M>
mr_field field(const char* name, M T::*member) {
  using Number = std::remove_extent_t<M>;
  static_assert(std::is_arithmetic_v<Number> && std::rank_v<M> <= 1, "a field is a number or an array of numbers");
  const T record = std::bit_cast<T>(std::array<unsigned char, sizeof(T)>{});
  const auto* const first = reinterpret_cast<const unsigned char*>(&record);
  const auto* const at = reinterpret_cast<const unsigned char*>(&(record.*member));
  constexpr DType dtype = dtype_of<Number>();
  return {name,
          static_cast<uint32_t>(at - first),
          std::is_array_v<M> ? uint32_t{std::extent_v<M>} : 1u,
          dtype.code,
          dtype.bits,
          0,
          0};
}

// Says what a record type is made of where it has `static std::vector<mr_field> fields()`; else null. Handlers that
// show records then show its fields.
template <Record T>
const mr_record_type* record_type_of() {
  if constexpr (requires { std::vector<mr_field>(T::fields()); }) {
    static const std::vector<mr_field> fields = T::fields();
    static const std::string name(T::kSchema);
    static const mr_record_type type = {sizeof(mr_record_type), static_cast<uint32_t>(fields.size()), name.c_str(),
                                        fields.data()};
    return &type;
  } else {
    return nullptr;
  }
}

// A rectangle in pixels of the picture it belongs to, with what a detector or tracker knows about it.
struct Box {
  static constexpr std::string_view kSchema = "millrace.Box";
  float x = 0, y = 0, width = 0, height = 0; // left, top, extent; pixels
  float score = 0;                           // 0…1
  int32_t label = -1;                        // class; -1: none
  int64_t id = -1;                           // track; -1: none
  static std::vector<mr_field> fields() {
    return {field("x", &Box::x),           field("y", &Box::y),         field("width", &Box::width),
            field("height", &Box::height), field("score", &Box::score), field("label", &Box::label),
            field("id", &Box::id)};
  }
};

// ---- tags: what a port carries -----------------------------------------------------------------------------

struct Image {
  using View = ImageView;
  using Span = ImageSpan;
  static constexpr uint32_t kKind = MR_KIND_IMAGE;
  static constexpr std::string_view kSchema = "millrace.Image";
  static std::string type_name() { return "Image"; }
  static View view(const mr_input& input) { return {input.value, input.data}; }
};
struct Tensor {
  using View = TensorView;
  using Span = TensorSpan;
  static constexpr uint32_t kKind = MR_KIND_TENSOR;
  static constexpr std::string_view kSchema = "millrace.Tensor";
  static std::string type_name() { return "Tensor"; }
  static View view(const mr_input& input) { return {input.value, input.data}; }
};
struct Packet {
  using View = PacketView;
  using Span = PacketSpan;
  static constexpr uint32_t kKind = MR_KIND_PACKET;
  static constexpr std::string_view kSchema = "millrace.Packet";
  static std::string type_name() { return "Packet"; }
  static View view(const mr_input& input) {
    return {input.value, {input.data, static_cast<size_t>(input.value->header.extent_bytes)}};
  }
};
template <Record T>
struct Records {
  using View = std::span<const T>;
  using Span = std::span<T>;
  using Element = T;
  static constexpr uint32_t kKind = MR_KIND_RECORDS;
  static constexpr std::string_view kSchema = T::kSchema;
  static std::string type_name() {
    const std::string_view full = T::kSchema;
    return "Records<" + std::string(full.substr(full.rfind('.') + 1)) + ">";
  }
  static View view(const mr_input& input) {
    return {reinterpret_cast<const T*>(input.data), static_cast<size_t>(input.value->as.records.count)};
  }
};
// A host object of the process, by pointer; never crosses a device or a machine.
template <class T>
struct Object {
  using View = const T*;
  using Span = T*;
  static constexpr uint32_t kKind = MR_KIND_OBJECT;
  static constexpr std::string_view kSchema = T::kSchema;
  static std::string type_name() { return "Object<" + std::string(T::kSchema) + ">"; }
  static View view(const mr_input& input) { return static_cast<const T*>(input.value->as.object.pointer); }
};
// What may be written between the brackets of a port.
template <class T>
concept Payload = requires {
  typename T::View;
  typename T::Span;
  T::kKind;
  T::type_name();
};

// Anything at all: the handler looks at the header alone.
struct Any {
  using View = const mr_value*;
  using Span = mr_value*;
  static constexpr uint32_t kKind = MR_KIND_ANY;
  static constexpr std::string_view kSchema = "";
  static std::string type_name() { return "Any"; }
  static View view(const mr_input& input) { return input.value; }
};

} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
