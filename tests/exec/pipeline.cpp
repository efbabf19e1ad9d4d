// Graphs made in code; see pipeline.h.
#include "pipeline.h"

namespace millrace::test {

namespace {

void split(const std::string& text, std::string& handler, std::string& port) {
  const size_t dot = text.find('.');
  handler = text.substr(0, dot);
  port = dot == std::string::npos ? "" : text.substr(dot + 1);
}

} // namespace

graph::Handler& Pipeline::add(const std::string& name, const std::string& type,
                              const std::map<std::string, std::string>& params) {
  graph::Handler handler;
  handler.name = name;
  handler.type = type;
  for (const auto& [key, value] : params) handler.params.push_back({key, value, {}, {}});
  graph.handlers.push_back(handler);
  return graph.handlers.back();
}

graph::Edge& Pipeline::connect(const std::string& from, const std::string& to, graph::Policy policy) {
  graph::Edge edge;
  split(from, edge.source, edge.source_port);
  split(to, edge.target, edge.target_port);
  edge.policy = policy;
  graph.edges.push_back(edge);
  return graph.edges.back();
}

void Pipeline::clock(graph::ClockMode mode, int64_t rate_num, int64_t rate_den, uint32_t in_flight) {
  graph::Clock clock;
  clock.mode = mode;
  clock.rate = {rate_num, rate_den};
  clock.in_flight = in_flight;
  graph.clocks.push_back(clock);
}

Pipeline line(const std::vector<std::string>& types, const std::string& log, int64_t count) {
  Pipeline p;
  p.add("source", "t.count", {{"count", std::to_string(count)}});
  for (const std::string& type : types) {
    const std::string name = "h" + std::to_string(p.graph.handlers.size());
    p.connect(p.graph.handlers.back().name, name);
    p.add(name, type);
  }
  p.connect(p.graph.handlers.back().name, "sink");
  p.add("sink", "t.sink", {{"log", log}});
  return p;
}

} // namespace millrace::test
