// What a run is made of while it lives: slots, paces and segments, as the plan laid them out, and the words by which
// their threads know of each other. Steps are in step.h and a header for each kind, channels in channel.h, sources in
// source.h, regions in region.h, and the run that holds them all in run_state.h. Private to runtime/exec; plan.h
// explains the words.
//
// Who touches what. A slot is written by the thread that runs its step, before the step's stamp for that ordinal is
// stored with release; readers in other segments load the stamp with acquire first. A slot is written again only for
// an ordinal that the pace's head admits when every segment is done with the old one. A channel has a lock of its own.
//
// How far something is, each word written by one side and only ever growing (ordinals unless said):
//
//   word                     written by          says
//   PaceRun::admitted        the pace's head     below it: ticks that exist, their infos and sources' slots written
//   StepStamps::stamp        the step's thread   == ordinal + 1: this ordinal's slots are settled (on a device: issued)
//   ChannelEnd::passed       gate, post, resolve below it: looked at, and put into or taken from the channel
//   ChannelEnd::passed_media_ns  the same        media time of the last of those
//   ResolveRun::decides_at_ns    an align's      when it will not wait any more
//   FinishRun::passed        a finish            below it: called, or not to be
//   HandlerRun::oldest_owed  who publishes       the first firing that is still pending; all ones: none
//   SegmentRun::progress     the segment         below it: all steps of the lane's ordinals are through
//   SegmentRun::fences_done  who asks, locked    below it: done on the device too
//   completed(pace)          computed            the least of progress, oldest_owed, fences_done: the window's tail
//   PaceRun::retired         the pace's head     below it: slots that left the window have let go of their blocks
//
// Who writes a field is said where its block begins; a field that others write has its own word.
//
//   built    build.h, before anything runs; `cut` as well: a second cut (second_cut.h), while everybody rests
//   head     whoever has claimed the segment that is the head of the pace
//   claimer  whoever has claimed the segment: the thread that runs its steps
//   start    Run::start(), before the threads are there
//   any      whichever thread comes to it: under the lock that is named, or an atomic
#pragma once

#include <array>
#include <atomic>
#include <iterator>
#include <memory>
#include <mutex>
#include <vector>

#include "device/device.h"
#include "exec/tick_watch.h"
#include "memory/ring.h"
#include "observe/histogram.h"
#include "observe/single_writer.h"
#include "observe/trace.h"
#include "plan/plan.h"

namespace millrace::exec {

class RunState;
struct PaceRun;
struct SegmentRun;
struct StepRun;
struct HandlerRun;
struct GateRun;
struct EntryRun;
struct ChannelRun;
struct SourceState;

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
  bool presence_pending = false;  // a device decides: block->present is valid after the fence
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
  bool holds = false;         // its slots count as holders of blocks: released when their ordinal has left the window
  bool in_host_memory = true; // threads of the host may touch its bytes
  uint32_t retain = 0;
  Slot& at(uint64_t ordinal) { return places[ordinal & mask].slot; }
};

// What all lanes of a step share: for each ordinal in flight, the ordinal + 1 once it is settled. Kept beside the slots
// of the step's first output; a step without outputs has places of its own.
struct StepStamps {
  SlotPlace* places = nullptr;
  std::unique_ptr<SlotPlace[]> own_places;
  uint64_t mask = 0;
  bool wanted = false; // somebody waits for these stamps
  std::atomic<uint64_t>& stamp(uint64_t ordinal) const { return places[ordinal & mask].stamp; }
  bool settled(uint64_t ordinal) const { return stamp(ordinal).load(std::memory_order_acquire) == ordinal + 1; }
};

// Of a tick: its latency is not measured.
inline constexpr int64_t kNotMeasured = INT64_MIN;

// A clock, across plans: its beats and its sources. A new plan makes a new pace and keeps this. The head of that pace
// writes all of it.
struct ClockRun {
  const plan::Clock* plan = nullptr; // built
  std::vector<SourceState> sources;
  int64_t start_ns = -1;
  int64_t next_beat = 0;
  int64_t last_media_ns = INT64_MIN;               // of the last tick, where there was one
  std::atomic<int64_t> newest_media_ns{INT64_MIN}; // the same, for clocks that this one leads
  SingleWriter<uint64_t> late, skipped;
  std::atomic<uint64_t> fail_index{UINT64_MAX}; // any, under failure_mutex: the first tick on which the run failed
};

struct PaceRun {
  // built; `window` cut
  RunState* run = nullptr;
  const plan::Pace* plan = nullptr;
  ClockRun* clock = nullptr;
  uint32_t index = 0;
  uint64_t window = 1, mask = 0;

  // head, by ordinal & mask; the last two for other paces' looks
  std::vector<mr_tick_info> infos;
  std::unique_ptr<std::atomic<uint64_t>[]> tick_index;
  std::unique_ptr<std::atomic<int64_t>[]> tick_media_ns;

