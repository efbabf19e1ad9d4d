// Draws the scene by real-valued formulas that share nothing with the code under test; see scene.h.
#include "tests/codec/scene.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <stdexcept>

namespace millrace::codec {

namespace {

Color color_at(double x, double y, double time) {
  const double wave = std::sin((x + 3 * time) / 17) * std::cos((y - time) / 23);
  const double disc = std::hypot(x - 40 - 2 * time, y - 30) < 20 ? 60 : 0;
  return {120 + 70 * wave + disc, 110 + 60 * std::sin((y + 2 * time) / 29),
          100 + 80 * std::cos((x + y) / 41) - disc / 2};
}

double luma(Color c) { return 0.2126 * c.r + 0.7152 * c.g + 0.0722 * c.b; }

} // namespace

Scene::Scene(Pixel pixel, uint32_t width, uint32_t height, int time, bool is_gray) : Scene(pixel, width, height) {
  for (uint32_t y = 0; y < height; ++y)
    for (uint32_t x = 0; x < width; ++x) {
      Color color = color_at(x, y, time);
      if (is_gray) color = {color.g, color.g, color.g};
      for (const double channel : {color.r, color.g, color.b}) rgb_.push_back(rounded8(channel));
    }
  fill_from_rgb();
}

Scene::Scene(Pixel pixel, uint32_t width, uint32_t height, Color color) : Scene(pixel, width, height) {
  for (uint64_t i = 0; i < uint64_t{width} * height; ++i)
    for (const double channel : {color.r, color.g, color.b}) rgb_.push_back(rounded8(channel));
  fill_from_rgb();
}

Scene Scene::noise(Pixel pixel, uint32_t width, uint32_t height, uint32_t seed, bool is_hard) {
  Scene scene(pixel, width, height);
  scene.lay_out();
  std::mt19937 random(seed);
  for (uint8_t& byte : scene.bytes_) byte = static_cast<uint8_t>(is_hard ? (random() & 1) * 255 : random());
  return scene;
}

// Rows have some bytes more than they need, so that an encoder which takes the width for the stride is found.
void Scene::lay_out() {
  constexpr size_t kMore = 5;
  const size_t half = (width_ + 1) / 2, half_rows = (height_ + 1) / 2;
  picture_.pixel = pixel_;
  picture_.width = width_;
  picture_.height = height_;
  picture_.strides[0] = size_t{width_} * bytes_per_pixel(pixel_) + kMore;
  const bool is_nv12 = pixel_ == Pixel::nv12, is_i420 = pixel_ == Pixel::i420;
  if (is_nv12 || is_i420) {
    picture_.color = MR_COLOR_BT709;
    picture_.range = MR_RANGE_LIMITED;
    picture_.strides[1] = half * (is_nv12 ? 2 : 1) + kMore;
    picture_.strides[2] = is_i420 ? half + kMore : 0;
  }
  const size_t luma_bytes = picture_.strides[0] * height_;
  bytes_.resize(luma_bytes + (picture_.strides[1] + picture_.strides[2]) * half_rows);
  picture_.planes[0] = bytes_.data();
  if (picture_.strides[1]) picture_.planes[1] = bytes_.data() + luma_bytes;
  if (picture_.strides[2]) picture_.planes[2] = bytes_.data() + luma_bytes + picture_.strides[1] * half_rows;
}

void Scene::fill_from_rgb() {
  lay_out();
  const auto at = [&](size_t plane, uint32_t y) { return const_cast<uint8_t*>(picture_.row(y, plane)); };
  const auto color = [&](uint32_t x, uint32_t y) {
    const uint8_t* pixel = &rgb_[(size_t{std::min(y, height_ - 1)} * width_ + std::min(x, width_ - 1)) * 3];
    return Color{double(pixel[0]), double(pixel[1]), double(pixel[2])};
  };
  for (uint32_t y = 0; y < height_; ++y)
    for (uint32_t x = 0; x < width_; ++x) {
      const Color c = color(x, y);
      uint8_t* out = at(0, y) + size_t{x} * bytes_per_pixel(pixel_);
      switch (pixel_) {
        case Pixel::gray8: out[0] = rounded8(luma(c)); break;
        case Pixel::rgba8: out[3] = 77; [[fallthrough]];
        case Pixel::rgb8: out[0] = rounded8(c.r), out[1] = rounded8(c.g), out[2] = rounded8(c.b); break;
        case Pixel::bgra8: out[3] = 77; [[fallthrough]];
        case Pixel::bgr8: out[0] = rounded8(c.b), out[1] = rounded8(c.g), out[2] = rounded8(c.r); break;
        default: out[0] = rounded8(16 + luma(c) * 219 / 255);
      }
    }
  if (!picture_.planes[1]) return;
  for (uint32_t y = 0; y < (height_ + 1) / 2; ++y)
    for (uint32_t x = 0; x < (width_ + 1) / 2; ++x) {
      Color mean{};
      for (const uint32_t i : {0u, 1u, 2u, 3u}) {
        const Color c = color(2 * x + i % 2, 2 * y + i / 2);
        mean = {mean.r + c.r / 4, mean.g + c.g / 4, mean.b + c.b / 4};
      }
      const double cb = 128 + (mean.b - luma(mean)) / 1.8556 * 224 / 255;
      const double cr = 128 + (mean.r - luma(mean)) / 1.5748 * 224 / 255;
      if (pixel_ == Pixel::nv12) {
        at(1, y)[2 * x] = rounded8(cb), at(1, y)[2 * x + 1] = rounded8(cr);
      } else {
        at(1, y)[x] = rounded8(cb), at(2, y)[x] = rounded8(cr);
      }
    }
}

double psnr(const std::vector<uint8_t>& one, const std::vector<uint8_t>& other) {
  if (one.size() != other.size() || one.empty()) throw std::logic_error("pictures of different sizes were compared");
  double sum = 0;
  for (size_t i = 0; i < one.size(); ++i) sum += (double(one[i]) - other[i]) * (double(one[i]) - other[i]);
  return sum == 0 ? 99 : 10 * std::log10(255.0 * 255.0 / (sum / static_cast<double>(one.size())));
}

} // namespace millrace::codec
