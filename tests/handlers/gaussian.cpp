// Blur against a real-valued convolution, at sizes smaller than the kernel and larger than one stretch.
#include "handlers/image/gaussian.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "pictures.h"

using namespace millrace;
using namespace millrace::handlers;

namespace {

std::vector<double> real_kernel(double sigma) {
  const int radius = static_cast<int>(std::ceil(3 * sigma));
  std::vector<double> weights;
  double sum = 0;
  for (int k = -radius; k <= radius; ++k) sum += std::exp(-0.5 * k * k / (sigma * sigma));
  for (int k = -radius; k <= radius; ++k) weights.push_back(std::exp(-0.5 * k * k / (sigma * sigma)) / sum);
  return weights;
}

// A number of a plane; of p010 its ten bits.
double blurred_number(const ImageView& picture, uint32_t plane, uint32_t y, size_t i) {
  const uint8_t* row = picture.row(y, plane);
  if (picture.pixel() == Pixel::p010) return row[2 * i + 1] * 4 + row[2 * i] / 64;
  return row[i];
}

// The largest distance from the convolution in doubles, for one plane.
double error_of(const ImageView& source, const ImageView& blurred, uint32_t plane, uint32_t width, uint32_t channels,
                double sigma) {
  const std::vector<double> kernel = real_kernel(sigma);
  const int64_t radius = static_cast<int64_t>(kernel.size() / 2);
  const uint32_t height = source.rows(plane);
  std::vector<double> columns(size_t{width} * channels * height);
  for (uint32_t y = 0; y < height; ++y)
    for (size_t i = 0; i < size_t{width} * channels; ++i)
      for (int64_t k = -radius; k <= radius; ++k)
        columns[y * size_t{width} * channels + i] +=
            kernel[static_cast<size_t>(k + radius)] * blurred_number(source, plane, reflect101(y + k, height), i);
  double worst = 0;
  for (uint32_t y = 0; y < height; ++y)
    for (uint32_t x = 0; x < width; ++x)
      for (uint32_t c = 0; c < channels; ++c) {
        double sum = 0;
        for (int64_t k = -radius; k <= radius; ++k)
          sum += kernel[static_cast<size_t>(k + radius)] *
                 columns[(y * size_t{width} + reflect101(x + k, width)) * channels + c];
        worst = std::max(worst, std::abs(sum - blurred_number(blurred, plane, y, x * channels + c)));
      }
  return worst;
}

} // namespace

TEST_CASE("a blur is the convolution to within a unit, whatever format, size and sigma") {
  const std::vector<std::pair<uint32_t, uint32_t>> sizes = {{1, 1}, {1, 7}, {8, 1}, {5, 3}, {33, 18}, {700, 5}};
  for (const auto& [width, height] : sizes)
    for (double sigma : {0.3, 1.0, 2.0, 4.7, 12.0})
      for (Pixel pixel : {Pixel::gray8, Pixel::rgb8, Pixel::bgra8}) {
        const Picture source = random_picture(pixel, width, height, 21);
        Picture target(pixel, width, height);
        GaussianBlur blur;
        blur.set_sigma(sigma);
        blur.run(source.view(), target.span());
        INFO(size_of(source.view()) << ", sigma " << sigma);
        CHECK(error_of(source.view(), target.view(), 0, width, bytes_per_pixel(pixel), sigma) < 0.75);
      }
}

TEST_CASE("chroma planes are blurred with half the sigma") {
  for (Pixel pixel : {Pixel::nv12, Pixel::i420}) {
    const Picture source = random_picture(pixel, 37, 21, 22);
    Picture target(pixel, 37, 21);
    GaussianBlur blur;
    blur.set_sigma(3);
    blur.run(source.view(), target.span());
    INFO(size_of(source.view()));
    CHECK(error_of(source.view(), target.view(), 0, 37, 1, 3) < 0.75);
    for (uint32_t plane = 1; plane < source.view().plane_count(); ++plane)
      CHECK(error_of(source.view(), target.view(), plane, 19, pixel == Pixel::nv12 ? 2 : 1, 1.5) < 0.75);
  }
}

