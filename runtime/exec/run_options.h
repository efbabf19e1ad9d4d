// The choices of whoever starts a run (run.h), and what it is told while the run goes on.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "exec/param_change.h"
#include "observe/error.h"

namespace millrace {
class Log;
}
namespace millrace::device {
class Timeline;
class VirtualTime;
} // namespace millrace::device
namespace millrace::graph {
class Confine;
}

namespace millrace::exec {

class PageServer;

// FailureRecord::index of a failure that concerns no tick in particular.
inline constexpr uint64_t kWholeRun = UINT64_MAX;
// A failure that ends a run (2.6): no handler is called on ticks of the clock that are later than the index.
struct FailureRecord {
  Error error;
  uint32_t clock = 0;     // index into Plan::clocks
  uint64_t index = 0;     // the tick's
  bool of_stream = false; // it ends the stream of the clock, and the run goes on (B11)
  std::string node{};     // of_stream: the node on which it happened; "": this one
  uint32_t epoch = 0;     // of_stream: the tick's. It is no failure of a later one
};

struct Progress {
  uint64_t ticks = 0;
  double elapsed_s = 0;
  double clock_hz = 0; // 0: none
  int64_t ticks_expected = -1;
  uint64_t late = 0, skipped = 0;
  std::map<std::string, uint64_t> dropped; // by cause, on all edges
};

// RunOptions::begin_ns: the clocks begin at the time of the first look of any of them.
inline constexpr int64_t kAtFirstLook = INT64_MIN;

struct RunOptions {
  uint32_t revision = 0;              // the plan's number, for the report: a program may run one plan after another
  uint64_t ticks_max = 0;             // 0: until the sources end
  int64_t duration_ns = 0;            // counted from begin_ns; 0: no limit
  int64_t spin_ns = 50'000;           // a worker with nothing to do spins this long before it sleeps
  int64_t budget_ns = 10'000'000'000; // a call that takes longer is named; per handler: budget:
  int64_t grace_ns = 5'000'000'000;   // then it is interrupted; after as much again `on_hang` is told
  int64_t idle_report_ns = 2'000'000'000;
  int64_t standstill_ns = 10'000'000'000; // after stop(), if nothing moves for so long, calls are interrupted
  // A device that finishes nothing for so long, while nothing else moves or at the end, is lost.
  int64_t device_patience_ns = 10'000'000'000;
  // Set: one thread, simulated workers, no wall time (semantics.md 1.2 virtual, 4.10). wait() drives the run, if no
  // VirtualDriver has driven it before.
  device::VirtualTime* virtual_time = nullptr;
  // The run's own time, which must outlive the run. It goes as fast as the machine's, or as virtual_time where that is
  // set, give or take 900 ppm. Deadlines that handlers see are in this time, and so is mr_host::now_ns. Null: the
  // machine's monotonic time, or virtual_time.
  const device::Timeline* time = nullptr;
  // When all clocks begin, in the run's time, and not negative: media time 0 is then, and duration_ns counts from it.
  // No clock ticks before. Beats that are over when the run comes to look are skipped.
  int64_t begin_ns = kAtFirstLook;
  // Virtual time only: what a call costs; null: nothing.
  std::function<int64_t(const std::string& handler, uint64_t index)> cost_ns;
  // The same for a call that takes so many items; null: cost_ns says it, for the number of the firing.
  std::function<int64_t(const std::string& handler, uint32_t items)> items_cost_ns;
  // Serves the pages of handlers, and outlives the run. Null: a handler that has one cannot start.
  PageServer* pages = nullptr;
  // True: infos that handlers gave while the plan was made go into the log and not to a terminal.
  bool quiet = false;
  // True: every call goes into the trace, and more calls are kept. False: only timed calls do, which are all calls of 2
  // µs or more, and shorter calls on one tick in 64.
  bool trace_all = false;
  // True: captured regions run body by body on one tick in 64, so that each body's device time is measured, without the
  // host's time for submitting it. False: only the region's device time is measured.
  bool measure_bodies = false;
  // The synchronising debug mode of semantics.md 4.9: on devices every body and every copy is submitted by itself and
  // waited for, so that a fault belongs to the one that was under way.
  bool sync_devices = false;
  // Handles SIGSEGV: if a handler touches a simulated device's memory from the host, it is named before the process
  // ends (MR0702). The run's threads also get stacks for signal handlers, so that a stack overflow of theirs can be
  // told.
  bool explain_crashes = false;
  // Live changes name no file outside of its folder, and it outlives the run; null: any file.
  const graph::Confine* confine = nullptr;
  // Called after each launch of a captured region, by the thread that submits it, with the time at which the inputs
  // were found issued and the time at which the launch had returned. For benchmarks; null: never.
  std::function<void(uint64_t index, int64_t begin_ns, int64_t end_ns)> on_launch;
  // Called from the monitor about ten times a second; null: never.
  std::function<void(const Progress&)> on_progress;
  // Warnings and idle reports, a line each; null: dropped.
  std::function<void(const std::string&)> on_message;
  // Takes what handlers say and what the run tells of itself; must outlive the run. Null: warnings go to on_message.
  Log* log = nullptr;
  // Called once for a call that did not return although it was interrupted. The run waits for that call, and only this
  // function can put an end to it. The monitor calls it and watches nothing else meanwhile; null: on_message is told.
  std::function<void(const Error&)> on_hang;
  // Called for each failure of this run that is its first, takes the place of its error, or fails a clock or a stream
  // at an earlier tick; and for a call that is given up as hung, before on_hang. The thread that failed calls it, so
  // several may at once. It may call fail() of other runs. Not called for failures that Run::fail() and fail_stream()
  // were given; null: never.
  std::function<void(const FailureRecord&)> on_failure;
  // Called when a crossing has a parcel or its end for the other node, and when it has room for more parcels from
  // there. The thread that moved it calls it, so several may at once. It must not wait; null: never.
  std::function<void()> on_crossing;
  // Called from the monitor when that has changed which other nodes may wait for: calls that last longer than
  // idle_report_ns, and if nothing moves all that this run waits for. A line each; none: it goes on. Null: never.
  std::function<void(const std::vector<std::string>&)> on_waiting;
  // The same of the other nodes, which the idle report tells too. Called from the monitor while nothing moves. Null:
  // there are none.
  std::function<std::vector<std::string>()> waiting_elsewhere;
  // True: changes() has all changes so far, for a script. False: it forgets those that their handlers have taken in, so
  // that they do not pile up in a run that lasts.
  bool keep_changes = false;
  // A script of live changes, applied at their ticks (replays what changes() recorded).
  std::vector<AppliedChange> script;
};

} // namespace millrace::exec
