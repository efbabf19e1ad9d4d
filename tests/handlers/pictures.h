// Pictures that tests compare: filled by a seed, and looked at sample by sample.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

#include "handlers/image/picture.h"

namespace millrace::handlers {

inline constexpr Pixel kPixelFormats[] = {Pixel::gray8, Pixel::rgb8, Pixel::bgr8, Pixel::rgba8,
                                          Pixel::bgra8, Pixel::nv12, Pixel::i420, Pixel::p010};
inline constexpr Pixel kInterleaved[] = {Pixel::gray8, Pixel::rgb8, Pixel::bgr8, Pixel::rgba8, Pixel::bgra8};

// Every byte in use is random, extremes more often than chance would have them; padding is 0xEE.
inline Picture random_picture(Pixel pixel, uint32_t width, uint32_t height, uint32_t seed) {
  std::mt19937 random(seed);
  Picture picture(pixel, width, height);
  const ImageSpan span = picture.span();
  for (uint32_t plane = 0; plane < span.plane_count(); ++plane) {
    const size_t used = plane_row_bytes(pixel, width, plane);
    for (uint32_t y = 0; y < span.rows(plane); ++y)
      for (uint32_t i = 0; i < span.stride(plane); ++i) {
        const uint32_t bits = static_cast<uint32_t>(random());
        const uint8_t extreme = (bits & 0x100) ? 255 : 0;
        span.row(y, plane)[i] = i >= used               ? uint8_t{0xEE}
                                : (bits >> 16) % 8 == 0 ? extreme
                                                        : static_cast<uint8_t>(bits);
      }
  }
  return picture;
}

// True if all bytes in use are equal. The padding may differ.
inline bool same_pixels(const ImageView& a, const ImageView& b) {
  if (a.pixel() != b.pixel() || a.width() != b.width() || a.height() != b.height()) return false;
  for (uint32_t plane = 0; plane < a.plane_count(); ++plane)
    for (uint32_t y = 0; y < a.rows(plane); ++y)
      if (std::memcmp(a.row(y, plane), b.row(y, plane), plane_row_bytes(a.pixel(), a.width(), plane)) != 0)
        return false;
  return true;
}

// The largest distance of two numbers in use, in steps of eight bits, or of ten, rounded up.
inline int distance(const ImageView& a, const ImageView& b) {
  const size_t bytes = a.pixel() == Pixel::p010 ? 2 : 1;
  int worst = 0;
  for (uint32_t plane = 0; plane < a.plane_count(); ++plane)
    for (uint32_t y = 0; y < a.rows(plane); ++y) {
      const uint8_t *one = a.row(y, plane), *other = b.row(y, plane);
      const auto number = [&](const uint8_t* row, size_t i) { return bytes == 1 ? row[i] : row[i] + 256 * row[i + 1]; };
      for (size_t i = 0; i < plane_row_bytes(a.pixel(), a.width(), plane); i += bytes) {
        const int apart = std::abs(number(one, i) - number(other, i));
        worst = std::max(worst, bytes == 1 ? apart : (apart + 63) / 64);
      }
    }
  return worst;
}

// True if all bytes between the rows still hold this value.
inline bool padding_holds(uint8_t value, const ImageView& picture) {
  for (uint32_t plane = 0; plane < picture.plane_count(); ++plane)
    for (uint32_t y = 0; y < picture.rows(plane); ++y) {
      const uint8_t* row = picture.row(y, plane);
      const size_t used = plane_row_bytes(picture.pixel(), picture.width(), plane);
      if (!std::all_of(row + used, row + picture.stride(plane), [&](uint8_t byte) { return byte == value; }))
        return false;
    }
  return true;
}

inline std::string size_of(const ImageView& picture) {
  return std::string(name_of(picture.pixel())) + " " + std::to_string(picture.width()) + "x" +
         std::to_string(picture.height());
}

} // namespace millrace::handlers
