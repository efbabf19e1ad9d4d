// Runs a rule and a collector in virtual time: arrivals of many streams, one device, and what became of the items.
#pragma once

#include <cstdint>
#include <vector>

#include "batch/collector.h"
#include "batch/rule.h"
#include "batch/sim/arrivals.h"
#include "batch/sim/device.h"

namespace millrace::batch {

struct Scenario {
  Pattern pattern = Pattern::any_phase;
  uint32_t streams = 64;
  double rate = 1000; // items per second, all streams together
  int64_t budget_ns = 50'000'000;
  int64_t duration_ns = 10'000'000'000;
  // Items are counted if they come between these times. The rest is for the beginning, and for the last to be done.
  int64_t measured_from_ns = 1'000'000'000, measured_to_ns = 9'800'000'000;
  uint32_t in_flight = 1;
  uint64_t seed = 1;
  double spread = Device::kSpread;
  bool pairs_gain = true;        // false: two firings at a time go at half speed each, whatever the curve says of them
  int64_t slower_at_ns = kNever; // the device takes `slower` times as long from then on
  double slower = 1;
};

// Counts are of items that came in the measured time.
struct Outcome {
  uint64_t came = 0, refused = 0, dropped = 0, done = 0, in_time = 0, firings = 0;
  double p50_ms = 0, p99_ms = 0; // from give to the end of the firing, of items that are done
  double device_use = 0;         // the part of the time in which at least one firing runs
  double in_time_share() const { return came == 0 ? 1 : static_cast<double>(in_time) / static_cast<double>(came); }
};

Outcome simulate(const Scenario& scenario, const std::vector<BucketTime>& device, Rule& rule);

} // namespace millrace::batch
