// What a run is made of while it lives: paces, segments, steps and channels, as the plan laid them out. Private to
// runtime/exec; plan.h explains the words.
//
// Who touches what. A slot is written by the thread that runs its step, before the step's stamp for that ordinal is
// stored with release; readers in other segments load the stamp with acquire first. A slot is written again only for
// an ordinal that the pace's head admits when every segment is done with the old one. A channel has a lock of its own.
//
// How far something is, each word written by one side and only ever growing (ordinals unless said):
//
//   word                     written by          says
//   PaceRun::admitted        the pace's head     below it: ticks that exist, their infos and sources' slots written
//   StepShared::stamp        the step's thread   == ordinal + 1: this ordinal's slots are settled (on a device: issued)
//   StepRun::passed          gate, post, resolve below it: looked at, and put into or taken from the channel
//                            (a finish: called, or not to be)
//   StepRun::passed_media_ns the same            media time of the last of those
//   StepRun::decides_at_ns   an align's resolve  when it will not wait any more
//   StepRun::oldest_owed     who publishes       the first firing that is still pending; all ones: none
//   SegmentRun::progress     the segment         below it: all steps of the lane's ordinals are through
//   SegmentRun::fences_done  who asks, locked    below it: done on the device too
//   completed(pace)          computed            the least of progress, oldest_owed, fences_done: the window's tail
//   PaceRun::retired         the pace's head     below it: slots that left the window have let go of their blocks
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "device/bell.h"
#include "device/device.h"
#include "device/sim/access_guard.h"
#include "exec/histogram.h"
#include "exec/run.h"
#include "exec/tick_watch.h"
#include "memory/ring.h"
#include "observe/trace.h"
#include "plan/plan.h"
#include "plan/predict.h"

namespace millrace::exec {

class RunState;
struct PaceRun;
struct SegmentRun;
struct StepRun;
class Reader;
struct RegionRun;

// The device's events around a region are two more calls and take the device some microseconds: they are in one tick of
// 256, and of a long run in one of 4096, once it has begun.
inline constexpr uint64_t kManySpans = 4096, kSpanMask = 255, kLateSpanMask = 4095;
inline bool has_span(uint64_t index) { return (index & (index < kManySpans ? kSpanMask : kLateSpanMask)) == 0; }
// So many tiny calls in a row share one look at the trace's clock.
inline constexpr uint32_t kTinyCallsMax = 16;

// Why an edge had no value, counted on the edge (semantics.md 2.1, 2.8).
enum class Cause : uint8_t {
  silent,
  every,
  error,
  busy,
  queue_full,
  superseded,
  end,
  not_yet,
  rate,
  unaligned,
  failed,
  restart,
  input,
  count
};
inline constexpr const char* kCauseNames[] = {"silent",     "every",   "error",   "busy", "queue_full",
                                              "superseded", "end",     "not_yet", "rate", "unaligned",
                                              "failed",     "restart", "input"};
static_assert(std::size(kCauseNames) == static_cast<size_t>(Cause::count));

// One output's value for one ordinal. A null value is an empty slot.
struct Slot {
  const mr_value* value = nullptr;
  const uint8_t* data = nullptr;
  memory::Block* block = nullptr; // null for `initial: empty`
  device::Fence fence;            // issued; done where the word is null
  bool unknown = false;           // a device decides: block->present says so behind the fence
  Cause cause = Cause::silent;    // where it is empty
};

// A slot and the stamp of its step on one cache line: a reader on another thread gets both with one transfer.
struct alignas(64) SlotPlace {
  Slot slot;
  std::atomic<uint64_t> stamp{0};
};

struct OutputRun {
  const plan::Output* plan = nullptr;
  std::unique_ptr<SlotPlace[]> places;
  uint64_t mask = 0;
  memory::Ring* ring = nullptr;
  std::atomic<uint32_t> borrowed{0}; // blocks that its handler holds, of those that its format says
  bool holds = false; // its slots count as holders of blocks: released when their ordinal has left the window
  uint32_t retain = 0;
  Slot& at(uint64_t ordinal) { return places[ordinal & mask].slot; }
};

// What all lanes of a step share: for each ordinal in flight, the ordinal + 1 once it is settled. Kept beside the slots
// of the step's first output; a step without outputs has places of its own.
struct StepShared {
  SlotPlace* places = nullptr;
  std::unique_ptr<SlotPlace[]> own_places;
  uint64_t mask = 0;
  bool wanted = false; // somebody waits for these stamps
  std::atomic<uint64_t>& stamp(uint64_t ordinal) const { return places[ordinal & mask].stamp; }
  bool settled(uint64_t ordinal) const { return stamp(ordinal).load(std::memory_order_acquire) == ordinal + 1; }
};

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
};

