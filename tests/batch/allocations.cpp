// Counts operator new of this program: a collector and its controller allocate nothing once they are made.
//
// malloc's other callers are not counted; the collector has none, and no lock: tests/tidy refuses <mutex> there.
#include <doctest/doctest.h>

#include "batch/controller.h"
#include "cli/count_allocations.h"
#include "observe/random.h"
#include "tests/batch/rig.h"

namespace millrace::batch {
namespace {

TEST_CASE("a collector allocates nothing while items are given, fire, are dropped and end, and streams come and go") {
  Controller rule({5 * kMs, 0.8, true}, 2000, 10 * kMs);
  Collector collector({16, 2, 5 * kMs, Order::deadline}, ServiceCurve(test::even_curve()), rule);
  for (uint32_t s = 0; s < 16; ++s) collector.stream_added(s, {5 * kMs, s, 8}, 0);
  Random random(1);
  std::array<int64_t, kInFlightMost> ends_ns = {kNever, kNever};
  uint64_t firings = 0, dropped = 0, refused = 0;
  const testing::AllocationCounter counter = cli::allocation_counter();
  const uint64_t before = counter.counted();
  counter.count(true);
  for (int64_t now = 0; now < 5000 * kMs; now += 100'000) {
    for (uint32_t slot = 0; slot < kInFlightMost; ++slot) {
      if (ends_ns[slot] > now) continue;
      ends_ns[slot] = kNever;
      collector.firing_ended(slot, now);
    }
    for (uint32_t i = 0; i < 2; ++i) refused += !collector.give(static_cast<uint32_t>(random.below(15)), 0, now);
    if (collector.inside(15) == 0) {
      collector.stream_ended(15);
      collector.stream_removed(15);
      collector.stream_added(15, {5 * kMs, 0, 2}, now);
      refused += !collector.give(15, 0, now);
    }
    while (true) {
      const Step& step = collector.next(now);
      dropped += step.dropped.size();
      if (step.firing == nullptr) break;
      ++firings;
      ends_ns[step.firing->slot] = now + 200'000 + 100'000 * int64_t{step.firing->bucket_items};
    }
  }
  counter.count(false);
  CHECK(counter.counted() == before);
  CHECK(firings > 1000);
  CHECK(dropped > 100);
  CHECK(refused > 100);
}

} // namespace
} // namespace millrace::batch
