// A film's pictures and the beats that show them, with times as containers round them (semantics.md 1.2, 1.4).
#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "exec/due_times.h"
#include "harness.h"
#include "plan/time_rounding.h"

using namespace millrace;
using namespace millrace::test;

namespace {

using graph::Rational;

constexpr int64_t kSecondNs = 1'000'000'000;

// The ways in which a container makes a time a whole number of its units.
enum class Rounds { nearest, cut };

// value · numerator / denominator, rounded. The test's numbers are small: no product overflows.
int64_t scaled(int64_t value, int64_t numerator, int64_t denominator, Rounds rounds) {
  const int64_t product = value * numerator;
  return rounds == Rounds::cut ? product / denominator : (product + denominator / 2) / denominator;
}

// A film of constant rate. The time of picture n is n / rate in whole units, read back as whole nanoseconds.
struct Film : Handler {
  Output<Tensor> out{*this, "out"};
  Param<int64_t> count{*this, "count", 0, "pictures"};
  Param<int64_t> rate_num{*this, "rate_num", 30, "pictures a second"};
  Param<int64_t> rate_den{*this, "rate_den", 1, "of that fraction"};
  Param<int64_t> unit_den{*this, "unit_den", 0, "units a second; 0: a unit is one period"};
  Param<bool> cuts{*this, "cuts", false, "times are cut, not rounded"};
  Param<int64_t> jitter_ms{*this, "jitter_ms", 0, "every other picture comes so much later"};
  Param<int64_t> told_den{*this, "told_den", -1, "units a second that it tells; -1: those of its times, 0: none"};
  void probe(Facts& facts) override {
    facts.rate(rate_num, rate_den);
    const int64_t told = told_den < 0 ? *unit_den : *told_den;
    if (told > 0)
      facts.time_unit(1, told);
    else if (told_den < 0)
      facts.time_unit(rate_den, rate_num);
  }
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}); }
  void process(Tick& tick, Cpu&) {
    const auto n = static_cast<int64_t>(tick.index());
    if (n >= count) return tick.end();
    const int64_t shape[] = {1};
    out.allocate(tick, dtype_of<int64_t>(), shape).elements<int64_t>()[0] = n;
    const int64_t per_s = unit_den > 0 ? *unit_den : *rate_num, unit_num = unit_den > 0 ? 1 : *rate_den;
    const int64_t units =
        unit_den > 0 ? scaled(n * rate_den, per_s, rate_num, cuts ? Rounds::cut : Rounds::nearest) : n;
    out.header(tick).pts_ns =
        scaled(units * unit_num, kSecondNs, per_s, Rounds::nearest) + (n % 2 == 1 ? jitter_ms * 1'000'000 : 0);
  }
};

struct BlockingFilm final : Film {
  BlockingFilm() { blocking(); }
};

const mr_plugin& film_plugin() {
  static const mr_handler_type types[] = {
      detail::Type<Film>::table("f.film", "A film", ""),
      detail::Type<BlockingFilm>::table("f.blocking", "A film that is read by a thread of its own", ""),
  };
  static const mr_handler_type* const pointers[] = {&types[0], &types[1]};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "films", "1", pointers, 2, 0};
  return plugin;
}