struct BodyCall;
struct Deferred;

// From the beginning of measured ticks until a sink's call was over.
struct Reach {
  Histogram times;
  SingleWriter<int64_t> first_ns; // of the first tick, which pays for what is done once; 0: not yet
};

// mr_tick.context points to one of these: which firing a call of the host table is about.
struct TickContext {
  StepRun* step = nullptr;
  uint64_t ordinal = 0;
  BodyCall* body = nullptr;     // the body runs on a device
  Deferred* deferred = nullptr; // the firing is published later
  bool finishes = false;        // finish() on the host, of a body that enqueued
};

// So many firings that were settled without their handler are remembered, so that publishing one of them is refused: a
// handler that forgets them all must not be remembered for ever.
inline constexpr size_t kVoidedMax = 64;

// A firing that publishes later. `tick` is what the handler holds.
struct Deferred {
  enum class State : uint8_t { unused, owed, voided };
  mr_tick tick{};
  mr_tick_info info{};
  TickContext context;
  std::vector<mr_output> outputs;
  std::vector<mr_input> inputs; // where they are repeated; the handler sees none any more
  State state = State::unused;  // voided: settled without the handler, which may still hold the tick
};

// A call whose arguments outlive the submitting function: it runs on a device's own time (semantics.md 4.1).
struct BodyCall {
  mr_tick tick{};
  mr_tick_info info{};
  TickContext context;
  std::vector<mr_input> inputs;
  std::vector<memory::Block*> input_blocks; // whose presence is asked when the body runs; null: known
  std::vector<mr_output> outputs;
  std::vector<memory::Block*> output_blocks;
  std::vector<mr_output> given;   // `outputs` as a body that enqueues was given them
  std::vector<mr_input> frozen;   // what the body is given each time it runs; `inputs` is this without what is absent
  std::vector<mr_input> recorded; // region: what the recording froze
  std::vector<uint8_t> absent;    // per input: known to be empty when it was submitted
  std::vector<device::Access> accesses; // what it may touch on this tick, where the device looks at that
  bool silent = false;                  // region: replayed with the others, and does not fire on this tick
  bool failed = false;                  // a body that enqueues said so
  bool to_finish = false;               // it went well and did not end the stream: its finish() is called
  int64_t cost_ns = 0;                  // virtual time: what it was said to take
  int64_t begun = 0, begun_ns = 0;      // transfer: trace time, and the run's
  // transfer: blocks that were copied, and what to; presence goes with the bytes
  std::vector<std::pair<memory::Block*, memory::Block*>> carried;
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

// Device handlers that are recorded once per ring slot and replayed as one (4.5). Their bodies are kept per slot, with
// the addresses that the recording froze; the tick, presence and what is absent are read from there when they run.
struct RegionRun {
  const plan::Region* plan = nullptr;
  std::vector<StepRun*> steps;                                // in order
  std::vector<std::unique_ptr<device::Recording>> recordings; // by ordinal mod slots

  // Where bodies enqueue, a tick of the whole region is one launch: the host looks only at what enters it and at what
  // somebody outside reads (captured.cpp).
  struct Entry {
    InputRun* input;
    mr_value recorded;  // what the bodies were told of it
    mr_header header{}; // of the tick that is being launched
  };
  struct Exit {
    OutputRun* output;
    int32_t times_of = -1;          // the entry whose times its values have; -1: the tick's
    std::vector<mr_value> recorded; // by slot: what the bodies said of it
  };
  std::vector<Entry> entries;
  std::vector<Exit> exits;
  std::vector<StepRun*> riders;             // small copies down that are in the recording
  std::vector<uint64_t> launched;           // by slot: 1 + the last ordinal that was one launch
  std::vector<StepRun*> stamped;            // whose ordinals somebody outside waits for
  size_t changes_seen = 0;                  // live changes that all its steps have looked at
  SingleWriter<uint64_t> replays, streamed; // ticks by launch of the graph, and body by body
  Histogram times;                          // device time of a launch
};

// Of a tick: its latency is not measured.
inline constexpr int64_t kNotMeasured = INT64_MIN;

struct Entry {
  mr_tick_info info{};
  int64_t from_ns = kNotMeasured; // as PaceRun::Latency
  std::vector<Slot> slots;
  bool has_value() const {
    return std::any_of(slots.begin(), slots.end(), [](const Slot& slot) { return slot.value != nullptr; });
  }
};

// How often something was dropped, by cause.
using Drops = std::array<uint64_t, static_cast<size_t>(Cause::count)>;

// A bounded queue between two paces. All under its lock.
struct ChannelRun {
  const plan::Channel* plan = nullptr;
  std::mutex mutex;
  std::vector<Entry> ring; // capacity
  size_t first = 0, count = 0;
  size_t empties = 0;  // gate: of `count`, ticks that have no value and are let in all the same
  bool closed = false; // nothing more comes
  uint64_t pushed = 0;
  Entry current; // latest, align: what the reader holds
  bool has_current = false, current_read = false;
  std::vector<Drops> dropped; // by value of an entry
  std::vector<bool> queued;   // the same: whether an edge of it is a queue
  uint64_t left_out = 0;      // gate: ticks without a value that it turned away; no drops

