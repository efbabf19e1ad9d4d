// The state of a run while it lives: slots, paces and segments, as the plan laid them out, and the words by which
// threads know how far others are. Steps are in step.h and a header for each kind, channels in channel.h, sources in
// source.h, regions in region.h, and the run that holds them all in run_state.h. Private to runtime/exec; plan.h
// explains the terms.
//
// Slots. The thread that runs a step writes its slots and then stores the step's stamp for that ordinal with release;
// readers in other segments load the stamp with acquire first. A slot is written again only for a later ordinal, which
// the pace's head admits when every segment is done with the old one. A channel has a lock of its own.
//
// Progress. Each word is written by one side, and all but decides_at_ns and oldest_owed only grow (ordinals unless
// said):
//
//   word                     written by          says
//   PaceRun::admitted        the pace's head     below it: ticks that exist, their infos and sources' slots written
//   StepStamps::stamp        the step's thread   == ordinal + 1: this ordinal's slots are settled (on a device: issued)
//   ChannelEnd::passed       gate, post, resolve below it: looked at, and put into or taken from the channel
//   ChannelEnd::passed_media_ns  the same        media time of the last of those
//   ResolveRun::decides_at_ns    an align's      when it will not wait any more
//   FinishRun::passed        a finish            below it: called, or not to be
//   oldest_owed          the publisher, a group  the first ordinal that is still pending, or inside; all ones: none
//   SegmentRun::progress     the segment         below it: all steps of the lane's ordinals are through
//   SegmentRun::fences_done  any, locked         below it: done on the device too
//   completed(pace)          computed            the least of progress, oldest_owed, fences_done: the window's tail
//   PaceRun::retired         the pace's head     below it: slots that left the window have let go of their blocks
//
// Fields. The comment at the head of a block of fields says which thread writes them; a field with another writer has a
// comment of its own.
//
//   built    build.h, before anything runs; `cut` as well: a second cut (second_cut.h), while all workers rest
//   head     the thread that has claimed the segment that is the head of the pace
//   claimer  the thread that has claimed the segment and runs its steps
//   start    Run::start(), before the threads are there
//   any      any thread: under the lock that is named, or through an atomic
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "device/fence.h"
#include "exec/cause.h"
#include "exec/lines.h"
#include "exec/tick_watch.h"
#include "memory/ring.h"
#include "observe/error.h"
#include "observe/histogram.h"
#include "observe/single_writer.h"

namespace millrace {
class TraceRing;
}
namespace millrace::plan {
struct Clock;
struct Output;
struct Pace;
struct Segment;
} // namespace millrace::plan

namespace millrace::exec {

class RunState;
struct Cluster;
struct PaceRun;
struct SegmentRun;
struct StepRun;
struct HandlerRun;
struct GateRun;
struct GroupRun;
struct EntryRun;
struct ChannelRun;
struct SeatRun;
struct SourceState;

// At most this many tiny calls in a row share one look at the trace's clock.
inline constexpr uint32_t kTinyCallsMax = 16;

// One output's value for one ordinal. A null value is an empty slot.
struct Slot {
  const mr_value* value = nullptr;
  const uint8_t* data = nullptr;
  memory::Block* block = nullptr; // null for `initial: empty`
  device::Fence fence;            // issued; done if the word is null
  bool presence_pending = false;  // a device decides: block->present is valid after the fence
  Cause cause = Cause::silent;    // why it is empty
};

// A slot and the stamp of its step on one cache line: a reader on another thread gets both with one transfer.
struct alignas(64) SlotCell {
  Slot slot;
  std::atomic<uint64_t> stamp{0};
};

struct OutputRun {
  const plan::Output* plan = nullptr;
  std::unique_ptr<SlotCell[]> cells;
  uint64_t mask = 0;
  memory::Ring* ring = nullptr;
  std::atomic<uint32_t> borrowed{0}; // blocks that its handler holds by mr_host::borrow
  bool holds = false;         // its slots count as holders of blocks: released when their ordinal has left the window
  bool in_host_memory = true; // threads of the host may touch its bytes
  bool guarded = false;       // bytes that no handler may write follow its blocks (guard_bytes.h)
  uint32_t retain = 0;
  std::atomic<class TapPoint*> tapped{nullptr}; // any, once: shows what it holds (tap_point.h); null: nobody asks
  Slot& at(uint64_t ordinal) { return cells[ordinal & mask].slot; }
};

// The stamps of a step, which all its lanes share: for each ordinal in flight, the ordinal + 1 once it is settled. They
// lie beside the slots of the step's first output; a step without outputs has cells of its own.
struct StepStamps {
  SlotCell* cells = nullptr;
  std::unique_ptr<SlotCell[]> own_cells;
  uint64_t mask = 0;
  bool wanted = false; // another step waits for these stamps
  std::atomic<uint64_t>& stamp(uint64_t ordinal) const { return cells[ordinal & mask].stamp; }
  bool settled(uint64_t ordinal) const { return stamp(ordinal).load(std::memory_order_acquire) == ordinal + 1; }
};

// The begin time of a tick whose latency is not measured.
inline constexpr int64_t kNotMeasured = INT64_MIN;

// ClockRun::media_shift_ns before the first tick of an epoch that is not the first.
inline constexpr int64_t kShiftUnknown = INT64_MIN;
// A segment's turn is taken to be long until the first turns have shown how long it is.
inline constexpr int64_t kUnknownTurnNs = 1'000'000;

// The start of a clock that has not begun.
inline constexpr int64_t kNotBegun = INT64_MIN;

// How far a clock is that ends an epoch and begins another, because its stream has failed (stream_life.h).
enum class Stage : uint8_t { runs, leaving, draining, down, starting, vacant };

// A clock, across plans: its beats and its sources. A new plan makes a new pace and keeps this. The head of that pace
// writes all of it, on lines of its own.
struct alignas(64) ClockRun {
  const plan::Clock* plan = nullptr; // built
  std::vector<SourceState> sources;
  int64_t start_ns = kNotBegun;
  int64_t next_beat = 0, beat_before = -1;         // realtime: the beat to run, and the last that was run
  int64_t last_media_ns = INT64_MIN;               // the last tick's, if there was one
  std::atomic<int64_t> newest_media_ns{INT64_MIN}; // the same, for clocks that this one leads
  SingleWriter<uint64_t> late, skipped;
  std::atomic<int64_t> stalls_at_ns{INT64_MAX}; // a live source: then its next value is overdue by twice its period
  std::atomic<uint64_t> fail_index{UINT64_MAX}; // any, under failure_mutex: the first tick on which the run failed
  std::atomic<uint32_t> fail_epoch{0};          // any, under failure_mutex: later epochs than this did not fail there
  std::atomic<bool> halted{false};              // any, under failure_mutex: its stream has failed, and the run goes on
  std::atomic<bool> rests{false};               // head: halted, with nothing to do before PaceRun::idle_until_ns
  std::optional<Error> failure;                 // any, under failure_mutex: by which its stream has failed
  uint64_t failed_at = 0;                       // any, under failure_mutex: the tick of that failure
  uint32_t failed_epoch = 0;                    // any, under failure_mutex: the epoch of that tick
  std::string failed_on;                        // any, under failure_mutex: its node; "": this one

