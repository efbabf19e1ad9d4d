// A slow reader costs a link no memory and other crossings no rate, and a link that is full is never suspect.
#include "tests/net/faults/line.h"
#include "tests/net/faults/measure.h"

using namespace millrace;
using namespace millrace::net;
using namespace millrace::net::test;

TEST_CASE("A reader at 1 % of a link's speed costs little memory, and another crossing keeps its rate") {
  constexpr uint32_t kFrame = 6'220'800, kDepth = 4;
  constexpr double kPerSecond = 1000;
  const uint64_t before = resident_bytes();
  Pair pair(Road::tls);
  Crossing& slow = pair.add(true, packets(kFrame), kDepth);
  Crossing& other = pair.add(true, packets(1000, 2), 64);
  pair.start();

  // The speed of a reader that takes everything, and the other crossing's rate beside it.
  const int64_t full_ns = amount(1, 20) * kSecond / 2;
  pair.allow(slow, UINT64_MAX);
  REQUIRE(pair.arrive(slow, 2));
  uint64_t arrived = slow.reader->arrived;
  REQUIRE(pass(pair, full_ns));
  const double full = static_cast<double>(slow.reader->arrived - arrived) / (static_cast<double>(full_ns) / 1e9);
  slow.reader->takes = slow.reader->arrived.load();
  const Pacer pacer(*pair.left, other, kPerSecond);
  REQUIRE(pair.arrive(other, 10));

  const int64_t begun_ns = monotonic_ns(), last_ns = begun_ns + amount(4, 600) * kSecond;
  arrived = other.reader->arrived;
  const uint64_t slow_before = slow.reader->arrived, taken_before = slow.reader->takes;
  uint64_t most = 0;
  while (monotonic_ns() < last_ns) {
    slow.reader->takes =
        taken_before + static_cast<uint64_t>(static_cast<double>(monotonic_ns() - begun_ns) / 1e9 * full / 100);
    pair.right->reactor.ring();
    most = std::max(most, resident_bytes());
    REQUIRE(pass(pair, 20 * kMillisecond));
  }
  const double seconds = static_cast<double>(monotonic_ns() - begun_ns) / 1e9;
  const double rate = static_cast<double>(other.reader->arrived - arrived) / seconds;
  const auto mib = [](uint64_t bytes) { return static_cast<double>(bytes) / static_cast<double>(kMiB); };
  const uint64_t grown = most > before ? most - before : 0, limit = 2 * ((kDepth + 1) * uint64_t{kFrame} + 4 * kMiB);
  std::printf(
      "slow reader: %.1f frames/s at full speed, %.2f at 1 %%; %.0f s; both ends together hold %.1f MiB more "
      "(limit %.1f); the other crossing %.1f of %.0f parcels/s\n",
      full, static_cast<double>(slow.reader->arrived - slow_before) / seconds, seconds, mib(grown), mib(limit), rate,
      kPerSecond);
  if (kMeasures) {
    CHECK(grown <= limit);
    CHECK(rate >= 0.95 * kPerSecond);
  }
  CHECK(pair.left->events.count(EventType::suspect) + pair.right->events.count(EventType::suspect) == 0);
  CHECK(pair.broken() == nullptr);
}

TEST_CASE("A link that is full is never suspect, on a fast line and on a slow one") {
  for (const bool is_fast : {true, false}) {
    Pair pair(Road::tls);
    Crossing& there = pair.add(true, packets(1'000'000), 16);
    Crossing& back = pair.add(false, packets(1'000'000, 2), 16);
    pair.listen();
    Line line(pair.listener->endpoints()[0]);
    if (!is_fast) {
      line.begin("bandwidth 4MiB/s; latency 20ms");
      pair.dialled = {line.endpoint()};
    }
    pair.start();
    pair.allow(there, UINT64_MAX);
    pair.allow(back, UINT64_MAX);
    REQUIRE(pair.arrive(there, 1));
    const int64_t begun_ns = monotonic_ns(), last_ns = begun_ns + amount(3, 600) * kSecond / 2;
    std::vector<double> trips_ms;
    while (monotonic_ns() < last_ns) {
      REQUIRE(pass(pair, 500 * kMillisecond));
      const auto offset = pair.left->ask([](Session& session) { return session.offset(monotonic_ns()); });
      if (offset.known) trips_ms.push_back(static_cast<double>(offset.round_trip_ns) / 1e6);
    }
    const double seconds = static_cast<double>(monotonic_ns() - begun_ns) / 1e9;
    std::printf("full link (%s): %.0f s, %.0f + %.0f MB/s, round trip of pings, ms: %s\n", is_fast ? "fast" : "4 MiB/s",
                seconds, static_cast<double>(there.reader->arrived) / seconds,
                static_cast<double>(back.reader->arrived) / seconds, percentiles(trips_ms).c_str());
    for (const Node* node : {pair.left.get(), pair.right.get()}) {
      CHECK(node->events.count(EventType::suspect) == 0);
      CHECK(node->events.count(EventType::away) == 0);
      CHECK(node->events.count(EventType::met) == 1);
    }
    CHECK(pair.broken() == nullptr);
  }
}