  // built; `segments` cut
  std::vector<SegmentRun*> segments;
  std::vector<OutputRun*> held_outputs;
  // Of a clock without sources: those that lead it, and what it reads from clocks that it does not lead itself (8.11).
  std::vector<PaceRun*> leaders;
  std::vector<ChannelRun*> fed_by;
  PaceRun* parent = nullptr;
  GateRun* gate = nullptr;
  EntryRun* entry = nullptr;
  ChannelRun* feed = nullptr;

  // head
  alignas(64) std::atomic<uint64_t> admitted{0}; // lines of their own: others look at them all the time
  alignas(64) std::atomic<bool> ended{false};
  alignas(64) uint64_t completed_seen = 0; // a lower bound that only grows

  // head, of clocks
  std::vector<int64_t> recent_media_ns; // [ordinal mod size] where its clock is held by others (8.3)
  uint64_t retired = 0;
  std::atomic<int64_t> due_ns{INT64_MAX}; // when the head should look again
  std::atomic<bool> ending{false};        // admits no more, and waits for readers to leave their handlers

  // head: latency, by ordinal & mask
  struct alignas(32) Latency {
    // The one of this place that is measured, perhaps long ago. And cut: a device's body may look meanwhile.
    std::atomic<uint64_t> ordinal{UINT64_MAX};
    int64_t from_ns = kNotMeasured;         // after a gate, the beginning before the gate
    std::atomic<uint32_t> segments_left{0}; // any: counted down by each segment that ends the tick
  };
  std::unique_ptr<Latency[]> latency;
  TickWatch watch;
  int64_t asked_ns = INT64_MAX;   // when the sources were last asked for a tick that will be measured
  SingleWriter<int64_t> first_ns; // claimer of the segment that ends the first tick: its latency; 0: not yet
  // When a measured tick began; else kNotMeasured.
  int64_t from_ns(uint64_t ordinal) const {
    return is_measured(ordinal) ? latency[ordinal & mask].from_ns : kNotMeasured;
  }

  mr_tick_info& info(uint64_t ordinal) { return infos[ordinal & mask]; }
  bool is_measured(uint64_t ordinal) const {
    return latency[ordinal & mask].ordinal.load(std::memory_order_relaxed) == ordinal;
  }
  // The index of the ordinal's tick, as far as it was admitted. Any thread.
  uint64_t tick_at(uint64_t ordinal) const {
    return plan->kind == plan::PaceKind::clock ? ordinal : tick_index[ordinal & mask].load(std::memory_order_relaxed);
  }
};

struct SegmentRun {
  // built; `plan`, `head`, `steps`, `pending_steps` and `first` cut
  RunState* run = nullptr;
  const plan::Segment* plan = nullptr;
  PaceRun* pace = nullptr;
  bool head = false; // admits its pace's ticks
  bool device = false;
  std::mutex* submitting = nullptr; // RunState::submitting of its device
  std::vector<StepRun*> steps;
  std::vector<const HandlerRun*> pending_steps; // those that may publish later

  const StepStamps* first = nullptr; // whose stamp its first step needs: an ordinal that has it is admitted

  // claimer; `progress` and `done` cut, where nothing is left in it
  alignas(64) std::atomic<uint64_t> progress{0}; // ordinals below it that are this lane's are settled
  alignas(64) std::atomic<bool> claimed{false};  // any
  uint64_t ordinal = 0;
  size_t cursor = 0;
  std::atomic<bool> in_tick{false};
  std::atomic<const StepStamps*> awaits{nullptr}; // in a tick: whose stamp for `progress` it waits for, if that is all
  std::atomic<bool> done{false};
  int64_t busy_until_ns = 0;                           // virtual time
  std::vector<device::Fence> fences;                   // [ordinal & mask] the last one issued for it
  std::unique_ptr<std::atomic<int64_t>[]> ended_at_ns; // [ordinal & mask] realtime: when it was settled
  std::mutex fences_mutex;
  uint64_t warmed_up = 0;   // below it: ordinals that its regions were warmed up for
  uint64_t fences_done = 0; // any, under fences_mutex: below it they are done

  // claimer
  TraceRing* trace = nullptr; // its own
  bool traced = false;        // built: every call is, not only those that are timed
  int64_t traced_until = 0;   // the end of the last call: one look at the clock a call
  uint32_t tiny_calls = 0;    // since then, of this tick: they share the next look
  std::array<uint32_t, kTinyCallsMax> tiny_steps{};

  // claimer
  std::atomic<bool> careful{false}; // this tick is timed, or changes or a failure must be minded: no fast way
  size_t changes_seen = 0;          // and cut

  Histogram latencies;   // of measured ticks that this segment was the last to end
  bool measured = false; // this tick is one

  // claimer, and the head for its sources: for the watchdog and the idle report
  std::atomic<const HandlerRun*> inside{
      nullptr}; // the last call that was begun, until the segment waits or ends its tick
  std::atomic<const StepRun*> waiting_at{nullptr};
};

} // namespace millrace::exec
