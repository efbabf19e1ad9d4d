// Firings that are published later, which their handler owes until then (pending.cpp; semantics.md 2.4, 8.4).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "exec/handler_run.h"

namespace millrace::exec {

// At most this many firings that were settled without their handler are remembered, so that publishing one of them is
// refused. The number is limited because the handler may never publish them.
inline constexpr size_t kVoidedMax = 64;

// Gives back what a firing had allocated and will not publish, and makes its outputs silent.
void void_outputs(const HandlerRun& step, std::span<mr_output> outputs);
// Gives up the failed firing `current`, or all firings that a restarted handler owes: they cannot be published any
// more. The caller settles `current`.
void give_up_pending(HandlerRun& step, bool all, uint64_t current);
// True if more firings are owed than max_pending allows: the handler counts as busy until it publishes one (2.4).
bool owes_too_many(HandlerRun& step);
// Called on every tick, before the call if there is one. Drains a handler that has owed firings for so long that the
// next tick would not fit into the window; it publishes them as it does at the end (8.4). Only ticks decide, so that it
// is the same in every run. False if the drain failed, or if the handler does not drain freely, so that the gap is a
// failure (8.12). The handler's policy has then dealt with the failure.
enum class Fires : bool { no, yes };
bool drain_in_gap(HandlerRun& step, uint64_t ordinal, Fires fires);
// Called after a call: fails a handler that owes too much, and drains it if the call left an older debt than was
// expected.
void check_debt(HandlerRun& step, uint64_t ordinal);
void flush_pending(HandlerRun& step); // after drain: firings that were not published settle empty
bool drain_step(HandlerRun& step);    // once until its next call; false if the handler failed
mr_tick* defer_firing(HandlerRun& step, const mr_tick& tick, uint64_t ordinal); // null: it cannot defer now
mr_status publish_firing(HandlerRun& step, Deferred& deferred);

} // namespace millrace::exec
