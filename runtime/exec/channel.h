// Queues between paces, and the steps that put ticks into them and take them out (policy_step.cpp).
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "exec/crossing.h"
#include "exec/step.h"
#include "observe/single_writer.h"

namespace millrace::plan {
struct Channel;
}

namespace millrace::exec {

// A tick in a queue, with the values that it has there.
struct QueuedTick {
  mr_tick_info info{};
  int64_t from_ns = kNotMeasured; // as PaceRun::Latency
  int64_t from_error_ns = 0;      // as its error_ns
  int64_t taken_ns = 0;           // crossing: when the link took it
  std::vector<Slot> slots;
  Cause gap = Cause::link; // feed: why ticks directly before it are missing
  bool has_value() const {
    return std::any_of(slots.begin(), slots.end(), [](const Slot& slot) { return slot.value != nullptr; });
  }
  // It is this tick of the pace.
  void record_beginning(const PaceRun& pace, uint64_t ordinal) {
    from_ns = pace.from_ns(ordinal);
    from_error_ns = pace.from_error_ns(ordinal);
  }
};

struct ChannelEnd;

// A bounded queue between two paces. A gate or post puts ticks in, the head of the pace after it or a resolve takes
// them out, and either may drop some.
struct alignas(64) ChannelRun {
  // built
  const plan::Channel* plan = nullptr;
  ChannelEnd* from = nullptr; // a gate or post; null: on another node
  ChannelEnd* to = nullptr;   // an entry or resolve; null: on another node
  bool keeps_old = false; // `reliable` crossing under realtime rules: if there is no room, the newest tick is left out

  // any, under `mutex`; workers read `dry` without it
  std::mutex mutex;
  std::vector<QueuedTick> ring; // capacity
  size_t first = 0, count = 0;
  size_t empties = 0;           // gate: those of `count` that have no value and were let in all the same
  bool closed = false;          // nothing more comes
  uint32_t epochs_over = 0;     // gate: epochs of its clock that it has ended
  bool released = false;        // the run is over: nothing is put in or taken out any more
  std::atomic<bool> dry{false}; // gate: the head after it has found nothing here, and nothing has come since
  uint64_t pushed = 0;
  size_t taken = 0;              // to another node: those of `count` that the link has, oldest first
  int64_t passed_ns = INT64_MIN; // from another node: no tick at or before this media time comes any more
  uint64_t passed_on = 0;        // from another node: ticks that the pace has taken out
  bool away = false;             // a feed under realtime rules: the other node is away
  bool stranded = false;         // from another node: no tick comes before a node that is away there is back (7.9)
  Cause gap = Cause::link;       // feed: why ticks before the next one are missing
  QueuedTick current; // latest, align: the tick that the reader holds. A gate's step puts its tick together here,
                      // without the lock
  bool has_current = false, current_read = false;
  std::vector<Drops> dropped;         // by value of a tick
  std::vector<bool> queued;           // by value of a tick: one of its edges is a queue
  uint64_t left_out = 0;              // gate: ticks without a value that it turned away; they are no drops
  Drops ticks_left_out{};             // feed: ticks with or without values, by cause
  uint64_t parcels = 0;               // crossing: ticks that the link took, or brought
  uint64_t parcel_bytes = 0;          // crossing: the bytes of those ticks
  std::vector<LiveChange> untold;     // crossing that departs: changes for its next parcels, by number
  uint64_t lost = 0;                  // crossing: ticks that went with a process of the other node
  std::unique_ptr<Histogram> carried; // crossing that departs: from when the link took a tick until it has arrived

  QueuedTick& at(size_t i) { return ring[(first + i) % ring.size()]; }
  bool full() const { return count == ring.size(); }
};

// A step at an end of a channel. Other paces ask how far it is.
struct ChannelEnd : StepRun {
  ChannelRun* channel = nullptr; // built
  // claimer: ordinals below it are dealt with, and the media time of the last one
  std::atomic<uint64_t> passed{0};
  std::atomic<int64_t> passed_media_ns{INT64_MIN};
};

struct GateRun : ChannelEnd {
  StepResult advance(uint64_t ordinal) override;
};

struct EntryRun : ChannelEnd {
  StepResult advance(uint64_t) override { return StepResult::settled; } // the head did it when it admitted the tick
};

struct PostRun : ChannelEnd {
  StepResult advance(uint64_t ordinal) override;
};

struct ResolveRun : ChannelEnd {
  StepResult advance(uint64_t ordinal) override;
  // claimer; `align` under `realtime`: when it decides even if the value that it waits for has not come; INT64_MAX: it
  // waits for no time. It has its own word because the head stores the pace's `due_ns`, and neither may overwrite the
  // other's time.
  std::atomic<int64_t> decides_at_ns{INT64_MAX};
  // claimer; `align` of clocks whose homes are two nodes: the most by which the times of two ticks may be wrong to each
  // other, of those that were compared
  SingleWriter<int64_t> error_ns;
};

void count_lost(StepRun& step, uint64_t ordinal, Cause cause); // values of queues that are lost by `every` or `input`
inline void close_channel(ChannelRun& channel) {
  const std::lock_guard lock(channel.mutex);
  channel.closed = true;
  channel.dry.store(false, std::memory_order_relaxed);
}
void release_channel(ChannelRun& channel);

} // namespace millrace::exec
