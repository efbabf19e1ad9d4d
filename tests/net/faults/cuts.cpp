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

// The line was away from the first time to the second one.
struct Outage {
  int64_t begun_ns = 0, back_ns = 0;
  int64_t ns() const { return back_ns - begun_ns; }
};

// Ends the line for some time. It may be longer: the machine has other work.
Outage cut(Line& line, Pair& pair, const char* stroke, int64_t away_ns) {
  if (away_ns == 0) {
    const int64_t now_ns = line.begin(stroke);
    return {now_ns, now_ns};
  }
  const int64_t begun_ns = line.begin(std::string("refuse; ") + stroke);
  REQUIRE(pass(pair, away_ns));
  return {begun_ns, line.begin("clear")};
}

// The parts of the time of a slow recovery, in ms after the line was back.
std::string describe(const Pair& pair, const Outage& outage, double flows_ms) {
  std::string text = "away for " + std::to_string(outage.ns() / kMillisecond) + " ms";
  for (const Events::Told& told : pair.left->events.told()) {
    if (told.at_ns < outage.begun_ns) continue;
    const char* const name = told.type == EventType::dial    ? "dial"
                             : told.type == EventType::close ? "close"
                             : told.type == EventType::back  ? "back"
                                                             : "other";
    text += std::string("; ") + name + " " + std::to_string(told.lane) + " at " +
            std::to_string((told.at_ns - outage.back_ns) / kMillisecond);
  }
  return text + "; flowing at " + std::to_string(flows_ms);
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
    const Outage outage = cut(line, pair, random() % 2 ? "reset" : "cut", away_ns);
    REQUIRE(pair.progress.wait([&] { return pair.right->events.count(EventType::back) > backs; }));
    // Parcels that arrive now came over the new connection.
    REQUIRE(pair.arrive(small, small.reader->arrived + 1));
    const double ms = static_cast<double>(small.reader->last_ns - outage.back_ns) / 1e6;
    (away_ns == 0 ? at_once_ms : outage.ns() <= kSecond ? short_ms : long_ms).push_back(ms);
    INFO(describe(pair, outage, ms));
    CHECK((ms < 1000 || outage.ns() > kSecond || !kMeasures));
  }
  while (is_long() && small.reader->arrived < 1'000'000) REQUIRE(pass(pair, kSecond));

  std::printf(
      "%lld cuts, %llu + %llu + %llu parcels. Flowing again, ms after the line is back: away 0 s: %s; up to 1 s: "
      "%s; longer: %s\n",
      static_cast<long long>(cuts), static_cast<unsigned long long>(small.reader->arrived),
      static_cast<unsigned long long>(large.reader->arrived), static_cast<unsigned long long>(back.reader->arrived),
      percentiles(at_once_ms).c_str(), percentiles(short_ms).c_str(), percentiles(long_ms).c_str());
  for (const double ms : long_ms) CHECK((ms <= 6000 || !kMeasures));
  CHECK(pair.broken() == nullptr);
  CHECK(pair.left->events.count(EventType::met) == 1);
  for (const auto& crossing : pair.crossings) {
    CHECK(crossing->sender->lost == 0);
    CHECK(pair.arrive(*crossing, crossing->sender->given));
  }
}

// It takes as long as the limit: in the long form alone.
TEST_CASE("A data connection in which the proxy loses bytes is dialled again, and nothing else") {
  if (!is_long()) return;
  for (const char* direction : {"up", "down"}) {
    CAPTURE(direction);
    Pair pair(Road::tls);
    Crossing& there = pair.add(true, packets(1000), 8);
    Crossing& back = pair.add(false, packets(1000, 2), 8);
    pair.listen();
    Line line(pair.listener->endpoints()[0], random_seed());
    pair.dialled = {line.endpoint()};
    pair.start();
    pair.allow(there, 10);
    pair.allow(back, 10);
    REQUIRE((pair.arrive(there, 10) && pair.arrive(back, 10)));
    const int64_t begun_ns = line.begin(std::string("half-open connection 2 ") + direction);
    pair.allow(there, 1000);
    pair.allow(back, 1000);
    REQUIRE(pair.progress.wait([&] { return pair.left->events.count(EventType::dial) == 3; }));
    const int64_t found_ns = monotonic_ns() - begun_ns;
    REQUIRE((pair.arrive(there, 1000) && pair.arrive(back, 1000)));
    std::printf("lost bytes were found after %.2f s\n", static_cast<double>(found_ns) / 1e9);
    CHECK(found_ns >= kLaneSilentNs);
    // The end of what the right node wrote is lost too, so that the left one hears of it by its pings.
    CHECK((found_ns <= kLaneSilentNs + kLaneGoneNs + 5 * kPingEveryNs || !kMeasures));
    for (const auto* node : {pair.left.get(), pair.right.get()}) {
      CHECK(node->events.count(EventType::suspect) == 0);
      CHECK(node->events.count(EventType::met) == 1);
    }
  }
}
