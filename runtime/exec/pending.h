// Firings that publish later: what a handler owes, and when it gives it (pending.cpp; semantics.md 2.4, 8.4).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "exec/handler_run.h"

namespace millrace::exec {

// So many firings that were settled without their handler are remembered, so that publishing one of them is refused: a
// handler that forgets them all must not be remembered for ever.
inline constexpr size_t kVoidedMax = 64;

// Gives back what a firing had allocated that is not published.
void void_outputs(const HandlerRun& step, std::span<mr_output> outputs);
// A failed firing, or all that a restarted handler owes, will not be published any more. `current` is settled by its
// caller.
void give_up_pending(HandlerRun& step, bool all, uint64_t current);
// More firings are owed than max_pending allows: the handler counts as busy until it publishes one (2.4).
bool owes_too_many(HandlerRun& step);
// On every tick, before the call if there is one: a handler that owes firings for so long that the next tick would not
// fit into the window is drained, and publishes them as at an end (8.4). By ticks alone, so that it is the same in
// every run. False where it fails at that, which its policy has then dealt with.
enum class Fires : bool { no, yes };
bool drain_in_gap(HandlerRun& step, uint64_t ordinal, Fires fires);
// After a call.
void mind_debt(HandlerRun& step, uint64_t ordinal);
void flush_pending(HandlerRun& step); // after drain: what was not published is empty
bool drain_step(HandlerRun& step);    // once until it is called again; false where the handler failed
mr_tick* defer_firing(HandlerRun& step, const mr_tick& tick, uint64_t ordinal); // null: not now
mr_status publish_firing(HandlerRun& step, Deferred& deferred);

} // namespace millrace::exec
