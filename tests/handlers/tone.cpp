// Tone and saturation against the formulas in doubles, format by format.
#include "handlers/image/tone.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "builtin.h"
#include "handlers/image/color.h"
#include "pictures.h"

using namespace millrace;
using namespace millrace::handlers;
using millrace::testing::Result;
using millrace::testing::TableTest;

namespace {

const std::vector<ToneSettings> kSettings = {{},
                                             {0.2, 1, 1, 1},
                                             {-1, 1, 1, 1},
                                             {0, 1.7, 1, 1},
                                             {0.1, 0, 1, 1},
                                             {0, 1, 2.2, 1},
                                             {0, 1, 0.05, 1},
                                             {0, 1, 1, 0},
                                             {0, 1, 1, 2.5},
                                             {-0.1, 1.3, 0.8, 0.4},
                                             {1, kContrastMax, kGammaMax, kSaturationMax},
                                             {-1, kContrastMax, kGammaMin, kSaturationMax}};

double toned(const ToneSettings& s, double v) {
  return std::pow(std::clamp((v - 0.5) * s.contrast + 0.5 + s.brightness, 0.0, 1.0), 1 / s.gamma);
}

Picture adjusted(const ToneSettings& settings, const Picture& source) {
  const ImageView in = source.view();
  Picture target = Picture(in.pixel(), in.width(), in.height()).tag(in.color(), in.range());
  ToneAdjuster adjuster;
  adjuster.set(settings);
  adjuster.run(in, target.span());
  return target;
}

// The largest distance from the formula, of interleaved channels. The first line is rounded before the second.
double error_of(const ToneSettings& s, const ImageView& source, const ImageView& target) {
  const uint32_t channels = bytes_per_pixel(source.pixel());
  const bool blue_first = source.pixel() == Pixel::bgr8 || source.pixel() == Pixel::bgra8;
  double worst = 0;
  for (uint32_t y = 0; y < source.height(); ++y)
    for (uint32_t x = 0; x < source.width(); ++x) {
      const uint8_t *in = source.row(y) + x * channels, *out = target.row(y) + x * channels;
      double v[3] = {};
      for (uint32_t c = 0; c < std::min(channels, 3u); ++c) v[c] = 255 * toned(s, in[c] / 255.0);
      if (channels == 1) {
        worst = std::max(worst, std::abs(v[0] - out[0]));
        continue;
      }
      const double luma = 0.299 * v[blue_first ? 2 : 0] + 0.587 * v[1] + 0.114 * v[blue_first ? 0 : 2];
      for (uint32_t c = 0; c < 3; ++c)
        worst = std::max(worst, std::abs(std::clamp(luma + s.saturation * (v[c] - luma), 0.0, 255.0) - out[c]));
      if (channels == 4 && in[3] != out[3]) return 255;
    }
  return worst;
}

} // namespace

TEST_CASE("tone and saturation are the formulas, to within the roundings, whatever format and size") {
  for (const ToneSettings& settings : kSettings)
    for (Pixel pixel : {Pixel::gray8, Pixel::rgb8, Pixel::bgr8, Pixel::rgba8, Pixel::bgra8})
      for (const auto& [width, height] : {std::pair{1u, 1u}, {7u, 3u}, {513u, 2u}, {1100u, 3u}}) {
        const Picture source = random_picture(pixel, width, height, 41);
        INFO(size_of(source.view()) << ", brightness " << settings.brightness << " contrast " << settings.contrast
                                    << " gamma " << settings.gamma << " saturation " << settings.saturation);
        // Half a unit for each rounding; the second line multiplies the error of the first: by its saturation for the
        // channel itself, and for the luma by what is left to 1.
        const bool saturates = bytes_per_pixel(pixel) > 1 && settings.saturation != 1;
        const double grown = saturates ? 0.5 * (settings.saturation + std::abs(1 - settings.saturation)) + 0.5 : 0.5;
        CHECK(error_of(settings, source.view(), adjusted(settings, source).view()) <= grown + 0.03);
      }
}