  std::unique_ptr<SeatRun> seat;    // built
  std::atomic<bool> removed{false}; // any, under failure_mutex: it is halted because its stream is to go
  std::atomic<uint32_t> epoch{0};   // any, under failure_mutex: the last one that has begun, as far as is known here

  std::atomic<bool> leaves{false}; // head, before `epochs_over` rises: its stream is about to leave
  // head: epochs of a stream that begins anew
  Stage stage = Stage::runs;
  bool first_of_epoch = false; // a source has not given its first value of an epoch that is not the first
  uint32_t failed_in_a_row = 0;
  int64_t began_ns = 0, begins_at_ns = 0; // the epoch began; the next one is to begin
  int64_t media_shift_ns = 0;             // from the times of its sources to media times; kShiftUnknown
  SingleWriter<uint64_t> restarts;
};

// A channel from which a far pace takes its ticks, and the entry's output that its first value becomes.
struct FeedRun {
  ChannelRun* channel = nullptr;
  uint32_t first = 0;
};

struct PaceRun {
  struct alignas(32) Latency {
    // The last ordinal of this place that was measured, perhaps long ago. Also cut: a device's body may read it
    // meanwhile.
    std::atomic<uint64_t> ordinal{UINT64_MAX};
    int64_t from_ns = kNotMeasured;         // when it began; after a gate: before the gate
    int64_t error_ns = 0;                   // by so much its home's time may have been wrong then
    std::atomic<uint32_t> segments_left{0}; // any: counted down by each segment that ends the tick
  };

  // Down to `admitted` no word is written on every tick, because all threads of the pace read these on every tick.
  //
  // built; `window` cut
  RunState* run = nullptr;
  const plan::Pace* plan = nullptr;
  ClockRun* clock = nullptr;
  uint32_t index = 0;
  bool is_clock = false; // it is the pace of its clock: its ordinals are the clock's ticks
  uint64_t window = 1, mask = 0;

  // head, by ordinal & mask; other paces read `tick_index` and `tick_media_ns`
  LineVector<mr_tick_info> infos;
  LineVector<std::atomic<uint64_t>> tick_index;
  LineVector<std::atomic<int64_t>> tick_media_ns;
  LineVector<Latency> latency; // read on every tick and seldom written

  // built; `segments` cut
  std::vector<SegmentRun*> segments;
  std::vector<OutputRun*> held_outputs;
  // For a clock without sources: the clocks that lead it, and the channels to it from clocks that it does not lead
  // itself (8.11).
  std::vector<PaceRun*> leaders;
  std::vector<ChannelRun*> fed_by;
  PaceRun* parent = nullptr;
  GateRun* gate = nullptr;
  EntryRun* entry = nullptr;
  GroupRun* group = nullptr; // batch
  ChannelRun* feed = nullptr;
  std::vector<FeedRun> feeds; // far
  Cluster* cluster = nullptr;
  std::atomic<uint32_t> taps_armed{0}; // any: taps of its outputs that wait for a sample; ticks are careful meanwhile

