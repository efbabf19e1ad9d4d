// Graphs made in code.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace millrace::test {

using Params = std::map<std::string, std::string>;

class Pipeline {
 public:
  Pipeline() = default;
  // As on the command line: `t.count name=source count=9 ! t.sink log=seen`.
  explicit Pipeline(const std::string& one_line) : graph(graph::parse_line(one_line)) {}
  graph::Handler& add(const std::string& name, const std::string& type, const Params& params = {});
  graph::Edge& connect(const std::string& from, const std::string& to, graph::Policy policy = graph::Policy::sync);
  void clock(graph::ClockMode mode, int64_t rate_num = 0, int64_t rate_den = 1, uint32_t in_flight = 0);
  graph::Graph graph;
};

// source (t.count) → handlers of the types, "h1", "h2", …, one after another → sink (t.sink).
Pipeline line(const std::vector<std::string>& types, const std::string& log, int64_t count);

} // namespace millrace::test
