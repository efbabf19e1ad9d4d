// A TLS link that is cut again and again loses, doubles and reorders nothing, and flows again soon after the line is
// back.
#include <random>

#include "tests/net/faults/line.h"
#include "tests/net/faults/measure.h"
#include "tests/seed.h"

using namespace millrace;
using namespace millrace::net;
using namespace millrace::net::test;

namespace {

// Ends the line for some time, and returns when it is back.
int64_t cut(Line& line, Pair& pair, const char* stroke, int64_t away_ns) {
  if (away_ns == 0) return line.begin(stroke);
  line.begin(std::string("refuse; ") + stroke);
  REQUIRE(pass(pair, away_ns));
  return line.begin("clear");
}

// Most lines are back at once; some after up to 1 s, and a few after up to 6 s.
int64_t draw_away_ns(std::mt19937& random) {
  const auto below = [&](int64_t ns) { return static_cast<int64_t>(random() % 1'000'000) * (ns / 1'000'000); };
  const auto kind = random() % 100;
  if (kind < 70) return 0;
  if (!is_long()) return below(200 * kMillisecond);
  return kind < 95 ? below(kSecond) : kSecond + below(5 * kSecond);
}

} // namespace

TEST_CASE("A link goes on after each of many cuts, and loses, doubles and reorders nothing") {
  Pair pair(Road::tls);
  Crossing& small = pair.add(true, packets(200), 32);
  Crossing& large = pair.add(true, packets(100'000, 2), 4);
  Crossing& back = pair.add(false, packets(1000, 3), 16);
  pair.listen();
  Line line(pair.listener->endpoints()[0], random_seed());
  pair.dialled = {line.endpoint()};
  pair.start();
  const Pacer pace_small(*pair.left, small, 20'000), pace_large(*pair.left, large, 50),
      pace_back(*pair.right, back, 1000);
  REQUIRE(pair.arrive(small, 10));

  std::mt19937 random(random_seed());
  std::vector<double> at_once_ms, short_ms, long_ms;
  const int64_t cuts = amount(20, 1000);
  for (int64_t i = 0; i < cuts; ++i) {
    CAPTURE(i);
    REQUIRE(pass(pair, static_cast<int64_t>(random() % (is_long() ? 400 : 200)) *
                           kMillisecond)); // a cut hits any moment of the traffic
    const int64_t away_ns = draw_away_ns(random);
    const uint64_t backs = pair.right->events.count(EventType::back);
    const int64_t back_ns = cut(line, pair, random() % 2 ? "reset" : "cut", away_ns);
    REQUIRE(pair.progress.wait([&] { return pair.right->events.count(EventType::back) > backs; }));
    // Parcels that arrive now came over the new connection.
    REQUIRE(pair.arrive(small, small.reader->arrived + 1));
    const double ms = static_cast<double>(small.reader->last_ns - back_ns) / 1e6;
    (away_ns == 0 ? at_once_ms : away_ns <= kSecond ? short_ms : long_ms).push_back(ms);
  }
  while (is_long() && small.reader->arrived < 1'000'000) REQUIRE(pass(pair, kSecond));

  std::printf(
      "%lld cuts, %llu + %llu + %llu parcels. Flowing again, ms after the line is back: away 0 s: %s; up to 1 s: "
      "%s; longer: %s\n",
      static_cast<long long>(cuts), static_cast<unsigned long long>(small.reader->arrived),
      static_cast<unsigned long long>(large.reader->arrived), static_cast<unsigned long long>(back.reader->arrived),
      percentiles(at_once_ms).c_str(), percentiles(short_ms).c_str(), percentiles(long_ms).c_str());
  for (const auto* each : {&at_once_ms, &short_ms})
    for (const double ms : *each) CHECK((ms < 1000 || !kMeasures));
  for (const double ms : long_ms) CHECK((ms <= 6000 || !kMeasures));
  CHECK(pair.broken() == nullptr);
  CHECK(pair.left->events.count(EventType::met) == 1);
  for (const auto& crossing : pair.crossings) {
    CHECK(crossing->sender->lost == 0);
    CHECK(pair.arrive(*crossing, crossing->sender->given));
  }
}
