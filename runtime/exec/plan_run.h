// A plan as it runs. When another plan takes its place, all of this goes. The clocks and the handlers outlive it and
// belong to the run (run_state.h). The words that say which thread writes a field are those of state.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "exec/step.h"

namespace millrace::graph {
struct Graph;
}
namespace millrace::plan {
struct Cut;
struct Plan;
struct PredictedPath;
} // namespace millrace::plan

namespace millrace::exec {

struct ChannelRun;
struct Cluster;
struct GroupRun;
struct RegionRun;
struct ResolveRun;

struct PlanRun {
  PlanRun(const plan::Plan& the_plan, const graph::Graph& the_graph, uint32_t the_revision);
  ~PlanRun();

  // built
  const plan::Plan& plan;
  const graph::Graph& graph;
  // The number of the plan, which ticks do not carry: the epoch of a tick counts how often its clock's stream has begun
  // anew, and goes on from one plan to the next.
  uint32_t revision = 0;

  // built; `segments` cut
  std::vector<std::unique_ptr<memory::Ring>> rings;
  std::vector<std::string> ring_names; // by ring: "video.out in sim:0"
  std::vector<OutputRun> outputs;
  std::vector<mr_value> empty_values; // by output: extent 0
  std::vector<StepStamps> shared;
  std::vector<std::unique_ptr<ChannelRun>> channels;
  std::vector<std::unique_ptr<PaceRun>> paces;
  std::vector<std::unique_ptr<GroupRun>> groups;
  std::vector<std::unique_ptr<Cluster>> clusters;
  std::vector<std::unique_ptr<SegmentRun>> segments;
  std::vector<std::unique_ptr<StepRun>> steps; // all lanes
  std::vector<HandlerRun*> handlers;           // those of them that call one
  std::vector<StepRun*> step_runs;             // first lane of each plan step
  std::vector<ResolveRun*> timed_steps;        // those with `decides_at_ns`
  std::vector<std::unique_ptr<RegionRun>> regions;
  std::vector<plan::PredictedPath> sinks;
  // start. Steps that may be called outside their segment, by a reader's thread or a device.
  std::vector<const HandlerRun*> called_outside;

  std::atomic<uint32_t> segments_left{0}; // claimer of a segment that is over, and cut

  // cut. The segments of a plan may be cut once more (second_cut.h).
  mutable std::mutex cut_mutex; // guards which segment has which steps: for the thread that cuts, and for threads
                                // that look and are no workers
  std::unique_ptr<const plan::Cut> second_cut;
};

} // namespace millrace::exec
