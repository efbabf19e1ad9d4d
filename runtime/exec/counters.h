// Counts of what a run has done so far, by the numbers of its plan.
//
// fill() reads what the run's threads count, while they do. It makes no string and allocates nothing, so a client may
// ask for it ten times a second. The report of a run is written from it, with names (report.cpp).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "exec/losses.h"
#include "observe/histogram.h"

namespace millrace::exec {

class RunState;
struct HandlerRun;

// Counts are those since the run began, and sums over the lanes of a handler. Histograms can be taken away from each
// other (Histogram::take_away), which gives the times between two calls of fill().

struct HandlerCounters {
  uint64_t calls = 0, errors = 0;
  Histogram times; // those of the calls that were timed
  // The same of finish() on the host, for a body that enqueues; none: it has no finish().
  std::optional<Histogram> finish_times;
};
struct EdgeCounters {
  uint64_t delivered = 0, empty = 0;
  Drops dropped{};
  uint64_t waiting = 0;                      // ticks that are in its queue now
  int64_t clock_error_ns = 0, within_ns = 0; // `align` of clocks whose homes are two nodes: as EdgeReport has them
};
struct ClockCounters {
  bool is_here = false; // its ticks are counted on this node
  uint64_t ticks = 0, late = 0, skipped = 0;
  int64_t first_ns = 0; // latency of the first tick; 0: there is none yet
  Histogram latencies;
  Drops lost{}; // values that its handlers did not get
};
struct TransferCounters {
  uint64_t copies = 0, bytes = 0;
  Histogram times;
};
struct RegionCounters {
  std::vector<uint32_t> handlers;        // those whose bodies it has; numbers of Plan::handlers
  uint64_t launches = 0, one_by_one = 0; // ticks
  Histogram times;
};
struct CrossingCounters {
  uint64_t parcels = 0, bytes = 0, lost = 0;
  Drops left_out{};
  uint64_t waiting = 0; // ticks that are in its queue now
  Histogram carried;    // on the way, where this node sends
};
struct SinkCounters {
  int64_t first_ns = 0, clock_error_ns = 0;
  Histogram latencies;
};

class Counters {
 public:
  // For a run that is built, and outlives this. What is counted where is looked up now.
  explicit Counters(const RunState& run);
  // Called by one thread at a time.
  void fill();

  std::vector<HandlerCounters> handlers; // by Plan::handlers; those of other nodes stay 0
  std::vector<EdgeCounters> edges;       // by Plan::edges
  std::vector<ClockCounters> clocks;     // by Plan::clocks
  std::vector<TransferCounters> transfers;
  std::vector<RegionCounters> regions; // by PlanRun::regions, which has those alone that were made
  std::vector<CrossingCounters> crossings;
  std::vector<SinkCounters> sinks; // by PlanRun::sinks

 private:
  void fill_handler(uint32_t handler);
  void fill_edge(uint32_t edge);
  void fill_clocks();
  void fill_devices();
  void fill_crossings();
  void fill_sinks();

  const RunState& run_;
  const std::vector<EdgePlaces> places_;                   // by edge
  std::vector<std::vector<const HandlerRun*>> lanes_;      // by handler
  std::vector<std::vector<const HandlerRun*>> sink_lanes_; // by sink
};

} // namespace millrace::exec
