// One run of a plan: makes the memory and the threads, drives the run to its end, and reports what happened.
//
//   Run run(plan, graph, handlers, devices, options);
//   run.start();
//   Result result = run.wait();
//
// start() and wait() are called by one thread; stop(), set(), interrupt(), fail(), fail_stream() and, once start() has
// returned, report() may come from any.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "exec/new_stream.h"
#include "exec/param_change.h"

struct mr_host;

namespace millrace {
struct Error;
struct Report;
struct Result;
struct TraceOfRun;
} // namespace millrace
namespace millrace::device {
class Device;
}
namespace millrace::graph {
struct Graph;
}
namespace millrace::plan {
struct Handlers;
struct Plan;
} // namespace millrace::plan

namespace millrace::exec {

class Counters;
class RunState;
class Tap;
struct FailureRecord;
struct RunOptions;
struct TapOptions;

// A call of process or finish that has not returned.
struct CallUnderWay {
  std::string handler; // "boxes (draw.boxes)"
  std::string function;
  uint64_t tick = 0; // for a source that is read by a thread of its own: the number of its value
};
std::string words_of(const CallUnderWay& call); // "boxes (draw.boxes) in process of tick 17"

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
  // The handlers that this node runs now, with the live parameters that have changed. Any thread, once start() has
  // returned.
  std::vector<HandlerValues> values() const;
  uint64_t ticks() const;
  // Reports what the run has done so far. It costs the caller some microseconds a handler, and the run nothing. In
  // virtual time only after wait(). The numbers of a report are read one after another, so they may be a few ticks
  // apart.
  Report report() const;
  // The same as numbers without names, for a client that asks often (counters.h). The run outlives them. Any thread,
  // once start() has returned.
  std::unique_ptr<Counters> counters() const;
  // Shows an output now and then (tap.h): "handler.port", or "handler" if it has one output. Any thread, once start()
  // has returned. Throws Failure: MR0301, MR0302, MR0308, or MR0319 if the output cannot be shown.
  std::shared_ptr<Tap> tap(const std::string& output, const TapOptions& options);
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