  // head
  alignas(64) std::atomic<uint64_t> admitted{0}; // lines of their own: others look at them all the time
  alignas(64) std::atomic<bool> ended{false};
  std::atomic<uint32_t> epochs_over{0};    // epochs of its clock of which no tick comes any more
  alignas(64) uint64_t completed_seen = 0; // a lower bound that only grows

  // head, of clocks
  LineVector<int64_t> recent_media_ns; // [ordinal mod size] for a clock whose ticks others hold (8.3)
  uint64_t retired = 0;
  std::atomic<int64_t> due_ns{INT64_MAX}; // when the head should look again
  // Until then the head idles, unless the run or its stream ends or a change is to be taken. Readers set it back.
  std::atomic<int64_t> idle_until_ns{INT64_MIN};
  std::atomic<bool> ending{false};   // admits no more, and waits for readers to leave their handlers
  bool stirred = false;              // the head has moved something, though it admits no tick
  std::atomic<bool> stranded{false}; // far: all ticks are through, and none comes before a node is back (7.9)
  // The epoch whose ticks the pace admits, and the index of the first of them (stream_epochs.h). Of decoupled paces, it
  // is that of the pace before. Any thread reads the index that has seen one of the ticks.
  std::atomic<uint32_t> epoch{0};
  uint64_t first_index = 0;

  TickWatch watch;
  int64_t asked_ns = INT64_MAX;   // when the sources were last asked for a tick that will be measured
  SingleWriter<int64_t> first_ns; // claimer of the segment that ends the first tick: its latency; 0: not yet
  // When a measured tick began; else kNotMeasured.
  int64_t from_ns(uint64_t ordinal) const {
    return is_measured(ordinal) ? latency[ordinal & mask].from_ns : kNotMeasured;
  }
  int64_t from_error_ns(uint64_t ordinal) const { return is_measured(ordinal) ? latency[ordinal & mask].error_ns : 0; }

  mr_tick_info& info(uint64_t ordinal) { return infos[ordinal & mask]; }
  bool is_measured(uint64_t ordinal) const {
    return latency[ordinal & mask].ordinal.load(std::memory_order_relaxed) == ordinal;
  }
  // The index of the ordinal's tick, if it was admitted. Any thread.
  uint64_t tick_at(uint64_t ordinal) const {
    return is_clock ? ordinal : tick_index[ordinal & mask].load(std::memory_order_relaxed);
  }
};

// A step whose outputs may be settled later, and the first ordinal for which they are not.
struct PendingStep {
  const StepRun* step = nullptr;
  const std::atomic<uint64_t>* oldest_owed = nullptr;
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
  uint64_t stride = 1;                    // from one ordinal of it to the next: its lanes, in a group's pace their rows
  std::vector<PendingStep> pending_steps; // those whose outputs may be settled later

  const StepStamps* first = nullptr; // the stamps that its first step needs: an ordinal that has one is admitted

  // claimer; down to `done` also cut, except `claimed`
  alignas(64) std::atomic<uint64_t> progress{0}; // this lane's ordinals below it are settled
  alignas(64) std::atomic<bool> claimed{false};  // any
  uint64_t ordinal = 0;
  size_t cursor = 0;
  uint32_t row = 0; // in a group's pace: the item that the step at the cursor is at
  std::atomic<bool> in_tick{false};
  std::atomic<const StepStamps*> awaits{nullptr}; // in a tick: it waits only for the stamp of `progress` here
  std::atomic<bool> done{false};
  std::atomic<uint32_t> epochs_over{0};         // those of its pace that it has ended
  int64_t busy_until_ns = 0;                    // virtual time
  LineVector<device::Fence> fences;             // [ordinal & mask] the last one issued for it
  LineVector<std::atomic<int64_t>> ended_at_ns; // [ordinal & mask] realtime: when it was settled; else empty
  std::mutex fences_mutex;
  int64_t took_ns = kUnknownTurnNs; // how long its latest turns took at most, if its claimers measure it
  uint64_t warmed_up = 0;           // below it: ordinals that its regions were warmed up for
  uint64_t fences_done = 0;         // any, under fences_mutex: below it they are done

  // claimer
  TraceRing* trace = nullptr; // its own
  bool traced = false;        // built: every call is traced, not only those that are timed
  int64_t traced_until = 0;   // the end of the last call: one look at the clock a call
  uint32_t tiny_calls = 0;    // since then, of this tick: they share the next look
  std::array<uint32_t, kTinyCallsMax> tiny_steps{};

  // claimer, and cut
  std::atomic<bool> careful{false}; // this tick is timed or tapped, or changes or a failure must be minded: no fast way
  size_t changes_seen = 0;

  Histogram latencies;   // measured ticks that this segment was the last to end
  bool measured = false; // this tick is a measured one

  // claimer, and the head for its sources: for the watchdog and the idle report. `inside` is the last call that was
  // begun, until the segment waits or ends its tick.
  std::atomic<const HandlerRun*> inside{nullptr};
  std::atomic<const StepRun*> waiting_at{nullptr};
};

} // namespace millrace::exec
