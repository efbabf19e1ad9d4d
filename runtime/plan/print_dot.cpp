// The plan as a Graphviz graph: a box for each segment, an arrow for each edge, a name on each copy.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "plan/describe_crossing.h"
#include "plan/format_text.h"

namespace millrace::plan {

namespace {

// Escapes text for the quotes of a dot string.
std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

// True if the plan added the step, not a person.
bool is_added(const Plan& plan, const Step& step) {
  return step.handler() == kNone || std::any_of(plan.inserted.begin(), plan.inserted.end(),
                                                [&](const InsertedPlan& by) { return by.handler == step.handler(); });
}

std::string nodes(const Plan& plan) {
  std::string text;
  for (size_t s = 0; s < plan.segments.size(); ++s) {
    const Segment& segment = plan.segments[s];
    if (segment.lane > 0) continue;
    text += fmt::format("  subgraph cluster_{} {{\n    label=\"segment {} on {}\";\n", s, s,
                        escaped(plan.domains[segment.domain].name));
    for (uint32_t index : segment.steps) {
      const Step& step = plan.steps[index];
      const bool handler = step.handler() != kNone;
      const std::string type = handler ? "\\n" + escaped(plan.handlers[step.handler()].type) : "";
      text += fmt::format("    step{} [label=\"{}{}\"{}];\n", index, escaped(step.name), type,
                          is_added(plan, step) ? ", style=dashed" : "");
    }
    text += "  }\n";
  }
  return text;
}

std::string arrows(const Plan& plan) {
  std::string text;
  for (uint32_t s = 0; s < plan.steps.size(); ++s) {
    std::set<uint32_t> drawn; // an output that is read twice is one arrow
    for (const StepInput& input : plan.steps[s].inputs) {
      if (input.output == kNone || !drawn.insert(input.output).second) continue;
      std::string label = plan.outputs[input.output].name;
      if (input.delay > 0) label += fmt::format(", {} before", input.delay);
      text += fmt::format("  step{} -> step{} [label=\"{}\"];\n", plan.outputs[input.output].step, s, escaped(label));
    }
  }
  for (const Channel& channel : plan.channels)
    if (is_whole(channel)) text += fmt::format("  step{} -> step{} [style=dotted];\n", channel.from, channel.to);
  return text;
}

// A box for each other node that a crossing leads to, with the handlers that it runs.
std::string other_nodes(const Plan& plan) {
  std::string text;
  for (uint32_t node = 0; node < plan.nodes.size(); ++node) {
    const std::string& name = plan.nodes[node];
    if (std::none_of(plan.crossings.begin(), plan.crossings.end(),
                     [&](const CrossingPlan& crossing) { return crossing.node == name; }))
      continue;
    std::string label = escaped(name);
    for (const HandlerPlan& handler : plan.handlers)
      if (handler.node == node) label += "\\n" + escaped(handler.name);
    text += fmt::format("  node{} [label=\"{}\", shape=box3d];\n", node, label);
  }
  return text;
}

std::string links(const Plan& plan) {
  std::string text;
  for (const CrossingPlan& crossing : plan.crossings) {
    const Channel& channel = plan.channels[crossing.channel];
    std::string label = escaped(crossing.name);
    for (const CrossingValue& value : values_of(plan, crossing)) label += "\\n" + escaped(value.name);
    const uint32_t other = plan.paces[crossing.departs ? crossing.to : crossing.from].node;
    const std::string from = crossing.departs ? fmt::format("step{}", channel.from) : fmt::format("node{}", other);
    const std::string to = crossing.departs ? fmt::format("node{}", other) : fmt::format("step{}", channel.to);
    text += fmt::format("  {} -> {} [label=\"{}\", style=dashed];\n", from, to, label);
  }
  return text;
}

} // namespace

std::string print_dot(const Plan& plan) {
  return fmt::format("digraph \"{}\" {{\n  rankdir=LR;\n  node [shape=box];\n", escaped(plan.name)) + nodes(plan) +
         other_nodes(plan) + arrows(plan) + links(plan) + "}\n";
}

} // namespace millrace::plan
