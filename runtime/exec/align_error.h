// The largest error of the media times that an `align` edge compares, if two machines' clocks gave them
// (policy_step.cpp).
#pragma once

#include <cstdint>

namespace millrace::exec {

struct ChannelRun;
struct ResolveRun;

// Called when the reader's tick is decided, under the channel's lock. Notes the largest error of the values that were
// compared with it, if two machines' clocks gave the times.
void record_align_error(ResolveRun& step, uint64_t ordinal, ChannelRun& channel);

} // namespace millrace::exec
