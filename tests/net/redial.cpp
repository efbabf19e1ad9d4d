// When a connection is dialled again: at once, then after 0.1 s, doubling to 5 s, each up to a quarter sooner.
#include "net/redial.h"

#include <doctest/doctest.h>

#include <set>

using namespace millrace::net;

TEST_CASE("the first dial is at once, and each wait is twice the one before, to 5 s") {
  Redial redial;
  CHECK(redial.next_ns(kSecond, 0) == kSecond);
  int64_t expected = kRedialFirstNs;
  for (int n = 0; n < 12; ++n, expected = std::min(2 * expected, kRedialMaxNs))
    CHECK(redial.next_ns(7, 0) == 7 + expected);
  CHECK(expected == kRedialMaxNs);
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
  CHECK(redial.next_ns(2 * kSecond, 0) == 2 * kSecond + kRedialFirstNs);
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
