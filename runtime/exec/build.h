// Builds a run from a plan: memory, slots, paces, segments and steps, wired by pointers so that a tick looks nothing
// up.
//
// Each function adds what it is named after, and needs what those before it have made. A second cut of the segments
// (second_cut.h) calls some of them again.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace millrace::device {
class Device;
}
namespace millrace::graph {
struct Graph;
}
namespace millrace::plan {
struct Handlers;
struct Plan;
struct Segment;
} // namespace millrace::plan

namespace millrace::exec {

class RunState;
struct HandlerRun;
struct RunOptions;
struct SegmentRun;

// Builds all of it. Throws Failure if the machine has too little memory.
std::unique_ptr<RunState> build(const plan::Plan& plan, const graph::Graph& graph, plan::Handlers& handlers,
                                std::vector<device::Device*> devices, const RunOptions& options);

// build_memory.cpp
void make_memory(RunState& run);

// build_paces.cpp
void make_outputs(RunState& run);
void make_paces(RunState& run); // and channels
// Gives each pace its sources, or its gate and entry.
void join_paces(RunState& run);
// Connects the clocks: collects the steps that decide by time, and gives each clock without sources its leaders and the
// channels that feed it. Channels from clocks that it leads itself do not count, because those clocks end with it.
void join_clocks(RunState& run);

// cluster.cpp
void gather_clusters(RunState& run);
// Tells each cluster which workers are home to its segments. A second cut calls it again.
void settle_homes(RunState& run);

// build_steps.cpp
void make_streams(RunState& run);
void make_segments(RunState& run); // and their steps
// Makes a segment without steps, whose ticks begin at `ordinal`. A second cut calls it again.
std::unique_ptr<SegmentRun> make_segment(RunState& run, const plan::Segment& plan_segment, uint64_t ordinal);
void join_steps(RunState& run); // copies and their readers, bodies and their finishes, channels and their ends
void make_regions(RunState& run);

// Lets the step call its handler's instance, and the instance the run.
void take_instance(RunState& run, HandlerRun& step);

// build_waits.cpp
void make_inputs(RunState& run);
// Sets everything that depends on which segments there are and which steps are in them. A second cut calls it again.
void join_segments(RunState& run);
void wire_stamps(RunState& run);
// Marks the stamps that another step waits for. A step whose stamps were not wanted until now has stored none, so those
// of its last ordinals are stored here. A second cut calls it again.
void want_stamps(RunState& run);

} // namespace millrace::exec
