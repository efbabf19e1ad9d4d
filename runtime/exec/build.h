// From a plan to what runs: memory, slots, paces, segments and steps, wired by pointers so that a tick looks nothing
// up.
//
// Each function adds what it is named after, and needs what those before it have made. A second cut of the segments
// (second_cut.h) calls some of them again.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "device/device.h"
#include "plan/prepare.h"

namespace millrace::exec {

class RunState;
struct RunOptions;
struct SegmentRun;

// All of it. Throws Failure where the machine has too little.
std::unique_ptr<RunState> build(const plan::Plan& plan, const graph::Graph& graph, plan::Handlers& handlers,
                                std::vector<device::Device*> devices, const RunOptions& options);

// build_memory.cpp
void make_memory(RunState& run);

// build_paces.cpp
void make_outputs(RunState& run);
void make_paces(RunState& run); // and channels
// Which steps are whose: sources, gates and entries.
void join_paces(RunState& run);
// What steps of several clocks have to do with each other: which decide by time; who leads a clock without sources, and
// what it is fed by (not what comes back from clocks that it leads to, which end with it).
void join_clocks(RunState& run);

// build_steps.cpp
void make_streams(RunState& run);
void make_segments(RunState& run); // and their steps
// One without steps, whose ticks begin at `ordinal`. Again in a second cut.
std::unique_ptr<SegmentRun> make_segment(RunState& run, const plan::Segment& plan_segment, uint64_t ordinal);
void join_steps(RunState& run); // copies and their readers, bodies and their finishes, channels and their ends
void make_regions(RunState& run);

// build_waits.cpp
void make_inputs(RunState& run);
// What follows from which segments there are and which steps are in them. Again in a second cut.
void join_segments(RunState& run);
void wire_stamps(RunState& run);
// Marks those that somebody waits for; of a step that nobody waited for until now, the stamps of its last ordinals come
// late. Again in a second cut.
void want_stamps(RunState& run);

} // namespace millrace::exec
