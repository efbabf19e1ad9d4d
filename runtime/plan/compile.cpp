// From a declared graph to a plan: runs the passes in order, and begins again if negotiation asks for a conversion.
#include <algorithm>
#include <map>
#include <optional>

#include "graph/unfold.h"
#include "observe/error_codes.h"
#include "plan/clock_circles.h"
#include "plan/draft.h"
#include "plan/facts.h"
#include "plan/machine.h"
#include "plan/memory.h"
#include "plan/order.h"
#include "plan/predict.h"
#include "plan/stages.h"
#include "plugin/answers.h"

namespace millrace::plan {

namespace {

// One round finds all conversions, and another that there are no more. A handler whose output differs from what its
// ports say may cost a round. More rounds than these mean that two handlers ask for each other's formats for ever.
constexpr int kConversionRoundsMax = 64;

// Formats point to record types of plugins; the plan has its own copies of them, one of each.
void keep_records(Plan& plan) {
  std::map<const mr_record_type*, const mr_record_type*> kept;
  for (Output& output : plan.outputs) {
    if (!output.format.records) continue;
    const mr_record_type*& copy = kept[output.format.records];
    for (size_t r = 0; r < plan.records.size() && !copy; ++r)
      if (plugin::same(plan.records[r]->raw, *output.format.records)) copy = &plan.records[r]->raw;
    if (!copy) {
      plan.records.push_back(std::make_shared<plugin::RecordType>(*output.format.records));
      copy = &plan.records.back()->raw;
    }
    output.format.records = copy;
  }
}

void run_passes(Draft& draft) {
  place(draft);
  expand(draft);
  route(draft);
  plan_finish(draft);
  order_steps(draft);
  find_levels(draft);
  share_buffers(draft);
  order_steps(draft);
  find_levels(draft);
  check_pending_loops(draft);
  pack(draft);
  partition(draft);
  capture(draft);
  break_copy_cycles(draft);
  hold_circles(draft);
  lay_out(draft);
  schedule(draft.plan);
  describe_conversions(draft);
  const PredictedLatency latency = predict_latency(draft.plan);
  if (latency.unknown == 0) draft.plan.latency_us = latency.us;
  keep_records(draft.plan);
}

// The graph and its facts, with the conversions that the plan inserts. They are copied at the first insertion.
class Extended {
 public:
  Extended(const graph::Graph& graph, const Facts& facts, const Types& types)
      : declared_(graph), declared_facts_(facts), types_(types) {}

  const graph::Graph& graph() const { return graph_ ? *graph_ : declared_; }
  const Facts& facts() const { return graph_ ? facts_ : declared_facts_; }
  const std::map<std::string, std::string>& elsewhere() const { return elsewhere_; }

  // Adds a conversion between an output and those of its readers that want the same one.
  void insert(const Draft& draft, const Conversion& conversion) {
    if (!graph_) {
      graph_ = declared_;
      facts_ = declared_facts_;
    }
    const graph::Edge& edge = graph_->edges[conversion.edges[0]];
    const DraftEdge& drafted = draft.edges[conversion.edges[0]];
    graph::Handler convert;
    convert.type = conversion.type;
    name(convert, edge, draft.handlers[drafted.source].declared, conversion.wish);
    convert.place = edge.place;
    convert.clock = draft.plan.clocks[draft.handlers[drafted.source].clock].name;
    convert.node = node_of(conversion);
    convert.inserted = true;
    convert.group = draft.handlers[drafted.source].declared->group;
    for (const auto& [name, text] : conversion.settings) convert.params.push_back({name, text, edge.place, edge.place});
    graph::Edge first = edge;
    first.policy = graph::Policy::sync;
    first.delay = 0;
    first.initial_empty = false;
    first.domain.clear(); // `domain:` stays with the edges that the readers read
    first.target = convert.name;
    first.target_port = "";
    first.target_index = 0;
    first.over.clear();
    first.item_of.clear();
    for (const size_t e : conversion.edges) {
      first.forbid_copy = first.forbid_copy || graph_->edges[e].forbid_copy;
      graph_->edges[e].source = convert.name;
      graph_->edges[e].source_port = "";
    }
    Types::Answering answering = types_.answering(convert);
    facts_.handlers.push_back({convert.name, answering.answers.get(), {}, {}, std::move(answering.accepts)});
    facts_.handlers.back().facts.rate_den = 1;
    facts_.handlers.back().facts.time_den = 1;
    facts_.handlers.back().facts.tick_count = -1;
    answers_.push_back(std::move(answering.answers));
    graph_->edges.push_back(first);
    graph_->handlers.push_back(convert);
    if (!conversion.elsewhere.empty()) elsewhere_[convert.name] = conversion.elsewhere;
  }

 private:
  // "blur~rgb8", or "blur~rgb82" if there is one. A stream's conversions are of the stream too: "blur~rgb8@gate7".
  void name(graph::Handler& convert, const graph::Edge& edge, const graph::Handler* source,
            const std::string& wish) const {
    const graph::InstanceName target = graph::read_instance_name(edge.target);
    const auto name_it = [&](const std::string& own) {
      convert.name = source->stream.empty() ? own : graph::instance_name(own, source->stream);
      convert.written_as = source->stream.empty() ? "" : own;
    };
    convert.stream = source->stream;
    convert.for_each = source->for_each;
    name_it(target.handler + "~" + wish);
    for (int n = 2; graph_->find(convert.name); ++n) name_it(target.handler + "~" + wish + std::to_string(n));
  }

  // The readers' node, if they share one; else that of the output.
  std::string node_of(const Conversion& conversion) const {
    const auto node_of_reader = [&](size_t e) { return graph_->find(graph_->edges[e].target)->node; };
    const std::string node = node_of_reader(conversion.edges[0]);
    const bool shared = std::all_of(conversion.edges.begin(), conversion.edges.end(),
                                    [&](size_t e) { return node_of_reader(e) == node; });
    return shared ? node : graph_->find(graph_->edges[conversion.edges[0]].source)->node;
  }

  const graph::Graph& declared_;
  const Facts& declared_facts_;
  const Types& types_;
  std::optional<graph::Graph> graph_;
  Facts facts_;
  std::vector<std::unique_ptr<plugin::Answers>> answers_;
  std::map<std::string, std::string> elsewhere_;
};

} // namespace

void settle_formats(const graph::Graph& graph, const Facts& facts, const Types& types, const Machine& machine,
                    const Options& options, const std::function<void(Draft&)>& then) {
  Extended all(graph, facts, types);
  for (int round = 0; round < kConversionRoundsMax; ++round) {
    Draft draft{all.graph(), all.facts(), types, machine, options};
    draft.elsewhere = all.elsewhere();
    draft.plan.name = graph.name;
    draft.plan.nodes = options.nodes;
    draft.plan.node = options.node;
    resolve(draft);
    assign_clocks(draft);
    find_stages(draft);
    const std::vector<Conversion> conversions = negotiate(draft);
    if (conversions.empty()) return then(draft);
    for (const Conversion& conversion : conversions) all.insert(draft, conversion);
  }
  throw Failure(
      Error{code::incompatible_formats, "the formats of this graph cannot be settled by conversions", {}, {}, "", ""});
}

Plan compile(const graph::Graph& graph, const Facts& facts, const Types& types, const Machine& machine,
             const Options& options) {
  Plan plan;
  settle_formats(graph, facts, types, machine, options, [&](Draft& draft) {
    draft.plan.notes = options.notes;
    note_idle(draft);
    run_passes(draft);
    plan = std::move(draft.plan);
  });
  return plan;
}

} // namespace millrace::plan
