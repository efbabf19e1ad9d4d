// A run in numbers: what was called, delivered, dropped and copied, how long it took, and what memory it had. Filled by
// exec/report.h while it runs and at its end.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "observe/error.h"

namespace millrace {

// A sentence that a handler said.
struct HandlerMessage {
  uint32_t level = 0; // MR_LOG_*
  std::string sentence;
  uint64_t times = 1;
};

struct HandlerReport {
  std::string name, type, domain;
  bool waits = false; // for the outside world: its times are not its own cost
  uint64_t calls = 0, errors = 0, sampled = 0;
  double p50_us = 0, p99_us = 0, max_us = 0;
  double sampled_us = 0;   // the sum of the calls that were timed
  double predicted_us = 0; // by the plan; 0: the plan did not know it
  // Times of finish() on the host, for a body that enqueues (its other times are the device's). 0: it has no finish().
  uint64_t finish_sampled = 0;
  double finish_p50_us = 0, finish_p99_us = 0, finish_max_us = 0;
  // Calibration, of a handler that takes several items a call: the times of calls by their number of items.
  struct ItemsTime {
    uint32_t items = 0;
    uint64_t sampled = 0;
    double mean_us = 0, p50_us = 0, p99_us = 0;
  };
  std::vector<ItemsTime> by_items;
  std::map<std::string, int64_t> counts; // the handler's own counters, by name
  std::vector<HandlerMessage> messages;  // its log sentences, each once
  std::string first_error;               // its words at its first failure; "": it did not fail
};
// A handler or copy that took over 20 % more or less time than the plan predicted.
struct Misprediction {
  std::string what; // a handler, or a copy: "copy video → sim:0"
  double predicted_us = 0, measured_us = 0;
};
struct EdgeReport {
  std::string from, to, policy;
  uint64_t delivered = 0, empty = 0;
  std::map<std::string, uint64_t> dropped; // by cause
  // `align` of clocks whose homes are two nodes: the most by which the times of two values may be wrong to each other,
  // and the difference within which they are paired. 0: another edge, or nothing was compared on this node.
  double clock_error_us = 0, within_us = 0;
  // Values may be paired that were farther apart, and others be left alone that were not.
  bool is_too_fine() const { return within_us < clock_error_us; }
};
struct TransferReport {
  std::string from, to, edge;
  uint64_t count = 0, bytes = 0, sampled = 0;
  double p50_us = 0, predicted_us = 0;
};
// A crossing, as its end on this node counts it.
struct CrossingReport {
  std::string name, node; // "main/0>1"; the other node
  bool departs = false;   // ticks leave here; else they arrive
  uint64_t parcels = 0;   // ticks that the link took, or brought
  uint64_t bytes = 0;     // the sum over their values
  uint64_t lost = 0; // ticks that went with a process of the other node: it took them, or was to send them, and died
  std::map<std::string, uint64_t> left_out{}; // ticks that were left out at this end, by cause
  // For ticks that leave: the time from when the link took a tick until it was known to have arrived; and the share of
  // the time in which ticks were held up, by what they waited for: "reader", "wire", "node".
  double p50_us = 0, p99_us = 0;
  std::map<std::string, double> waited{};
};
// The link to another node, as it was last.
struct LinkReport {
  std::string node;
  std::string state;        // "there"; "suspect": not heard for 1.5 s; "away": not for 3 s, or not yet
  double round_trip_us = 0; // the least of the last 16 that were measured; 0: none was
  // How far the other machine's clock is ahead of this one's, and by how much that may be wrong.
  double offset_us = 0, offset_error_us = 0;
};
struct PoolReport {
  uint64_t allocated_bytes = 0, high_water_bytes = 0;
  uint64_t steady_allocations = 0; // allocations in the domain's memory since the run began, by any caller
  uint64_t held_blocks = 0;        // blocks of dynamic rings held now; any left after the run is a leak in the runtime
};
// The path of a tick to a sink, a step that no step follows. Its latency runs from when the tick's sources are asked,
// or when the tick was due, until the sink's call ends. It is sampled as all latencies are (tick_watch.h), on ticks on
// which the sink was called.
struct PathReport {
  std::string sink;
  double predicted_us = 0;    // by the plan: the sum of costs on the longest path, without waiting
  uint32_t unknown_costs = 0; // handlers on that path whose cost the plan does not know; predicted_us leaves them out
  uint64_t sampled = 0;
  double p50_us = 0, p99_us = 0, max_us = 0;
  double first_us = 0;   // the first tick's time, which the others include; 0: it did not reach the sink
  double sampled_us = 0; // the sum
  // The node whose clock the tick is of, if that is another one; and the most by which a measured time may be wrong,
  // since the clocks of two machines were read.
  std::string home;
  double clock_error_us = 0;
};
// One stream of a set.
struct StreamReport {
  std::string set, name;
  // "runs"; "stalled": its live source is overdue by twice its period; "ended"; "failed"; "down": it has failed, and
  // begins anew
  std::string state;
  std::string home{}; // the node whose clock its ticks are of, if several nodes run the graph
  uint64_t ticks = 0, late = 0, skipped = 0, restarts = 0;
  std::map<std::string, uint64_t> dropped{}; // values that its handlers did not get, by cause
  double p50_us = 0, p99_us = 0;             // the latency of its ticks
  uint64_t sampled = 0;
  double sampled_us = 0;   // the sum
  std::string error{};     // by which it failed
  uint64_t failed_at = 0;  // the tick
  std::string failed_on{}; // the node, if several nodes run the graph
};
// A group: handlers that work on the items of all streams of a set, firing by firing.
struct GroupReport {
  struct Bucket {
    uint32_t items = 1; // for which firings were made
    uint64_t firings = 0;
    double p50_us = 0, p99_us = 0; // from when one fired until its items were dealt out
    double sum_us = 0;
  };
  struct LateItems {
    std::string stream;
    uint64_t settled = 0, dropped = 0; // after they were due; before they fired
  };
  std::string name, set;
  std::vector<std::string> handlers;
  std::string rule;     // "free", "fixed", "learnt"
  double budget_ms = 0; // 0: items have none
  uint32_t items_max = 1, in_flight = 1;
  uint64_t firings = 0, items = 0;
  uint64_t places_filled = 0, places = 0;        // in all firings' buckets
  std::map<uint32_t, uint64_t> firings_of{};     // by their number of items
  double waiting_p50_us = 0, waiting_p99_us = 0; // from when an item was given until it fired
  double waiting_sum_us = 0;
  std::vector<Bucket> buckets{}; // those that firings were made for
  // learnt: the places that are waited for, "load" or "budget", and items per second.
  uint32_t limit = 0;
  std::string limit_set_by{};
  double rate = 0;
  std::vector<LateItems> late{}; // streams that had any
};
// A region: handlers that were submitted to a device as one launch.
struct RegionReport {
  std::string domain;
  std::vector<std::string> handlers;
  uint64_t launches = 0;   // ticks on which it was one launch
  uint64_t one_by_one = 0; // ticks on which its bodies were called
  uint64_t sampled = 0;    // launches whose device time was measured: one tick in 256, later one in 4096
  double p50_us = 0, p99_us = 0;
};
// A device's own gauges at the end of the run, and the calls made to its driver.
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
  // By the names of the pipeline: what the instances of a template did is one entry, in sum.
  std::vector<HandlerReport> handlers;
  std::vector<EdgeReport> edges;
  std::vector<StreamReport> streams; // in the order of the sets and their items
  std::vector<GroupReport> groups;
  std::vector<TransferReport> transfers;
  std::vector<CrossingReport> crossings;     // empty if one machine runs the graph
  std::vector<LinkReport> links;             // to the other nodes; the same
  std::vector<Misprediction> mispredictions; // the largest first
  std::map<std::string, PoolReport> pools;
  uint64_t latency_sampled = 0;
  double latency_p50_us = 0, latency_p99_us = 0, latency_max_us = 0;
  double latency_first_us = 0;   // the longest first tick of all clocks; the others include it
  double latency_sampled_us = 0; // the sum
  std::vector<PathReport> paths;
  std::vector<SegmentReport> segments; // as they are now: a first cut that was guessed is made again once (5.2)
  std::vector<RegionReport> regions;
  std::vector<DeviceReport> devices; // without the host
  uint32_t revision = 0;             // the plan's: 0, or over nodes how many the coordinator has made
  bool cut_again = false;
  uint64_t log_lost = 0; // entries that found the log's queue full, since the log was opened
};

struct Result {
  bool ok = true;
  Error error; // the first cause, if not ok
  Report report;
};

// The JSON that `millrace run --json` writes.
std::string to_json(const Result& result);

} // namespace millrace