TEST_CASE("settings that change nothing leave every format as it is, numbers out of range but clamped") {
  for (Pixel pixel : {Pixel::gray8, Pixel::rgb8, Pixel::bgra8, Pixel::nv12, Pixel::i420}) {
    const Picture source = random_picture(pixel, 39, 15, 42).tag(MR_COLOR_BT601, MR_RANGE_FULL);
    CHECK(same_pixels(adjusted({}, source).view(), source.view()));
  }
  const ToneCurve limited = tone_curve({}, true);
  for (uint32_t value = 0; value < 256; ++value) CHECK(limited.table[value] == std::clamp(value, 16u, 235u));
}

TEST_CASE("the line and the table are one where there is no gamma, and the table is the curve where there is") {
  for (const ToneSettings& settings : kSettings)
    for (bool limited : {false, true}) {
      const ToneCurve curve = tone_curve(settings, limited);
      const double black = limited ? 16 : 0, span = limited ? 219 : 255;
      double worst = 0;
      for (uint32_t value = 0; value < 256; ++value)
        worst = std::max(worst, std::abs(black + span * toned(settings, (value - black) / span) - curve.table[value]));
      CHECK(worst <= 0.51);
      CHECK(curve.straight == (settings.gamma == 1));
    }
}

TEST_CASE("grays have no tint, however saturated") {
  Picture grays(Pixel::rgb8, 256, 1);
  for (uint32_t v = 0; v < 256; ++v) std::memset(grays.span().row(0) + size_t{v} * 3, static_cast<int>(v), 3);
  for (double saturation : {0.0, 0.37, 3.0, kSaturationMax})
    CHECK(same_pixels(adjusted({0, 1, 1, saturation}, grays).view(), grays.view()));
}

TEST_CASE("nv12 and i420 are adjusted to what RGB would be") {
  // Colours from the middle, so that nothing is clamped: then the two ways differ by roundings alone.
  Picture colors(Pixel::rgb8, 64, 32);
  for (uint32_t y = 0; y < 32; ++y)
    for (uint32_t i = 0; i < 64 * 3; ++i)
      colors.span().row(y)[i] = static_cast<uint8_t>(90 + (i / 6 % 32 * 3 + y / 2 * 5 + i % 3 * 20) % 70);
  const ToneSettings settings = {0.05, 1.2, 1, 0.6};
  for (Pixel pixel : {Pixel::nv12, Pixel::i420})
    for (uint32_t range : {uint32_t{MR_RANGE_FULL}, uint32_t{MR_RANGE_LIMITED}}) {
      Picture coded = Picture(pixel, 64, 32).tag(MR_COLOR_BT601, range);
      convert_pixels(colors.view(), coded.span());
      Picture back(Pixel::rgb8, 64, 32), uncoded(Pixel::rgb8, 64, 32);
      convert_pixels(adjusted(settings, coded).view(), back.span());
      convert_pixels(coded.view(), uncoded.span());
      const Picture wanted = adjusted(settings, uncoded);
      int worst = 0;
      for (uint32_t y = 0; y < 32; ++y)
        for (uint32_t i = 0; i < 64 * 3; ++i)
          worst = std::max(worst, std::abs(int{back.view().row(y)[i]} - int{wanted.view().row(y)[i]}));
      INFO(size_of(coded.view()) << ", range " << range);
      CHECK(worst <= 4);
    }
}

