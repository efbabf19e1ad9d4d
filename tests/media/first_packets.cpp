// First packets of a live stream: what is kept, the rate that is measured, and the time of a first one without any.
#include "plugins/media/first_packets.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "plugins/media/input.h"
#include "tests/media/plugin.h"

namespace millrace::media {
namespace {

// The packets of a film whose pictures are key pictures if their number is a multiple of `gop`. They carry its
// parameter sets, and the stream does not.
class FilmPackets {
 public:
  explicit FilmPackets(int gop = 10) : path_(scratch("first_packets-" + std::to_string(gop) + ".h264")) {
    make_by_ffmpeg("-f lavfi -i testsrc2=size=64x48:rate=25:duration=2 -c:v libx264 -bf 0 -g " + std::to_string(gop),
                   path_);
    input_ = std::make_unique<Input>(InputSettings{path_, "", -1, 1}, interrupt_, log_);
    stream_ = avformat_new_stream(format_, nullptr);
    stream_->time_base = {1, 90000};
    stream_->codecpar->codec_type = AVMEDIA_TYPE_VIDEO;
    stream_->codecpar->codec_id = AV_CODEC_ID_H264;
  }
  ~FilmPackets() { avformat_free_context(format_); }

  AVStream& stream() { return *stream_; }
  Log& log() { return log_; }
  Packet next(int64_t pts) {
    Packet packet(av_packet_alloc());
    REQUIRE(input_->read(packet.get()) == 0);
    packet->pts = pts;
    packet->dts = AV_NOPTS_VALUE;
    return packet;
  }

 private:
  const std::string path_;
  Interrupt interrupt_;
  Log log_{[](uint32_t, const std::string&) {}};
  std::unique_ptr<Input> input_;
  AVFormatContext* format_ = avformat_alloc_context();
  AVStream* stream_ = nullptr;
};

struct Measured {
  AVRational rate;
  int64_t first_time;
};

// Takes packets of these times, in units of 1/90000 s.
Measured measured(const std::vector<int64_t>& times) {
  FilmPackets film;
  FirstPackets first(film.stream(), film.log());
  for (const int64_t time : times) first.take(film.next(time));
  first.end();
  CHECK(first.know_pictures());
  return {first.rate(), first.first_time()};
}

bool is(AVRational rate, int num, int den) { return rate.num == num && rate.den == den; }

constexpr int64_t kNone = AV_NOPTS_VALUE;

} // namespace

TEST_CASE("packets before the first that can be decoded are dropped, and all from there on are kept in their order") {
  FilmPackets film(10);
  FirstPackets first(film.stream(), film.log());
  for (int64_t n = 0; n < 4; ++n) film.next(n); // the connection begins after the key picture
  for (int64_t n = 4; n < 10; ++n) first.take(film.next(n * 3600));
  CHECK_FALSE(first.know_pictures());
  CHECK(first.is_empty());
  for (int64_t n = 10; n < 13; ++n) first.take(film.next(n * 3600));
  CHECK(first.know_pictures());
  CHECK(film.stream().codecpar->width == 64);
  CHECK(film.stream().codecpar->format == AV_PIX_FMT_YUV420P);
  first.end();
  CHECK(first.first_time() == 10 * 3600);
  for (int64_t n = 10; n < 13; ++n) {
    REQUIRE_FALSE(first.is_empty());
    CHECK(first.next()->pts == n * 3600);
  }
  CHECK(first.is_empty());
}

TEST_CASE("equal steps are a rate that is exact, and others are a whole number from two pictures a second on") {
  CHECK(is(measured({0, 3600, 7200, 10800}).rate, 25, 1));
  CHECK(is(measured({0, 3003, 6006, 9009}).rate, 30000, 1001));
  CHECK(is(measured({0, 900'000}).rate, 1, 10));
  CHECK(is(measured({0, 10800, 3600, 7200}).rate, 25, 1)); // in the order of decoding
  CHECK(is(measured({0, 3300, 7500, 10700}).rate, 25, 1));
  CHECK(is(measured({0, 80'000, 180'000}).rate, 1, 1));
}

TEST_CASE("times that are damaged are not measured") {
  CHECK(is(measured({0, 3600, INT64_MAX, 7200}).rate, 25, 1));
  CHECK(is(measured({INT64_MIN + 1, INT64_MAX}).rate, 25, 1));
}

TEST_CASE("one time tells no rate: then it is what the pictures say of themselves") {
  CHECK(is(measured({0}).rate, 25, 1));
  CHECK(is(measured({kNone}).rate, 25, 1));
}

TEST_CASE("a first packet without a time has RTP's zero, or a step before the second where the clock is an older one") {
  CHECK(measured({kNone}).first_time == 0);
  CHECK(measured({kNone, 900'000}).first_time == 0);
  CHECK(measured({kNone, 3600, 7200}).first_time == 0);
  CHECK(measured({kNone, 3700, 7200}).first_time == 0);
  CHECK(measured({kNone, 27'003'600, 27'007'200}).first_time == 27'000'000);
  CHECK(measured({kNone, 0, 3600}).first_time == -3600);
  CHECK(is(measured({kNone, 3600, 7200}).rate, 25, 1));
}

TEST_CASE("ten steps are enough for the rate") {
  FilmPackets film;
  FirstPackets first(film.stream(), film.log());
  for (int64_t n = 0; n < 10; ++n) first.take(film.next(n * 3600));
  CHECK_FALSE(first.are_enough());
  first.take(film.next(10 * 3600));
  CHECK(first.are_enough());
}

TEST_CASE("a codec without a decoder is said to have none") {
  FilmPackets film;
  film.stream().codecpar->codec_id = AV_CODEC_ID_NONE;
  const FirstPackets first(film.stream(), film.log());
  CHECK_FALSE(first.can_decode());
}

} // namespace millrace::media
