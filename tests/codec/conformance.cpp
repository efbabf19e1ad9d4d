// One suite for every encoder that is there: what encoder.h promises.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "plugins/codec/encoder.h"
#include "tests/codec/other_decoder.h"
#include "tests/codec/scene.h"

namespace millrace::codec {
namespace {

constexpr uint32_t kSuiteWidth = 320, kSuiteHeight = 240;
constexpr double kPsnrMin = 36; // dB; the scene comes back with 39 and more
constexpr Pixel kPixels[] = {Pixel::gray8, Pixel::rgb8, Pixel::bgr8, Pixel::rgba8,
                             Pixel::bgra8, Pixel::nv12, Pixel::i420};

EncoderSettings good_settings() {
  EncoderSettings settings;
  settings.quality = 95;
  settings.bit_rate = 8'000'000;
  return settings;
}

// Calls `test(type)` for each encoder that is there.
template <class Test>
void for_each_encoder(const Test& test) {
  size_t there = 0;
  for (const EncoderType& type : encoder_types()) {
    if (!type.why_missing().empty()) continue;
    INFO(type.name);
    test(type);
    ++there;
  }
  CHECK(there >= 1);
}

bool has_even_sizes_alone(const EncoderType& type) { return type.code == kH264Code; }

// Encodes a picture and decodes it at once by `decoder`; checks the size and how near it is.
void check_round_trip(const EncoderType& type, Encoder& encoder, OtherDecoder& decoder, const Scene& scene,
                      double psnr_min = kPsnrMin) {
  std::vector<uint8_t> unit;
  encoder.encode(scene.picture(), unit);
  const uint32_t width = scene.picture().width, height = scene.picture().height;
  const std::optional<Decoded> decoded = decoder.decode(unit);
  REQUIRE(decoded);
  const uint32_t more_x = has_even_sizes_alone(type) ? width % 2 : 0,
                 more_y = has_even_sizes_alone(type) ? height % 2 : 0;
  CHECK(decoded->width == width + more_x);
  CHECK(decoded->height == height + more_y);
  CHECK(psnr(cropped(*decoded, width, height), scene.rgb()) >= psnr_min);
}

} // namespace

TEST_CASE("each unit decodes as soon as it came, into a picture near the one that went in") {
  for_each_encoder([](const EncoderType& type) {
    const auto encoder = type.make(good_settings());
    OtherDecoder decoder(type.name);
    for (int time = 0; time < 40; ++time) {
      INFO(time);
      check_round_trip(type, *encoder, decoder, Scene(Pixel::rgb8, kSuiteWidth, kSuiteHeight, time));
    }
  });
}

TEST_CASE("the first unit is a key frame, and so is the next one that is asked for: a newcomer begins there") {
  for_each_encoder([](const EncoderType& type) {
    const auto encoder = type.make(good_settings());
    const bool all_are = type.code == kJpegCode;
    std::unique_ptr<OtherDecoder> newcomer;
    std::vector<uint8_t> unit;
    for (int time = 0; time < 30; ++time) {
      INFO(time);
      const bool is_asked = time == 7 || time == 8 || time == 20;
      if (is_asked) {
        encoder->ask_key();
        newcomer = std::make_unique<OtherDecoder>(type.name);
      }
      const Scene scene(Pixel::rgb8, kSuiteWidth, kSuiteHeight, time);
      CHECK(encoder->encode(scene.picture(), unit) == (all_are || is_asked || time == 0));
      if (!newcomer) continue;
      const std::optional<Decoded> decoded = newcomer->decode(unit);
      REQUIRE(decoded);
      CHECK(psnr(decoded->rgb, scene.rgb()) >= kPsnrMin);
    }
  });
}

TEST_CASE("more quality or a higher bit rate makes more bytes while the stream goes on") {
  for_each_encoder([](const EncoderType& type) {
    EncoderSettings settings;
    std::vector<uint64_t> sums;
    const auto encoder = type.make(settings);
    int time = 0;
    for (const int step : {1, 4, 8, 2}) { // with 8 the quality is 80 and the rate 1.6 Mb/s
      settings.quality = step * 10;
      settings.bit_rate = step * 200'000;
      encoder->change(settings);
      uint64_t sum = 0;
      std::vector<uint8_t> unit;
      for (int i = 0; i < 60; ++i, ++time) {
        const bool is_key = encoder->encode(Scene(Pixel::rgb8, kSuiteWidth, kSuiteHeight, time).picture(), unit);
        CHECK(is_key == (time == 0 || type.code == kJpegCode));
        if (i >= 30) sum += unit.size(); // a second after the change
      }
      sums.push_back(sum);
    }
    CHECK(sums[0] * 3 < sums[1] * 2);
    CHECK(sums[1] < sums[2]);
    CHECK(sums[3] < sums[1]);
    CHECK(sums[0] < sums[3]);
  });
}

TEST_CASE("pictures of another size begin a stream anew, with a key frame") {
  for_each_encoder([](const EncoderType& type) {
    const auto encoder = type.make(good_settings());
    OtherDecoder decoder(type.name);
    const uint32_t sizes[][2] = {{320, 240}, {176, 144}, {640, 360}, {176, 144}};
    int time = 0;
    std::vector<uint8_t> unit;
    for (const auto& [width, height] : sizes)
      for (int i = 0; i < 3; ++i, ++time) {
        const Scene scene(Pixel::rgb8, width, height, time);
        CHECK(encoder->encode(scene.picture(), unit) == (i == 0 || type.code == kJpegCode));
        const std::optional<Decoded> decoded = decoder.decode(unit);
        REQUIRE(decoded);
        CHECK(decoded->width == width);
        CHECK(decoded->height == height);
        CHECK(psnr(decoded->rgb, scene.rgb()) >= kPsnrMin - 3);
      }
  });
}

TEST_CASE("odd, tiny and long sizes come back in every pixel format") {
  for_each_encoder([](const EncoderType& type) {
    const uint32_t sizes[][2] = {{1, 1},   {1, 7},     {7, 1},   {2, 2},    {3, 5},    {16, 16},
                                 {33, 17}, {255, 257}, {513, 3}, {8192, 2}, {3, 8191}, {1000, 37}};
    for (const auto& [width, height] : sizes)
      for (const Pixel pixel : kPixels) {
        INFO(width << " × " << height << " " << name_of(pixel));
        const auto encoder = type.make(good_settings());
        OtherDecoder decoder(type.name);
        for (int time = 0; time < 2; ++time)
          check_round_trip(type, *encoder, decoder, Scene(pixel, width, height, time, pixel == Pixel::gray8), 25);
      }
  });
}

TEST_CASE("pixel formats with the same colours make the same stream, or nearly") {
  for_each_encoder([](const EncoderType& type) {
    std::vector<std::vector<uint8_t>> units(kPixels + 7 - kPixels);
    std::vector<Decoded> decoded;
    for (size_t i = 0; i < units.size(); ++i) {
      const auto encoder = type.make(good_settings());
      encoder->encode(Scene(kPixels[i], kSuiteWidth + 1, kSuiteHeight + 1, 3).picture(), units[i]);
      decoded.push_back(*OtherDecoder(type.name).decode(units[i]));
    }
    for (const size_t packed : {2, 3, 4}) CHECK(units[packed] == units[1]); // bgr8, rgba8 and bgra8 as rgb8
    CHECK(units[6] == units[5]);                                            // i420 as nv12
    CHECK(psnr(decoded[5].rgb, decoded[1].rgb) >= 38);

    std::vector<uint8_t> gray, colored;
    type.make(good_settings())->encode(Scene(Pixel::gray8, kSuiteWidth, kSuiteHeight, 3, true).picture(), gray);
    type.make(good_settings())->encode(Scene(Pixel::rgb8, kSuiteWidth, kSuiteHeight, 3, true).picture(), colored);
    CHECK(psnr(OtherDecoder(type.name).decode(gray)->rgb, OtherDecoder(type.name).decode(colored)->rgb) >= 45);
  });
}

TEST_CASE("the same pictures, settings and requests make the same bytes") {
  for_each_encoder([](const EncoderType& type) {
    for (const int64_t threads : {1, 3}) {
      EncoderSettings settings;
      settings.threads = threads;
      const auto one = type.make(settings), other = type.make(settings);
      std::vector<uint8_t> unit, other_unit;
      for (int time = 0; time < 20; ++time) {
        const Scene scene(Pixel::rgb8, kSuiteWidth, kSuiteHeight, time);
        if (time == 9) one->ask_key(), other->ask_key();
        one->encode(scene.picture(), unit);
        other->encode(scene.picture(), other_unit);
        CHECK(unit == other_unit);
      }
    }
  });
}

TEST_CASE("several threads encode a picture, and a decoder gets one unit for it") {
  for_each_encoder([](const EncoderType& type) {
    EncoderSettings settings = good_settings();
    settings.threads = 4;
    const auto encoder = type.make(settings);
    OtherDecoder decoder(type.name);
    for (int time = 0; time < 10; ++time)
      check_round_trip(type, *encoder, decoder, Scene(Pixel::rgb8, kSuiteWidth, kSuiteHeight, time), kPsnrMin - 2);
  });
}

TEST_CASE("no unit is larger than planned, also not of noise with the highest quality and rate") {
  for_each_encoder([](const EncoderType& type) {
    EncoderSettings settings;
    settings.quality = kQualityMax;
    settings.subsampling = Subsampling::none_444;
    settings.bit_rate = kBitRateMax;
    const uint32_t sizes[][2] = {{1, 1}, {16, 16}, {17, 33}, {320, 240}};
    for (const auto& [width, height] : sizes) {
      const auto encoder = type.make(settings);
      std::vector<uint8_t> unit;
      for (uint32_t seed = 0; seed < 6; ++seed) {
        const Scene scene = Scene::noise(seed % 2 ? Pixel::rgb8 : Pixel::gray8, width, height, seed, seed >= 4);
        encoder->encode(scene.picture(), unit);
        CHECK(!unit.empty());
        CHECK(unit.size() <= type.unit_bytes_max(width, height, settings));
      }
    }
  });
}

} // namespace millrace::codec
