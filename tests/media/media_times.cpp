// Times of pictures: constant rates stay exact, variable ones are kept, and nonsense is mended.
#include "plugins/opencv/picture_times.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "tests/seed.h"

namespace millrace::opencv {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kMs = 1'000'000;

} // namespace

TEST_CASE("times that a container rounds to milliseconds are exact again, however long the video") {
  const FrameRate ntsc{30000, 1001};
  PictureTimes times(ntsc);
  bool exact = true;
  for (int64_t n = 0; n < 200'000; ++n) {
    const PictureTime time = times.next(std::round(static_cast<double>(n) * 1001 / 30));
    exact = exact && time.pts_ns == time_of_picture(ntsc, n) &&
            time.pts_ns + time.duration_ns == time_of_picture(ntsc, n + 1);
  }
  CHECK(exact);
  CHECK(times.is_constant());
}

TEST_CASE("a video without any times is played at its rate") {
  PictureTimes times(FrameRate{10, 1});
  for (int64_t n = 0; n < 20; ++n) CHECK(times.next(kNone) == PictureTime{n * 100 * kMs, 100 * kMs});
}

TEST_CASE("times begin at 0 wherever the container's begin") {
  for (const double first : {200.0, 86'400'000.0, -40.0}) {
    PictureTimes times(FrameRate{10, 1});
    for (int64_t n = 0; n < 20; ++n) CHECK(times.next(first + 100 * static_cast<double>(n)).pts_ns == n * 100 * kMs);
  }
}

TEST_CASE("from the first time that is off the rate each picture has its own, and no duration") {
  PictureTimes times(FrameRate{10, 1});
  CHECK(times.next(0) == PictureTime{0, 100 * kMs});
  CHECK(times.next(100) == PictureTime{100 * kMs, 100 * kMs});
  CHECK(times.next(250) == PictureTime{250 * kMs, 0});
  CHECK(times.next(300.25) == PictureTime{300 * kMs + kMs / 4, 0});
  CHECK(times.next(400) == PictureTime{400 * kMs, 0});
  CHECK(!times.is_constant());
  CHECK(times.end_ns() == 500 * kMs);
}

TEST_CASE("a missing time is one period after the picture before") {
  PictureTimes times(FrameRate{10, 1});
  times.next(0);
  times.next(30);
  CHECK(times.next(kNone).pts_ns == 130 * kMs);
  CHECK(times.next(400).pts_ns == 400 * kMs);
}

TEST_CASE("two pictures at one time are a nanosecond apart") {
  PictureTimes times(FrameRate{10, 1});
  CHECK(times.next(0).pts_ns == 0);
  CHECK(times.next(50).pts_ns == 50 * kMs);
  CHECK(times.next(50).pts_ns == 50 * kMs + 1);
  CHECK(times.next(50).pts_ns == 50 * kMs + 2);
}

TEST_CASE("a jump back and a gap of more than an hour are mended, and the times behind them are believed") {
  for (const double jump : {-5000.0, 3'700'000.0}) {
    PictureTimes times(FrameRate{10, 1});
    times.next(0);
    times.next(70);
    CHECK(times.next(70 + jump).pts_ns == 170 * kMs);
    CHECK(times.next(110 + jump).pts_ns == 210 * kMs);
  }
  PictureTimes slow(FrameRate{10, 1});
  slow.next(0);
  CHECK(slow.next(3'500'000).pts_ns == 3'500'000 * kMs); // under an hour is a time
}

TEST_CASE("a second pass goes on where the first ended") {
  PictureTimes constant(FrameRate{30000, 1001}), variable(FrameRate{10, 1});
  for (int64_t n = 0; n < 7; ++n) {
    if (n == 3) constant.begin_again();
    CHECK(constant.next(static_cast<double>(n % 3) * 1001 / 30).pts_ns == time_of_picture({30000, 1001}, n));
  }
  variable.next(20);
  CHECK(variable.next(50).pts_ns == 30 * kMs);
  variable.begin_again();
  CHECK(variable.next(20).pts_ns == 130 * kMs);
  CHECK(variable.next(50).pts_ns == 160 * kMs);
}

TEST_CASE("whatever a damaged container says, times rise, and never by more than an hour") {
  const uint32_t seed = random_seed();
  INFO("seed ", seed);
  std::mt19937 random(seed);
  const double wild[] = {0, kNone, 1e300, -1e300, std::numeric_limits<double>::infinity(), 3e12, -3e12, 9.3e12, 1e-9};
  PictureTimes times(FrameRate{25, 1});
  int64_t last = -1;
  bool rising = true;
  for (int i = 0; i < 100'000; ++i) {
    if (random() % 1000 == 0) times.begin_again();
    const double said = random() % 4 == 0 ? wild[random() % std::size(wild)] : static_cast<double>(random() % 100'000);
    const int64_t now = times.next(said).pts_ns;
    rising = rising && now > last && (last < 0 || now - last <= 3600 * int64_t{1'000'000'000});
    last = now;
  }
  CHECK(rising);
}

} // namespace millrace::opencv
