// The plan as a Graphviz graph: a box for each segment, an arrow for each edge, a name on each copy. Templates are
// drawn once, with a count: see fold_segments.h.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "observe/secrets.h"
#include "plan/describe_crossing.h"
#include "plan/domain.h"
#include "plan/explained.h"
#include "plan/fold_segments.h"
#include "plan/format_text.h"
#include "plan/group_plan.h"
#include "plan/memory.h"
#include "plan/print.h"

namespace millrace::plan {

namespace {

// Escapes text for the quotes of a dot string.
std::string quoted_for_dot(const std::string& text) {
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

class DotPrinter {
 public:
  explicit DotPrinter(const Plan& plan)
      : plan_(plan),
        names_(plan),
        named_(names_.empty() ? Plan() : names_.named_by_template(plan)),
        segments_(fold_segments(plan_, by_template(), PlanWords(by_template(), names_, !names_.empty()), names_)),
        drawn_as_(plan.steps.size()) {
    std::iota(drawn_as_.begin(), drawn_as_.end(), 0u);
    for (const FoldedSegment& segment : segments_)
      for (const std::vector<uint32_t>& steps : segment.lines)
        for (const uint32_t s : steps) drawn_as_[s] = steps[0];
  }

  std::string text() const {
    return fmt::format("digraph \"{}\" {{\n  rankdir=LR;\n  node [shape=box];\n", quoted_for_dot(plan_.name)) +
           nodes() + other_nodes() + arrows() + links() + "}\n";
  }

 private:
  // A copy of the plan with template names, so that steps of different streams compare equal.
  const Plan& by_template() const { return names_.empty() ? plan_ : named_; }
  static std::string times(size_t count) { return count > 1 ? fmt::format(" ({})", count) : ""; }

  std::string nodes() const {
    std::string text;
    for (const FoldedSegment& folded : segments_) {
      const uint32_t s = folded.segments[0];
      const size_t count = folded.segments.size();
      text += fmt::format("  subgraph cluster_{} {{\n    label=\"segment {}{} on {}\";\n", s, s,
                          count > 1 ? fmt::format(" and {} like it", count - 1) : "",
                          quoted_for_dot(plan_.domains[plan_.segments[s].domain].name));
      for (const std::vector<uint32_t>& steps : folded.lines) text += node(steps);
      text += "  }\n";
    }
    return text;
  }

  std::string node(const std::vector<uint32_t>& steps) const {
    const Step& step = plan_.steps[steps[0]];
    const bool handler = step.handler() != kNone;
    const std::string type = handler ? "\\n" + quoted_for_dot(plan_.handlers[step.handler()].type) : "";
    const std::string& name = (steps.size() > 1 ? named_ : plan_).steps[steps[0]].name;
    return fmt::format("    step{} [label=\"{}{}{}\"{}];\n", steps[0], quoted_for_dot(name), times(steps.size()), type,
                       is_added(plan_, step) ? ", style=dashed" : "");
  }

  // Arrows that are alike are drawn once, if the pipeline has streams.
  struct Arrow {
    uint32_t from, to;
    std::string label;
    auto operator<=>(const Arrow&) const = default;
  };

  // The step that an arrow with this output begins at. What a group makes of an item is drawn from its end.
  uint32_t maker_of(const Output& output) const {
    const Step& step = plan_.steps[output.step];
    return step.is<GiveStep>() ? plan_.groups[step.as<GiveStep>().group].deal : output.step;
  }

  std::string arrows() const {
    std::vector<Arrow> arrows;
    std::map<Arrow, size_t> counts;
    const auto add = [&](const Arrow& arrow) {
      if (counts[arrow]++ == 0 || names_.empty()) arrows.push_back(arrow);
    };
    for (uint32_t s = 0; s < plan_.steps.size(); ++s) {
      std::set<uint32_t> drawn; // an output that is read twice is one arrow
      for (const StepInput& input : plan_.steps[s].inputs) {
        if (input.output == kNone || !drawn.insert(input.output).second) continue;
        std::string label = plan_.outputs[input.output].name;
        if (input.delay > 0) label += fmt::format(", {} before", input.delay);
        add({drawn_as_[maker_of(plan_.outputs[input.output])], drawn_as_[s], label});
      }
    }
    for (const GroupPlan& group : plan_.groups)
      for (const uint32_t give : group.gives)
        if (give != kNone) add({drawn_as_[give], drawn_as_[group.entry], "items"});
    std::string text;
    for (const Arrow& arrow : arrows)
      text += fmt::format("  step{} -> step{} [label=\"{}{}\"];\n", arrow.from, arrow.to, quoted_for_dot(arrow.label),
                          names_.empty() ? "" : times(counts.at(arrow)));
    std::set<std::pair<uint32_t, uint32_t>> joined;
    for (const Channel& channel : plan_.channels) {
      if (!is_whole(channel)) continue;
      const std::pair ends(drawn_as_[channel.from], drawn_as_[channel.to]);
      if (!names_.empty() && !joined.insert(ends).second) continue;
      text += fmt::format("  step{} -> step{} [style=dotted];\n", ends.first, ends.second);
    }
    return text;
  }

  // A box for each other node that a crossing leads to, with the handlers that it runs.
  std::string other_nodes() const {
    std::string text;
    for (uint32_t node = 0; node < plan_.nodes.size(); ++node) {
      const std::string& name = plan_.nodes[node];
      if (std::none_of(plan_.crossings.begin(), plan_.crossings.end(),
                       [&](const CrossingPlan& crossing) { return crossing.node == name; }))
        continue;
      std::string label = quoted_for_dot(name);
      std::vector<std::string> handlers;
      std::map<std::string, size_t> counts;
      for (uint32_t h = 0; h < plan_.handlers.size(); ++h) {
        if (plan_.handlers[h].node != node) continue;
        const std::string& handler = by_template().handlers[h].name;
        if (counts[handler]++ == 0) handlers.push_back(handler);
      }
      for (const std::string& handler : handlers) label += "\\n" + quoted_for_dot(handler) + times(counts.at(handler));
      text += fmt::format("  node{} [label=\"{}\", shape=box3d];\n", node, label);
    }
    return text;
  }

  std::string links() const {
    std::vector<std::pair<std::string, std::string>> links; // an arrow, its label
    std::map<std::pair<std::string, std::string>, size_t> counts;
    for (const CrossingPlan& crossing : by_template().crossings) {
      const Channel& channel = plan_.channels[crossing.channel];
      std::string label = quoted_for_dot(crossing.name);
      for (const CrossingValue& value : values_of(by_template(), crossing)) label += "\\n" + quoted_for_dot(value.name);
      const uint32_t other = plan_.paces[crossing.departs ? crossing.to : crossing.from].node;
      const std::string there = fmt::format("node{}", other);
      const std::string here = fmt::format("step{}", drawn_as_[crossing.departs ? channel.from : channel.to]);
      const std::pair link((crossing.departs ? here : there) + " -> " + (crossing.departs ? there : here), label);
      if (counts[link]++ == 0) links.push_back(link);
    }
    std::string text;
    for (const auto& link : links)
      text += fmt::format("  {} [label=\"{}{}\", style=dashed];\n", link.first, link.second, times(counts.at(link)));
    return text;
  }

  const Plan& plan_;
  const TemplateNames names_;
  const Plan named_; // by template; empty without streams
  const std::vector<FoldedSegment> segments_;
  std::vector<uint32_t> drawn_as_; // by step: the one that stands for it
};

} // namespace

std::string print_dot(const Plan& plan) { return without_secrets(DotPrinter(plan).text()); }

} // namespace millrace::plan
