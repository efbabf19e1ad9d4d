// When a connection is dialled again: at once, then after 0.1 s, doubling to 5 s, each wait twice and up to a quarter
// sooner.
#include "net/redial.h"

#include <doctest/doctest.h>

#include <random>
#include <set>

#include "tests/seed.h"

using namespace millrace::net;

namespace {

// The longest time from the end of an outage to the next dial, for outages of up to this long. Each dial fails at once,
// and as much of each wait is left out as `random` says.
template <class Draw>
int64_t longest_wait_ns(int64_t outage_ns, Draw random) {
  Redial redial;
  redial.succeeded(-kSecond);
  int64_t longest_ns = 0;
  for (int64_t dial_ns = 0; dial_ns <= outage_ns;) {
    const int64_t next_ns = redial.next_ns(dial_ns, random());
    longest_ns = std::max(longest_ns, next_ns - dial_ns);
    dial_ns = next_ns;
  }
  return longest_ns;
}

} // namespace

TEST_CASE("the first dial is at once, and the waits after it double to 5 s, each twice") {
  Redial redial;
  CHECK(redial.next_ns(kSecond, 0) == kSecond);
  int64_t expected = kRedialFirstNs;
  for (int n = 0; n < 12; ++n, expected = std::min(2 * expected, kRedialMaxNs))
    for (const int time : {1, 2}) {
      CAPTURE(time);
      CHECK(redial.next_ns(7, 0) == 7 + expected);
    }
  CHECK(expected == kRedialMaxNs);
}

TEST_CASE("after an outage of up to 1 s the next dial comes within 0.4 s, and after one of up to 2.25 s within 0.8 s") {
  const auto none = [] { return uint64_t{0}; };
  const auto all = [] { return uint64_t{1023}; };
  std::mt19937_64 random(millrace::random_seed());
  for (int n = 0; n < 10'000; ++n) {
    INFO("seed " << millrace::random_seed() << ", turn " << n);
    CHECK(longest_wait_ns(kSecond, random) <= 400 * kMillisecond);
    CHECK(longest_wait_ns(2250 * kMillisecond, random) <= 800 * kMillisecond);
  }
  CHECK(longest_wait_ns(kSecond, none) == 400 * kMillisecond);
  CHECK(longest_wait_ns(kSecond, all) <= 400 * kMillisecond);
  CHECK(longest_wait_ns(1050 * kMillisecond, all) <= 400 * kMillisecond);
  CHECK(longest_wait_ns(2250 * kMillisecond, all) <= 800 * kMillisecond);
}

TEST_CASE("a wait is shorter by up to a quarter, so that peers spread") {
  std::set<int64_t> waits;
  for (uint64_t random = 0; random < 5000; random += 7) {
    Redial redial;
    redial.next_ns(0, random);
    const int64_t wait = redial.next_ns(0, random);
    CHECK(wait <= kRedialFirstNs);
    CHECK(wait > kRedialFirstNs * 3 / 4);
    waits.insert(wait);
  }
  CHECK(waits.size() > 500);
}

TEST_CASE("after a connection that worked the next dial is at once again") {
  Redial redial;
  for (int n = 0; n < 9; ++n) redial.next_ns(0, 0);
  redial.succeeded(kSecond);
  CHECK(redial.next_ns(2 * kSecond, 0) == 2 * kSecond);
  for (const int64_t wait_ns : {kRedialFirstNs, kRedialFirstNs, 2 * kRedialFirstNs})
    CHECK(redial.next_ns(2 * kSecond, 0) == 2 * kSecond + wait_ns);
}

TEST_CASE("a connection that comes up and is refused each time is dialled ever later") {
  Redial redial;
  int64_t now = 0, expected = kRedialFirstNs;
  for (int n = 0; n < 12; ++n, expected = std::min(2 * expected, kRedialMaxNs)) {
    redial.succeeded(now);
    redial.refused(now + 1);
    const int64_t next = redial.next_ns(now + 1, 0);
    CHECK(next == now + 1 + expected);
    now = next;
  }
}

TEST_CASE("a connection that was up for long before it was refused begins with the first wait") {
  Redial redial;
  int64_t now = 0;
  for (int n = 0; n < 8; ++n) {
    redial.succeeded(now);
    redial.refused(now);
    now = redial.next_ns(now, 0);
  }
  redial.succeeded(now);
  now += kRedialMaxNs;
  redial.refused(now);
  CHECK(redial.next_ns(now, 0) == now + kRedialFirstNs);
}
