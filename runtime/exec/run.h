// One run of a plan: makes the memory and the threads, drives the run to its end, and reports what happened.
//
//   Run run(plan, graph, facts, devices, options);
//   run.start();
//   Result result = run.wait();
//
// start() and wait() are called by one thread; stop(), set(), interrupt(), fail(), fail_stream() and, once start() has
// returned, report() may come from any.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/timeline.h"
#include "exec/seats.h"
#include "observe/report.h"
#include "plan/prepare.h"
#include "plugin/registry.h"

namespace millrace {
class Log;
struct TraceOfRun;
} // namespace millrace

namespace millrace::exec {

struct Progress {
  uint64_t ticks = 0;
  double elapsed_s = 0;
  double clock_hz = 0; // 0: none
  int64_t ticks_expected = -1;
  uint64_t late = 0, skipped = 0;
  std::map<std::string, uint64_t> dropped; // by cause, on all edges
};

// A call of process or finish that has not returned.
struct CallUnderWay {
  std::string handler; // "boxes (draw.boxes)"
  std::string function;
  uint64_t tick = 0; // for a source that is read by a thread of its own: the number of its value
};
std::string words_of(const CallUnderWay& call); // "boxes (draw.boxes) in process of tick 17"

// A live change of parameters, applied together at one tick (semantics.md 2.7).
struct ParamChange {
  std::string handler, param, text;
};
struct AppliedChange {
  uint64_t tick;
  ParamChange change;
};
// For a clock that ended before a tick of it took the changes.
inline constexpr uint64_t kNoTickTook = UINT64_MAX;
struct TickOfClock {
  std::string clock;
  uint64_t tick;
};
// Changes for the clocks that have their home on one node.
struct HomeChanges {
  uint32_t node = 0; // index into Plan::nodes
  std::vector<std::string> clocks;
  std::vector<ParamChange> changes;
};
// The first tick that sees the changes of one call, on each clock that has such handlers.
using ChangesTaken = std::function<void(const std::vector<TickOfClock>&)>;

// A failure that ends a run (2.6): no handler is called on ticks of the clock that are later than the index. All ones:
// it belongs to no tick.
// FailureRecord::index of a failure that concerns no tick in particular.
inline constexpr uint64_t kWholeRun = UINT64_MAX;
struct FailureRecord {
  Error error;
  uint32_t clock = 0;     // index into Plan::clocks
  uint64_t index = 0;     // the tick's
  bool of_stream = false; // it ends the stream of the clock, and the run goes on (B11)
  std::string node{};     // of_stream: the node on which it happened; "": this one
  uint32_t epoch = 0;     // of_stream: the tick's. It is no failure of a later one
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

class RunState;

class Run {
 public:
  // `devices` by the plan's domain index; the first is the host. All references must outlive the run.
  Run(const plan::Plan& plan, const graph::Graph& graph, plan::Handlers& handlers, std::vector<device::Device*> devices,
      const RunOptions& options);
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  // Starts all handlers and threads. Throws Failure (MR0605) if a handler cannot start; nothing runs then.
  void start();
  // The time that was given stood still until now, and goes on: the trace and the run's duration count from here.
  // Called at most once, by the thread that calls start() and wait().
  void time_goes_on();
  // Waits until the end; the handlers are drained and stopped then.
  Result wait();
  // Admits no more ticks and drains (first signal); returns at once.
  void stop();
  // True once every clock whose home is this node has ended.
  bool have_clocks_ended() const;
  // All clocks have ended at their homes. A node that is away brings no end, so what waits for one ends now (7.9).
  void clocks_are_over();
  // Interrupts blocked handlers and drops what is in flight (second signal).
  void interrupt();
  // Makes the run fail as a handler's failure on that tick would: no clock admits another tick, and of those admitted
  // the later ones are void. Returns at once. Any thread; on_failure is not told.
  void fail(const Error& error, uint32_t clock, uint64_t index);
  // Ends the stream of a clock that fails alone, as a failure of its own handlers on that tick would. The same holds of
  // threads and of on_failure.
  void fail_stream(const FailureRecord& failure);
  bool finished() const;
  // True if a device was lost while work on it was under way that cannot be ended. Handlers, devices and memory of this
  // run must then never be destroyed, and the run does not destroy its own part of them. Waits up to half a second for
  // work that does end.
  bool is_stuck() const;
  // The calls of process and finish that are under way now. Any thread, once start() has returned.
  std::vector<CallUnderWay> calls_under_way() const;
  // Changes live parameters; all changes of one call take effect on the same tick of their clock. All are checked
  // before any is applied. Throws Failure: MR0301, MR031x. Their handlers may be on other nodes, but their clocks
  // begin their ticks here. `on_taken` is called once, when every clock has begun the tick on which they
  // take effect; never, if the run ends before. The thread that begins the tick calls it, so it must not wait. Null:
  // nobody asks.
  void set(const std::vector<ParamChange>& changes, const ChangesTaken& on_taken = nullptr);
  // Checks all of them as set() does, wherever their clocks begin their ticks, and says where that is.
  std::vector<HomeChanges> by_home(const std::vector<ParamChange>& changes) const;
  // The nodes on which handlers of these changes are, without this one.
  std::vector<std::string> nodes_of(const std::vector<ParamChange>& changes) const;
  // Streams that come and go (seats.h). A seat is taken before the handlers of the stream are made, which learn its
  // number from it. Any thread. Throws Failure as seats.h says.
  uint32_t take_seat(const std::string& set, const std::string& name);
  void give_up_seat(uint32_t clock);
  bool is_awaited(uint32_t clock) const;
  void still_absent(uint32_t clock, const Error& error);
  void add(uint32_t clock, NewStream stream);
  // `set` "": any. Returns at once; `done` is called when the stream is gone.
  void remove(const std::string& set, const std::string& name, StreamDone done);
  // No stream comes or goes any more: whoever waits for that is told so.
  void end_streams();
  // The changes that are kept, each with its tick (RunOptions::keep_changes). They can be given back as
  // RunOptions::script.
  std::vector<AppliedChange> changes() const;
  uint64_t ticks() const;
  // Reports what the run has done so far. It costs the caller some microseconds a handler, and the run nothing. In
  // virtual time only after wait(). The numbers of a report are read one after another, so they may be a few ticks
  // apart.
  Report report() const;
  // All calls that were recorded, with their times. Only after wait().
  TraceOfRun trace() const;
  // The same as JSON that Perfetto opens.
  void write_trace(std::ostream& out) const;

 private:
  friend class VirtualDriver;
  friend class Departure;
  friend class Arrival;
  struct Threads;
  void start_threads(); // throws Failure if the system has too few; those already started keep running
  std::unique_ptr<RunState> state_;
  std::unique_ptr<Threads> threads_;
};

// The functions that handlers of a run are made with (plan::prepare takes it).
const mr_host& host_table();

} // namespace millrace::exec
