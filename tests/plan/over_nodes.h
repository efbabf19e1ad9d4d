// Graphs that two nodes run together, and the options for each node's plan.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "plan/machine.h"
#include "tests/exec/harness.h"

namespace millrace::test {

inline plan::Options on(uint32_t node, std::vector<std::string> nodes = {"home", "gpu"}) {
  plan::Options options;
  options.nodes = std::move(nodes);
  options.node = node;
  return options;
}

inline void put(Pipeline& p, const std::string& node, const std::vector<std::string>& names) {
  for (graph::Handler& handler : p.graph.handlers)
    if (std::find(names.begin(), names.end(), handler.name) != names.end()) handler.node = node;
}

// camera → detect → overlay ← camera; screen after the overlay. The detector is on the other node.
inline Pipeline overlay() {
  Pipeline p("t.count name=camera ! t.relay name=detect ! t.need name=overlay ! t.sink name=screen log=seen");
  p.graph.edges[1].target_port = "b";
  p.connect("camera", "overlay.a");
  put(p, "gpu", {"detect"});
  return p;
}

} // namespace millrace::test
