// The feeds of far paces: queues of ticks that came from other nodes or stages, and the drops when one is full. Private
// to runtime/exec.
#pragma once

#include <cstdint>
#include <optional>

#include "exec/channel.h"
#include "exec/state.h"

namespace millrace::exec {

enum class Room { push, drop, wait };

// Decides whether one more tick may go into the feed. Where the clock waits, a tick waits for room. Under realtime
// rules the oldest tick that no link has taken makes room, unless the crossing is `reliable`; else this one is left out
// (7.7). Each is left out while the other node is away (7.9). The caller holds the channel's lock.
Room room_in_feed(ChannelRun& channel, const QueuedTick& tick, bool realtime);

struct NextTick {
  std::optional<mr_tick_info> info; // nothing: a feed has no tick, and may still get one
  bool ended = false;               // no feed gets a tick any more
  bool is_stranded = false;         // none gets one before a node that is away is back
};
// The least tick that waits at a feed of the far pace. Ticks that come after a later one of their clock was admitted
// are dropped before.
NextTick next_tick(PaceRun& pace);

// The readers of a stranded pace, here and on other nodes, do not wait for it either (7.9).
void record_stranded(PaceRun& pace, bool is_stranded);

// Moves the tick out of the feed, if it is there, into the slots of the entry. Else these are empty.
void take_from(const FeedRun& feed, PaceRun& pace, uint64_t ordinal, const mr_tick_info& info);

} // namespace millrace::exec
