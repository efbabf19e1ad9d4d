// Damaged messages to each decoder: whatever comes, it is decoded or refused in a sentence.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "plugins/codec/encoder.h"
#include "plugins/codec/h264_decoder.h"
#include "plugins/codec/jpeg_decoder.h"
#include "tests/codec/converted.h"
#include "tests/codec/scene.h"

namespace millrace::codec {
namespace {

constexpr unsigned kSeed = 41;
constexpr uint32_t kDamagedSideMax = 128; // pixels; a header that says more is refused before it takes memory

// Sanitizers take ten times as long. MILLRACE_TEST_DAMAGED sets another number.
int message_count() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr int kCount = 10'000;
#else
  constexpr int kCount = 100'000;
#endif
  const char* asked = std::getenv("MILLRACE_TEST_DAMAGED");
  return asked ? std::atoi(asked) : kCount;
}

// Makes damaged messages of whole ones: other bytes, bits, a piece left out, one doubled, one of another message, an
// end cut off, and no sense at all. The same for the same seed.
class Damage {
 public:
  explicit Damage(std::vector<std::vector<uint8_t>> whole) : whole_(std::move(whole)) {}

  std::vector<uint8_t> next() {
    index_ = below(whole_.size());
    std::vector<uint8_t> message = whole_[index_];
    for (size_t times = 1 + below(3); times > 0 && !message.empty(); --times) change(message);
    return message;
  }
  // The whole message that the last damaged one was made of.
  size_t index() const { return index_; }

 private:
  size_t below(size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random_); }
  // A place: in the header, which is short and matters most, half of the time.
  size_t place(const std::vector<uint8_t>& message) {
    constexpr size_t kHeader = 64;
    return below(below(2) ? message.size() : std::min(kHeader, message.size()));
  }
  void change(std::vector<uint8_t>& message) {
    const auto at = [&](size_t i) { return message.begin() + static_cast<ptrdiff_t>(i); };
    const size_t begin = place(message), end = begin + below(message.size() - begin) + 1;
    switch (below(8)) {
      case 0:
      case 1: message[begin] = static_cast<uint8_t>(below(256)); break;
      case 2:
      case 3: message[begin] ^= static_cast<uint8_t>(1u << below(8)); break;
      case 4: message.erase(at(begin), at(std::min(end, begin + 40))); break;
      case 5: {
        const std::vector<uint8_t> piece(at(begin), at(std::min(end, begin + 40)));
        message.insert(at(place(message)), piece.begin(), piece.end());
        break;
      }
      case 6: {
        const std::vector<uint8_t>& other = whole_[below(whole_.size())];
        const size_t from = below(other.size()), count = std::min(other.size() - from, message.size() - begin);
        std::copy_n(other.begin() + static_cast<ptrdiff_t>(from), count, at(begin));
        break;
      }
      default:
        message.resize(begin);
        if (below(20) == 0)
          for (size_t i = below(300); i > 0; --i) message.push_back(static_cast<uint8_t>(below(256)));
    }
  }

  std::vector<std::vector<uint8_t>> whole_;
  size_t index_ = 0;
  std::mt19937 random_{kSeed};
};

constexpr size_t kStreamLength = 4; // pictures

// Three streams, one after the other.
std::vector<std::vector<uint8_t>> encoded(const char* encoder, int64_t threads) {
  std::vector<std::vector<uint8_t>> units;
  for (const auto& [width, height] : {std::pair{48u, 32u}, {33u, 17u}, {128u, 96u}}) {
    EncoderSettings settings;
    settings.threads = threads;
    settings.bit_rate = 500'000;
    settings.preset = width == 33 ? "fast" : "ultrafast"; // with CABAC too
    settings.subsampling = width == 33 ? Subsampling::none_444 : Subsampling::both_420;
    const auto maker = find_encoder(encoder).make(settings);
    for (int time = 0; time < static_cast<int>(kStreamLength); ++time)
      maker->encode(Scene(time == 3 ? Pixel::gray8 : Pixel::rgb8, width, height, time).picture(), units.emplace_back());
  }
  return units;
}

} // namespace

TEST_CASE("a damaged JPEG message is decoded or refused in a sentence") {
  Damage damage(encoded("jpeg", 1));
  JpegDecoder decoder;
  int refused = 0;
  const int count = message_count();
  for (int i = 0; i < count; ++i) {
    CAPTURE(i);
    const std::vector<uint8_t> message = damage.next();
    try {
      const JpegDecoder::Size size = decoder.size_of(message);
      if (size.width > kDamagedSideMax || size.height > kDamagedSideMax) continue;
      std::vector<uint8_t> rgb(size_t{size.width} * size.height * 3); // of exactly the size that it says
      decoder.decode(message, size, rgb.data(), size_t{size.width} * 3);
    } catch (const std::runtime_error& error) {
      REQUIRE(std::string(error.what()).size() > 40);
      ++refused;
    }
  }
  CHECK(refused > count / 3);
}

TEST_CASE("a damaged H.264 message is decoded, left out or refused in a sentence") {
  const std::vector<std::vector<uint8_t>> whole = encoded("h264", 2);
  Damage damage(whole);
  H264Decoder decoder(kDamagedSideMax, kDamagedSideMax);
  int refused = 0, decoded = 0;
  const int count = message_count();
  for (int i = 0; i < count; ++i) {
    CAPTURE(i);
    try {
      const std::vector<uint8_t> message = damage.next();
      const size_t place = damage.index() % kStreamLength;
      for (size_t before = 0; before < place; ++before)
        REQUIRE(decoder.decode(whole[damage.index() - place + before])); // whatever came before
      const std::optional<Picture> picture = decoder.decode(message);
      if (!picture) continue;
      REQUIRE(picture->width <= kDamagedSideMax);
      REQUIRE(picture->height <= kDamagedSideMax);
      rgb_of(*picture);
      ++decoded;
    } catch (const std::runtime_error& error) {
      REQUIRE(std::string(error.what()).size() > 40);
      ++refused;
    }
  }
  CHECK(refused > count / 5);
  CHECK(decoded > count / 20);
  decoder.reset();
  CHECK(decoder.decode(whole[0])); // and it still works
}

TEST_CASE("random bytes are refused or left out") {
  std::mt19937 random(kSeed);
  JpegDecoder jpeg;
  H264Decoder h264(kDamagedSideMax, kDamagedSideMax);
  for (int i = 0; i < message_count() / 10; ++i) {
    std::vector<uint8_t> message(random() % 200);
    for (uint8_t& byte : message) byte = static_cast<uint8_t>(random() % (i % 2 ? 256 : 4));
    CHECK_THROWS_AS(jpeg.size_of(message), std::runtime_error);
    try {
      h264.decode(message);
    } catch (const std::runtime_error&) {
    }
  }
}

} // namespace millrace::codec
