// A handler as it runs: HandlerRun, which its segment calls; SourceRun, which the head of its clock asks. One whose
// body runs on a device is a BodyRun (body.h).
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "exec/step.h"
#include "plugin/registry.h"

namespace millrace::plan {
struct HandlerPlan;
}

namespace millrace::exec {

struct BodyCall;
struct Deferred;
struct SinkLatency;

// mr_tick.context points to one of these: which firing a call of the host table is about.
struct TickContext {
  HandlerRun* step = nullptr;
  uint64_t ordinal = 0;
  BodyCall* body = nullptr;       // the body runs on a device
  Deferred* deferred = nullptr;   // the firing is published later
  bool finishes = false;          // finish() on the host, of a body that enqueued
  bool has_failed = false;        // an item of a call of several: it, or the call, has failed
  std::string* failure = nullptr; // an item of such a call: the sentence of its own failure
};

// The arguments of a handler's call.
struct CallArguments {
  mr_tick tick{};
  TickContext context;
  LineVector<mr_input> raw_inputs;
  LineVector<mr_output> raw_outputs;
  // Makes room for this many inputs and outputs, and points `tick` at them.
  void lay_out(size_t input_count, size_t output_count);
};

// A firing that publishes later. The handler holds its `tick`.
struct Deferred {
  enum class State : uint8_t { unused, owed, voided };
  mr_tick tick{};
  mr_tick_info info{};
  TickContext context;
  std::vector<mr_output> outputs;
  std::vector<mr_input> inputs; // for outputs that repeat one; the handler sees them no longer
  State state = State::unused;  // voided: settled without the handler, which may still hold the tick
};

// The firings that a handler with max_pending owes (pending.cpp).
struct Owing {
  std::mutex pending_mutex; // guards the containers
  std::vector<Deferred> deferred;
  std::deque<Deferred*> owed, voided;
  bool asynchronous = false;   // publishes outside its calls
  bool counts_firings = false; // asynchronous, and all runs must agree: `counted` stands for what it owes
  // Its newest firings since it was drained, at most max_pending of them, published or not.
  std::vector<uint64_t> counted;
  bool deferred_in_call = false;   // the current call has deferred its firing
  std::atomic<pthread_t> caller{}; // the thread that is in a call which may publish
  std::atomic<uint64_t> oldest_owed{UINT64_MAX};
};

// A port of the fast way, which holds what a tick touches in a flat form. The fast way is for plain handlers whose
// inputs are all required and whose calls are short.
struct FlatPort {
  SlotCell* cells;
  uint64_t mask;
  const StepStamps* producer = nullptr; // input that another segment makes; else null
  int32_t forwards = -1;                // output: the input whose buffer it may share; else -1
};

// One lane of a handler, across plans: its instance, its state, its restarts and its counters. A new plan makes new
// steps and keeps this.
struct alignas(64) HandlerLife {
  // built
  std::unique_ptr<plugin::Instance> own; // every lane but the first; that one's instance is plan::Handlers'
  plugin::Instance* instance = nullptr;
  std::span<std::byte> state; // as devices and copies take its address; empty: it has none (handler_state.h)

  // claimer
  SingleWriter<uint64_t> flat_calls, other_calls; // by the fast way, and all others
  uint64_t calls() const { return flat_calls + other_calls; }
  LineVector<InputTotals> inputs; // by InputRun

  // the calling thread
  int64_t restart_at_ns = 0;
  uint32_t restarts = 0;
  bool down = false, drained = false;
  bool is_started = false;                        // start or head
  std::atomic<bool> clears_state{false};          // the state is not zero as it should be by the next call
  std::map<std::string, int64_t> counts_before{}; // under instances_mutex: of instances that are gone
  std::atomic<size_t> changes_seen{0};            // live parameters: changes with a lower number were looked at
  std::atomic<uint64_t> errors{0};                // any
  // any, under failure_mutex. The sentence of the first failure of any lane that the policy passed over; only the first
  // lane keeps it.
  std::string first_error;
};

struct HandlerRun : StepRun, CallArguments, Owing {
  static constexpr uint64_t kNoCall = UINT64_MAX;

  StepResult advance(uint64_t ordinal) override;
  HandlerRun* called() override { return this; }

  // built
  const plan::HandlerPlan* handler = nullptr;
  HandlerLife* life = nullptr;
  plugin::Instance* instance = nullptr; // the life's
  void* self = nullptr;
  mr_status (*process)(void*, mr_tick*) = nullptr;
  mr_status (*finish)(void*, mr_tick*) = nullptr; // null: none
  std::unique_ptr<SinkLatency> sink_latency;      // null: it is no sink
  bool has_stream = false;                        // tick.stream is its stream's, and the values that it makes say so

  // claimer
  LineVector<FlatPort> flat_inputs, flat_outputs;
  bool calling = false; // a call that takes virtual time: begun, not settled yet
  mr_status call_status = MR_OK;
  bool short_calls = false; // so short that two clock reads would show: timed on timed ticks alone
  bool tiny_calls = false;  // so short that even one would show

  // the calling thread. For a step that is called outside a worker's segment, by a reader's thread or on a device's own
  // time: the tick whose call is under way. A reader counts values instead of ticks.
  std::atomic<uint64_t> tick_outside{kNoCall};
  std::atomic<bool> in_finish{false}; // the call is of finish(); the budget is for process() and finish() alike

  // name_now() of it, for a thread that is in a call of it and can take no lock. Set while no stream is in its seat. It
  // is last, so that what a tick touches stays on as few cache lines as it can.
  std::string name;
};

// True of a step whose firings may publish later.
inline bool may_owe(StepRun& step) { return step.called() && !step.called()->deferred.empty(); }

struct SourceRun : HandlerRun {
  StepResult advance(uint64_t) override { return StepResult::settled; } // the head did it when it admitted the tick

  // the thread that asks it
  bool said_end = false;                 // perhaps together with a value; it is not asked again
  SingleWriter<uint64_t> times_replaced; // media times that did not rise
};

} // namespace millrace::exec
