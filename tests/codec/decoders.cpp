// The decoders: what they take, what they wait for, and what they refuse.
#include <doctest/doctest.h>
#include <turbojpeg.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "plugins/codec/encoder.h"
#include "plugins/codec/h264_decoder.h"
#include "plugins/codec/jpeg_decoder.h"
#include "plugins/codec/ycbcr.h"
#include "tests/codec/converted.h"
#include "tests/codec/scene.h"

namespace millrace::codec {
namespace {

constexpr uint32_t kStreamWidth = 96, kStreamHeight = 64;

std::vector<uint8_t> jpeg_of(const Scene& scene, const EncoderSettings& settings = {}) {
  std::vector<uint8_t> unit;
  find_encoder("jpeg").make(settings)->encode(scene.picture(), unit);
  return unit;
}

std::vector<uint8_t> decoded_jpeg(JpegDecoder& decoder, const std::vector<uint8_t>& unit) {
  const JpegDecoder::Size size = decoder.size_of(unit);
  std::vector<uint8_t> rgb(size_t{size.width} * size.height * 3);
  decoder.decode(unit, size, rgb.data(), size_t{size.width} * 3);
  return rgb;
}

std::string refusal(JpegDecoder& decoder, const std::vector<uint8_t>& unit) {
  try {
    decoded_jpeg(decoder, unit);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

std::vector<std::vector<uint8_t>> stream(int count, const EncoderSettings& settings = {}, int key_at = -1) {
  const auto encoder = find_encoder("h264").make(settings);
  std::vector<std::vector<uint8_t>> units(static_cast<size_t>(count));
  for (int time = 0; time < count; ++time) {
    if (time == key_at) encoder->ask_key();
    encoder->encode(Scene(Pixel::rgb8, kStreamWidth, kStreamHeight, time).picture(), units[static_cast<size_t>(time)]);
  }
  return units;
}

std::string refusal(H264Decoder& decoder, const std::vector<uint8_t>& unit) {
  try {
    decoder.decode(unit);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

} // namespace

TEST_CASE("JPEG pictures of each kind come back, gray ones as gray") {
  JpegDecoder decoder;
  EncoderSettings settings;
  settings.quality = 95;
  for (const Subsampling subsampling : {Subsampling::none_444, Subsampling::both_420}) {
    settings.subsampling = subsampling;
    const Scene scene(Pixel::bgra8, 97, 63, 2);
    CHECK(psnr(decoded_jpeg(decoder, jpeg_of(scene, settings)), scene.rgb()) > 36);
  }
  const Scene gray(Pixel::gray8, 97, 63, 2, true);
  const std::vector<uint8_t> rgb = decoded_jpeg(decoder, jpeg_of(gray, settings));
  CHECK(psnr(rgb, gray.rgb()) > 40);
  for (size_t i = 0; i < rgb.size(); i += 3) REQUIRE((rgb[i] == rgb[i + 1] && rgb[i] == rgb[i + 2]));
}

TEST_CASE("a progressive JPEG is read") {
  const Scene scene(Pixel::rgb8, kStreamWidth, kStreamHeight, 0);
  const JpegHandle handle(tjInitCompress());
  unsigned char* made = nullptr;
  unsigned long bytes = 0;
  REQUIRE(tjCompress2(handle.get(), scene.rgb().data(), kStreamWidth, 0, kStreamHeight, TJPF_RGB, &made, &bytes,
                      TJSAMP_422, 95, TJFLAG_PROGRESSIVE) == 0);
  const std::vector<uint8_t> unit(made, made + bytes);
  tjFree(made);
  JpegDecoder decoder;
  CHECK(psnr(decoded_jpeg(decoder, unit), scene.rgb()) > 36);
}

TEST_CASE("what is no JPEG, is damaged or has the colours of a printer is refused with what is wrong") {
  JpegDecoder decoder;
  const std::vector<uint8_t> whole = jpeg_of(Scene(Pixel::rgb8, kStreamWidth, kStreamHeight, 0));
  CHECK(contains(refusal(decoder, {1, 2, 3}),
                 "a packet of 3 bytes is no JPEG picture that can be decoded: it does not "
                 "begin with FF D8"));
  std::vector<uint8_t> cut = whole;
  cut.resize(whole.size() - 40);
  CHECK(contains(refusal(decoder, cut), "Premature end of JPEG file"));
  for (size_t bytes = whole.size() - 100; bytes > 0; bytes /= 2) { // also amid its tables
    cut.resize(bytes);
    CHECK(!refusal(decoder, cut).empty());
    CHECK(refusal(decoder, whole).empty());
  }

  const JpegHandle handle(tjInitCompress());
  std::vector<uint8_t> inks(16 * 16 * 4, 80);
  unsigned char* made = nullptr;
  unsigned long bytes = 0;
  REQUIRE(tjCompress2(handle.get(), inks.data(), 16, 0, 16, TJPF_CMYK, &made, &bytes, TJSAMP_444, 90, 0) == 0);
  CHECK(contains(refusal(decoder, {made, made + bytes}), "its colours are CMYK"));
  tjFree(made);
}

TEST_CASE("each unit of a stream gives its picture at once, also in slices of several threads") {
  for (const int64_t threads : {1, 3}) {
    EncoderSettings settings;
    settings.threads = threads;
    settings.bit_rate = 8'000'000;
    H264Decoder decoder(kStreamWidth, kStreamHeight);
    int time = 0;
    for (const std::vector<uint8_t>& unit : stream(20, settings)) {
      const std::optional<Picture> picture = decoder.decode(unit);
      REQUIRE(picture);
      CHECK(picture->color == MR_COLOR_BT709);
      CHECK(picture->range == MR_RANGE_LIMITED);
      CHECK(psnr(rgb_of(*picture), Scene(Pixel::rgb8, kStreamWidth, kStreamHeight, time++).rgb()) > 34);
    }
  }
}

TEST_CASE("after a unit that did not come the decoder waits for a key frame, and says nothing") {
  for (const char* preset : {"ultrafast", "fast"}) {
    EncoderSettings settings;
    settings.preset = preset;
    const std::vector<std::vector<uint8_t>> units = stream(20, settings, 12);
    H264Decoder decoder(kStreamWidth, kStreamHeight);
    std::string seen;
    for (size_t i = 0; i < units.size(); ++i) {
      if (i == 5) continue;
      seen += decoder.decode(units[i]) ? 'p' : '.';
    }
    CHECK(seen == "ppppp......pppppppp"); // 6 to 11 are left out
    CHECK(decoder.take_left_out() == 6);
    CHECK(decoder.take_left_out() == 0);
  }
}

TEST_CASE("a decoder that comes in the middle begins with the next key frame") {
  const std::vector<std::vector<uint8_t>> units = stream(10, {}, 6);
  H264Decoder decoder(kStreamWidth, kStreamHeight);
  std::string seen;
  for (size_t i = 2; i < units.size(); ++i) seen += decoder.decode(units[i]) ? 'p' : '.';
  CHECK(seen == "....pppp");
  decoder.reset();
  CHECK(!decoder.decode(units[9]));
  CHECK(decoder.decode(units[0]));
}

TEST_CASE("after damage the decoder says so once, and waits for a key frame") {
  EncoderSettings settings;
  settings.bit_rate = 8'000'000;
  const std::vector<std::vector<uint8_t>> units = stream(10, settings, 6);
  H264Decoder decoder(kStreamWidth, kStreamHeight);
  std::string seen;
  for (size_t i = 0; i < units.size(); ++i) {
    std::vector<uint8_t> unit = units[i];
    if (i == 3) unit.resize(unit.size() * 2 / 3);
    try {
      seen += decoder.decode(unit) ? 'p' : '.';
    } catch (const std::runtime_error& error) {
      CHECK(contains(error.what(), "cannot be decoded"));
      seen += '!';
    }
  }
  CHECK(seen == "ppp!..pppp");
}

TEST_CASE("a unit without one of its slices is damaged") {
  EncoderSettings settings;
  settings.threads = 2;
  settings.bit_rate = 8'000'000;
  std::vector<uint8_t> unit;
  find_encoder("h264").make(settings)->encode(Scene(Pixel::rgb8, 320, 240, 0).picture(), unit);
  size_t last = 0;
  for (size_t i = 0; i + 3 < unit.size(); ++i)
    if (unit[i] == 0 && unit[i + 1] == 0 && unit[i + 2] == 1) last = i;
  unit.resize(last);
  H264Decoder decoder(320, 240);
  CHECK(contains(refusal(decoder, unit), "parts of its picture are missing or damaged"));
}

TEST_CASE("a stream in another form than Annex B is refused in a sentence") {
  H264Decoder decoder(kStreamWidth, kStreamHeight);
  CHECK(contains(refusal(decoder, {0, 0, 0, 30, 0x67, 1, 2, 3}), "it does not begin with a start code"));
  CHECK(contains(refusal(decoder, {0, 0, 1}), "it does not begin with a start code"));
  CHECK(!decoder.decode(std::vector<uint8_t>{0, 0, 0, 1, 0x09, 0x10})); // a delimiter alone is no picture
}

TEST_CASE("a picture that is larger than planned is refused with the edit that helps") {
  const std::vector<uint8_t> unit = stream(1)[0];
  H264Decoder narrow(kStreamWidth - 1, kStreamHeight), low(kStreamWidth, kStreamHeight - 1),
      fits(kStreamWidth, kStreamHeight);
  CHECK(contains(refusal(narrow, unit),
                 "a picture of 96 × 64 pixels came, and the plan has memory for 95 × 64\ntry: width_max=96"));
  CHECK(contains(refusal(low, unit), "\ntry: height_max=64"));
  CHECK(fits.decode(unit));
}

TEST_CASE("sizes that are no whole macroblocks are compared after cropping") {
  std::vector<uint8_t> unit;
  find_encoder("h264").make({})->encode(Scene(Pixel::rgb8, 1920, 1080, 0).picture(), unit);
  H264Decoder decoder(1920, 1080);
  const std::optional<Picture> picture = decoder.decode(unit);
  REQUIRE(picture);
  CHECK(picture->width == 1920);
  CHECK(picture->height == 1080);
}

} // namespace millrace::codec
