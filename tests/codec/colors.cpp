// The numbers that colours become, and the colours that come back.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "plugins/codec/encoder.h"
#include "plugins/codec/ycbcr.h"
#include "tests/codec/converted.h"
#include "tests/codec/other_decoder.h"
#include "tests/codec/scene.h"

namespace millrace::codec {
namespace {

struct Golden {
  Color color;
  std::array<uint8_t, 3> numbers; // Y, Cb, Cr of BT.709, limited range
};
constexpr Golden kGolden[] = {
    {{255, 0, 0}, {63, 102, 240}},      {{0, 255, 0}, {173, 42, 26}}, {{0, 0, 255}, {32, 240, 118}},
    {{255, 255, 255}, {235, 128, 128}}, {{0, 0, 0}, {16, 128, 128}},  {{128, 128, 128}, {126, 128, 128}},
};

struct Planes {
  std::vector<uint8_t> y, cb, cr;
};

Planes converted(const Picture& picture) {
  const size_t width = (picture.width + 1) / 2 * 2, height = (picture.height + 1) / 2 * 2;
  Planes planes{std::vector<uint8_t>(width * height), std::vector<uint8_t>(width * height / 4),
                std::vector<uint8_t>(width * height / 4)};
  to_i420(picture, {planes.y.data(), planes.cb.data(), planes.cr.data(), width, width / 2, width / 2});
  return planes;
}

std::vector<uint8_t> first_pixel(const Scene& scene, const char* encoder, const EncoderSettings& settings) {
  std::vector<uint8_t> unit;
  find_encoder(encoder).make(settings)->encode(scene.picture(), unit);
  const std::vector<uint8_t> rgb = OtherDecoder(encoder).decode(unit)->rgb;
  return {rgb.begin(), rgb.begin() + 3};
}

int distance(const std::vector<uint8_t>& pixel, Color color) {
  return std::max(
      {std::abs(pixel[0] - int(color.r)), std::abs(pixel[1] - int(color.g)), std::abs(pixel[2] - int(color.b))});
}

} // namespace

TEST_CASE("the primaries become the numbers of BT.709 in limited range, rounded") {
  for (const Golden& golden : kGolden)
    for (const Pixel pixel : {Pixel::rgb8, Pixel::bgr8, Pixel::rgba8, Pixel::bgra8, Pixel::nv12, Pixel::i420}) {
      INFO(name_of(pixel) << " " << golden.color.r << " " << golden.color.g << " " << golden.color.b);
      const Planes planes = converted(Scene(pixel, 5, 3, golden.color).picture());
      for (const uint8_t y : planes.y) CHECK(y == golden.numbers[0]);
      for (const uint8_t cb : planes.cb) CHECK(cb == golden.numbers[1]);
      for (const uint8_t cr : planes.cr) CHECK(cr == golden.numbers[2]);
    }
}

TEST_CASE("every number is within one half of the real-valued formula") {
  const Scene rgb(Pixel::rgb8, 640, 360, 5), exact(Pixel::i420, 640, 360, 5);
  const Planes ours = converted(rgb.picture()), theirs = converted(exact.picture()); // the second is a copy
  for (size_t i = 0; i < ours.y.size(); ++i) REQUIRE(std::abs(ours.y[i] - theirs.y[i]) <= 1);
  size_t unequal = 0;
  for (size_t i = 0; i < ours.cb.size(); ++i) {
    REQUIRE(std::abs(ours.cb[i] - theirs.cb[i]) <= 1);
    REQUIRE(std::abs(ours.cr[i] - theirs.cr[i]) <= 1);
    unequal += ours.cb[i] != theirs.cb[i] || ours.cr[i] != theirs.cr[i];
  }
  CHECK(unequal * 1000 < ours.cb.size()); // where a half is rounded, at most
}

TEST_CASE("YCbCr of another matrix or range is converted, and becomes the same colours") {
  for (const uint32_t color : {MR_COLOR_SRGB, MR_COLOR_BT601, MR_COLOR_BT709, MR_COLOR_BT2020})
    for (const uint32_t range : {MR_RANGE_FULL, MR_RANGE_LIMITED}) {
      CAPTURE(color);
      CAPTURE(range);
      Scene scene = Scene::noise(Pixel::i420, 6, 4, 1);
      // Numbers whose colours lie within RGB for every matrix.
      for (uint32_t y = 0; y < 4; ++y)
        for (uint32_t x = 0; x < 6; ++x)
          const_cast<uint8_t*>(scene.picture().row(y))[x] = static_cast<uint8_t>(90 + 20 * y);
      for (const size_t plane : {1, 2})
        for (uint32_t y = 0; y < 2; ++y)
          for (uint32_t x = 0; x < 3; ++x)
            const_cast<uint8_t*>(scene.picture().row(y, plane))[x] = static_cast<uint8_t>(116 + 10 * x);
      Picture picture = scene.picture();
      picture.color = color;
      picture.range = range;
      const Planes planes = converted(picture);
      Picture again = picture;
      again.planes = {planes.y.data(), planes.cb.data(), planes.cr.data()};
      again.strides = {6, 3, 3};
      again.color = MR_COLOR_BT709;
      again.range = MR_RANGE_LIMITED;
      const std::vector<uint8_t> before = rgb_of(picture), after = rgb_of(again);
      for (size_t i = 0; i < before.size(); ++i) CHECK(std::abs(before[i] - after[i]) <= 3);
    }
}

TEST_CASE("pure colours come back from JPEG of quality 95 and 4:4:4 within 3") {
  EncoderSettings settings;
  settings.quality = 95;
  settings.subsampling = Subsampling::none_444;
  for (const Golden& golden : kGolden) {
    CAPTURE(golden.color.r);
    CHECK(distance(first_pixel(Scene(Pixel::rgb8, 32, 32, golden.color), "jpeg", settings), golden.color) <= 3);
    settings.subsampling = Subsampling::both_420;
    CHECK(distance(first_pixel(Scene(Pixel::bgra8, 32, 32, golden.color), "jpeg", settings), golden.color) <= 3);
    settings.subsampling = Subsampling::none_444;
  }
}

TEST_CASE("4:4:4 keeps what 4:2:0 does not: a column of red beside a column of blue") {
  EncoderSettings settings;
  settings.quality = 95;
  std::vector<uint8_t> bytes;
  for (int i = 0; i < 32 * 32; ++i) {
    const bool is_red = i % 2 == 0;
    bytes.insert(bytes.end(), {uint8_t(is_red ? 255 : 0), 0, uint8_t(is_red ? 0 : 255)});
  }
  Picture picture;
  picture.pixel = Pixel::rgb8;
  picture.width = picture.height = 32;
  picture.planes[0] = bytes.data();
  picture.strides[0] = 96;
  std::vector<double> found;
  for (const Subsampling subsampling : {Subsampling::none_444, Subsampling::both_420}) {
    settings.subsampling = subsampling;
    std::vector<uint8_t> unit;
    find_encoder("jpeg").make(settings)->encode(picture, unit);
    found.push_back(psnr(OtherDecoder("jpeg").decode(unit)->rgb, bytes));
  }
  CHECK(found[0] > 30);
  CHECK(found[1] < 15);
}

TEST_CASE("pure colours come back from H.264 within 4, and the stream says BT.709 and limited range") {
  EncoderSettings settings;
  settings.bit_rate = 8'000'000;
  for (const Golden& golden : kGolden) {
    CAPTURE(golden.color.r);
    std::vector<uint8_t> unit;
    const Scene scene(Pixel::rgb8, 64, 64, golden.color);
    find_encoder("h264").make(settings)->encode(scene.picture(), unit);
    const Decoded decoded = *OtherDecoder("h264").decode(unit);
    CHECK(decoded.matrix == AVCOL_SPC_BT709);
    CHECK(decoded.primaries == AVCOL_PRI_BT709);
    CHECK(decoded.range == AVCOL_RANGE_MPEG);
    for (int i = 0; i < 3; ++i) CHECK(std::abs(decoded.first[size_t(i)] - golden.numbers[size_t(i)]) <= 1);
    CHECK(distance({decoded.rgb.begin(), decoded.rgb.begin() + 3}, golden.color) <= 4);
  }
}

} // namespace millrace::codec
