// Pictures: pixel formats, the one memory layout of each, and the views of a picture's planes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "millrace/abi.h"
#include "millrace/payload/size.h"

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {

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

// Copies the fields that say how pixels are to be read: colour matrix, range, primaries, transfer, aspect ratio.
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

// The one memory layout of an image of this format and size: one plane after the other, rows aligned. Returns the total
// in bytes, saturated, and fills `image` except color and range.
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

// The type of an image port: Input<Image>.
struct Image {
  using View = ImageView;
  using Span = ImageSpan;
  static constexpr uint32_t kKind = MR_KIND_IMAGE;
  static constexpr std::string_view kSchema = "millrace.Image";
  static std::string type_name() { return "Image"; }
  static View view(const mr_input& input) { return {input.value, input.data}; }
};

} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
