// Settings of encoders: what they change, and what is refused.
#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "plugins/codec/encoder.h"
#include "tests/codec/scene.h"

namespace millrace::codec {
namespace {

std::string sentence_of(Encoder& encoder, const Picture& picture) {
  std::vector<uint8_t> unit = {1, 2, 3};
  try {
    encoder.encode(picture, unit);
  } catch (const std::invalid_argument& error) {
    CHECK(unit.empty());
    return error.what();
  }
  return "";
}

} // namespace

TEST_CASE("an interval of key frames is kept, and begins anew with one that is asked for") {
  EncoderSettings settings;
  settings.key_interval = 5;
  const auto encoder = find_encoder("h264").make(settings);
  std::string keys;
  std::vector<uint8_t> unit;
  for (int time = 0; time < 16; ++time) {
    if (time == 7) encoder->ask_key();
    keys += encoder->encode(Scene(Pixel::rgb8, 64, 48, time).picture(), unit) ? 'K' : '.';
  }
  CHECK(keys == "K....K.K....K...");
}

TEST_CASE("H.264 keeps to its bit rate within a fifth, and follows it within a second") {
  EncoderSettings settings;
  const auto encoder = find_encoder("h264").make(settings);
  std::vector<uint8_t> unit;
  int time = 0;
  for (const int64_t rate : {1'000'000, 3'000'000, 500'000}) {
    settings.bit_rate = rate;
    encoder->change(settings);
    int64_t bits = 0;
    for (int i = 0; i < 150; ++i, ++time) {
      encoder->encode(Scene::noise(Pixel::gray8, 320, 240, static_cast<uint32_t>(time)).picture(), unit);
      if (i >= 30) bits += static_cast<int64_t>(unit.size()) * 8;
    }
    const int64_t a_second = bits / 4; // of 120 pictures at 30 a second
    CAPTURE(rate);
    CHECK(a_second <= rate * 6 / 5);
    CHECK(a_second >= rate * 4 / 5);
  }
}

TEST_CASE("a picture or a setting that an encoder does not take is refused in a sentence, and the stream goes on") {
  for (const EncoderType& type : encoder_types()) {
    INFO(type.name);
    const auto encoder = type.make({});
    const Scene scene(Pixel::rgb8, 64, 48, 0);
    Picture picture = scene.picture();
    picture.width = 0;
    CHECK(sentence_of(*encoder, picture).find("a side has 1 to " + std::to_string(type.side_max)) != std::string::npos);
    picture.width = type.side_max + 1;
    CHECK(sentence_of(*encoder, picture).find("does not take a picture of") != std::string::npos);
    picture = scene.picture();
    picture.pixel = Pixel::p010;
    CHECK(sentence_of(*encoder, picture).find("does not take pictures of the format p010") != std::string::npos);
    std::vector<uint8_t> unit;
    CHECK(encoder->encode(scene.picture(), unit));
    CHECK(type.unit_bytes_max(64, 48, {}) >= unit.size());
  }
  EncoderSettings settings;
  settings.quality = 101;
  CHECK_THROWS_WITH(find_encoder("jpeg").make(settings), "the quality of the encoder jpeg is 101; it takes 1 to 100");
  settings = {};
  settings.bit_rate = 1;
  CHECK_THROWS_AS(find_encoder("h264").make(settings), std::invalid_argument);
  settings = {};
  settings.preset = "fastest";
  CHECK_THROWS_WITH(find_encoder("h264").make(settings),
                    "the encoder h264 takes a preset from ultrafast to veryslow, not 'fastest'");
  const auto encoder = find_encoder("h264").make({});
  settings = {};
  settings.fps = 0;
  CHECK_THROWS_AS(encoder->change(settings), std::invalid_argument);
  CHECK_THROWS_WITH(find_encoder("vp8"), "there is no encoder 'vp8'; there are jpeg and h264");
}

TEST_CASE("another preset, rate of pictures or number of threads begins a stream anew, and quality does not") {
  EncoderSettings settings;
  const auto encoder = find_encoder("h264").make(settings);
  std::vector<uint8_t> unit;
  int time = 0;
  const auto next_is_key = [&] {
    encoder->change(settings);
    return encoder->encode(Scene(Pixel::rgb8, 64, 48, time++).picture(), unit);
  };
  CHECK(next_is_key());
  CHECK(!next_is_key());
  settings.quality = 20;
  settings.bit_rate = 300'000;
  CHECK(!next_is_key());
  settings.preset = "veryfast";
  CHECK(next_is_key());
  settings.fps = 15;
  CHECK(next_is_key());
  settings.threads = 2;
  CHECK(next_is_key());
  CHECK(!next_is_key());
}

} // namespace millrace::codec