TEST_CASE("luma and chroma of ten bits are the formulas, to within the roundings, in both ranges and any size") {
  for (const ToneSettings& settings : kSettings)
    for (const uint32_t range : {MR_RANGE_FULL, MR_RANGE_LIMITED})
      for (const auto& [width, height] : {std::pair{1u, 1u}, {7u, 3u}, {513u, 2u}, {1101u, 3u}}) {
        const Picture source =
            random_picture(Pixel::p010, width, height, 45).tag(MR_COLOR_BT2020, range); // its low bits are noise
        const Picture made = adjusted(settings, source);
        const bool limited = range == MR_RANGE_LIMITED;
        const double black = limited ? 64 : 0, span = limited ? 876 : 1023,
                     gain = settings.contrast * settings.saturation;
        double worst = 0;
        bool is_clean = true;
        for (uint32_t plane = 0; plane < 2; ++plane)
          for (uint32_t y = 0; y < source.view().rows(plane); ++y)
            for (uint32_t i = 0; i < plane_row_bytes(Pixel::p010, width, plane); i += 2) {
              const uint8_t *in = source.view().row(y, plane) + i, *out = made.view().row(y, plane) + i;
              const int before = in[1] * 4 + in[0] / 64, after = out[1] * 4 + out[0] / 64;
              const double wanted =
                  plane == 0 ? black + span * toned(settings, (before - black) / span)
                             : std::clamp(512 + gain * (before - 512), limited ? 64.0 : 0.0, limited ? 960.0 : 1023.0);
              worst = std::max(worst, std::abs(wanted - after));
              is_clean = is_clean && out[0] % 64 == 0;
            }
        INFO(size_of(source.view()) << ", range " << range << ", contrast " << settings.contrast << " gamma "
                                    << settings.gamma);
        CHECK(is_clean);
        CHECK(worst <= 0.57); // half a step, and the line's 13 bits
      }
}

TEST_CASE("the strongest settings overflow nothing in ten bits") {
  const ToneLine line = chroma_line_of<uint16_t>({0, kContrastMax, 1, kSaturationMax}, false);
  for (int32_t value = 0; value < 1024; ++value) {
    const int64_t sum = int64_t{value} * line.gain + line.offset;
    REQUIRE(std::abs(int64_t{value} * line.gain) <= INT32_MAX);
    CHECK(std::clamp<int64_t>(sum >> 13, 0, 1023) == std::clamp(512 + 100 * (value - 512), 0, 1023));
  }
}

TEST_CASE("the strongest settings overflow nothing: chroma goes to its ends and its middle stays") {
  const ToneLine line = chroma_line({0, kContrastMax, 1, kSaturationMax}, false);
  for (int32_t value = 0; value < 256; ++value) {
    const int64_t sum = int64_t{value} * line.gain + line.offset;
    REQUIRE(std::abs(int64_t{value} * line.gain) <= INT32_MAX);
    CHECK(std::clamp<int64_t>(sum >> 16, 0, 255) == std::clamp(128 + 100 * (value - 128), 0, 255));
  }
}

TEST_CASE("a picture may be adjusted in its own memory") {
  for (Pixel pixel : {Pixel::gray8, Pixel::bgr8, Pixel::rgba8, Pixel::i420, Pixel::p010}) {
    Picture picture = random_picture(pixel, 600, 4, 43);
    const Picture wanted = adjusted({0.1, 1.4, 1.2, 0.5}, picture);
    ToneAdjuster adjuster;
    adjuster.set({0.1, 1.4, 1.2, 0.5});
    adjuster.run(picture.view(), picture.span());
    CHECK(same_pixels(picture.view(), wanted.view()));
  }
}

TEST_CASE("image.adjust adjusts by the numbers of now, and keeps the times") {
  TableTest adjust(builtin("image.adjust"), {{"brightness", "0.2"}});
  const Picture source = random_picture(Pixel::bgr8, 21, 8, 44);
  adjust.input("video", testing::image(Pixel::bgr8, 21, 8, [&](uint32_t x, uint32_t y, uint32_t c) {
                          return source.view().row(y)[x * 3 + c];
                        }).at(70, 3));
  for (const char* saturation : {"1", "0", "2.5"}) {
    adjust.set("saturation", saturation);
    const Result result = adjust.tick();
    REQUIRE(result.ok());
    INFO("saturation " << saturation);
    CHECK(same_pixels(result.image("video"), adjusted({0.2, 1, 1, std::atof(saturation)}, source).view()));
    CHECK(result.image("video").header().pts_ns == 70);
  }
}