  Entry& at(size_t i) { return ring[(first + i) % ring.size()]; }
  bool full() const { return count == ring.size(); }
};

// A source's value that is not due yet, and the one that is.
struct SourceState {
  StepRun* step = nullptr;
  bool ended = false;
  bool has_value = false; // for the tick that is being admitted
  bool has_next = false;  // read ahead
  std::vector<Slot> value, next;
  graph::Rational rate; // its own; numerator 0: none
  bool by_time = false; // plan::Clock::takes_what_is_due
  uint64_t index = 0;   // values it has given: what it is told as its tick's index where it has a rate
  int64_t next_due_ns = INT64_MIN;
  int64_t due_before = 0; // values that its rate had due at the last beat
  SingleWriter<uint64_t> passed_over;
  std::shared_ptr<Reader> reader; // a blocking source is read by a thread of its own
};

struct PaceRun {
  RunState* run = nullptr;
  const plan::Pace* plan = nullptr;
  const plan::Clock* clock = nullptr;
  uint32_t index = 0;
  uint64_t window = 1, mask = 0;
  std::vector<mr_tick_info> infos;
  // [ordinal & mask]: for other paces' looks
  std::unique_ptr<std::atomic<uint64_t>[]> tick_index;
  std::unique_ptr<std::atomic<int64_t>[]> tick_media_ns;
  std::vector<SegmentRun*> segments;
  std::vector<OutputRun*> held_outputs;
  // Of a clock without sources: those that lead it, and what it reads from clocks that it does not lead itself (8.11).
  std::vector<PaceRun*> leaders;
  std::vector<ChannelRun*> fed_by;
  PaceRun* parent = nullptr;
  StepRun* gate = nullptr;
  StepRun* entry = nullptr;
  ChannelRun* feed = nullptr;

  alignas(64) std::atomic<uint64_t> admitted{0}; // lines of their own: others look at them all the time
  alignas(64) std::atomic<bool> ended{false};
  alignas(64) uint64_t completed_seen = 0; // the head's: a lower bound that only grows

  // clocks
  std::vector<SourceState> sources;
  int64_t start_ns = -1;
  int64_t next_beat = 0;
  int64_t last_media_ns = INT64_MIN;               // of the last tick, where there was one
  std::atomic<int64_t> newest_media_ns{INT64_MIN}; // the same, for clocks that this one leads
  std::vector<int64_t> recent_media_ns;            // [ordinal mod size] where its clock is held by others (8.3)
  uint64_t retired = 0;
  std::atomic<int64_t> due_ns{INT64_MAX}; // when the head should look again
  SingleWriter<uint64_t> late, skipped;
  std::atomic<bool> ending{false}; // admits no more, and waits for readers to leave their handlers

  // latency, by ordinal & mask
  struct alignas(32) Latency {      // written by the head
    uint64_t ordinal = UINT64_MAX;  // the one of this place that is measured, perhaps long ago
    int64_t from_ns = kNotMeasured; // after a gate, the beginning before the gate
    std::atomic<uint32_t> segments_left{0};
  };
  std::unique_ptr<Latency[]> latency;
  TickWatch watch;                // the head's
  int64_t asked_ns = INT64_MAX;   // when the sources were last asked for a tick that will be measured
  SingleWriter<int64_t> first_ns; // the latency of the first tick; 0: not yet
  // When a measured tick began; else kNotMeasured.
  int64_t from_ns(uint64_t ordinal) const {
    return is_measured(ordinal) ? latency[ordinal & mask].from_ns : kNotMeasured;
  }