struct Container {
  const char* name;
  int64_t unit_den; // 0: its period
  bool cuts;
};
constexpr Container kContainers[] = {{"mp4", 0, false},     {"mp4 of 600 units", 600, false},
                                     {"mkv", 1000, false},  {"cut mkv", 1000, true},
                                     {"ts", 90'000, false}, {"avi", 0, false}};

constexpr Rational kRates[] = {{10, 1}, {12, 1},       {15, 1}, {24000, 1001}, {24, 1}, {25, 1},
                               {30, 1}, {30000, 1001}, {50, 1}, {60000, 1001}, {60, 1}, {120, 1}};

Params film_params(const Rational& rate, const Container& container, int64_t count) {
  return {{"count", std::to_string(count)},
          {"rate_num", std::to_string(rate.numerator)},
          {"rate_den", std::to_string(rate.denominator)},
          {"unit_den", std::to_string(container.unit_den)},
          {"cuts", container.cuts ? "true" : "false"}};
}

// The pictures that a clock of some mode and rate shows of the film, by tick.
struct Shown {
  std::vector<int64_t> pictures; // kEmpty: none
  uint64_t passed_over = 0;
  std::vector<int64_t> without_empty() const {
    std::vector<int64_t> all = pictures;
    all.erase(std::remove(all.begin(), all.end(), kEmpty), all.end());
    return all;
  }
};

Shown shown(const Params& film, graph::ClockMode mode, const Rational& rate, bool threads = false) {
  Pipeline p;
  p.add("film", threads ? "f.blocking" : "f.film", film);
  p.add("sink", "t.sink", {{"log", "film_beats"}});
  p.connect("film", "sink");
  p.clock(mode, rate.numerator, rate.denominator);
  Setup setup;
  setup.virtual_time = !threads;
  setup.workers = 2;
  setup.more = &film_plugin();
  const Ran ran = run(p, setup);
  REQUIRE(ran.ok);
  Shown all{values(ran.seen("film_beats"))};
  for (const EdgeReport& edge : ran.report.edges) all.passed_over += dropped(edge, "rate");
  return all;
}

std::vector<int64_t> all_of(int64_t count) {
  std::vector<int64_t> all(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// 30000/1001 with two decimals, cut: a little slower.
Rational as_written(const Rational& rate) {
  if (rate.denominator == 1) return rate;
  return {rate.numerator * 100 / rate.denominator, 100};
}

} // namespace

TEST_CASE("1.4: a film of the clock's rate shows each picture once and each beat one, however its container rounds") {
  for (const Rational& rate : kRates) {
    for (const Container& container : kContainers) {
      INFO(rate.numerator, "/", rate.denominator, " in ", container.name);
      const Params film = film_params(rate, container, 400);
      for (const Rational& clock : {rate, as_written(rate)}) {
        for (const auto mode : {graph::ClockMode::realtime, graph::ClockMode::free}) {
          const Shown seen = shown(film, mode, clock);
          CHECK(seen.pictures == all_of(400));
          CHECK(seen.passed_over == 0);
        }
      }
    }
  }
}

TEST_CASE("1.4: a film that is read by a thread of its own shows each picture once under free too") {
  for (const Rational& rate : {Rational{24000, 1001}, Rational{30000, 1001}, Rational{60000, 1001}}) {
    for (const Container& container : kContainers) {
      INFO(rate.numerator, "/", rate.denominator, " in ", container.name);
      CHECK(shown(film_params(rate, container, 200), graph::ClockMode::free, as_written(rate), true).pictures ==
            all_of(200));
    }
  }
}

TEST_CASE("1.4: a film that is slower than the clock shows each picture once, at the first beat after its time") {
  for (const Container& container : kContainers) {
    INFO(container.name);
    for (const auto mode : {graph::ClockMode::realtime, graph::ClockMode::free}) {
      const Shown cinema = shown(film_params({24, 1}, container, 240), mode, {30, 1});
      CHECK(cinema.without_empty() == all_of(240));
      CHECK(cinema.pictures.size() == 300); // the last is due at 239 / 24 s, in beat 299
      CHECK(cinema.pictures[5] == 4);       // both at 1/6 s
      const Shown broadcast = shown(film_params({30000, 1001}, container, 3000), mode, {30, 1});
      CHECK(broadcast.without_empty() == all_of(3000));
      CHECK(broadcast.pictures.size() == 3003); // a thousandth of the beats has none
    }
  }
}

TEST_CASE("1.4: of a film that is faster than the clock a beat shows the newest picture, and the others are counted") {
  for (const Container& container : kContainers) {
    INFO(container.name);
    const Shown half = shown(film_params({60, 1}, container, 240), graph::ClockMode::realtime, {30, 1});
    REQUIRE(half.pictures.size() == 121);
    for (size_t beat = 0; beat < 120; ++beat) CHECK(half.pictures[beat] == static_cast<int64_t>(2 * beat));
    CHECK(half.pictures[120] == 239);
    CHECK(half.passed_over == 119);
    const Shown broadcast = shown(film_params({30, 1}, container, 3000), graph::ClockMode::realtime, {30000, 1001});
    CHECK(broadcast.pictures.size() == 2998); // the last is due at 2999 / 30 s, between beats 2996 and 2997
    CHECK(broadcast.passed_over == 2);
  }
}

TEST_CASE("1.4: a picture that comes too soon after the one before it waits for the next beat") {
  for (const auto mode : {graph::ClockMode::realtime, graph::ClockMode::free}) {
    Params film = film_params({30, 1}, {"mp4", 0, false}, 300);
    film["jitter_ms"] = "20"; // every other picture is 13 ms before the next one
    const Shown seen = shown(film, mode, mode == graph::ClockMode::free ? Rational{3001, 100} : Rational{30, 1});
    CHECK(seen.without_empty() == all_of(300));
    CHECK(seen.passed_over == 0);
  }
}

TEST_CASE(
    "1.3, 8.11: a clock of the film's rate reads each picture of a film's own clock by latest and by queue, once") {
  for (const Rational& rate : {Rational{24000, 1001}, Rational{25, 1}, Rational{30000, 1001}, Rational{30, 1}}) {
    for (const Container& container : kContainers) {
      for (const graph::Policy policy : {graph::Policy::latest, graph::Policy::queue}) {
        INFO(rate.numerator, "/", rate.denominator, " in ", container.name, ", policy ", static_cast<int>(policy));
        Pipeline p;
        p.clock(graph::ClockMode::source);
        p.graph.clocks.back().name = "film";
        p.clock(graph::ClockMode::free, rate.numerator, rate.denominator);
        p.graph.clocks.back().name = "wall";
        p.add("film", "f.film", film_params(rate, container, 200)).clock = "film";
        p.add("sink", "t.sink", {{"log", "wall"}}).clock = "wall";
        p.connect("film", "sink", policy).depth = 4;
        Setup setup;
        setup.virtual_time = true;
        setup.more = &film_plugin();
        const Ran ran = run(p, setup);
        REQUIRE(ran.ok);
        CHECK(values(ran.seen("wall")) == all_of(200));
      }
    }
  }
}

TEST_CASE("1.4: without a unit of its times a source is right to the nanosecond, whichever way it rounds") {
  for (const bool cuts : {false, true}) {
    Params film = film_params({30, 1}, {"nanoseconds", kSecondNs, cuts}, 300);
    film["told_den"] = "0";
    CHECK(shown(film, graph::ClockMode::realtime, {30, 1}).pictures == all_of(300));
  }
}

TEST_CASE("1.4: times are exact where the period is a whole number of units, else within a unit") {
  mr_facts facts{};
  facts.rate_num = 30;
  facts.rate_den = facts.time_den = 1;
  CHECK(plan::rounding_ns(facts) == 1); // no unit
  facts.time_num = 1;
  facts.time_den = 15360;
  CHECK(plan::rounding_ns(facts) == 1);
  facts.time_den = 1000;
  CHECK(plan::rounding_ns(facts) == 1'000'001);
  facts.time_den = 40; // coarser than half a period
  CHECK(plan::rounding_ns(facts) == 16'666'666);
  facts.rate_num = 0;
  CHECK(plan::rounding_ns(facts) == 1);
}

TEST_CASE("1.4: after a pause or a time off the grid of its rate a source is due at its own times") {
  exec::DueTimes times({25, 1}, 1'000'001);
  CHECK(times.next(0).at_ns == 0);
  CHECK(times.next(39'000'001).at_ns == 40'000'000);   // rounded
  CHECK(times.next(55'000'000).at_ns == 55'000'000);   // off the grid, which begins anew here
  CHECK(times.next(95'500'000).at_ns == 95'000'000);   // rounded, on the new grid
  CHECK(times.next(975'000'000).at_ns == 975'000'000); // a pause of 22 periods
  const exec::DueTimes::Due back = times.next(900'000'000);
  CHECK(back.replaced);
  CHECK(back.at_ns == 1'015'000'000);
  times.begin_anew();
  CHECK(times.next(7).at_ns == 7);
}
