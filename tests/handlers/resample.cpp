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

// How much source sample `i` of `source` counts in target sample `t`. An area may reach beyond the last sample.
double weight_of(uint32_t i, uint32_t t, uint32_t source, double scale, ResizeMethod method) {
  if (method == ResizeMethod::area) {
    const double begin = std::max<double>(i, t * scale), end = std::min<double>(i + 1, (t + 1) * scale);
    return std::max(0.0, end - begin) / (std::min<double>(source, (t + 1) * scale) - t * scale);
  }
  if (method == ResizeMethod::nearest)
    return i == std::min(static_cast<uint32_t>(std::floor((t + 0.5) * scale)), source - 1) ? 1 : 0;
  const double place = std::clamp((t + 0.5) * scale - 0.5, 0.0, source - 1.0);
  return std::max(0.0, 1 - std::abs(place - i));
}

// The error of a plane in steps of its numbers.
double error_of(const ImageView& source, const ImageView& target, ResizeMethod method, uint32_t plane) {
  const bool is_wide = source.pixel() == Pixel::p010;
  const uint32_t channels = sample_bytes(source.pixel(), plane) / (is_wide ? 2 : 1);
  const auto extent = [&](uint32_t pixels) { return plane_extent(source.pixel(), pixels, plane); };
  const auto number = [&](const ImageView& picture, uint32_t x, uint32_t y) {
    const uint8_t* const row = picture.row(y, plane);
    return is_wide ? (row[2 * x] + 256 * row[2 * x + 1]) / 64.0 : row[x];
  };
  // The samples that count in each sample of the target, with their weights.
  const auto weights = [&](uint32_t from, uint32_t to) {
    std::vector<std::vector<std::pair<uint32_t, double>>> all(extent(to));
    for (uint32_t t = 0; t < all.size(); ++t)
      for (uint32_t i = 0; i < extent(from); ++i)
        if (const double weight = weight_of(i, t, extent(from), double(from) / to, method); weight > 0)
          all[t].emplace_back(i, weight);
    return all;
  };
  const auto across = weights(source.width(), target.width()), down = weights(source.height(), target.height());
  double worst = 0;
  for (uint32_t y = 0; y < down.size(); ++y)
    for (uint32_t x = 0; x < across.size(); ++x)
      for (uint32_t c = 0; c < channels; ++c) {
        double sum = 0;
        for (const auto& [v, by_row] : down[y])
          for (const auto& [u, by_column] : across[x]) sum += by_row * by_column * number(source, u * channels + c, v);
        worst = std::max(worst, std::abs(sum - number(target, x * channels + c, y)));
      }
  return worst;
}
double error_of(const ImageView& source, const ImageView& target, ResizeMethod method) {
  double worst = 0;
  for (uint32_t plane = 0; plane < source.plane_count(); ++plane)
    worst = std::max(worst, error_of(source, target, method, plane));
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

TEST_CASE(
    "planes of nv12, i420 and p010 are resized by the definition, each at its own place, from 1 × 1 and odd sizes on") {
  const std::vector<std::pair<Size, Size>> cases = {{{1, 1}, {5, 3}},     {{7, 5}, {1, 1}},     {{2, 9}, {9, 2}},
                                                    {{64, 3}, {31, 1}},   {{40, 30}, {17, 61}}, {{13, 11}, {13, 11}},
                                                    {{641, 5}, {320, 3}}, {{4, 4}, {5, 5}},     {{5, 5}, {4, 4}}};
  for (const auto& [from, to] : cases)
    for (ResizeMethod method : {ResizeMethod::nearest, ResizeMethod::bilinear, ResizeMethod::area})
      for (Pixel pixel : {Pixel::nv12, Pixel::i420, Pixel::p010}) {
        Picture source = random_picture(pixel, from.width, from.height, 35);
        if (pixel == Pixel::p010)
          for (uint32_t plane = 0; plane < 2; ++plane)
            for (uint32_t y = 0; y < source.span().rows(plane); ++y)
              for (size_t i = 0; i < plane_row_bytes(pixel, from.width, plane); i += 2)
                source.span().row(y, plane)[i] &= 0xC0;
        const Picture target = resized(source.view(), to, method);
        INFO(size_of(source.view()) << " to " << size_of(target.view()) << ", method " << int(method));
        CHECK(error_of(source.view(), target.view(), method) < 0.5 + (pixel == Pixel::p010 ? 0.08 : 0.02));
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

TEST_CASE("planes of one number keep it in any size, also of ten bits and odd sides") {
  for (ResizeMethod method : {ResizeMethod::nearest, ResizeMethod::bilinear, ResizeMethod::area})
    for (const Size size : {Size{9, 4}, Size{3, 7}, Size{7, 5}})
      for (uint32_t level = 0; level < 1024; ++level) {
        Picture flat(Pixel::p010, 7, 5);
        const auto number = static_cast<uint16_t>(level << 6);
        for (uint32_t plane = 0; plane < 2; ++plane)
          for (uint32_t y = 0; y < flat.span().rows(plane); ++y)
            for (size_t i = 0; i < plane_row_bytes(Pixel::p010, 7, plane); i += 2)
              std::memcpy(flat.span().row(y, plane) + i, &number, 2);
        const Picture target = resized(flat.view(), size, method);
        bool is_flat = true;
        for (uint32_t plane = 0; plane < 2; ++plane)
          for (uint32_t y = 0; y < target.view().rows(plane); ++y)
            for (size_t i = 0; i < plane_row_bytes(Pixel::p010, size.width, plane); i += 2)
              is_flat = is_flat && std::memcmp(target.view().row(y, plane) + i, &number, 2) == 0;
        INFO(level << ", " << size_of(target.view()) << ", method " << int(method));
        CHECK(is_flat);
      }
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
