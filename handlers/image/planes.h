// Describes the planes of a picture, and gives a window onto a part of a picture.
#pragma once

#include <millrace/payload.h>

#include <cstdint>

namespace millrace::handlers {

// The bits of a number of p010 that count: ten at the top of sixteen. The six below are ignored on reading, and zero on
// writing.
inline constexpr uint16_t kTenBits = 0xFFC0;
inline constexpr int kBelowTenBits = 6;

// True if chroma has half the size in both directions: nv12, i420, p010.
inline bool halves_chroma(Pixel pixel) { return pixel == Pixel::nv12 || pixel == Pixel::i420 || pixel == Pixel::p010; }

// The bytes of one column of a plane: a pixel, a luma sample, or a pair of chroma samples.
inline uint32_t sample_bytes(Pixel pixel, uint32_t plane) {
  if (plane == 0) return bytes_per_pixel(pixel);
  if (pixel == Pixel::p010) return 4;
  return pixel == Pixel::nv12 ? 2 : 1;
}

// The bytes of one channel: 2 with ten bits at the top.
inline uint32_t channel_bytes_of(Pixel pixel) { return pixel == Pixel::p010 ? 2 : 1; }

// The columns or rows of a plane, for a picture that is `extent` wide or high; halves are rounded up.
inline uint32_t plane_extent(Pixel pixel, uint32_t extent, uint32_t plane) {
  return plane > 0 && halves_chroma(pixel) ? extent / 2 + extent % 2 : extent;
}

// A plane as rows of samples, each of so many channels: a pixel, a luma sample, or a pair of chroma samples.
template <class Byte>
struct Plane {
  Byte* data;
  size_t stride; // bytes
  uint32_t channels;
  uint32_t channel_bytes; // 1, or 2 with ten bits at the top

  Byte* row(uint32_t y) const { return data + y * stride; }
  uint32_t sample_bytes() const { return channels * channel_bytes; }
};
template <class Byte>
Plane<Byte> plane_of(const BasicImage<Byte>& image, uint32_t plane) {
  const Pixel pixel = image.pixel();
  const uint32_t channel_bytes = channel_bytes_of(pixel);
  return {image.plane(plane), image.stride(plane), sample_bytes(pixel, plane) / channel_bytes, channel_bytes};
}

// A part of a picture as a picture of its own in the same memory. `x` and `y` are even if chroma is halved. The window
// must outlive the views that it gives.
template <class Byte>
class PictureWindow {
 public:
  PictureWindow(const BasicImage<Byte>& whole, uint32_t x, uint32_t y, uint32_t width, uint32_t height)
      : value_(whole.value()), data_(whole.data()) {
    mr_image& image = value_.as.image;
    image.width = width;
    image.height = height;
    for (uint32_t plane = 0; plane < image.plane_count; ++plane) {
      const bool halved = plane > 0 && halves_chroma(whole.pixel());
      image.planes[plane].offset += uint64_t{halved ? y / 2 : y} * image.planes[plane].stride +
                                    uint64_t{halved ? x / 2 : x} * sample_bytes(whole.pixel(), plane);
      image.planes[plane].rows = plane_extent(whole.pixel(), height, plane);
    }
  }
  BasicImage<Byte> view() const { return {&value_, data_}; }

 private:
  mr_value value_;
  Byte* data_;
};
using ViewWindow = PictureWindow<const uint8_t>;
using SpanWindow = PictureWindow<uint8_t>;

} // namespace millrace::handlers
