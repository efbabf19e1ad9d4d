// Presence from the time since the peer was heard, and the offset of its clock from the pings that came back soonest.
#include "net/heartbeat.h"

#include <doctest/doctest.h>

#include <random>

#include "tests/seed.h"

using namespace millrace::net;

namespace {

// A ping at t1 of our clock, to a peer whose clock is `offset` ahead, with so long a way there, a wait and a way back.
struct Trip {
  int64_t t1, offset, there, wait, back;

  int64_t t4() const { return t1 + there + wait + back; }
  Times times() const { return {t1, t1 + there + offset, t1 + there + wait + offset}; }
};

void answer(Heartbeat& heartbeat, const Trip& trip) { heartbeat.answered(trip.times(), trip.t4()); }

} // namespace

TEST_CASE("a peer is suspect after 1.5 s of silence, away after 3 s, and there again when it is heard") {
  Heartbeat heartbeat;
  heartbeat.begin(kSecond);
  CHECK(heartbeat.presence(kSecond) == Presence::there);
  CHECK(heartbeat.next_presence_ns(kSecond) == kSecond + kSuspectAfterNs);
  CHECK(heartbeat.presence(kSecond + kSuspectAfterNs - 1) == Presence::there);
  CHECK(heartbeat.presence(kSecond + kSuspectAfterNs) == Presence::suspect);
  CHECK(heartbeat.next_presence_ns(kSecond + kSuspectAfterNs) == kSecond + kAwayAfterNs);
  CHECK(heartbeat.presence(kSecond + kAwayAfterNs - 1) == Presence::suspect);
  CHECK(heartbeat.presence(kSecond + kAwayAfterNs) == Presence::away);
  CHECK(heartbeat.next_presence_ns(kSecond + kAwayAfterNs) == INT64_MAX);
  heartbeat.heard(9 * kSecond);
  CHECK(heartbeat.presence(9 * kSecond) == Presence::there);
  CHECK(heartbeat.next_presence_ns(9 * kSecond) == 9 * kSecond + kSuspectAfterNs);
}

TEST_CASE("a ping is due at once, and then each half second") {
  Heartbeat heartbeat;
  heartbeat.begin(kSecond);
  CHECK(heartbeat.ping_due(kSecond));
  heartbeat.pinged(kSecond);
  CHECK(!heartbeat.ping_due(kSecond + kPingEveryNs - 1));
  CHECK(heartbeat.next_ping_ns() == kSecond + kPingEveryNs);
  CHECK(heartbeat.ping_due(kSecond + kPingEveryNs));
  heartbeat.begin(kSecond + 1); // another connection
  CHECK(heartbeat.ping_due(kSecond + 1));
}

TEST_CASE("without an answer no offset is known") {
  Heartbeat heartbeat;
  heartbeat.begin(0);
  CHECK(!heartbeat.offset(0).known);
  answer(heartbeat, {0, 5, 1, 1, 1});
  CHECK(heartbeat.offset(10).known);
  heartbeat.forget();
  CHECK(!heartbeat.offset(10).known);
}

TEST_CASE("the offset is exact where both ways take as long, and never further off than its error says") {
  std::mt19937_64 random(millrace::random_seed());
  for (int turn = 0; turn < 500; ++turn) {
    INFO("seed " << millrace::random_seed() << ", turn " << turn);
    const int64_t offset = static_cast<int64_t>(random() % 2'000'000'000'000) - 1'000'000'000'000;
    Heartbeat heartbeat;
    int64_t now = kSecond;
    for (int ping = 0; ping < 20; ++ping, now += kPingEveryNs) {
      const auto drawn = [&] { return static_cast<int64_t>(random() % (20 * kMillisecond)); };
      answer(heartbeat, {now, offset, drawn(), drawn(), drawn()});
      const Heartbeat::Offset found = heartbeat.offset(now + kSecond);
      REQUIRE(found.known);
      CHECK(std::abs(found.offset_ns - offset) <= found.error_ns);
      CHECK(found.error_ns >= found.round_trip_ns / 2);
    }
  }
  Heartbeat heartbeat;
  answer(heartbeat, {100, -7000, 50, 9, 50});
  CHECK(std::abs(heartbeat.offset(209).offset_ns - -7000) <= 1); // each way is halved by itself
  CHECK(heartbeat.offset(209).round_trip_ns == 100);
}

TEST_CASE("the least round trip of the last 16 counts") {
  Heartbeat heartbeat;
  answer(heartbeat, {0, 1000, 10, 0, 10});
  for (int64_t n = 1; n < 16; ++n) {
    answer(heartbeat, {n, 1000, 500, 0, 100});
    CHECK(heartbeat.offset(n).round_trip_ns == 20);
    CHECK(heartbeat.offset(n).offset_ns == 1000);
  }
  answer(heartbeat, {16, 1000, 500, 0, 100}); // takes the place of the first
  CHECK(heartbeat.offset(16).round_trip_ns == 600);
}

TEST_CASE("the clocks drift, so an old answer counts for less") {
  Heartbeat heartbeat;
  answer(heartbeat, {0, 0, kMillisecond, 0, kMillisecond});
  const int64_t at_once = heartbeat.offset(2 * kMillisecond).error_ns;
  CHECK(at_once >= kMillisecond);
  CHECK(heartbeat.offset(10 * kSecond).error_ns - at_once >= 10 * kSecond * kDriftPpmMax / 1'000'000 - 1000);
  // 401 ppm of 10 s are 4 ms, so that an answer which took longer is the better one now.
  answer(heartbeat, {10 * kSecond, 0, 2 * kMillisecond, 0, 2 * kMillisecond});
  CHECK(heartbeat.offset(10 * kSecond).round_trip_ns == 4 * kMillisecond);
}

TEST_CASE("times that cannot be are let go") {
  const Times absurd[] = {
      {100, 50, 40},               // it left before it came
      {100, 0, 101},               // it stayed longer than the whole took
      {500, 0, 0},                 // it was asked after it was answered
      {100, INT64_MIN, INT64_MAX}, // the stay wraps
      {INT64_MIN, 0, 0},           // the whole wraps
      {INT64_MAX, INT64_MAX, INT64_MAX},
      {200 - kAwayAfterNs - 1, 0, 0}, // a peer that took so long was away
  };
  Heartbeat heartbeat;
  for (const Times& times : absurd) {
    CAPTURE(times.t1);
    heartbeat.answered(times, 200);
    CHECK(!heartbeat.offset(200).known);
  }
  // The peer's clock may say anything, and may wrap.
  for (const Times& times : {Times{100, INT64_MIN, INT64_MIN + 1}, Times{100, 0, 0}, Times{100, INT64_MAX, INT64_MAX},
                             Times{100, INT64_MAX, INT64_MIN}}) {
    heartbeat.answered(times, 200);
    CHECK(heartbeat.offset(200).known);
    CHECK(heartbeat.offset(INT64_MAX / 1000).error_ns > 0);
    heartbeat.forget();
  }
}
