// Pictures of a scene that moves, in each pixel format, and the distance between two pictures.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "plugins/codec/picture.h"

namespace millrace::codec {

struct Color {
  double r, g, b;
};

// Rounded to nearest and clamped to 8 bits.
inline uint8_t rounded8(double value) { return static_cast<uint8_t>(std::clamp(std::floor(value + 0.5), 0.0, 255.0)); }

// A picture with its memory.
class Scene {
 public:
  // The picture at a time, in ticks. `is_gray`: all colours are gray. Nv12 and i420 have the matrix BT.709 and limited
  // range, each number rounded from the real-valued formula, and chroma is the mean of a block.
  Scene(Pixel pixel, uint32_t width, uint32_t height, int time, bool is_gray = false);
  // One colour.
  Scene(Pixel pixel, uint32_t width, uint32_t height, Color color);
  // Random bytes, the same for the same seed. `is_hard`: 0 and 255 alone, which takes an encoder the most bits.
  static Scene noise(Pixel pixel, uint32_t width, uint32_t height, uint32_t seed, bool is_hard = false);

  const Picture& picture() const { return picture_; }
  // Red, green, blue of each pixel, before the picture's own format.
  const std::vector<uint8_t>& rgb() const { return rgb_; }

 private:
  Scene(Pixel pixel, uint32_t width, uint32_t height) : pixel_(pixel), width_(width), height_(height) {}
  void fill_from_rgb();
  void lay_out();

  Pixel pixel_;
  uint32_t width_, height_;
  std::vector<uint8_t> rgb_, bytes_;
  Picture picture_;

 public:
  Scene(Scene&&) = default; // the planes stay where they are
};

// Peak signal to noise of two arrays of the same size, in dB; 99 if they are equal.
double psnr(const std::vector<uint8_t>& one, const std::vector<uint8_t>& other);

} // namespace millrace::codec