  mr_tick_info& info(uint64_t ordinal) { return infos[ordinal & mask]; }
  bool is_measured(uint64_t ordinal) const { return latency[ordinal & mask].ordinal == ordinal; }
  // The index of the ordinal's tick, as far as it was admitted. Any thread.
  uint64_t tick_at(uint64_t ordinal) const {
    return plan->kind == plan::PaceKind::clock ? ordinal : tick_index[ordinal & mask].load(std::memory_order_relaxed);
  }
};

struct SegmentRun {
  RunState* run = nullptr;
  const plan::Segment* plan = nullptr;
  PaceRun* pace = nullptr;
  bool head = false; // admits its pace's ticks
  bool device = false;
  std::mutex* submitting = nullptr; // RunState::submitting of its device
  std::vector<std::unique_ptr<StepRun>> steps;
  std::vector<const StepRun*> pending_steps; // those that may publish later

  const StepShared* first = nullptr; // whose stamp its first step needs: an ordinal that has it is admitted

  alignas(64) std::atomic<uint64_t> progress{0}; // ordinals below it that are this lane's are settled
  alignas(64) std::atomic<bool> claimed{false};
  uint64_t ordinal = 0;
  size_t cursor = 0;
  std::atomic<bool> in_tick{false};               // written by who has claimed it
  std::atomic<const StepShared*> awaits{nullptr}; // in a tick: whose stamp for `progress` it waits for, if that is all
  std::atomic<bool> done{false};
  int64_t busy_until_ns = 0;                           // virtual time
  std::vector<device::Fence> fences;                   // [ordinal & mask] the last one issued for it
  std::unique_ptr<std::atomic<int64_t>[]> ended_at_ns; // [ordinal & mask] realtime: when it was settled
  std::mutex fences_mutex;
  uint64_t warmed_up = 0;   // below it: ordinals that its regions were warmed up for
  uint64_t fences_done = 0; // below it: done; under fences_mutex

  TraceRing* trace = nullptr; // of who has claimed it
  bool traced = false;        // every call is, not only those that are timed
  int64_t traced_until = 0;   // the end of the last call: one look at the clock a call
  uint32_t tiny_calls = 0;    // since then, of this tick: they share the next look
  std::array<uint32_t, kTinyCallsMax> tiny_steps{};

  std::atomic<bool> careful{false}; // this tick is timed, or changes or a failure must be minded: no fast way
  size_t changes_seen = 0;

  Histogram latencies;   // of measured ticks that this segment was the last to end
  bool measured = false; // this tick is one

  // for the watchdog and the idle report
  std::atomic<const StepRun*> inside{nullptr}; // the last call that was begun, until the segment waits or ends its tick
  std::atomic<const StepRun*> waiting_at{nullptr};
};

// A failure that ends the run (2.6). The first one counts.
struct FailureRecord {
  Error error;
  uint32_t clock = 0;
  uint64_t index = 0;
};

class RunState {
 public:
  RunState(const plan::Plan& plan, const graph::Graph& graph, plan::Facts& facts, std::vector<device::Device*> devices,
           const RunOptions& options);
  ~RunState();

  // Built once.
  const plan::Plan& plan;
  const graph::Graph& graph;
  plan::Facts& facts;
  RunOptions options;
  std::vector<device::Device*> devices; // by domain index
  device::MonotonicTime monotonic;
  const device::Timeline* time;
  bool is_virtual = false;
  bool several_threads = false;
  bool has_devices = false;

  std::vector<std::unique_ptr<memory::Ring>> rings;
  std::vector<OutputRun> outputs;
  std::vector<StepShared> shared;
  std::vector<std::unique_ptr<ChannelRun>> channels;
  std::vector<std::unique_ptr<PaceRun>> paces;
  std::vector<std::unique_ptr<SegmentRun>> segments;
  std::vector<std::unique_ptr<RegionRun>> regions;
  std::vector<std::unique_ptr<plugin::Instance>> clones; // lanes
  std::vector<StepRun*> step_runs;                       // first lane of each plan step
  std::vector<StepRun*> timed_steps;                     // those with `decides_at_ns`
  std::vector<plan::PredictedPath> sinks;
  std::vector<device::Stream*> compute, copy_in, copy_out, copy_peer; // by domain index
  std::vector<std::vector<device::Stream*>> streams; // by domain index: these, and what is a step's own
  // By domain index: whoever advances a segment of that device holds it, but while a body in it keeps the host busy.
  // Null: one thread submits there.
  std::vector<std::unique_ptr<std::mutex>> submitting;
  // Those that another device may go on behind although they failed: whose bodies enqueue, where there are several.
  std::vector<const device::Device*> followed;
  std::byte* empty_record = nullptr;  // pinned, all zero: that of an empty value for kernels; null where none is needed
  std::vector<mr_value> empty_values; // by output: extent 0

