// A run owns all that outlives a plan, and the plan that it carries out now (plan_run.h). build.h makes it, run.h
// drives it. The words that say which thread writes a field are those of state.h.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/fence.h"
#include "device/timeline.h"
#include "exec/cluster.h"
#include "exec/crossing.h"
#include "exec/param_change.h"
#include "exec/plan_run.h"
#include "exec/submissions.h"
#include "observe/trace.h"

namespace millrace::device {
class AccessGuard;
}
namespace millrace::plan {
struct Handlers;
}

namespace millrace::exec {

struct FailureRecord;
struct HandlerLife;
class Holds;
struct HandlerRun;
struct RunOptions;
struct TapPoints;

class RunState {
 public:
  RunState(const plan::Plan& plan, const graph::Graph& graph, plan::Handlers& handlers,
           std::vector<device::Device*> devices, const RunOptions& options);
  ~RunState();

  // A run has one plan so far: plans do not change yet while it goes on.
  PlanRun planned;

  // built
  plan::Handlers& live;
  const std::unique_ptr<const RunOptions> own_options; // a copy of those that were given
  const RunOptions& options;                           // this copy
  static constexpr uint32_t kFirstAccelerator = 1;     // a domain index: those of a plan begin with this node's host
  std::vector<device::Device*> devices;                // by domain index
  std::span<device::Device* const> accelerators() const { return std::span(devices).subspan(kFirstAccelerator); }
  device::MonotonicTime monotonic;
  const device::Timeline* time;
  bool is_virtual = false;
  bool several_threads = false;
  bool has_devices = false;

  // built
  std::vector<std::unique_ptr<ClockRun>> clocks;                      // by clock of the plan
  std::vector<std::vector<std::unique_ptr<HandlerLife>>> lives;       // by handler of the plan, and lane
  std::vector<device::Stream*> compute, copy_in, copy_out, copy_peer; // by domain index
  std::vector<std::vector<device::Stream*>> streams; // by domain index: these, and those that one step has to itself
  // By domain index. The thread that advances a segment of that device holds the mutex, except while it calls a body
  // that keeps the host busy. Null: only one thread submits there.
  std::vector<std::unique_ptr<std::mutex>> submitting;
  std::vector<std::unique_ptr<Submissions>> submissions; // by domain index; null for the host
  // Devices that another device may wait for, which goes on although they failed: those whose bodies enqueue, if there
  // are several devices.
  std::vector<const device::Device*> followed;
  std::vector<device::Enqueuing*> enqueuing; // by domain index; null: bodies run there by themselves
  std::byte* empty_record = nullptr; // pinned, all zero: the record of an empty value, for kernels; null: not needed

  const std::unique_ptr<TapPoints> tap_points; // any: outputs that somebody has tapped
  const std::unique_ptr<Holds> holds;          // any

  // built. Names what touched a device's memory from the host, before the process ends (4.10).
  std::unique_ptr<device::AccessGuard> access_guard;

  // any
  std::atomic<bool> stopping{false};
  std::atomic<bool> clocks_over{false}; // all clocks have ended at their homes, which may be other nodes
  std::atomic<bool> abort{false};
  std::atomic<bool> failing{false};    // the run
  std::atomic<bool> any_failed{false}; // the run, or a stream: a clock has a `fail_index`
  // Guards which stream is in which seat, and which instance a handler has: those of a stream that comes are new.
  mutable std::mutex seats_mutex, instances_mutex;
  bool seats_over = false; // under seats_mutex: no stream comes or goes any more
  // any, under failure_mutex
  mutable std::mutex failure_mutex;
  std::vector<FailureRecord> failures;

  // Written by the monitor, in virtual time by the only thread. No clock admits a tick while it is true (standstill.h).
  std::atomic<bool> holding{false};

  // Virtual time, the only thread: when the run had finished, was interrupted or stood still for good. Nothing drives
  // it from then on. INT64_MAX: it goes on.
  int64_t virtual_end_ns = INT64_MAX;

  // Live parameters (2.7). Under changes_mutex any thread puts changes into `requested`, and a head moves them to
  // `changes`.
  struct Request { // changes that were asked for together
    ChangesTaken on_taken;
    size_t clocks = 0; // that have to take them
    std::vector<TickOfClock> taken;
  };
  struct Change {
    uint32_t handler;
    std::string param, text;
    uint64_t at_index = UINT64_MAX; // a tick of the handler's clock; UINT64_MAX: the next one that is admitted
    std::shared_ptr<Request> request = nullptr; // null: nobody asks when it is taken, or its tick has begun
    size_t number = 0;                          // in `changes`: how many were admitted before it
    std::string by{};                           // as in ParamChange
  };
  struct Value {
    std::string text;
    uint64_t tick = 0;
    std::string by;
    size_t number = 0; // the change's
  };
  struct Values {
    Value now;                 // its tick has come
    std::optional<Value> held; // the last one that the handler took
  };
  // True for a value of `batch:`, as `millrace set` names it; for `batch` alone too, which is then refused as such.
  static bool is_of_batch(std::string_view param) { return param == "batch" || param.starts_with("batch."); }
  // True if the change concerns the handler's group.
  static bool is_of_group(const Change& change) { return is_of_batch(change.param); }
  // Changes for handlers on other nodes, as this node gave or heard them: the last one of each parameter, by number.
  struct ClockChanges {
    uint32_t epoch = 0; // the last change's, as the number
    uint64_t number = 0;
    std::vector<LiveChange> latest;
  };
  std::mutex changes_mutex;
  std::map<uint32_t, ClockChanges> live_changes; // by clock
  std::vector<Change> requested;                 // their tick has not come
  std::vector<Change> changes;                   // sorted by number; changes that every handler has applied are removed
  std::map<std::pair<uint32_t, std::string>, Values> values; // by handler and parameter
  std::set<uint32_t> given_away;            // clocks whose streams came later, with values of their own
  std::atomic<size_t> changes_admitted{0};  // head, under changes_mutex: how many there have been
  std::atomic<bool> changes_waiting{false}; // any, under changes_mutex
  std::atomic<bool> changes_untold{false};  // head, under changes_mutex: one in `changes` still has its request

