// The work that a group has done so far, in counts and times, and its rows in the trace. Written under the group's
// mutex; any thread may read the counts. Nothing is allocated after begin_counts().
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "batch/collector.h"
#include "observe/histogram.h"
#include "observe/single_writer.h"
#include "observe/trace.h"

namespace millrace::exec {

struct GroupRun;
struct GiveRun;

struct GroupCounts {
  struct ByStream {
    SingleWriter<uint64_t> settled_late; // items that fired, and were given back after they were due
    SingleWriter<uint64_t> dropped_late; // items that did not fire, since they would have been late
  };
  std::vector<SingleWriter<uint64_t>> firings; // [n] those of n items
  SingleWriter<uint64_t> rows_filled, rows;
  Histogram waiting;            // from the gift of an item to its firing
  std::vector<Histogram> times; // from firing to dealing out; [n]: of those made for 2ⁿ rows
  std::vector<ByStream> streams;

  struct UnderWay {
    const batch::Firing* firing = nullptr; // stands until the collector is told of its end
    int64_t begun_ns = 0, begun_ticks = 0; // the second in the trace's time
    TraceRing* trace = nullptr;
  };
  std::array<UnderWay, batch::kInFlightMost> under_way; // by the collector's slot
};

void begin_counts(GroupRun& group);
void count_firing(GroupRun& group, const batch::Firing& firing, int64_t now_ns);
// The firing that begins with this ordinal was dealt out. To be called before the collector is told.
void count_dealt(GroupRun& group, uint64_t first, int64_t now_ns);
// An item that does not fire, while its inputs are still held.
void count_dropped(GiveRun& give, const batch::Dropped& dropped);

} // namespace millrace::exec
