// A step of the plan as it runs: StepRun, one lane of it, and what that is made of.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "exec/state.h"
#include "plugin/registry.h"

namespace millrace::exec {

struct BodyCall;
struct CopyCall;
struct Deferred;
struct Reach;
struct RegionRun;

struct InputRun {
  OutputRun* output = nullptr;
  const StepShared* producer = nullptr; // null where it is earlier in the same segment
  uint32_t delay = 0;
  uint32_t keeps = 0;
  bool required = true;
  bool initial_empty = false;
  bool repeat_last = false;
  bool calls = false;
  bool may_be_late = false; // slots may carry fences or unknown presence
  uint32_t edge = plan::kNone;
  // Of a queue: where its value of a tick is before any copy. One on a tick on which the handler is not called is lost,
  // and counted here: by `every`, or because another input that it requires is empty (8.6).
  OutputRun* queue = nullptr;
  SingleWriter<uint64_t> lost_by_every, lost_by_input;
  Slot last;              // repeat_last: held
  std::vector<Slot> kept; // keeps: a ring of held slots
  uint64_t kept_next = 0;
  SingleWriter<uint64_t> delivered, empty[static_cast<size_t>(Cause::count)];
  SingleWriter<uint64_t> absent_at_fence; // of `delivered`: not there when the body ran
};

// mr_tick.context points to one of these: which firing a call of the host table is about.
struct TickContext {
  StepRun* step = nullptr;
  uint64_t ordinal = 0;
  BodyCall* body = nullptr;     // the body runs on a device
  Deferred* deferred = nullptr; // the firing is published later
  bool finishes = false;        // finish() on the host, of a body that enqueued
};

// `made_room`: it waits, but took what others may have waited to give.
enum class StepResult { settled, waiting, made_room, calling };

// Memory of whole cache lines: what one thread writes on every tick shares none with what another does.
template <class T>
struct LineAllocator {
  using value_type = T;
  static constexpr size_t kLine = 64;
  static constexpr size_t bytes(size_t count) { return (count * sizeof(T) + kLine - 1) / kLine * kLine; }
  LineAllocator() = default;
  template <class U>
  LineAllocator(const LineAllocator<U>&) {}
  T* allocate(size_t count) { return static_cast<T*>(::operator new(bytes(count), std::align_val_t(kLine))); }
  void deallocate(T* memory, size_t count) { ::operator delete(memory, bytes(count), std::align_val_t(kLine)); }
  friend bool operator==(LineAllocator, LineAllocator) { return true; }
};
template <class T>
using LineVector = std::vector<T, LineAllocator<T>>;

struct CopyReader {
  const StepRun* step;
  uint32_t member; // which input of the transfer it reads
};

// A body that enqueues and the step that calls its finish() on a worker (finish_step.cpp). The handler is one object:
// whoever calls it has `entered` it and keeps the other out, who comes again. `called` and `called_below` are told by
// the body's stamps; the finish says with its `passed` what it is done with.
struct Finishing {
  StepRun* finisher = nullptr; // of a body; null: it has none
  StepRun* finishes = nullptr; // of a finish: the body
  std::vector<uint8_t> called; // [ordinal & mask] whether the body ran, called or launched
  uint64_t called_below = 0;   // ordinals below it were submitted, or did not fire
  std::atomic<bool> entered{false};
  std::atomic<bool> restart_asked{false}; // it failed; nothing may be under way when the handler restarts
  std::atomic<bool> in_finish{false};     // its call is of finish(): both are the body's to watch
};

// Of a step that is called in no worker's segment, but in a reader's thread or on a device's own time: the tick whose
// call is under way. A reader counts values.
struct CalledApart {
  static constexpr uint64_t kNotApart = UINT64_MAX;
  std::atomic<uint64_t> apart{kNotApart};
};

// What a handler with max_pending owes (pending.cpp).
struct Owing {
  std::mutex pending_mutex; // guards the containers
  std::vector<Deferred> deferred;
  std::deque<Deferred*> owed, voided;
  bool asynchronous = false;   // publishes outside its calls
  bool counts_firings = false; // and all runs must agree: `counted` stands for what it owes
  // Its newest firings since it was drained, at most max_pending of them, published or not.
  std::vector<uint64_t> counted;
  bool deferred_in_call = false;   // the firing that it is called for
  std::atomic<pthread_t> caller{}; // who is in a call of it that may publish
  std::atomic<uint64_t> oldest_owed{UINT64_MAX};
};

// How far a step is whose progress other paces ask for.
struct Passing {
  // gate, post, resolve, finish: ordinals below it are dealt with, and the media time of the last one
  std::atomic<uint64_t> passed{0};
  std::atomic<int64_t> passed_media_ns{INT64_MIN};
  // resolve of `align` under `realtime`: when it decides without what it waits for; INT64_MAX: it waits for no time.
  // Its own word, because the head stores the pace's `due_ns` and neither may undo what the other has said.
  std::atomic<int64_t> decides_at_ns{INT64_MAX};
};

// One lane of one step.
struct alignas(64) StepRun : Finishing, CalledApart, Passing, Owing {
  RunState* run = nullptr;
  const plan::Step* plan = nullptr;
  const plan::HandlerPlan* handler = nullptr;
  uint32_t index = 0;
  PaceRun* pace = nullptr;
  SegmentRun* segment = nullptr;
  StepShared* shared = nullptr;
  plugin::Instance* instance = nullptr;
  void* self = nullptr;
  mr_status (*process)(void*, mr_tick*) = nullptr;
  mr_status (*finish)(void*, mr_tick*) = nullptr; // null: none
  mr_status (*process_cuda)(void*, mr_tick*) = nullptr;
  mr_tick tick{};
  TickContext context;
  LineVector<mr_input> raw_inputs;
  LineVector<mr_output> raw_outputs;
  LineVector<InputRun> inputs;
  std::vector<OutputRun*> outputs;
  std::vector<const StepShared*> after;        // null: earlier in the same segment
  std::vector<const StepRun*> after_on_device; // copies and bodies that read what this step writes over
  uint32_t every = 1;
  bool plain = false;         // no delays, fences, waits for readers, or holders
  bool fed_by_others = false; // an input comes from another segment
  bool reads_queue = false;

