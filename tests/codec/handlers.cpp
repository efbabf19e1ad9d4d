// The handlers as a pipeline drives them, and the checks of `millrace check-handler`.
#include <doctest/doctest.h>

#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "millrace/check_handler.h"
#include "plugins/codec/four_cc.h"
#include "tests/codec/scene.h"
#include "tests/plugin_table.h"

namespace millrace::codec {
namespace {

using testing::Result;
using testing::TableTest;
using testing::Value;

const mr_handler_type& handler_type(const char* type) {
  static const mr_plugin& plugin = load_plugin("codec");
  return type_of(plugin, type);
}

constexpr uint32_t kPictureWidth = 64, kPictureHeight = 48;

Value picture_of_scene(int time, uint32_t width = kPictureWidth, uint32_t height = kPictureHeight) {
  const Scene scene(Pixel::rgb8, width, height, time);
  return testing::image(Pixel::rgb8, width, height, [&](uint32_t x, uint32_t y, uint32_t channel) {
    return scene.rgb()[(size_t{y} * width + x) * 3 + channel];
  });
}

// The packets of so many pictures.
std::vector<Value> packets(const char* encoder, int count, std::initializer_list<testing::Setting> settings = {}) {
  TableTest test(handler_type(encoder), settings);
  std::vector<Value> made;
  for (int time = 0; time < count; ++time) {
    test.input("video", picture_of_scene(time));
    made.push_back(test.tick().value("packets"));
  }
  return made;
}

std::vector<uint8_t> rgb_of(const ImageView& picture) {
  std::vector<uint8_t> rgb;
  for (uint32_t y = 0; y < picture.height(); ++y)
    rgb.insert(rgb.end(), picture.row(y), picture.row(y) + size_t{picture.width()} * 3);
  return rgb;
}

Value damaged(const Value& packet, size_t bytes) {
  return testing::packet({packet.data(), bytes}, 0, packet.header().flags & MR_FLAG_KEYFRAME);
}

} // namespace

TEST_CASE("the plugin brings its handlers, each with a sentence, and a manual that ends in a line to paste") {
  const mr_plugin& plugin = load_plugin("codec");
  CHECK(types_of(plugin) == std::set<std::string>{"decode.h264", "decode.jpeg", "encode.h264", "encode.jpeg"});
  for (const std::string& type : types_of(plugin)) {
    INFO(type);
    CHECK(manual_line(type_of(plugin, type)).find(type) != std::string::npos);
  }
}

TEST_CASE("check-handler passes the encoders") {
  for (const char* type : {"encode.jpeg", "encode.h264"})
    for (const testing::HandlerCheck& check : testing::kHandlerChecks) {
      const testing::Finding finding = check.run({handler_type(type), {}, {}});
      INFO(type << " " << check.name << ": " << finding.reason);
      CHECK(finding.verdict != testing::Verdict::fail);
    }
}

TEST_CASE("a packet carries its codec, its times and whether it is a key frame") {
  for (const char* type : {"encode.jpeg", "encode.h264"}) {
    TableTest test(handler_type(type), {});
    for (int time = 0; time < 3; ++time) {
      Value picture = picture_of_scene(time);
      picture.header().duration_ns = 40'000'000;
      if (time == 2) picture.header().flags = MR_FLAG_DISCONTINUITY;
      test.input("video", picture);
      const Result result = test.tick();
      REQUIRE(result.ok());
      const PacketView packet = result.packet("packets");
      const bool is_jpeg = std::string(type) == "encode.jpeg";
      CHECK(packet.value->as.packet.codec == (is_jpeg ? kJpegCode : kH264Code));
      CHECK(packet.pts_ns() == 40'000'000 * time);
      CHECK(packet.dts_ns() == packet.pts_ns());
      CHECK(packet.value->header.duration_ns == 40'000'000);
      CHECK(packet.keyframe() == (is_jpeg || time != 1)); // after a discontinuity there is one
      const bool is_broken = packet.value->header.flags & MR_FLAG_DISCONTINUITY;
      CHECK(is_broken == (time == 2));
    }
  }
}

TEST_CASE("four letters have the first in the lowest byte") { CHECK(kJpegCode == 0x4745504A); }

TEST_CASE("pictures come back by the handlers with their times") {
  for (const auto& [encoder, decoder] : {std::pair{"encode.jpeg", "decode.jpeg"}, {"encode.h264", "decode.h264"}}) {
    TableTest test(handler_type(decoder), {});
    int time = 0;
    for (const Value& packet : packets(encoder, 5)) {
      test.input("packets", packet);
      const Result result = test.tick();
      REQUIRE(result.ok());
      const ImageView picture = result.image("video");
      CHECK(picture.pixel() == Pixel::rgb8);
      CHECK(picture.header().pts_ns == 40'000'000 * time);
      CHECK(psnr(rgb_of(picture), Scene(Pixel::rgb8, kPictureWidth, kPictureHeight, time).rgb()) > 30);
      ++time;
    }
    CHECK(test.format("video").size_kind == MR_DIM_BOUNDED);
    CHECK(test.format("video").width == 1920);
  }
}

TEST_CASE("live parameters change the packets that follow, and nothing else") {
  for (const auto& [type, name, low, high] :
       {std::tuple{"encode.jpeg", "quality", "10", "95"}, {"encode.h264", "bit_rate", "50000", "5000000"}}) {
    TableTest test(handler_type(type), {{name, low}});
    size_t sums[2] = {};
    for (int time = 0; time < 60; ++time) {
      if (time == 30) test.set(name, high);
      test.input("video", picture_of_scene(time));
      const Result result = test.tick();
      sums[time / 30] += result.packet("packets").bytes.size();
      if (time == 30) CHECK(result.packet("packets").keyframe() == (std::string(type) == "encode.jpeg"));
    }
    CHECK(sums[0] < sums[1]);
  }
}

TEST_CASE("after a reset the encoder begins with a key frame, and the decoder waits for one") {
  TableTest encoder(handler_type("encode.h264"), {});
  TableTest decoder(handler_type("decode.h264"), {});
  std::string keys, seen;
  for (int time = 0; time < 8; ++time) {
    if (time == 3 || time == 6) CHECK(encoder.reset() == MR_OK);
    if (time == 5) CHECK(decoder.reset() == MR_OK);
    encoder.input("video", picture_of_scene(time));
    const Result made = encoder.tick();
    keys += made.packet("packets").keyframe() ? 'K' : '.';
    decoder.input("packets", made.value("packets"));
    const Result result = decoder.tick();
    CHECK(result.ok());
    seen += result.has("video") ? 'p' : '.';
  }
  CHECK(keys == "K..K..K.");
  CHECK(seen == "ppppp.pp");
  CHECK(decoder.drain() == MR_OK);
  CHECK(decoder.counts().at("waited_for_key_frame") == 1);
}

TEST_CASE("after a discontinuity the decoder waits for a key frame") {
  TableTest test(handler_type("decode.h264"), {});
  std::string seen;
  std::vector<Value> made = packets("encode.h264", 6, {{"key_interval", "4"}});
  made[2].header().flags |= MR_FLAG_DISCONTINUITY;
  for (const Value& packet : made) {
    test.input("packets", packet);
    seen += test.tick().has("video") ? 'p' : '.';
  }
  CHECK(seen == "pp..pp");
}

TEST_CASE("damaged packets fail with a sentence, and a whole one that follows is decoded") {
  for (const auto& [encoder, decoder] : {std::pair{"encode.jpeg", "decode.jpeg"}, {"encode.h264", "decode.h264"}}) {
    const Value whole = packets(encoder, 1)[0];
    TableTest test(handler_type(decoder), {});
    test.input("packets", damaged(whole, whole.header().extent_bytes / 2));
    const Result failed = test.tick();
    CHECK(!failed.ok());
    CHECK(failed.error.find("decoded: ") != std::string::npos);
    test.input("packets", whole);
    CHECK(test.tick().has("video"));

    Value empty = damaged(whole, 0);
    test.input("packets", empty);
    const Result nothing = test.tick();
    CHECK(nothing.ok());
    CHECK(!nothing.has("video"));

    Value foreign = damaged(whole, whole.header().extent_bytes);
    foreign.raw().as.packet.codec = four_cc("AV01");
    test.input("packets", foreign);
    CHECK(test.tick().error.find("a packet of the codec 'AV01' came, and this decoder takes '") != std::string::npos);
  }
}

TEST_CASE("a picture that is larger than planned fails with the edit that helps") {
  for (const auto& [encoder, decoder] : {std::pair{"encode.jpeg", "decode.jpeg"}, {"encode.h264", "decode.h264"}}) {
    TableTest test(handler_type(decoder), {{"width_max", "63"}});
    test.input("packets", packets(encoder, 1)[0]);
    CHECK(test.tick().error.find("\ntry: width_max=64") != std::string::npos);
  }
}

TEST_CASE("pictures that are too large for the library are refused while the plan is made") {
  TableTest test(handler_type("encode.h264"), {});
  test.input("video", testing::image(Pixel::gray8, 16385, 1));
  CHECK(test.start() != MR_OK);
  CHECK(test.error().find("are too large for libx264 of libavcodec, which takes sides up to 16384") !=
        std::string::npos);
}

// check-handler cannot make packets of a codec, so these are the checks of a life with packets of the encoders.
TEST_CASE("the decoders can be stopped, started, reset and drained at any time") {
  for (const auto& [encoder, decoder] : {std::pair{"encode.jpeg", "decode.jpeg"}, {"encode.h264", "decode.h264"}}) {
    INFO(decoder);
    const std::vector<Value> made = packets(encoder, 3);
    TableTest test(handler_type(decoder), {});
    test.input("packets", made[0]);
    CHECK(test.reset() == MR_OK);
    const auto plays = [&] {
      for (const Value& packet : made) {
        test.input("packets", packet);
        CHECK(test.tick().has("video"));
      }
    };
    plays();
    CHECK(test.restart() == MR_OK);
    plays();
    CHECK(test.drain() == MR_OK);
    CHECK(test.drain() == MR_OK);
    CHECK(test.reset() == MR_OK);
    plays();
    test.interrupt();
    CHECK(test.stop() == MR_OK);
    CHECK(test.stop() == MR_OK);
    plays();
    test.input("packets", Value{});
    CHECK(!test.tick().fired);
    TableTest unread(handler_type(decoder), {});
    unread.unconnected("video");
    unread.input("packets", made[0]);
    CHECK(unread.tick().ok());
  }
}

} // namespace millrace::codec
