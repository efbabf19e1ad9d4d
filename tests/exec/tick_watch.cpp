// The choice of ticks whose latency is measured.
#include "exec/tick_watch.h"

#include <doctest/doctest.h>

#include <functional>
#include <vector>

namespace millrace::exec {
namespace {

// The ordinals of `ticks` ticks that are measured; tick i + 1 begins period_ns(i) after tick i.
std::vector<uint64_t> measured(TickWatch watch, uint64_t ticks, const std::function<int64_t(uint64_t)>& period_ns) {
  std::vector<uint64_t> ordinals;
  int64_t now_ns = 1'000'000'000;
  for (uint64_t ordinal = 0; ordinal < ticks; ++ordinal) {
    if (watch.is_due(ordinal)) {
      watch.record_begun(ordinal, now_ns);
      ordinals.push_back(ordinal);
    }
    now_ns += period_ns(ordinal);
  }
  return ordinals;
}

std::function<int64_t(uint64_t)> always(int64_t period_ns) {
  return [=](uint64_t) { return period_ns; };
}

} // namespace

TEST_CASE("every tick is measured where ticks begin as far apart as a measurement is worth") {
  for (const int64_t period_ns : {TickWatch::kSpacingNs, int64_t{100'000}, int64_t{33'333'333}})
    CHECK(measured(TickWatch(), 5000, always(period_ns)).size() == 5000);
  CHECK(measured(TickWatch(true), 5000, always(50)).size() == 5000); // asked for, as with a trace
}

TEST_CASE("of short ticks so many are measured that they begin as far apart as a measurement is worth") {
  for (const int64_t period_ns : {200, 1000, 5000, 10'000}) {
    CAPTURE(period_ns);
    constexpr uint64_t kTicks = 1'000'000;
    const auto count = static_cast<double>(measured(TickWatch(), kTicks, always(period_ns)).size());
    CHECK(count == doctest::Approx(kTicks * static_cast<double>(period_ns) / TickWatch::kSpacingNs).epsilon(0.05));
  }
  // However short they are, one of so many.
  CHECK(measured(TickWatch(), 1'000'000, always(1)).size() > 1'000'000 / TickWatch::kSpacingTicksMax * 0.95);
}

TEST_CASE("a handler with `every` is at work on as many of the measured ticks as of all") {
  for (const uint64_t every : {2u, 3u, 4u, 7u, 8u, 16u, 64u}) {
    CAPTURE(every);
    uint64_t at_work = 0;
    const std::vector<uint64_t> ordinals =
        measured(TickWatch(), 2'000'000, [=](uint64_t i) { return i % every == 0 ? int64_t{2000} : int64_t{1000}; });
    for (const uint64_t ordinal : ordinals) at_work += ordinal % every == 0;
    const double part = static_cast<double>(at_work) / static_cast<double>(ordinals.size());
    CHECK(part == doctest::Approx(1.0 / static_cast<double>(every)).epsilon(0.15));
  }
}

TEST_CASE("after a tick that waited for a processor the next ones are measured hardly more often") {
  const auto waits = [](uint64_t i) { return i % 50'000 == 0 ? int64_t{25'000'000} : int64_t{300}; };
  uint64_t soon_after = 0;
  const std::vector<uint64_t> ordinals = measured(TickWatch(), 2'000'000, waits);
  for (const uint64_t ordinal : ordinals) soon_after += ordinal % 50'000 < 1000 && ordinal >= 50'000;
  CHECK(static_cast<double>(soon_after) / static_cast<double>(ordinals.size()) < 0.06); // 0.02 of the ticks
}

TEST_CASE("a run that becomes slow has all its ticks measured soon, and one that becomes fast has not") {
  const auto becomes_slow = [](uint64_t i) { return i < 100'000 ? int64_t{1000} : int64_t{100'000}; };
  const std::vector<uint64_t> slow = measured(TickWatch(), 101'000, becomes_slow);
  uint64_t late = 0;
  for (const uint64_t ordinal : slow) late += ordinal >= 100'000;
  CHECK(late > 800);
  const auto becomes_fast = [](uint64_t i) { return i < 100 ? int64_t{1'000'000} : int64_t{500}; };
  CHECK(measured(TickWatch(), 100'000, becomes_fast).size() < 100 + 100 + 100'000 / 40 * 1.1);
}

} // namespace millrace::exec