  // The fast way of a plain step whose inputs are all required and whose calls are short: what a tick touches, flat.
  struct FlatPort {
    SlotPlace* places;
    uint64_t mask;
    const StepShared* producer = nullptr; // of an input that another segment makes
    int32_t forwards = -1;                // of an output: the input whose buffer it may share
  };
  bool flat = false;
  LineVector<FlatPort> flat_inputs, flat_outputs;
  SingleWriter<uint64_t> flat_calls;

  // A call that takes virtual time: begun, not settled yet.
  bool calling = false;
  mr_status call_status = MR_OK;

  // devices
  device::Device* device = nullptr;
  device::Enqueuing* enqueuing = nullptr; // its results are known when it is submitted; null: at its fence
  device::Stream* stream = nullptr;
  void* scratch = nullptr;           // of the GPU body
  std::vector<BodyCall> bodies;      // by ordinal mod their number
  std::vector<CopyCall> copy_calls;  // transfer: by ordinal & mask
  std::vector<device::Fence> fences; // [ordinal & mask]
  device::Fence last_fence;          // behind the last body
  RegionRun* region = nullptr;
  std::vector<CopyReader> readers; // transfer
  SingleWriter<uint64_t> copies, bytes_copied;

  // sources, by who asks them
  bool said_end = false;                 // perhaps together with a value: it is not asked again
  SingleWriter<uint64_t> times_replaced; // media times that did not rise

  // restart
  int64_t restart_at_ns = 0;
  uint32_t restarts = 0;
  bool down = false, drained = false;

  // live parameters: how many of RunState::changes were looked at; a reader's thread writes it too
  std::atomic<size_t> changes_seen{0};

  // accounting
  TraceRing* trace = nullptr; // where its calls are no worker's: a reader's thread or a device's stream
  SingleWriter<uint64_t> calls;
  std::atomic<uint64_t> errors{0};
  Histogram times;
  int64_t empty_span_ns = 0;    // measure_bodies: what a span takes on its stream that has nothing in it
  std::unique_ptr<Reach> reach; // of a step after which nothing comes
  bool short_calls = false;     // two clock reads would show: timed on timed ticks alone
  bool tiny_calls = false;      // one would show
};

} // namespace millrace::exec