TEST_CASE(
    "ten bits are blurred as the convolution is, at any size, and the six bits below are neither read nor written") {
  const std::vector<std::pair<uint32_t, uint32_t>> sizes = {{1, 1}, {1, 7}, {8, 1}, {5, 3}, {33, 18}, {701, 5}};
  for (const auto& [width, height] : sizes)
    for (double sigma : {0.0, 0.3, 1.0, 2.0, 4.7, 12.0}) {
      const Picture source = random_picture(Pixel::p010, width, height, 24);
      Picture target = random_picture(Pixel::p010, width, height, 25);
      GaussianBlur blur;
      blur.set_sigma(sigma);
      blur.run(source.view(), target.span());
      INFO(size_of(source.view()) << ", sigma " << sigma);
      for (uint32_t plane = 0; plane < 2; ++plane) {
        const uint32_t columns = plane_extent(Pixel::p010, width, plane), channels = 1 + plane;
        bool is_clean = true;
        for (uint32_t y = 0; y < source.view().rows(plane); ++y)
          for (uint32_t i = 0; i < columns * channels; ++i)
            is_clean = is_clean && (target.view().row(y, plane)[2 * i] & 63) == 0;
        CHECK(is_clean);
        if (sigma > 0)
          CHECK(error_of(source.view(), target.view(), plane, columns, channels, plane > 0 ? sigma / 2 : sigma) < 1);
        else
          CHECK(distance(source.view(), target.view()) <= 1);
      }
    }
}

TEST_CASE("no kernel is further from the real one than the manual allows, and each has an exact sum") {
  for (double sigma = 0; sigma <= kSigmaMax; sigma += 0.37) {
    const GaussianKernel kernel = gaussian_kernel(sigma);
    uint32_t sum = kernel.weights[0];
    for (uint32_t k = 1; k <= kernel.radius(); ++k) sum += 2u * kernel.weights[k];
    INFO("sigma " << sigma);
    REQUIRE(sum == 32768);
    if (sigma == 0) continue;
    const std::vector<double> real = real_kernel(sigma);
    double distance = 0; // the sum of all weights' errors; an input of extremes sees at most 127.5 times that
    for (uint32_t k = 0; k <= kernel.radius(); ++k)
      distance += std::abs(kernel.weights[k] / 32768.0 - real[kernel.radius() + k]) * (k == 0 ? 1 : 2);
    // Two passes, their own rounding, and a unit less half is what "at most 1 from the rounded result" leaves.
    CHECK(2 * 127.5 * distance + 0.5 + 1.0 / 256 < 1.5);
    CHECK(2 * 511.5 * distance + 0.5 + 1.0 / 64 < 4.5); // of ten bits
  }
}

TEST_CASE("a flat picture stays flat, and sigma 0 copies") {
  Picture white(Pixel::gray8, 50, 40), target(Pixel::gray8, 50, 40);
  for (uint32_t y = 0; y < 40; ++y) std::memset(white.span().row(y), 255, 50);
  Picture deep(Pixel::p010, 50, 40), deep_target(Pixel::p010, 50, 40);
  const uint16_t most = kTenBits;
  for (uint32_t plane = 0; plane < 2; ++plane)
    for (uint32_t y = 0; y < deep.span().rows(plane); ++y)
      for (uint32_t i = 0; i < 50; ++i) std::memcpy(deep.span().row(y, plane) + size_t{2} * i, &most, 2);
  for (double sigma : {0.5, 2.0, 50.0}) {
    GaussianBlur wide;
    wide.set_sigma(sigma);
    wide.run(deep.view(), deep_target.span());
    CHECK(same_pixels(deep.view(), deep_target.view()));
    GaussianBlur blur;
    blur.set_sigma(sigma);
    blur.run(white.view(), target.span());
    CHECK(same_pixels(white.view(), target.view()));
  }
  const Picture noise = random_picture(Pixel::gray8, 50, 40, 23);
  GaussianBlur none;
  none.set_sigma(0);
  none.run(noise.view(), target.span());
  CHECK(same_pixels(noise.view(), target.view()));
}

TEST_CASE("borders are reflected without repeating the edge") {
  const std::vector<uint32_t> wanted = {2, 3, 2, 1, 0, 1, 2, 3, 2, 1, 0, 1};
  for (size_t i = 0; i < wanted.size(); ++i) CHECK(reflect101(static_cast<int64_t>(i) - 4, 4) == wanted[i]);
  CHECK(reflect101(-1000, 1) == 0);
  CHECK(reflect101(1001, 2) == 1);
}
