// Ends of waiting calls, and FFmpeg's error codes in our words. Bytes that begin a limit anew are a row of cameras.py.
#include "plugins/media/interrupt.h"

#include <doctest/doctest.h>

#include <string>

#include "plugins/media/av.h"

namespace millrace::media {
namespace {

// Asks as FFmpeg does while a call waits.
bool is_ended(Interrupt& interrupt) {
  const AVIOInterruptCB callback = interrupt.callback();
  return callback.callback(callback.opaque) != 0;
}

// A format whose address has given some bytes.
class Reading {
 public:
  Reading() { format_->pb = avio_alloc_context(nullptr, 0, 0, nullptr, nullptr, nullptr, nullptr); }
  ~Reading() {
    avio_context_free(&format_->pb);
    avformat_free_context(format_);
  }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
  AVFormatContext* const* format() const { return &format_; }
  void gives(int64_t bytes) { format_->pb->bytes_read += bytes; }

 private:
  AVFormatContext* format_ = avformat_alloc_context();
};

constexpr double kAtOnce = 1e-9;

} // namespace

TEST_CASE("a call is ended when its time is over, and how long that was stays known") {
  Interrupt interrupt;
  Reading reading;
  interrupt.watch(reading.format());
  interrupt.allow(3600);
  CHECK_FALSE(is_ended(interrupt));
  CHECK_FALSE(interrupt.has_ended());
  interrupt.allow(kAtOnce);
  CHECK(is_ended(interrupt));
  CHECK(interrupt.has_ended());
  CHECK(interrupt.ended_after_ns() == 1);
  CHECK(interrupt.words(AVERROR_EOF) == "it did not answer in time (`timeout`)");
}

TEST_CASE("an ended format stays ended, whatever time is allowed later, until another is watched") {
  Interrupt interrupt;
  Reading reading;
  interrupt.watch(reading.format());
  interrupt.allow(kAtOnce);
  CHECK(is_ended(interrupt));
  interrupt.allow(3600);
  interrupt.begin();
  CHECK(interrupt.has_ended());
  CHECK(interrupt.ended_after_ns() == 1);
  interrupt.watch(nullptr);
  CHECK(interrupt.has_ended());
  interrupt.watch(reading.format());
  CHECK_FALSE(interrupt.has_ended());
}

TEST_CASE("all calls together may have a limit, which bytes do not put off") {
  Interrupt interrupt;
  Reading reading;
  interrupt.watch(reading.format());
  interrupt.allow(3600, kAtOnce);
  reading.gives(100);
  CHECK(is_ended(interrupt));
}

TEST_CASE("no error of FFmpeg's or of an HTTP server is told in words that mean something else here") {
  CHECK(error_words(AVERROR_EXIT) == "it was interrupted");
  CHECK(error_words(-1) == "FFmpeg says no reason");
  CHECK(error_words(AVERROR_HTTP_UNAUTHORIZED) == "the server wants a user and a password, or refuses these (401)");
  CHECK(error_words(AVERROR_HTTP_FORBIDDEN) == "the server refuses it (403, forbidden)");
  CHECK(error_words(AVERROR_HTTP_NOT_FOUND) == "the server does not have it (404, not found)");
  for (const int code : {AVERROR_HTTP_BAD_REQUEST, AVERROR_HTTP_OTHER_4XX, AVERROR_HTTP_SERVER_ERROR})
    CHECK(error_words(code).starts_with("the server "));
  CHECK(error_words(AVERROR(ECONNREFUSED)) == "Connection refused");
}

TEST_CASE("seconds are said to the millisecond") {
  CHECK(seconds_words(0) == "0.000 s");
  CHECK(seconds_words(1'050'999'999) == "1.050 s");
  CHECK(seconds_words(30'000'000'000) == "30.000 s");
}

TEST_CASE("a rest ends at its time, and at once if it is asked to end") {
  Interrupt interrupt;
  CHECK(interrupt.rest_until(std::chrono::steady_clock::now()));
  interrupt.ask();
  CHECK_FALSE(interrupt.rest_until(std::chrono::steady_clock::now() + std::chrono::hours(1)));
  CHECK_FALSE(interrupt.rest_until(std::chrono::steady_clock::now()));
}

} // namespace millrace::media