  // Who touched a device's memory from the host, told before the process ends (4.10).
  std::vector<std::string> ring_names; // by ring: "video.out in sim:0"
  std::unique_ptr<device::AccessGuard> access_guard;
  const char* name_access(const void* address);
  std::vector<const StepRun*> apart; // steps that may be called apart from their segment: readers' and a device's

  // Set while it runs.
  std::atomic<bool> stopping{false};
  std::atomic<bool> abort{false};
  std::atomic<bool> failing{false};
  mutable std::mutex failure_mutex;
  std::vector<FailureRecord> failures;
  std::vector<std::string> first_errors; // by step of the plan: what its handler said when it failed first, and went on
  std::vector<std::unique_ptr<std::atomic<uint64_t>>> fail_index; // by clock
  std::shared_ptr<device::Bell> bell = std::make_shared<device::Bell>();
  std::atomic<uint32_t> segments_left{0};

  // The segments of a run may be cut once more (second_cut.cpp): no clock admits a tick while `holding`.
  std::atomic<bool> holding{false};
  mutable std::mutex cut_mutex; // which steps are whose: held by who cuts, and by others than workers who look
  std::unique_ptr<const plan::Cut> second_cut;
  void cut_again(plan::Cut cut);

  // Live parameters (2.7).
  struct Change {
    uint32_t handler;
    std::string param, text;
    uint64_t at_index = UINT64_MAX; // of the handler's clock; UINT64_MAX: the next tick that is admitted there
  };
  std::mutex changes_mutex;
  std::vector<Change> requested; // whose tick has not come
  std::vector<Change> changes;   // in the order of their admission, so that those of one clock come by index
  std::atomic<size_t> changes_admitted{0};
  std::atomic<bool> changes_waiting{false};

  // What ran when. Made before the threads are; each ring has one writer, but for those of devices, whose bodies may be
  // run by any thread that waits.
  std::vector<std::unique_ptr<TraceRing>> traces;
  std::mutex device_traces;
  int64_t trace_begin_ticks = 0, trace_begin_ns = 0;
  int64_t trace_now() const { return is_virtual ? now_ns() : trace_ticks(); }
  TraceRing& add_trace(const std::string& name);
  TraceRing& trace_of(const device::Stream& stream, const plan::Step& step);
  void trace_on_device(StepRun& step, const mr_tick_info& info, TraceKind kind, int64_t begin, int64_t end);

  // Wakes workers after something moved that another thread may wait for.
  void notify() {
    if (several_threads) bell->ring_if_asleep();
  }
  int64_t now_ns() const { return time->now_ns(); }
  // The one start of all clocks (1.3): the first look of any of them.
  int64_t begin_ns() {
    int64_t unset = -1;
    const int64_t now = now_ns();
    return begin_ns_.compare_exchange_strong(unset, now) ? now : unset;
  }
  void fail(StepRun& step, uint64_t ordinal, const std::string& sentence);
  void fail(Error error, uint32_t clock, uint64_t index);
  void watch_devices(); // a poisoned one ends the run
  void watch_device(uint32_t domain);
  // Until every stream is done, so that nothing runs later into what is gone; a device that cannot is given up.
  void await_devices();
  // Behind the last tick nobody reads any more: whatever still holds a block lets go of it. No worker runs then.
  void let_go();
  // Notes what is submitted next, so that it can be named should the device fail.
  void note_submitted(const StepRun& step, uint64_t ordinal, const device::Fence& fence);
  // After a submission, where devices are synchronised: until it is done or the device has failed.
  void await_submitted(const StepRun& step, uint64_t ordinal, const device::Fence& fence);
  // Whether a handler's device was given up with something of it under way: it is not called any more.
  static bool is_given_up(const StepRun& step) { return step.device && step.device->is_stuck(); }
  // Whether something of a device may never end. Waits a little for what does.
  bool has_stuck_devices() const;
  bool finished() const { return segments_left.load(std::memory_order_acquire) == 0; }

 private:
  std::atomic<int64_t> begin_ns_{-1};
  // The latest submissions to each device, of whichever stream: more than are ever under way on one.
  static constexpr size_t kSubmissions = 512;
  struct Submission {
    std::atomic<const StepRun*> step{nullptr};
    std::atomic<uint64_t> tick{0}, sequence{0};
  };
  struct Submissions {
    std::array<Submission, kSubmissions> latest;
    size_t count = 0; // the submitting thread's
  };
  std::vector<std::unique_ptr<Submissions>> submissions_; // by domain index
  std::string words_under_way(uint32_t domain) const;

