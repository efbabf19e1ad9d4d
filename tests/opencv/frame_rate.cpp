// Frame rates: what containers report against what is meant.
#include "plugins/opencv/frame_rate.h"

#include <doctest/doctest.h>

#include <cmath>
#include <initializer_list>
#include <limits>

using millrace::opencv::frame_rate_of;
using millrace::opencv::frame_rate_of_period;
using millrace::opencv::FrameRate;
using millrace::opencv::is_plausible_rate;
using millrace::opencv::kFrameRateFallback;
using millrace::opencv::picture_count_of;
using millrace::opencv::time_of_picture;

TEST_CASE("broadcast rates are recognised however they were rounded") {
  CHECK(frame_rate_of(30000.0 / 1001) == FrameRate{30000, 1001});
  CHECK(frame_rate_of(29.97) == FrameRate{30000, 1001});
  CHECK(frame_rate_of(24000.0 / 1001) == FrameRate{24000, 1001});
  CHECK(frame_rate_of(23.98) == FrameRate{24000, 1001});
  CHECK(frame_rate_of(23.976) == FrameRate{24000, 1001});
  CHECK(frame_rate_of(59.94) == FrameRate{60000, 1001});
}

TEST_CASE("whole rates and simple fractions are exact") {
  CHECK(frame_rate_of(10) == FrameRate{10, 1});
  CHECK(frame_rate_of(25) == FrameRate{25, 1});
  CHECK(frame_rate_of(29.99999) == FrameRate{30, 1});
  CHECK(frame_rate_of(12.5) == FrameRate{25, 2});
  CHECK(frame_rate_of(1.0 / 3) == FrameRate{1, 3});
  CHECK(frame_rate_of(0.5) == FrameRate{1, 2});
}

TEST_CASE("every other rate comes within a millionth") {
  for (const double rate : {7.4321, 14.985, 99.123, 0.123, 333.3333}) {
    const FrameRate fraction = frame_rate_of(rate);
    INFO(rate);
    CHECK(fraction.denominator <= 1001);
    CHECK(static_cast<double>(fraction.numerator) / static_cast<double>(fraction.denominator) ==
          doctest::Approx(rate).epsilon(1e-5));
  }
}

TEST_CASE("what cannot be a rate becomes 25") {
  for (const double rate : {0.0, -5.0, 90000.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    CHECK(!is_plausible_rate(rate));
    CHECK(frame_rate_of(rate) == kFrameRateFallback);
  }
  CHECK(frame_rate_of_period(0) == kFrameRateFallback);
  CHECK(frame_rate_of_period(-1) == kFrameRateFallback);
}

TEST_CASE("a rate is found again from the whole nanoseconds of its period") {
  CHECK(frame_rate_of_period(100'000'000) == FrameRate{10, 1});
  CHECK(frame_rate_of_period(33'366'666) == FrameRate{30000, 1001});
  CHECK(frame_rate_of_period(33'333'333) == FrameRate{30, 1});
}

TEST_CASE("what cannot be a number of pictures becomes 0") {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double count : {0.0, -1.0, -9.3e18, 9.3e18, 1e11, std::nan(""), infinity, -infinity})
    CHECK(picture_count_of(count, {25, 1}) == 0);
  CHECK(picture_count_of(795, {25, 1}) == 795);
  CHECK(picture_count_of(3e12, {1000, 1}) == 3'000'000'000'000);
  CHECK(picture_count_of(3e12, {25, 1}) == 0);
}

TEST_CASE("times of pictures do not drift") {
  const FrameRate ntsc{30000, 1001};
  CHECK(time_of_picture(ntsc, 0) == 0);
  CHECK(time_of_picture(ntsc, 1) == 33'366'666);
  CHECK(time_of_picture(ntsc, 30000) == 1001'000'000'000);
  // After a year of pictures the time is still exact.
  CHECK(time_of_picture(ntsc, int64_t{30000} * 31536) == int64_t{1001'000'000'000} * 31536);
  CHECK(time_of_picture({1000, 1}, 1500) == 1'500'000'000);
}
