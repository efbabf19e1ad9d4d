// One run of a plan: makes its memory and threads, drives it to its end, and says what happened.
//
//   Run run(plan, graph, facts, devices, options);
//   run.start();
//   Result result = run.wait();
//
// start() and wait() are called by one thread; stop(), set(), interrupt() and, once start() has returned, report() may
// come from any.
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
#include "observe/report.h"
#include "plan/prepare.h"
#include "plugin/registry.h"

namespace millrace {
class Log;
}

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
  uint64_t tick = 0; // of a source that is read by a thread of its own: the value
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

struct RunOptions {
  uint64_t ticks_max = 0;             // 0: until the sources end
  int64_t duration_ns = 0;            // 0: no limit
  int64_t spin_ns = 50'000;           // a worker with nothing to do spins this long before it sleeps
  int64_t budget_ns = 10'000'000'000; // a call that takes longer is named; per handler: budget:
  int64_t grace_ns = 5'000'000'000;   // then it is interrupted; after as much again `on_hang` is told
  int64_t idle_report_ns = 2'000'000'000;
  int64_t standstill_ns = 10'000'000'000; // stop() was called and nothing moves: what is called is interrupted
  // A device that finishes nothing for so long, while nothing else moves or at the end, is lost.
  int64_t device_patience_ns = 10'000'000'000;
  // Set: one thread, simulated workers, no wall time (semantics.md 1.2 virtual, 4.10).
  device::VirtualTime* virtual_time = nullptr;
  // Virtual time only: what a call costs; null: nothing.
  std::function<int64_t(const std::string& handler, uint64_t index)> cost_ns;
  // Every call goes into the trace, and more of them are kept; else those that are timed: all calls of 2 µs and more,
  // and of shorter ones one tick in 64.
  bool trace_all = false;
  // Captured regions run body by body on one tick in 64, so that each body's device time is measured, without the
  // host's to submit it; else only the region's is.
  bool measure_bodies = false;
  // The synchronising debug mode of semantics.md 4.9: on devices every body and every copy is submitted by itself and
  // waited for, so that a fault is of the one that was under way.
  bool sync_devices = false;
  // Whoever touches a simulated device's memory from the host is named before that ends the process (MR0702), which
  // takes SIGSEGV; and the run's threads have stacks for signal handlers, so that an overflow of theirs can be told.
  bool explain_crashes = false;
  // Told of each launch of a captured region, by the thread that submits it: when the inputs were found issued, and
  // when the launch had returned. For benchmarks; null: not told.
  std::function<void(uint64_t index, int64_t begin_ns, int64_t end_ns)> on_launch;
  // Called from the monitor about ten times a second; null: never.
  std::function<void(const Progress&)> on_progress;
  // Warnings and idle reports, a line each; null: dropped.
  std::function<void(const std::string&)> on_message;
  // Takes what handlers say and what the run tells of itself; must outlive the run. Null: warnings go to on_message.
  Log* log = nullptr;
  // A call did not return although it was interrupted, and only this function can end it: the run waits for it.
  // Once a call, from the monitor, which does not look at anything else meanwhile; null: on_message is told.
  std::function<void(const Error&)> on_hang;
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

  // Starts all handlers and threads. Throws Failure (MR0605) where a handler cannot start; nothing runs then.
  void start();
  // Until the end; drains and stops the handlers.
  Result wait();
  // Admits no more ticks and drains (first signal); returns at once.
  void stop();
  // Interrupts blocked handlers and drops what is in flight (second signal).
  void interrupt();
  bool finished() const;
  // True if a device was lost while work on it was under way that cannot be ended. Handlers, devices and memory of this
  // run must then never be destroyed, and the run does not destroy its own part of them. Waits up to half a second for
  // work that does end.
  bool is_stuck() const;
  // Which calls of process and finish are under way now. Any thread, once start() has returned.
  std::vector<CallUnderWay> calls_under_way() const;
  // Live parameters; all of one call take effect on the same tick. Throws Failure (MR031x).
  void set(const std::vector<ParamChange>& changes);
  // What was changed and at which tick, to be given back as a script.
  std::vector<AppliedChange> changes() const;
  uint64_t ticks() const;
  // What it has done so far. It costs the caller some microseconds a handler, and the run nothing; in virtual time
  // after wait() only. Numbers of one report are read one after another, so they may be a few ticks apart.
  Report report() const;
  // What ran when, as JSON that Perfetto opens. After wait().
  void write_trace(std::ostream& out) const;

 private:
  struct Threads;
  void start_threads(); // Failure where the system has too few: those that it gave are there
  std::unique_ptr<RunState> state_;
  std::unique_ptr<Threads> threads_;
};

// The functions that handlers of a run are made with (plan::prepare takes it).
const mr_host& host_table();

} // namespace millrace::exec
