// Times of pictures: a container's are kept to the nanosecond, and nonsense is mended.
#include "plugins/media/media_times.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <random>
#include <utility>

#include "tests/milliseconds.h"
#include "tests/seed.h"

namespace millrace::media {
namespace {

using Found = MediaTimes::Found;

constexpr int64_t kSecond = 1000 * kMs;
constexpr int64_t kHour = 3600 * kSecond;

} // namespace

TEST_CASE("a container's times are kept to the nanosecond, the first at 0 wherever it begins") {
  for (const int64_t first : {int64_t{0}, 200 * kMs, 24 * kHour, -40 * kMs}) {
    MediaTimes times(33'366'667);
    CHECK(times.last_ns() == kNoTime);
    for (const int64_t ns : {int64_t{0}, int64_t{33'366'667}, int64_t{33'366'668}, int64_t{400'000'001}}) {
      const MediaTimes::Time time = times.next(first + ns);
      CHECK(time.ns == ns);
      CHECK(time.found == Found::good);
      CHECK(times.last_ns() == ns);
    }
  }
}

TEST_CASE("what counts as 0 can be chosen, so that a part of a file keeps its distance from the file's beginning") {
  MediaTimes times(100 * kMs);
  times.begin_at(5 * kSecond);
  CHECK(times.in_file(5 * kSecond + 70 * kMs) == 70 * kMs);
  CHECK(times.in_file(4 * kSecond) == -kSecond);
  CHECK(times.in_file(kNoTime) == kNoTime);
  CHECK(times.next(7 * kSecond).ns == 2 * kSecond);
  CHECK(times.next(7 * kSecond + 30 * kMs).ns == 2 * kSecond + 30 * kMs);
}

TEST_CASE("pictures without any times follow each other by the period") {
  MediaTimes times(100 * kMs);
  for (int64_t n = 0; n < 20; ++n) {
    const MediaTimes::Time time = times.next(kNoTime);
    CHECK(time.ns == n * 100 * kMs);
    CHECK(time.found == (n == 0 ? Found::good : Found::missing));
  }
}

TEST_CASE("a missing time is the one before and how long that picture lasts, else a period") {
  MediaTimes times(100 * kMs);
  times.next(0);
  times.next(30 * kMs);
  CHECK(times.next(kNoTime).ns == 130 * kMs);
  times.last_lasts(50 * kMs);
  const MediaTimes::Time after = times.next(kNoTime);
  CHECK(after.ns == 180 * kMs);
  CHECK(after.found == Found::missing);
  CHECK(times.next(400 * kMs).ns == 400 * kMs); // and the times after it are believed
}

TEST_CASE("times that do not rise are a nanosecond apart") {
  MediaTimes times(100 * kMs);
  times.next(0);
  CHECK(times.next(50 * kMs).found == Found::good);
  for (int64_t n = 1; n <= 3; ++n) {
    const MediaTimes::Time time = times.next(n == 3 ? 20 * kMs : 50 * kMs);
    CHECK(time.ns == 50 * kMs + n);
    CHECK(time.found == Found::stuck);
  }
  CHECK(times.next(60 * kMs).ns == 60 * kMs);
}

TEST_CASE("a jump back by more than a second and one on by more than an hour are mended, and the times after it kept") {
  for (const int64_t jump : {-5 * kSecond, -24 * kHour, kHour + 100 * kSecond}) {
    MediaTimes times(100 * kMs);
    times.next(0);
    times.next(7 * kSecond);
    const MediaTimes::Time mended = times.next(7 * kSecond + jump);
    CHECK(mended.ns == 7 * kSecond + 100 * kMs);
    CHECK(mended.found == Found::jumped);
    const MediaTimes::Time after = times.next(7 * kSecond + 40 * kMs + jump);
    CHECK(after.ns == 7 * kSecond + 140 * kMs);
    CHECK(after.found == Found::good);
  }
}

TEST_CASE("a second back is disorder, and an hour of nothing is a gap") {
  MediaTimes back(100 * kMs), gap(100 * kMs);
  back.next(0);
  back.next(3 * kSecond);
  CHECK(back.next(2 * kSecond).found == Found::stuck);
  gap.next(0);
  const MediaTimes::Time time = gap.next(kHour);
  CHECK(time.ns == kHour);
  CHECK(time.found == Found::good);
}

TEST_CASE("the next file begins where the file before states its end, unless it states the time of its last picture") {
  for (const int64_t first : {int64_t{0}, 1400 * kMs}) {
    MediaTimes times(40 * kMs);
    times.next(first);
    times.next(first + 40 * kMs);
    times.begin_again_after_end(first + 7 * kSecond);
    CHECK(times.next(first).ns == 7 * kSecond);
    times.begin_again_after_end(first + 20 * kMs); // sooner than a period
    CHECK(times.next(500 * kMs).ns == 7 * kSecond + 20 * kMs);
    times.begin_again_after_end(500 * kMs); // no later than the last picture
    CHECK(times.next(0).ns == 7 * kSecond + 60 * kMs);
    times.begin_again_after_end(kNoTime);
    CHECK(times.next(0).ns == 7 * kSecond + 100 * kMs);
  }
  MediaTimes fast(40 * kMs, 2);
  fast.next(0);
  fast.begin_again_after_end(6 * kSecond);
  CHECK(fast.next(0).ns == 3 * kSecond);
}

TEST_CASE("a second pass goes on where the last picture of the first ends") {
  MediaTimes times(100 * kMs);
  times.next(20 * kMs);
  times.next(50 * kMs);
  times.begin_again();
  CHECK(times.next(20 * kMs).ns == 130 * kMs);
  CHECK(times.next(50 * kMs).ns == 160 * kMs);
  times.last_lasts(5 * kMs);
  times.begin_again();
  const MediaTimes::Time third = times.next(9 * kSecond); // another file may begin anywhere
  CHECK(third.ns == 165 * kMs);
  CHECK(third.found == Found::good);
}

TEST_CASE("a pass that gave no picture changes nothing") {
  MediaTimes times(100 * kMs);
  times.begin_again();
  times.begin_again_after(kHour);
  CHECK(times.next(70 * kMs).ns == 0);
}

TEST_CASE("after a lost connection the pictures come as much later as it was lost, and at least a period") {
  MediaTimes times(100 * kMs);
  times.next(0);
  times.begin_again_after(3 * kSecond);
  CHECK(times.next(77 * kSecond).ns == 3 * kSecond);
  times.begin_again_after(1);
  CHECK(times.next(0).ns == 3 * kSecond + 100 * kMs);
  times.begin_again_after(-5 * kSecond);
  CHECK(times.next(0).ns == 3 * kSecond + 200 * kMs);
}

TEST_CASE("at twice the speed all times are half, those that are mended and those of a pass too") {
  MediaTimes times(100 * kMs, 2);
  CHECK(times.shown_for(100 * kMs) == 50 * kMs);
  CHECK(times.next(kSecond).ns == 0);
  CHECK(times.next(kSecond + 300 * kMs).ns == 150 * kMs);
  CHECK(times.next(kNoTime).ns == 200 * kMs);
  times.last_lasts(20 * kMs);
  times.begin_again();
  CHECK(times.next(kSecond).ns == 210 * kMs);
  MediaTimes slow(100 * kMs, 0.5);
  slow.next(0);
  CHECK(slow.next(100 * kMs).ns == 200 * kMs);
  CHECK(slow.shown_for(100 * kMs) == 200 * kMs);
}

TEST_CASE("a duration that is negative is none, and the longest there is does not wrap") {
  const MediaTimes times(100 * kMs, 0.01);
  CHECK(times.shown_for(-1) == 0);
  CHECK(times.shown_for(std::numeric_limits<int64_t>::max()) >= 0);
}

TEST_CASE("the greatest and the least times that a container can say are mended like others") {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max(), kLeast = std::numeric_limits<int64_t>::min() + 1;
  for (const double speed : {0.01, 1.0, 100.0}) {
    for (const auto& [first, second] : {std::pair{kLeast, kMost}, std::pair{kMost, kLeast},
                                        std::pair{int64_t{0}, kMost}, std::pair{int64_t{0}, kLeast}}) {
      MediaTimes times(100 * kMs, speed);
      INFO("from ", first, " to ", second, " at speed ", speed);
      CHECK(times.next(first).ns == 0);
      const int64_t step = times.shown_for(100 * kMs);
      CHECK(times.next(second).ns == step);
      CHECK(times.next(kNoTime).ns == 2 * step);
      times.last_lasts(kMost);
      times.begin_again();
      CHECK(times.next(second).ns > 2 * step);
    }
  }
}

TEST_CASE("whatever a damaged container says, times rise, and never by more than an hour and a period") {
  const uint32_t seed = random_seed();
  INFO("seed ", seed);
  std::mt19937 random(seed);
  const int64_t wild[] = {0,
                          kNoTime,
                          std::numeric_limits<int64_t>::max(),
                          std::numeric_limits<int64_t>::min() + 1,
                          3'000 * kHour,
                          -3'000 * kHour,
                          kHour,
                          -kSecond,
                          1};
  for (const double speed : {1.0, 0.25, 8.0}) {
    constexpr int64_t kPeriod = 40 * kMs;
    MediaTimes times(kPeriod, speed);
    int64_t last = -1;
    bool rises = true;
    for (int i = 0; i < 100'000; ++i) {
      if (random() % 1000 == 0) times.begin_again();
      if (random() % 1000 == 0) times.last_lasts(static_cast<int64_t>(random() % 50) * kMs);
      const int64_t said =
          random() % 4 == 0 ? wild[random() % std::size(wild)] : static_cast<int64_t>(random() % 100'000) * kMs;
      const int64_t now = times.next(said).ns;
      rises = rises && now > last && (last < 0 || now - last <= kHour + times.shown_for(50 * kMs));
      last = now;
    }
    INFO("speed ", speed);
    CHECK(rises);
  }
}

TEST_CASE("a pause of any length is kept up to the time that the container confirms, and a jump past it is none") {
  for (const int64_t pause : {2 * kHour, 50 * kHour, 24 * 30 * kHour}) {
    MediaTimes times(40 * kMs);
    times.trusts_until(pause + 10 * kSecond);
    times.next(0);
    const MediaTimes::Time after = times.next(pause);
    CHECK(after.ns == pause);
    CHECK(after.found == Found::good);
    const MediaTimes::Time damaged = times.next(pause + 2 * kHour);
    CHECK(damaged.ns == pause + 40 * kMs);
    CHECK(damaged.found == Found::jumped);
    MediaTimes unconfirmed(40 * kMs);
    unconfirmed.next(0);
    CHECK(unconfirmed.next(pause).found == Found::jumped);
  }
}

} // namespace millrace::media
