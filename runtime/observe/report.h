// A run in numbers: what was called, delivered, dropped and copied, how long it took, and what memory it had. Filled by
// exec/report.h while it runs and at its end.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "observe/error.h"

namespace millrace {

// A sentence of a handler's.
struct HandlerMessage {
  uint32_t level = 0; // MR_LOG_*
  std::string sentence;
  uint64_t times = 1;
};

struct HandlerReport {
  std::string name, type, domain;
  bool waits = false; // for the world: its time is not its own
  uint64_t calls = 0, errors = 0, sampled = 0;
  double p50_us = 0, p99_us = 0, max_us = 0;
  double sampled_us = 0;   // the sum of the calls that were timed
  double predicted_us = 0; // the plan's; 0: it did not know
  // Of a body that enqueues, whose times are the device's: its finish() on the host. 0: it has none.
  uint64_t finish_sampled = 0;
  double finish_p50_us = 0, finish_p99_us = 0, finish_max_us = 0;
  std::map<std::string, int64_t> counts; // what the handler counted, by its own names
  std::vector<HandlerMessage> messages;  // what it said, each sentence once
  std::string first_error;               // what it said when it failed first; "": it did not
};
// What took more than 20 % longer or shorter than the plan thought.
struct Misprediction {
  std::string what; // a handler, or a copy: "copy video → sim:0"
  double predicted_us = 0, measured_us = 0;
};
struct EdgeReport {
  std::string from, to, policy;
  uint64_t delivered = 0, empty = 0;
  std::map<std::string, uint64_t> dropped; // by cause
};
struct TransferReport {
  std::string from, to, edge;
  uint64_t count = 0, bytes = 0, sampled = 0;
  double p50_us = 0, predicted_us = 0;
};
struct PoolReport {
  uint64_t allocated_bytes = 0, high_water_bytes = 0;
  uint64_t steady_allocations = 0; // of the domain's memory, by anybody, once the run has begun
  uint64_t held_blocks = 0;        // of dynamic rings, now; once the run is over any is a leak of the runtime's own
};
// The way of a tick to a step after which nothing comes: from when its sources are asked, or when it was due, until
// that step's call was over. Measured as all latencies are (tick_watch.h), where the sink was called.
struct PathReport {
  std::string sink;
  double predicted_us = 0;    // the plan's: costs on the longest way, with nothing in between
  uint32_t unknown_costs = 0; // handlers on that way whose cost the plan does not know; they are not in predicted_us
  uint64_t sampled = 0;
  double p50_us = 0, p99_us = 0, max_us = 0;
  double first_us = 0;   // of the first tick, which is among them; 0: it did not come here
  double sampled_us = 0; // the sum
};
// A region of handlers that a device was given as one.
struct RegionReport {
  std::string domain;
  std::vector<std::string> handlers;
  uint64_t launches = 0;   // ticks on which it was one launch
  uint64_t one_by_one = 0; // ticks on which its bodies were called
  uint64_t sampled = 0;    // device time of a launch, on one tick in 256, later in 4096
  double p50_us = 0, p99_us = 0;
};
// A device as it says of itself at the end, and what its driver was asked.
struct DeviceReport {
  std::string domain;
  std::map<std::string, double> gauges;         // by name and unit
  std::map<std::string, uint64_t> driver_calls; // by function
};
struct SegmentReport {
  std::string domain;
  std::vector<std::string> handlers; // in order; runtime steps are not among them
};
struct Report {
  uint64_t ticks_run = 0, ticks_late = 0, ticks_skipped = 0;
  double duration_s = 0;
  std::vector<HandlerReport> handlers;
  std::vector<EdgeReport> edges;
  std::vector<TransferReport> transfers;
  std::vector<Misprediction> mispredictions; // the largest first
  std::map<std::string, PoolReport> pools;
  uint64_t latency_sampled = 0;
  double latency_p50_us = 0, latency_p99_us = 0, latency_max_us = 0;
  double latency_first_us = 0;   // of the first tick of the clock whose first took longest; it is among them
  double latency_sampled_us = 0; // the sum
  std::vector<PathReport> paths;
  std::vector<SegmentReport> segments; // as they are now: a first cut that was guessed is made once more (5.2)
  std::vector<RegionReport> regions;
  std::vector<DeviceReport> devices; // but for the host
  bool cut_again = false;
  uint64_t log_lost = 0; // what was said and found the log's queue full, in the life of the log
};

struct Result {
  bool ok = true;
  Error error; // the first cause, where not ok
  Report report;
};

// The JSON that `millrace run --json` writes.
std::string to_json(const Result& result);

} // namespace millrace
