// A picture that owns its memory: for handlers' scratch space and tests' inputs. Also the names and row lengths of
// pixel formats, which the numerics in this folder share.
#pragma once

#include <millrace/payload.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::handlers {

// The bytes in use in one row of a plane; the rest up to the stride is padding.
inline size_t plane_row_bytes(Pixel pixel, uint32_t width, uint32_t plane) {
  const size_t half = width / 2 + width % 2;
  if (plane == 0) return size_t{width} * bytes_per_pixel(pixel);
  if (pixel == Pixel::nv12) return half * 2;
  if (pixel == Pixel::p010) return half * 4;
  return half;
}

// True for formats with interleaved channels of 8 bits, which most numerics work on.
inline bool is_interleaved8(Pixel pixel) {
  return pixel == Pixel::gray8 || pixel == Pixel::rgb8 || pixel == Pixel::bgr8 || pixel == Pixel::rgba8 ||
         pixel == Pixel::bgra8;
}

// The format of this name; throws std::invalid_argument if there is none.
inline Pixel pixel_named(std::string_view name) {
  for (uint32_t i = 0; i < MR_PIXEL_COUNT; ++i)
    if (kPixelNames[i] == name) return static_cast<Pixel>(i);
  throw std::invalid_argument("there is no pixel format '" + std::string(name) + "'");
}

// The longest side of a picture, in pixels: no camera comes near it, and no size in bytes overflows with it.
constexpr int64_t kPictureSideMax = 65536;

constexpr uint32_t kAspectUnits = 10000; // the denominator of a calculated pixel aspect

// Takes over what any value made from a picture keeps: its stream and times.
inline void take_over_times(const mr_header& from, mr_header& to) {
  to.stream = from.stream;
  to.pts_ns = from.pts_ns;
  to.duration_ns = from.duration_ns;
}

// Takes over what a picture made from another one keeps: the meaning of its numbers, its stream and times.
inline void take_over(const ImageView& from, mr_value& to) {
  take_over_meaning(from.value().as.image, to.as.image);
  take_over_times(from.header(), to.header);
}

// Sets the pixel aspect of a scaled picture so that it is shown in the shape of its source. Square pixels stay square,
// whatever size was asked for: then the person wanted to change the shape.
template <class From, class To>
void keep_shape(const From& from, To& to) {
  if (from.aspect_num == from.aspect_den || from.aspect_den == 0) return;
  const double aspect = static_cast<double>(from.aspect_num) / from.aspect_den * from.width / from.height;
  const double pixel = aspect * to.height / to.width;
  const double off = std::abs(pixel - 1) * std::max(to.width, to.height);
  const bool is_square = off <= 1; // as close as whole pixels allow
  to.aspect_num = is_square ? 0 : static_cast<uint32_t>(std::lround(pixel * kAspectUnits));
  to.aspect_den = is_square ? 0 : kAspectUnits;
}

class Picture {
 public:
  Picture() = default;
  // All bytes are zero, padding too.
  Picture(Pixel pixel, uint32_t width, uint32_t height) {
    value_.header.kind = MR_KIND_IMAGE;
    value_.header.schema = schema_of(Image::kSchema);
    value_.header.present = 1;
    value_.header.extent_bytes = lay_out_image(pixel, width, height, value_.as.image);
    bytes_.resize(value_.header.extent_bytes);
  }
  // For YCbCr only: sets the matrix (MR_COLOR_*) and range (MR_RANGE_*) of its numbers.
  Picture& tag(uint32_t color, uint32_t range) {
    value_.as.image.color = color;
    value_.as.image.range = range;
    return *this;
  }

  ImageView view() const { return {&value_, bytes_.data()}; }
  ImageSpan span() { return {&value_, bytes_.data()}; }
  bool empty() const { return bytes_.empty(); }

 private:
  mr_value value_{};
  std::vector<uint8_t> bytes_;
};

} // namespace millrace::handlers
