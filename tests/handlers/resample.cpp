// Resizing against its definition in doubles: every target pixel weighed from the source, no axis tables.
#include "handlers/image/resample.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "pictures.h"

using namespace millrace;
using namespace millrace::handlers;

namespace {

struct Size {
  uint32_t width, height;
};

// How much source sample `i` counts in target sample `t`.
double weight_of(uint32_t i, uint32_t t, uint32_t source, uint32_t target, ResizeMethod method) {
  const double scale = double(source) / target;
  if (method == ResizeMethod::area) {
    const double begin = std::max<double>(i, t * scale), end = std::min<double>(i + 1, (t + 1) * scale);
    return std::max(0.0, end - begin) / scale;
  }
  const double place = std::clamp((t + 0.5) * scale - 0.5, 0.0, source - 1.0);
  return std::max(0.0, 1 - std::abs(place - i));
}

double error_of(const ImageView& source, const ImageView& target, ResizeMethod method) {
  const uint32_t channels = bytes_per_pixel(source.pixel());
  double worst = 0;
  for (uint32_t y = 0; y < target.height(); ++y)
    for (uint32_t x = 0; x < target.width(); ++x)
      for (uint32_t c = 0; c < channels; ++c) {
        double sum = 0;
        for (uint32_t v = 0; v < source.height(); ++v) {
          const double down = weight_of(v, y, source.height(), target.height(), method);
          if (down == 0) continue;
          for (uint32_t u = 0; u < source.width(); ++u)
            sum += down * weight_of(u, x, source.width(), target.width(), method) * source.row(v)[u * channels + c];
        }
        worst = std::max(worst, std::abs(sum - target.row(y)[x * channels + c]));
      }
  return worst;
}

Picture resized(const ImageView& source, Size size, ResizeMethod method) {
  Picture target(source.pixel(), size.width, size.height);
  Resampler resampler;
  resampler.prepare(source.width(), source.height(), size.width, size.height, method);
  resampler.run(source, target.span());
  return target;
}

} // namespace

TEST_CASE("bilinear and area resizing are their definitions to within the rounding, at any size") {
  const std::vector<std::pair<Size, Size>> cases = {{{1, 1}, {5, 3}},   {{7, 5}, {1, 1}},     {{2, 9}, {9, 2}},
                                                    {{64, 3}, {32, 1}}, {{40, 30}, {17, 61}}, {{13, 11}, {13, 11}},
                                                    {{300, 4}, {7, 3}}};
  for (const auto& [from, to] : cases)
    for (ResizeMethod method : {ResizeMethod::bilinear, ResizeMethod::area})
      for (Pixel pixel : {Pixel::gray8, Pixel::rgb8, Pixel::rgba8}) {
        const Picture source = random_picture(pixel, from.width, from.height, 31);
        const Picture target = resized(source.view(), to, method);
        INFO(size_of(source.view()) << " to " << size_of(target.view()) << ", method " << int(method));
        // Single precision, or the 16 bits of bilinear with two taps each way.
        CHECK(error_of(source.view(), target.view(), method) < 0.5 + (method == ResizeMethod::area ? 0.001 : 0.02));
      }
}

TEST_CASE("a picture of one colour keeps it in any size, and one that keeps its size keeps all") {
  for (Pixel pixel : {Pixel::gray8, Pixel::rgb8, Pixel::bgra8})
    for (int level = 0; level < 256; ++level) {
      Picture flat(pixel, 6, 5);
      for (uint32_t y = 0; y < 5; ++y)
        std::fill_n(flat.span().row(y), 6 * bytes_per_pixel(pixel), static_cast<uint8_t>(level));
      const Picture target = resized(flat.view(), {9, 4}, ResizeMethod::bilinear);
      const uint8_t* row = target.view().row(3);
      CHECK(std::all_of(row, row + 9 * bytes_per_pixel(pixel), [&](uint8_t value) { return value == level; }));
    }
  const Picture source = random_picture(Pixel::rgb8, 301, 7, 33); // wider than what is gathered at once
  const Picture target = resized(source.view(), {301, 7}, ResizeMethod::bilinear);
  for (uint32_t y = 0; y < 7; ++y)
    CHECK(std::equal(source.view().row(y), source.view().row(y) + 301 * 3, target.view().row(y)));
}

TEST_CASE("bilinear resizing is its definition across the seams of what is gathered at once") {
  const Picture source = random_picture(Pixel::rgb8, 450, 3, 34);
  const Picture target = resized(source.view(), {700, 2}, ResizeMethod::bilinear);
  CHECK(error_of(source.view(), target.view(), ResizeMethod::bilinear) < 0.5 + 0.02);
}

TEST_CASE("nearest takes the pixel that the target's centre lies in") {
  const Picture source = random_picture(Pixel::bgr8, 10, 7, 32);
  for (const Size size : {Size{5, 7}, Size{20, 14}, Size{3, 2}, Size{1, 1}, Size{23, 9}}) {
    const Picture target = resized(source.view(), size, ResizeMethod::nearest);
    bool equal = true;
    for (uint32_t y = 0; y < size.height; ++y)
      for (uint32_t x = 0; x < size.width; ++x) {
        const auto u = static_cast<uint32_t>(std::floor((x + 0.5) * 10 / size.width));
        const auto v = static_cast<uint32_t>(std::floor((y + 0.5) * 7 / size.height));
        equal = equal && std::memcmp(target.view().row(y) + x * 3, source.view().row(v) + u * 3, 3) == 0;
      }
    INFO(size_of(target.view()));
    CHECK(equal);
  }
}

TEST_CASE("a size that stays is a copy, by any method") {
  const Picture source = random_picture(Pixel::rgb8, 19, 8, 33);
  for (ResizeMethod method : {ResizeMethod::nearest, ResizeMethod::bilinear, ResizeMethod::area})
    CHECK(same_pixels(resized(source.view(), {19, 8}, method).view(), source.view()));
}

TEST_CASE("a white picture stays white at any size") {
  Picture white(Pixel::gray8, 37, 23);
  for (uint32_t y = 0; y < 23; ++y) std::memset(white.span().row(y), 255, 37);
  for (ResizeMethod method : {ResizeMethod::nearest, ResizeMethod::bilinear, ResizeMethod::area})
    for (const Size size : {Size{5, 3}, Size{36, 22}, Size{111, 70}}) {
      const Picture target = resized(white.view(), size, method);
      bool flat = true;
      for (uint32_t y = 0; y < size.height; ++y)
        for (uint32_t x = 0; x < size.width; ++x) flat = flat && target.view().row(y)[x] == 255;
      CHECK(flat);
    }
}

TEST_CASE("a resampler follows a change of method at the same size") {
  const Picture source = random_picture(Pixel::gray8, 16, 16, 34);
  Picture first(Pixel::gray8, 4, 4), second(Pixel::gray8, 4, 4);
  Resampler resampler;
  resampler.prepare(16, 16, 4, 4, ResizeMethod::bilinear);
  resampler.run(source.view(), first.span());
  resampler.prepare(16, 16, 4, 4, ResizeMethod::area);
  resampler.run(source.view(), second.span());
  CHECK(same_pixels(second.view(), resized(source.view(), {4, 4}, ResizeMethod::area).view()));
  CHECK_FALSE(same_pixels(first.view(), second.view()));
}
