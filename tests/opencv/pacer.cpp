// Due times of pictures, in virtual time.
#include "plugins/opencv/pacer.h"

#include <doctest/doctest.h>

#include <initializer_list>
#include <limits>

#include "tests/milliseconds.h"

namespace millrace::opencv {
namespace {

// A screen whose time moves only by what it waits and by what is added.
struct Show {
  Pacer pacer;
  int64_t now = 5'000 * kMs;
  // The time at which the picture was shown.
  int64_t at(int64_t media, uint32_t epoch = 0) {
    now += pacer.wait_ns(media, epoch, now);
    return now;
  }
};

} // namespace

TEST_CASE("pictures are shown at their media times, counted from the first, whatever their distances are") {
  Show show;
  CHECK(show.at(700 * kMs) == 5'000 * kMs);
  for (const int64_t media : {740, 780, 781, 2'000, 2'000, 9'000}) CHECK(show.at(media * kMs) == (4'300 + media) * kMs);
}

TEST_CASE("small delays do not slow a film: after ten minutes with jitter it is where its media time says") {
  Show show;
  for (int64_t i = 0; i <= 15'000; ++i) {
    show.now += i % 7 * 9 * kMs; // up to 54 ms for a picture of 40
    show.at(i * 40 * kMs);
  }
  CHECK(show.now - 5'000 * kMs >= 600'000 * kMs);
  CHECK(show.now - 5'000 * kMs <= 600'100 * kMs);
}

TEST_CASE("after a stall the late picture is shown at once, and those that follow keep their distances") {
  Show show;
  for (int64_t i = 0; i < 10; ++i) show.at(i * 40 * kMs);
  show.now += 3'000 * kMs;
  const int64_t late = show.at(400 * kMs);
  CHECK(late == (5'000 + 360 + 3'000) * kMs);
  for (int64_t i = 1; i < 10; ++i) CHECK(show.at((400 + i * 40) * kMs) == late + i * 40 * kMs);
}

TEST_CASE("a pipeline that is too slow for its film is never made to wait") {
  Show show;
  for (int64_t i = 0; i < 1'000; ++i) {
    show.now += 60 * kMs;
    CHECK(show.pacer.wait_ns(i * 40 * kMs, 0, show.now) == 0);
  }
}

TEST_CASE("where pictures come at their times already, nothing waits twice") {
  Show show;
  for (int64_t i = 0; i < 1'000; ++i) {
    show.now = (5'000 + i * 40 + i % 3) * kMs; // a realtime clock's beats, up to 2 ms late
    const int64_t came = show.now;
    CHECK(show.at(i * 40 * kMs) - came <= 0);
  }
}

TEST_CASE("a time that goes back, another epoch and a reset begin anew, and no time overflows") {
  Show show;
  show.at(1'000 * kMs);
  CHECK(show.at(0) == 5'000 * kMs);
  CHECK(show.at(40 * kMs) == 5'040 * kMs);
  CHECK(show.at(90'000 * kMs, 1) == 5'040 * kMs);
  CHECK(show.at(90'040 * kMs, 1) == 5'080 * kMs);
  show.pacer.reset();
  CHECK(show.at(1'000'000 * kMs, 1) == 5'080 * kMs);
  Pacer edge;
  constexpr int64_t kLast = std::numeric_limits<int64_t>::max(), kFirst = std::numeric_limits<int64_t>::min();
  CHECK(edge.wait_ns(kFirst, 0, 0) == 0);
  CHECK(edge.wait_ns(kLast, 0, 0) == kLast);
  CHECK(edge.wait_ns(kLast, 0, kLast) == 0);
}

} // namespace millrace::opencv
