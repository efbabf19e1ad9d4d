// Live changes for handlers on other nodes (semantics.md 2.7, 7.15). The home of a clock gives a change its tick. From
// there it goes over every crossing of the clock, before the parcel of that tick or the first later one, and each node
// passes it on. So it is with all handlers of the clock before any of them begins the tick.
//
// A node keeps the last change of each parameter, and tells them again to another process of a node: such a process
// begins with the values that hold, and not with those of its file.
//
// Limits. A change comes in time wherever no tick is left out. A node that was away takes it with its next tick.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/channel.h"
#include "exec/run_state.h"

namespace millrace::exec {

// The clock's home has given the change its tick. Called under changes_mutex.
void send_change(RunState& run, uint32_t clock, uint32_t epoch, const RunState::Change& change);

// Moves the changes that the tick may not go without. Called under the channel's mutex.
void take_untold(ChannelRun& channel, const mr_tick_info& tick, std::vector<LiveChange>& changes);

// Changes that have come with a parcel, before any pace sees it. Those that came another way before are dropped.
void take_in_changes(RunState& run, uint32_t clock, const Parcel& parcel);

// Another process is at the other end of the channel.
void send_changes_again(RunState& run, ChannelRun& channel);

// Throws Failure (MR0316) if a change of a handler on another node cannot go there. Called under changes_mutex.
void require_goes_over_links(const RunState& run, const std::vector<RunState::Change>& changes);

} // namespace millrace::exec
