// The controller: sizes and times by hand, and what it keeps in virtual time.
#include "batch/controller.h"

#include <doctest/doctest.h>

#include <cmath>

#include "batch/sim/simulate.h"
#include "tests/batch/rig.h"
#include "tests/part.h"
#include "tests/seed.h"

namespace millrace::batch {
namespace {

using test::add_streams;
using test::even_curve;
using test::words;

TEST_CASE("a launch is the largest bucket that is filled, or the next one up where that costs less for each item") {
  const ServiceCurve curve(device_curve());
  const size_t cap = curve.count() - 1;
  const auto rows_and_items = [&](uint32_t rows) {
    const Launch next = launch(curve, rows, cap);
    return std::make_pair(next.rows, curve.items(next.bucket));
  };
  CHECK(rows_and_items(1) == std::make_pair(1u, 1u));
  CHECK(rows_and_items(5) == std::make_pair(4u, 4u));    // 160 µs an item, padded to eight 225
  CHECK(rows_and_items(14) == std::make_pair(8u, 8u));   // 141, padded to sixteen 146
  CHECK(rows_and_items(15) == std::make_pair(15u, 16u)); // padded 136
  CHECK(rows_and_items(200) == std::make_pair(64u, 64u));
  CHECK(launch(curve, 200, 3).rows == 8);
}

TEST_CASE("a line is cleared in the time of all its firings") {
  const ServiceCurve curve(even_curve());
  CHECK(clear_ns(curve, 64, 6) == 6'600'000);
  CHECK(clear_ns(curve, 65, 6) == 6'600'000 + 300'000);
  CHECK(clear_ns(curve, 24, 3) == 3 * 1'000'000);
}

TEST_CASE("a load is counted over the window, and what was expected is said until then") {
  LoadMeter load(1000, 1000 * kMs);
  CHECK(load.rate() == 1000);
  for (int64_t i = 0; i < 400; ++i) load.add(i * 5 * kMs, 1); // 200 a second
  CHECK(load.rate() == doctest::Approx(200).epsilon(0.02));
  load.add(100'000 * kMs, 3); // after a long pause
  CHECK(load.rate() < 4);
}

// A controller and its collector, fed by many streams at an even rate.
struct Fed {
  Fed(double rate, int64_t budget_ns)
      : rule({budget_ns, 0.8, true}, rate, 10 * kMs),
        collector({64, 1, budget_ns, Order::deadline}, ServiceCurve(even_curve()), rule) {
    add_streams(collector, 64, {20 * kMs, 0, kAllowanceMost});
  }
  void give_all(int64_t from_ns, uint32_t count, int64_t gap_ns) {
    for (uint32_t i = 0; i < count; ++i) {
      CHECK(collector.give(given % 64, given, from_ns + i * gap_ns));
      ++given;
    }
  }
  Controller rule;
  Collector collector;
  uint32_t given = 0;
};

TEST_CASE("a low load waits for nothing") {
  Fed fed(1000, 50 * kMs); // one by one keeps the device busy for 30 %
  fed.give_all(0, 1, 0);
  CHECK(words(fed.collector.next(0).firing) == "0:0");
}

TEST_CASE("a higher load waits for the smallest bucket that keeps the device below its share") {
  Fed fed(5000, 50 * kMs); // busy by bucket: 1.50, 1.00, 0.75
  fed.give_all(0, 3, 0);
  CHECK(words(fed.collector.next(0).firing) == "none");
  CHECK(fed.rule.limit_items(fed.collector.forecast()) == 4);
  CHECK_FALSE(fed.rule.budget_sets_limit(fed.collector.forecast()));
  fed.give_all(0, 1, 0);
  CHECK(fed.collector.next(0).firing->rows == 4);
}

TEST_CASE("waiting ends when the line must begin in order to be done by the oldest deadline") {
  Fed fed(5000, 50 * kMs);
  fed.give_all(0, 3, 0);
  const Step& step = fed.collector.next(0);
  REQUIRE(step.firing == nullptr);
  CHECK(step.look_again_ns == 50 * kMs - 600'000 - 200'000); // three in a bucket of four, and the margin
  CHECK(words(fed.collector.next(step.look_again_ns).firing) == "0:0 1:1 2:2");
}

TEST_CASE("beside a firing that is under way waiting ends earlier by what that one still takes") {
  std::vector<BucketTime> measured = even_curve();
  for (BucketTime& bucket : measured) bucket.paired_ns = bucket.median_ns * 80 / 100;
  Controller rule({50 * kMs, 0.8, true}, 5000, 10 * kMs);
  Collector collector({64, 2, 50 * kMs, Order::deadline}, ServiceCurve(measured), rule);
  add_streams(collector, 64, {20 * kMs, 0, kAllowanceMost});
  for (uint32_t s = 0; s < 4; ++s) CHECK(collector.give(s, 0, 0));
  CHECK(collector.next(0).firing->rows == 4);
  for (uint32_t s = 4; s < 7; ++s) CHECK(collector.give(s, 0, 0));
  CHECK(collector.next(0).look_again_ns == 50 * kMs - 600'000 - 200'000 - 600'000);
}

TEST_CASE("waiting ends in time for all firings that clear the line, not for the first alone") {
  Controller rule({50 * kMs, 0.8, true}, 5800, 10 * kMs); // sixteen keep the device below its share
  Collector collector({64, 1, 50 * kMs, Order::deadline}, ServiceCurve(device_curve()), rule);
  add_streams(collector, 64, {20 * kMs, 0, kAllowanceMost});
  for (uint32_t s = 0; s < 5; ++s) CHECK(collector.give(s, 0, 0));
  CHECK(collector.next(0).look_again_ns == 50 * kMs - 638'000 - 328'000 - 200'000);
}

TEST_CASE("a limit is lowered only once a lower one has been enough for half a second") {
  Fed fed(5000, 50 * kMs);
  fed.give_all(0, 1, 0);
  const auto limit = [&] { return fed.rule.limit_items(fed.collector.forecast()); };
  CHECK(limit() == 4);
  int64_t now = 0;
  const auto give_slowly_until = [&](int64_t until) { // 100 items per second
    for (; now < until; now += 10 * kMs) {
      fed.give_all(now, 1, 0);
      while (const Firing* firing = fed.collector.next(now).firing)
        fed.collector.firing_ended(firing->slot, now + 200'000 + 100'000 * int64_t{firing->bucket_items});
    }
  };
  give_slowly_until(500 * kMs); // 2,600 items per second are counted by now, and two at a time would be enough
  CHECK(fed.rule.rate() < 3000);
  CHECK(limit() == 4);
  give_slowly_until(1000 * kMs);
  CHECK(limit() == 1);
}

TEST_CASE("the largest firing takes at most half the budget") {
  Fed fed(50'000, 2 * kMs); // 4 items take 0.6 ms and 8 take 1.0, and the margin is 0.2
  fed.give_all(0, 60, 0);
  CHECK(fed.rule.budget_sets_limit(fed.collector.forecast()));
  CHECK(fed.collector.next(0).firing->rows == 4);
}

TEST_CASE("B6: a stream that has used its allowance ends the waiting") {
  Controller rule({50 * kMs, 0.8, true}, 5000, 10 * kMs);
  Collector collector({2, 1, 50 * kMs, Order::deadline}, ServiceCurve(even_curve()), rule);
  add_streams(collector, 2, {10 * kMs, 0, 2});
  CHECK(collector.give(0, 0, 0));
  CHECK(words(collector.next(0).firing) == "none");
  CHECK(collector.give(0, 1, 0));
  CHECK(words(collector.next(0).firing) == "0:0 0:1");
}

TEST_CASE("B6: a stream whose item was dropped is full no more") {
  Controller rule({10 * kMs, 0.8, true}, 5000, 10 * kMs);
  Collector collector({2, 1, 10 * kMs, Order::deadline}, ServiceCurve(even_curve()), rule);
  collector.stream_added(0, {10 * kMs, 0, 1}, 0);
  collector.stream_added(1, {10 * kMs, 0, 4}, 0);
  CHECK(collector.give(0, 0, 0));
  CHECK(test::dropped_words(collector.next(20 * kMs)) == "0:0 late");
  CHECK(collector.give(1, 0, 20 * kMs));
  CHECK(words(collector.next(20 * kMs).firing) == "none");
}

TEST_CASE("B8: where all streams have given and the next comes after the wait, what is there fires") {
  Controller rule({50 * kMs, 0.8, true}, 5000, 10 * kMs);
  Collector collector({2, 1, 50 * kMs, Order::deadline}, ServiceCurve(even_curve()), rule);
  add_streams(collector, 2, {100 * kMs, 0, 4});
  CHECK(collector.give(0, 0, 90 * kMs));
  CHECK(words(collector.next(90 * kMs).firing) == "none"); // the other stream is expected at 100 ms
  CHECK(collector.give(1, 0, 100 * kMs));
  CHECK(words(collector.next(100 * kMs).firing) == "0:0 1:0");
}

TEST_CASE("a second firing goes beside the first where pairs get more done and the first is not made late") {
  const auto second_fires = [](int64_t paired_percent, int64_t budget_ns) {
    std::vector<BucketTime> measured = even_curve();
    for (BucketTime& bucket : measured) bucket.paired_ns = bucket.median_ns * paired_percent / 100;
    Controller rule({budget_ns, 0.8, true}, 100, 10 * kMs);
    Collector collector({2, 2, budget_ns, Order::deadline}, ServiceCurve(measured), rule);
    add_streams(collector, 2, {10 * kMs, 0, 4});
    CHECK(collector.give(0, 0, 0));
    CHECK(collector.next(0).firing != nullptr);
    CHECK(collector.give(1, 0, 0));
    return collector.next(0).firing != nullptr;
  };
  CHECK(second_fires(80, 50 * kMs));
  CHECK_FALSE(second_fires(99, 50 * kMs));
  CHECK_FALSE(second_fires(80, 600'000)); // both would be done at 0.48 ms, and the margin is a quarter of the budget
}

TEST_CASE("a device that errs far beyond the budget still gets more than one item at a time") {
  Fed fed(5000, 40 * kMs);
  int64_t now = 0;
  for (int i = 0; i < 40; ++i) { // every tenth firing takes 100 ms more
    fed.give_all(now, 8, 0);
    const Firing* firing = fed.collector.next(now).firing;
    REQUIRE(firing != nullptr);
    CHECK(firing->rows >= 4);
    now += 200'000 + 100'000 * firing->bucket_items + (i % 10 == 0 ? 100 * kMs : 0);
    fed.collector.firing_ended(firing->slot, now);
    while (const Firing* rest = fed.collector.next(now).firing) {
      now += 200'000 + 100'000 * rest->bucket_items;
      fed.collector.firing_ended(rest->slot, now);
    }
  }
  CHECK(fed.collector.forecast().margin_ns() > 40 * kMs);
}

// The learnt rule on the device of the scenario, told its rates.
Outcome simulate_learnt(const Scenario& scenario) {
  Controller rule({scenario.budget_ns, 0.8, true}, scenario.rate, std::llround(scenario.streams * 1e9 / scenario.rate));
  return simulate(scenario, device_curve(), rule);
}

// The loads that the budget's largest bucket can carry.
double capacity_within(const ServiceCurve& curve, int64_t budget_ns) {
  double most = 0;
  for (size_t bucket = 0; bucket < curve.count(); ++bucket)
    if (bucket == 0 || curve.p95_ns(bucket) <= budget_ns / 2 - 200'000)
      most = std::max(most, curve.items(bucket) * 1e9 / static_cast<double>(curve.p95_ns(bucket)));
  return most;
}

TEST_CASE("with an exact curve and periodic arrivals nothing is late or dropped up to 0.9 of what the device can do") {
  Random random(random_seed());
  const int64_t cases = millrace::test::part_of(100);
  for (int64_t i = 0; i < cases; ++i) {
    Scenario scenario;
    scenario.seed = random.next();
    scenario.spread = 0;
    scenario.streams = static_cast<uint32_t>(random.between(8, 64));
    scenario.budget_ns = random.between(15, 100) * kMs;
    scenario.in_flight = static_cast<uint32_t>(random.between(1, 2));
    scenario.duration_ns = 1500 * kMs;
    scenario.measured_from_ns = 0;
    scenario.measured_to_ns = 1400 * kMs;
    const double load = 0.05 + 0.85 * random.share();
    scenario.rate = load * capacity_within(measured_curve(device_curve()), scenario.budget_ns);
    const Outcome outcome = simulate_learnt(scenario);
    CAPTURE(scenario.seed);
    CAPTURE(scenario.streams);
    CAPTURE(scenario.budget_ns);
    CAPTURE(scenario.in_flight);
    CAPTURE(load);
    CHECK(outcome.came > 0);
    CHECK(outcome.in_time == outcome.came);
  }
}

TEST_CASE("where pairs gain nothing, whatever the curve says, p99 is within the budget all the same") {
  for (const Pattern pattern : {Pattern::any_phase, Pattern::poisson}) {
    for (const int load_percent : {10, 50, 90, 120}) {
      Scenario scenario;
      scenario.pattern = pattern;
      scenario.budget_ns = 15 * kMs;
      scenario.rate = capacity(device_curve()) * load_percent / 100;
      scenario.in_flight = 2;
      scenario.pairs_gain = false;
      scenario.duration_ns = 3000 * kMs;
      scenario.measured_from_ns = 500 * kMs;
      scenario.measured_to_ns = 2800 * kMs;
      const Outcome outcome = simulate_learnt(scenario);
      CAPTURE(name_of(pattern));
      CAPTURE(load_percent);
      CHECK(outcome.p99_ms <= 15);
      CHECK(outcome.in_time_share() > (load_percent > 100 ? 0.8 : 0.97));
    }
  }
}

TEST_CASE("a second after the device became half as fast, p99 is within the budget again") {
  for (const Pattern pattern : {Pattern::any_phase, Pattern::poisson}) {
    for (const int64_t budget_ms : {15, 50, 100}) {
      for (const int load_percent : {10, 30, 45}) { // of the device as it was
        Scenario scenario;
        scenario.pattern = pattern;
        scenario.budget_ns = budget_ms * kMs;
        scenario.rate = capacity(device_curve()) * load_percent / 100;
        scenario.in_flight = 2;
        scenario.slower_at_ns = 2000 * kMs;
        scenario.slower = 2;
        scenario.measured_from_ns = 3000 * kMs;
        scenario.measured_to_ns = 5000 * kMs;
        scenario.duration_ns = 5200 * kMs;
        const Outcome outcome = simulate_learnt(scenario);
        CAPTURE(name_of(pattern));
        CAPTURE(budget_ms);
        CAPTURE(load_percent);
        CHECK(outcome.p99_ms <= static_cast<double>(budget_ms));
        CHECK(outcome.in_time_share() > 0.9);
      }
    }
  }
}

} // namespace
} // namespace millrace::batch