  void make_empty_record();
  void make_memory();
  std::vector<device::NamedBytes> parts_of(const device::Arena& arena) const;
  void lend(StepRun& step);
  void make_outputs();
  void make_paces();
  void make_segments();
  std::unique_ptr<SegmentRun> make_segment(const plan::Segment& plan_segment, uint64_t ordinal);
  device::Stream* make_stream(uint32_t domain, device::StreamKind kind);
  device::Stream* stream_of(const plan::Step& step) const;
  void make_step(SegmentRun& segment, const plan::Step& step, uint32_t index);
  void make_deferred(StepRun& step) const;
  void make_inputs(StepRun& step);
  uint32_t before_copies(uint32_t output) const;
  void* make_scratch(const plan::Step& step);
  void join_segments();
  void join_clocks();
  void wire(StepRun& step);
  void wire_stamps();
  void want_stamps();
  void make_regions();
  void join_finishes();
  void watch_sinks();
};

// admission.cpp: the head of a pace. True where a new ordinal was admitted.
bool try_admit(PaceRun& pace);
// Ordinals below it are done in every segment, on devices too; monotone.
uint64_t completed(PaceRun& pace);
// Whether the device of this segment has not done all that was submitted to it. Any thread.
bool waits_for_device(SegmentRun& segment);
// Index of the last tick such that all its entries and those before are settled by `step`; -1: none; INT64_MAX: all.
int64_t settled_through(PaceRun& pace, const StepRun& step);
// How far a gate, post or resolve step has come in media time (semantics.md 8.1). Of any thread.
struct Passed {
  int64_t through_ns; // every tick at or before it is dealt with, and the next one is known to be later
  bool ended;         // the clock has ended, and every tick of it is dealt with
  bool has(int64_t media_ns) const { return ended || through_ns >= media_ns; }
};
Passed passed_by(const StepRun& step);

// failure.cpp
// A call of the handler has failed: counted, and told, or the end of the run, as its on_error says.
void note_error(StepRun& step, uint64_t index);
// A failure that the handler's policy passes over (2.6) is no error of the run: the first sentence of a handler is told
// when it comes, and every one is counted in the report.
void say_error(StepRun& step);
// True if this thread is inside a call of a handler. A handler's own thread never is.
bool is_in_a_call();
// A failure that belongs to no call: the handler's policy has no tick to settle. Any thread.
void fail_outside_calls(StepRun& step, const std::string& sentence);

// firing.cpp
StepResult run_step(StepRun& step, uint64_t ordinal);
// The fast way; false where this firing needs the other one, and nothing has happened yet.
bool run_flat(StepRun& step, uint64_t ordinal);
// Writes the tiny calls since the last look at the clock into the trace, each with an equal part of the time.
void trace_tiny_calls(SegmentRun& segment);
void flatten(StepRun& step);                       // decides whether a step may go the fast way
void settle_call(StepRun& step, uint64_t ordinal); // after virtual time has passed
void settle_empty(StepRun& step, uint64_t ordinal, Cause cause);
void clear_outputs(StepRun& step, uint64_t ordinal, Cause cause); // the same, not told to anybody yet
void stamp(StepRun& step, uint64_t ordinal);
// Live parameters up to this tick (2.7). Nobody may be in the handler.
void apply_changes(StepRun& step, uint64_t index);
// The body, and what it left to do once its device is done: at once on the host, and on sim, whose bodies run late.
inline mr_status run_bodies(const StepRun& step, mr_tick* tick) {
  const mr_status status = step.process(step.self, tick);
  return status == MR_OK && step.finish ? step.finish(step.self, tick) : status;
}
// The handler's policy after a failed call, or a failed drain or reset between two calls (2.6).
void fail_call(StepRun& step, const mr_tick_info& info);
void fail_outside_process(StepRun& step, uint64_t ordinal);
// Takes a failed handler down, and up again once its back-off is over; false where it stays down (2.6).
void begin_restart(StepRun& step);
bool bring_up(StepRun& step);
// Calls the handler for one firing with errors, restarts and live parameters minded; outputs are in raw_outputs.
mr_status call(StepRun& step, const mr_tick_info& info);
Slot slot_of(const mr_output& output, const StepRun& step);
// A firing's outputs become the slots of its tick; the slots of its inputs are still there.
void settle_outputs(StepRun& step, uint64_t ordinal, std::span<const mr_output> outputs,
                    std::span<const mr_input> inputs, Cause cause);
// The input that stands in for a failed output; the plan saw to it that there is one.
size_t bypass_input(const StepRun& step, size_t output);

// check_call.cpp: what a call says, before anybody acts on it (8.10). Sets the handler's sentence where it refuses.
// The status of a firing: an error where it is no status, or an output is not what was planned.
mr_status status_of_call(StepRun& step, mr_status status, std::span<mr_output> outputs,
                         std::span<const mr_input> inputs);
// Of an output whose value says that it is not there: what it took goes back, and it is silent.
bool is_withdrawn(const StepRun& step, size_t o, mr_output& output);
// `repeated`: the value of the input that it forwards; null where there is none.
bool output_is_sound(const StepRun& step, size_t o, const mr_output& output, const mr_value* repeated);

// pending.cpp
// Gives back what a firing had allocated that is not published.
void void_outputs(const StepRun& step, std::span<mr_output> outputs);
// A failed firing, or all that a restarted handler owes, will not be published any more. `current` is settled by its
// caller.
void give_up_pending(StepRun& step, bool all, uint64_t current);
// More firings are owed than max_pending allows: the handler counts as busy until it publishes one (2.4).
bool owes_too_many(StepRun& step);
// On every tick, before the call if there is one: a handler that owes firings for so long that the next tick would not
// fit into the window is drained, and publishes them as at an end (8.4). By ticks alone, so that it is the same in
// every run. False where it fails at that, which its policy has then dealt with.
enum class Fires : bool { no, yes };
bool drain_in_gap(StepRun& step, uint64_t ordinal, Fires fires);
// After a call.
void mind_debt(StepRun& step, uint64_t ordinal);
void flush_pending(StepRun& step); // after drain: what was not published is empty
bool drain_step(StepRun& step);    // once until it is called again; false where the handler failed
mr_tick* defer_firing(StepRun& step, const mr_tick& tick, uint64_t ordinal); // null: not now
mr_status publish_firing(StepRun& step, Deferred& deferred);

// region.cpp: a body of a region, with the addresses that its rings give a slot for ever.
void freeze(StepRun& step, BodyCall& body, uint32_t slot);
// Records every slot of a region; after all handlers have started.
void record_region(RegionRun& region);
StepResult run_region(RegionRun& region, uint64_t ordinal);

// captured.cpp: regions and bodies of devices whose bodies enqueue. A region that cannot be captured is left to
// streams.
void capture_region(RegionRun& region);
// Before bodies are measured; waits for the device.
void measure_empty_span(RegionRun& region);
StepResult run_captured(RegionRun& region, uint64_t ordinal);
void warm_up(RegionRun& region, uint64_t ordinal); // before its tick comes
StepResult run_enqueued(StepRun& step, uint64_t ordinal);

// device_step.cpp
void run_body(void* body_call);
// Whether everything that the submission of a body needs is issued.
bool issued(const StepRun& step, uint64_t ordinal);
// Applies what was changed up to this tick. False where a body that was issued before may still run.
bool change_live(StepRun& step, uint64_t ordinal);
// The bit of mr_tick.ended of a flat input; 0 where it has none.
inline uint64_t bit_of_input(size_t flat) { return flat < 64 ? uint64_t{1} << flat : 0; }
// Decides whether the body fires on this tick, as far as the host knows, and fixes its inputs. False with the cause.
bool fix_body(StepRun& step, BodyCall& body, uint64_t ordinal, Cause& cause);
// The stream goes on after the fence, where it is not its own.
void wait_for(device::Device& device, device::Stream& stream, const device::Fence& fence);
// Enqueues a copy of the bytes of `value`; of records with the count before them, which the device alone knows.
void copy_value(const StepRun& step, uint8_t* to, const uint8_t* from, const mr_value& value);
// Device time that goes into a histogram.
device::Span span_of(Histogram& times);
// The output's slot of this ordinal anew: a value in this block.
Slot& open_slot(OutputRun& output, uint64_t ordinal, memory::Block& block);
// Takes the blocks of this ordinal for the body's outputs and opens their slots.
void choose_blocks(StepRun& step, BodyCall& body, uint64_t ordinal);
void leave_fence(StepRun& step, uint64_t ordinal, const device::Fence& fence);
StepResult run_on_device(StepRun& step, uint64_t ordinal);
StepResult run_transfer(StepRun& step, uint64_t ordinal);

// finish_step.cpp: finish() of handlers whose bodies enqueue, once the device is done with the tick.
StepResult run_finish(StepRun& step, uint64_t ordinal);
// Of a body: nothing of it is under way, on the device or in finish(), so that its handler may change or restart.
bool at_rest(const StepRun& body);
// Of a body about to be called: keeps finish() out until leave(). False where it is in there.
bool enter(StepRun& body);
void leave(StepRun& body);
// Of a body or finish() that failed, by the handler's policy (2.6). A restart waits until nothing of it is under way.
void mind_body_error(StepRun& body, uint64_t index);
// Restarts a handler that is at rest, where its body or finish() failed and asked for that. True where it did. One that
// does not start ends the run at tick `index`.
bool restart_if_asked(StepRun& body, uint64_t index);

// policy_step.cpp
StepResult run_gate(StepRun& step, uint64_t ordinal);
StepResult run_post(StepRun& step, uint64_t ordinal);
StepResult run_resolve(StepRun& step, uint64_t ordinal);
void count_lost(StepRun& step, uint64_t ordinal, Cause cause); // every, input: values of queues
void close_channel(ChannelRun& channel);
void release_channel(ChannelRun& channel);

// under_way.cpp: for plugin::UnderWay, the call that a worker is in by its segment, or a reader or device by its step.
plugin::CallName name_call_in(const void* segment_run);
plugin::CallName name_call_apart(const void* step_run);

// reach.cpp: a call for this ordinal is over. Of a sink it is kept how long the tick took, where it is a sampled one.
void note_reached(StepRun& step, uint64_t ordinal);

// segment.cpp: runs a claimed segment until it waits or has done `ticks_max` ticks. True where something moved.
bool advance(SegmentRun& segment, uint32_t ticks_max);

std::vector<CallUnderWay> calls_under_way(const RunState& run);

// report.cpp
Report make_report(const RunState& run);
// Adds what was dropped so far, by cause, on all edges: once where several edges share a channel.
void count_drops(const RunState& run, std::map<std::string, uint64_t>& dropped);

void hold(const Slot& slot);
void release(Slot& slot);
// Where the tick is that an input with `delay` reads.
enum class Back { there, before_first, never }; // never: it was not let into this pace, so its slots are empty
struct Earlier {
  Back back;
  uint64_t ordinal; // where it is there
};
Earlier look_back(const StepRun& step, const InputRun& input, uint64_t ordinal);
// Of a block that a device whose bodies enqueue copies down: whether the device alone knows how much is in it.
inline bool is_counted_late(const memory::Block& block) {
  return block.record != block.value && block.record->header.kind == MR_KIND_RECORDS;
}
// Such a block is on its way: who sees it behind the fence learns its count.
inline void count_late(memory::Block& block) {
  using memory::Block;
  block.counted.store(is_counted_late(block) ? Block::kUncounted : Block::kCounted, std::memory_order_relaxed);
}
// Behind the tick on which the run failed: nothing is called any more (2.6).
inline bool later_ticks_void(const RunState& run, const mr_tick_info& info) {
  return run.failing.load(std::memory_order_relaxed) &&
         info.index > run.fail_index[info.clock]->load(std::memory_order_relaxed);
}
// Whether the device that was to make a value has failed.
inline bool lost(const device::Fence& fence) {
  return fence.word && fence.word->load(std::memory_order_acquire) == device::kFailed;
}
inline bool lost(const Slot& slot) { return lost(slot.fence); }
// Whether a device has failed that others may have followed: what waited for it was let go, and they worked on bytes
// that never came. Known behind the fence of what they made. Its words do not tell, which hardware may still write.
inline bool any_lost(const RunState& run) {
  return std::any_of(run.followed.begin(), run.followed.end(),
                     [](const device::Device* device) { return device->failed(); });
}
// Where kernels wrote to the host: the host's once the fence says that the device did not fail before.
inline void await_host_block(Slot& slot) {
  slot.unknown = true;
  slot.block->present.store(1, std::memory_order_relaxed);
  count_late(*slot.block);
}
// Of a slot whose presence a device decides, behind its fence: whether the value is here, and no device failed before
// it was.
inline bool arrived(const RunState& run, const Slot& slot) {
  const uint64_t at = slot.fence.word ? slot.fence.word->load(std::memory_order_acquire) : slot.fence.sequence;
  if (at == device::kFailed || at < slot.fence.sequence || any_lost(run) ||
      !slot.block->present.load(std::memory_order_relaxed))
    return false;
  memory::learn_count(*slot.block);
  return true;
}
inline bool present(const RunState& run, const Slot& slot) {
  return slot.value && (!slot.unknown || arrived(run, slot));
}
// The slot that an input reads for this ordinal, presence resolved: a value (perhaps in `room`), or null.
const Slot* read(StepRun& step, InputRun& input, uint64_t ordinal, Slot& room);
// The slot becomes the input's last value, or one of those that it keeps.
void remember(InputRun& input, const Slot& slot);
void keep(InputRun& input, const Slot& slot);

} // namespace millrace::exec