  // built, and start. The trace. Each ring has one writer, except those of devices: any thread that waits may run a
  // device's bodies, so those rings are written under `device_traces`.
  std::vector<std::unique_ptr<TraceRing>> traces;
  std::mutex device_traces;
  int64_t trace_begin_ticks = 0, trace_begin_ns = 0;
  int64_t trace_begin_error_ns = 0; // by so much that time may be wrong
  void begin_trace();               // its time 0 is now
  int64_t trace_now() const { return is_virtual ? now_ns() : trace_ticks(); }
  TraceRing& add_trace(const std::string& name);
  TraceRing& trace_of(const device::Stream& stream, const plan::Step& step);
  void trace_on_device(StepRun& step, const mr_tick_info& info, TraceKind kind, int64_t begin, int64_t end);

  // Wakes the workers that may wait for what moved in this pace: by the claimer of a segment, or by another thread.
  void notify(const SegmentRun& moved) {
    if (several_threads) wakeup.ring(*moved.pace->cluster, &moved);
  }
  void notify(const PaceRun& pace) {
    if (several_threads) wakeup.ring(*pace.cluster, nullptr);
  }
  // Makes the head of the pace look at once, although it found nothing to do before.
  void wake_head(PaceRun& pace) {
    pace.idle_until_ns.store(INT64_MIN, std::memory_order_release);
    notify(pace);
  }
  void notify_all() { wakeup.bells->ring_all(); }
  void stop() {
    stopping.store(true);
    notify_all(); // heads look before their beats
  }
  // Tells whoever carries ticks to other nodes that there is something to do. Called without the lock of a channel.
  void notify_carrier();
  int64_t now_ns() const { return time->now_ns(); }
  // The common start of all clocks (1.3): the one that was given, else the time of the first call by any of them.
  int64_t begin_ns();
  // INT64_MIN: no clock has begun.
  int64_t begun_ns() const { return begin_ns_.load(std::memory_order_relaxed); }
  // A failure of a stream's handler ends the stream, where its set says so; else the run.
  // `fault`: the code that the handler gave to the failure; 0: none.
  void fail(HandlerRun& step, uint64_t ordinal, const std::string& sentence, int fault = 0);
  void fail(Error error, uint32_t clock, uint64_t index);
  // Ends what the pace's clock is there for, on a tick of the pace: its stream, where its set says so; else the run.
  void fail_clock(Error error, const PaceRun& pace, uint64_t index);
  // fail() without telling on_failure. True if the failure is news: it is now the run's error, or its clock fails at an
  // earlier tick than before.
  bool record_run_failure(const FailureRecord& failure);
  bool record_stream_failure(const FailureRecord& failure); // the same of fail_stream()
  void watch_devices();                                     // a poisoned one ends the run
  void watch_device(uint32_t domain);
  // Waits until every stream is done, so that no device work touches memory that is gone. A device that does not finish
  // is given up.
  void await_devices();
  // Releases every block that is still held. Called after the last tick, when nothing reads any more and no worker
  // runs.
  void release_all_blocks();
  // With RunOptions::sync_devices: waits until the submission is done or the device has failed.
  void await_submitted(const StepRun& step, uint64_t ordinal, const device::Fence& fence);
  // True if the handler's device was given up with work still under way: the handler is not called any more.
  static bool is_given_up(const StepRun& step);
  // True if work on a device may never end. Waits up to half a second for work that does.
  bool has_stuck_devices() const;
  Wakeup wakeup; // any thread rings

  bool finished() const { return planned.segments_left.load(std::memory_order_acquire) == 0; }

 private:
  std::atomic<int64_t> begin_ns_; // built, or head: of the first clock that begins
};

// True if no more ticks come because the run, or the stream of the clock, has failed.
inline bool is_failing(const RunState& run, const ClockRun& clock) {
  return run.failing.load(std::memory_order_relaxed) || clock.halted.load(std::memory_order_relaxed);
}

// True for ticks after the one on which the run or their stream failed: no handler is called on them (2.6).
inline bool later_ticks_void(const RunState& run, const mr_tick_info& info) {
  if (!run.any_failed.load(std::memory_order_relaxed)) return false;
  const ClockRun& clock = *run.clocks[info.clock];
  const uint32_t epoch = clock.fail_epoch.load(); // first: it is stored after its index
  return info.epoch <= epoch && info.index > clock.fail_index.load();
}

} // namespace millrace::exec
