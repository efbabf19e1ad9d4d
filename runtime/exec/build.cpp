// The order in which a run is built; see build.h.
#include "exec/build.h"

#include <utility>

#include "exec/group.h"
#include "exec/run_options.h"
#include "exec/run_state.h"
#include "exec/sink_latency.h"
#include "graph/graph.h"
#include "plan/prepare.h"

namespace millrace::exec {

std::unique_ptr<RunState> build(const plan::Plan& plan, const graph::Graph& graph, plan::Handlers& handlers,
                                std::vector<device::Device*> devices, const RunOptions& options) {
  auto run = std::make_unique<RunState>(plan, graph, handlers, std::move(devices), options);
  make_streams(*run);
  make_memory(*run);
  make_outputs(*run);
  make_paces(*run);
  make_segments(*run);
  join_steps(*run);
  join_paces(*run);
  make_inputs(*run);
  make_groups(*run);
  watch_sinks(*run);
  join_segments(*run);
  join_clocks(*run);
  gather_clusters(*run);
  wire_stamps(*run);
  make_regions(*run);
  return run;
}

} // namespace millrace::exec
