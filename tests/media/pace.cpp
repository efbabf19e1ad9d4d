// Limits of silence: the user's, a generous one at the beginning, and what a slow source has taught.
#include "plugins/media/pace.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <initializer_list>

namespace millrace::media {
namespace {

constexpr int64_t kPaceSecond = 1'000'000'000;
constexpr int64_t kUsers = 5 * kPaceSecond;

} // namespace

TEST_CASE("before its second packet a source may be silent for half a minute, or as long as the user says") {
  Pace pace;
  CHECK(pace.limit_ns(kUsers) == 30 * kPaceSecond);
  CHECK(pace.limit_ns(60 * kPaceSecond) == 60 * kPaceSecond);
  pace.came(kPaceSecond, INT64_MIN);
  CHECK(pace.limit_ns(kUsers) == 30 * kPaceSecond);
  pace.came(kPaceSecond, INT64_MIN);
  CHECK(pace.limit_ns(kUsers) == kUsers);
}

TEST_CASE("a source may be silent for three of its longest recent pauses, and never for less than the user's limit") {
  Pace pace;
  for (int n = 0; n < 3; ++n) pace.came(10 * kPaceSecond, INT64_MIN);
  CHECK(pace.limit_ns(kUsers) == 30 * kPaceSecond);
  for (int n = 0; n < 7; ++n) pace.came(2 * kPaceSecond, INT64_MIN);
  CHECK(pace.limit_ns(kUsers) == 30 * kPaceSecond); // the last pause of 10 s is one of the last eight
  pace.came(2 * kPaceSecond, INT64_MIN);
  CHECK(pace.limit_ns(kUsers) == 6 * kPaceSecond);
  for (int n = 0; n < 8; ++n) pace.came(kPaceSecond / 25, INT64_MIN);
  CHECK(pace.limit_ns(kUsers) == kUsers);
}

TEST_CASE("a source that is read more slowly than it sends teaches its pauses by its times") {
  Pace pace;
  for (int64_t n = 0; n < 4; ++n) pace.came(0, n * 10 * kPaceSecond);
  CHECK(pace.limit_ns(kUsers) == 30 * kPaceSecond);
}

TEST_CASE("times that are damaged, and pauses of minutes, allow a silence of three minutes at most") {
  Pace pace;
  for (const int64_t ns : {int64_t{0}, kPaceSecond, INT64_MAX, INT64_MIN + 1, 2 * kPaceSecond}) pace.came(0, ns);
  CHECK(pace.limit_ns(kUsers) <= Pace::kLearnedMaxNs);
  for (int n = 0; n < 8; ++n) pace.came(600 * kPaceSecond, INT64_MIN);
  CHECK(pace.limit_ns(kUsers) == Pace::kLearnedMaxNs);
  CHECK(pace.limit_ns(600 * kPaceSecond) == 600 * kPaceSecond);
}

} // namespace millrace::media
