// Finds groups and settles how they take their items; see groups.h.
#include "plan/groups.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "batch/collector.h"
#include "graph/quantity.h"
#include "graph/unfold.h"
#include "observe/error_codes.h"
#include "plan/facts.h"
#include "plan/format_text.h"
#include "plan/group_plan.h"
#include "plan/machine.h"
#include "plan/reachability.h"
#include "plugin/handler_info.h"

namespace millrace::plan {

const GroupPlan& group_of(const Plan& plan, uint32_t clock) {
  return *std::find_if(plan.groups.begin(), plan.groups.end(),
                       [&](const GroupPlan& group) { return group.clock == clock; });
}

namespace {

// The most rows of a firing if nothing says how many.
constexpr uint32_t kRowsMost = 32;

const graph::StreamSet& set_of(const Draft& draft, const GroupPlan& group) { return *draft.graph.find_set(group.set); }

void refuse(const DraftHandler& handler, const std::string& what, const std::string& why, const std::string& edit) {
  throw Failure(Error{code::bad_group,
                      handler.declared->name + " (" + handler.info->type + ") " + what,
                      handler.declared->place,
                      {why},
                      "",
                      edit});
}

void check_handler(const DraftHandler& handler, const GroupPlan& group) {
  if (handler.info->max_pending > 0)
    refuse(handler, "takes items of '" + group.set + "', and answers later",
           "an item's results are given back once the call has returned", "for_each: " + group.set);
  if (handler.info->has_state)
    refuse(handler, "takes items of '" + group.set + "', and has state",
           "one state would serve all streams, and each of them would find what others left there",
           "for_each: " + group.set);
  for (const auto& port : handler.info->ports)
    if (port.raw.keeps > 0)
      refuse(handler, "takes items of '" + group.set + "', and keeps earlier values of " + port.name,
             "the values before an item are of other streams", "for_each: " + group.set);
}

// The group whose items the edge carries.
const GroupPlan& group_of(const Draft& draft, const DraftEdge& edge) {
  const std::string& name = draft.handlers[edge.enters ? edge.target : edge.source].declared->group;
  return *std::find_if(draft.plan.groups.begin(), draft.plan.groups.end(),
                       [&](const GroupPlan& group) { return group.name == name; });
}

void find_stream(const Draft& draft, DraftEdge& edge) {
  const graph::StreamSet& set = set_of(draft, group_of(draft, edge));
  const graph::Stream& stream = *set.find(edge.declared->item_of);
  edge.stream = static_cast<uint32_t>(&stream - set.items.data());
  const std::string clock = graph::clock_name(set, stream);
  const auto& clocks = draft.graph.clocks;
  const auto at =
      std::find_if(clocks.begin(), clocks.end(), [&](const graph::Clock& known) { return known.name == clock; });
  edge.stream_clock = static_cast<uint32_t>(at - clocks.begin());
}

std::string written_source(const graph::Edge& edge) {
  return graph::read_instance_name(edge.source).handler + (edge.source_port.empty() ? "" : "." + edge.source_port);
}

} // namespace

bool is_more_of_one(const Draft& draft, const DraftEdge& edge, uint32_t input) {
  const DraftHandler& target = draft.handlers[edge.target];
  if (edge.declared->item_of.empty() || target.declared->group.empty() || target.edge_counts[input] == 0) return false;
  return std::any_of(draft.edges.begin(), draft.edges.end(), [&](const DraftEdge& other) {
    const graph::Edge &a = *edge.declared, &b = *other.declared;
    return other.target == edge.target && b.target_port == a.target_port && b.item_of != a.item_of &&
           b.place.line == a.place.line && b.place.column == a.place.column;
  });
}

void refuse_list_of_items(const DraftHandler& target, const std::string& port, const graph::Edge& edge) {
  throw Failure(Error{code::bad_stream_edge,
                      target.declared->name + "." + port + " reads all streams by a list, and says no policy",
                      edge.place,
                      {"a list input reads all streams by policy: latest or align, with a clock of its own",
                       "a single input reads them item by item, by policy: sync"},
                      "",
                      "{ from: " + written_source(edge) + ", policy: latest }"});
}

void refuse_list_at_one(const DraftHandler& target, const std::string& port, const graph::Edge& edge) {
  const bool is_in_step = edge.policy == graph::Policy::sync; // only streams that share a clock are a list by it
  throw Failure(Error{
      code::bad_stream_edge,
      target.declared->name + "." + port + " takes one edge, and reads all streams of '" + edge.over + "' by a list",
      is_in_step ? target.declared->place : edge.place,
      {is_in_step ? "with clock: shared a handler takes them item by item if it has 'batch'"
                  : "a single input reads them item by item, by policy: sync"},
      "",
      is_in_step ? "batch: { max: 8 }" : "{ from: " + written_source(edge) + ", policy: sync }"});
}

void check_domain_of_item(const Draft& draft, const DraftEdge& edge, uint32_t first, uint32_t domain) {
  if (first == domain) return;
  const auto& domains = draft.plan.domains;
  refuse(draft.handlers[edge.target],
         "takes items of all streams, and " + draft.port_name(edge.source, false, edge.source_output) + " is in " +
             domains[domain].name + ", others in " + domains[first].name,
         "a firing has its inputs in one memory",
         "device: " + domains[first].name + ", for " + graph::written_name(draft.handlers[edge.source].declared->name));
}

void refuse_formats_of_items(const Draft& draft, const DraftEdge& edge, const std::string& differs,
                             const mr_format& first, const mr_format& other) {
  const DraftEdge& before = draft.edges[draft.handlers[edge.target].input_edge[edge.target_input]];
  const plugin::HandlerInfo* const convert = draft.types.converter(MR_ROLE_PIXELS);
  const std::string& set = group_of(draft, edge).set;
  throw Failure(Error{
      code::incompatible_formats,
      draft.port_name(edge.target, true, edge.target_input) + " takes items of all streams, and they have different " +
          differs,
      edge.declared->place,
      {draft.port_name(before.source, false, before.source_output) + " gives " + format_words(first),
       draft.port_name(edge.source, false, edge.source_output) + " gives " + format_words(other),
       "items may differ in size alone"},
      "",
      other.kind == MR_KIND_IMAGE && convert ? convert->type + " before it, for_each: " + set : "for_each: " + set});
}

void find_groups(Draft& draft) {
  for (uint32_t c = 0; c < draft.graph.clocks.size(); ++c) {
    const graph::Clock& clock = draft.graph.clocks[c];
    if (!clock.is_group) continue;
    GroupPlan group;
    group.name = graph::read_instance_name(clock.name).handler;
    group.set = clock.set;
    group.clock = c;
    group.gives.assign(set_of(draft, group).items.size(), kNone);
    for (uint32_t h = 0; h < draft.handlers.size(); ++h) {
      const DraftHandler& handler = draft.handlers[h];
      if (handler.declared->group != group.name || !handler.info) continue;
      check_handler(handler, group);
      group.handlers.push_back(h);
    }
    draft.plan.groups.push_back(std::move(group));
  }
  for (DraftEdge& edge : draft.edges)
    if (edge.enters || edge.leaves) find_stream(draft, edge);
}

void refuse_ways_back(const Draft& draft) {
  Reachability ways(draft.handlers.size());
  for (const DraftEdge& edge : draft.edges)
    if (edge.declared->delay == 0) ways.add(edge.source, edge.target);
  for (const GroupPlan& group : draft.plan.groups)
    for (const uint32_t h : group.handlers) ways.join(group.handlers[0], h);
  for (const DraftEdge& edge : draft.edges) {
    if (!edge.leaves || edge.declared->delay > 0 || !ways.leads(edge.target, edge.source)) continue;
    const DraftHandler& source = draft.handlers[edge.source];
    const std::string target = graph::written_name(draft.handlers[edge.target].declared->name);
    refuse(source, "is of a group, and a way by " + target + " leads back into it",
           "handlers that sync edges join take their items together, so a firing would wait for its own results",
           "delay: 1 on an edge of the way, or for_each: " + group_of(draft, edge).set);
  }
}

namespace {

class SettleGroup {
 public:
  SettleGroup(Draft& draft, GroupPlan& group) : draft_(draft), group_(group) {
    for (const uint32_t h : group.handlers)
      if (draft.handlers[h].declared->batch) batch_ = &*draft.handlers[h].declared->batch;
    for (const graph::Stream& stream : set_of(draft, group).items) {
      const std::string name = graph::clock_name(set_of(draft, group), stream);
      for (const Clock& clock : draft.plan.clocks)
        if (clock.name == name) streams_.push_back(&clock);
    }
  }

  void run() {
    Clock& clock = draft_.plan.clocks[group_.clock];
    clock.mode = graph::ClockMode::free;
    clock.live = std::any_of(streams_.begin(), streams_.end(), [](const Clock* stream) { return stream->realtime(); });
    settle_rule(clock.live);
    settle_items_max();
    group_.in_flight = batch_ && batch_->in_flight > 0 ? batch_->in_flight : lanes() > 1 ? kFiringsMax : 1;
  }

 private:
  // The longest period of a stream.
  int64_t period_ns() const {
    int64_t longest = 0;
    for (const Clock* stream : streams_)
      if (stream->rate.numerator > 0)
        longest = std::max(longest, 1'000'000'000 * stream->rate.denominator / stream->rate.numerator);
    return longest > 0 ? longest : 1'000'000'000 / kNominalRate;
  }

  void settle_rule(bool realtime) {
    group_.of_rows = batch_ && batch_->of_rows;
    if (batch_) group_.size = batch_->size;
    if (batch_ && batch_->is_fixed()) {
      // Without time a size is the most that it takes: streams that meet again after the group would wait for each
      // other (B12).
      group_.rule = realtime ? BatchRule::fixed : BatchRule::free;
      group_.wait_ns = batch_->wait_ns >= 0 ? batch_->wait_ns : period_ns();
    } else {
      group_.rule = realtime ? BatchRule::learnt : BatchRule::free;
    }
    if (!realtime) return;
    group_.budget_ns = batch_ && batch_->budget_ns > 0 ? batch_->budget_ns : period_ns();
    const graph::Late late = batch_ ? batch_->late : graph::Late::automatic;
    group_.drop_late = group_.rule == BatchRule::learnt && late != graph::Late::keep;
  }

  uint32_t lanes() const {
    uint32_t lanes = 1;
    for (const uint32_t h : group_.handlers) lanes = std::max(lanes, draft_.handlers[h].declared->concurrency);
    return lanes;
  }

  void settle_items_max() {
    if (batch_ && batch_->max > 0) {
      group_.items_max = batch_->max;
    } else if (group_.size > 0) {
      group_.items_max = std::bit_ceil(group_.size);
    } else {
      uint32_t most = 0;
      for (const uint32_t h : group_.handlers)
        most = std::max(most, std::bit_floor(draft_.handlers[h].info->items_max));
      // No more than the streams may have inside at a time.
      const bool realtime = group_.budget_ns > 0;
      const auto inside =
          static_cast<uint32_t>(streams_.size()) * (realtime ? batch::kAllowanceMost : batch::kAllowanceFree);
      group_.items_max = std::min({most > 0 ? most : kRowsMost, kRowsMost, std::bit_ceil(inside)});
    }
    if (group_.size == 0) group_.size = group_.items_max;
  }

  Draft& draft_;
  GroupPlan& group_;
  const graph::Batch* batch_ = nullptr;
  std::vector<const Clock*> streams_;
};

} // namespace

void settle_groups(Draft& draft) {
  for (GroupPlan& group : draft.plan.groups) SettleGroup(draft, group).run();
}

namespace {

// The node on which the streams begin that give the group its items. Throws Failure if there are several.
uint32_t node_of_streams(const Draft& draft, const GroupPlan& group) {
  uint32_t node = kNone;
  for (const DraftEdge& edge : draft.edges) {
    if (!edge.enters || &group_of(draft, edge) != &group) continue;
    const uint32_t home = draft.homes[edge.stream_clock];
    if (node == kNone) node = home;
    if (node != home)
      refuse(draft.handlers[group.handlers[0]],
             "takes items of '" + group.set + "', whose streams begin on " + draft.options.nodes[node] + " and " +
                 draft.options.nodes[home],
             "items do not go over a link yet", "for_each: " + group.set);
  }
  return node;
}

void refuse_elsewhere(const Draft& draft, const DraftHandler& handler, const std::string& does, const std::string& what,
                      uint32_t node) {
  if (handler.node == node) return;
  refuse(handler, does + " on " + draft.options.nodes[handler.node] + ", and " + what + draft.options.nodes[node],
         "items do not go over a link yet", "node: " + draft.options.nodes[node]);
}

// The time of a firing of so many items; 0: not known.
int64_t firing_ns(const Draft& draft, const GroupPlan& group, uint32_t items) {
  double us = 0;
  for (const uint32_t h : group.handlers) {
    if (draft.plan.handlers[h].cost_ns == 0) return 0;
    us += items_us(draft, draft.handlers[h], draft.handlers[h].domain, items);
  }
  return std::llround(us * 1000);
}

// The time that an item takes beside its firing's expected time (batch/forecast.h).
constexpr int64_t kMarginLeastNs = 200'000;

void check_budget(const Draft& draft, const GroupPlan& group) {
  const graph::Batch* given = nullptr;
  for (const uint32_t h : group.handlers)
    if (const auto& batch = draft.handlers[h].declared->batch; batch && batch->budget_ns > 0) given = &*batch;
  if (!given || group.curve_ns.empty() || group.curve_ns[0] + kMarginLeastNs <= given->budget_ns) return;
  const int64_t least_ns = group.curve_ns[0] + kMarginLeastNs;
  throw Failure(Error{code::budget_too_short,
                      "the group of " + group.name + " takes " + graph::write_duration(group.curve_ns[0]) +
                          " for one item, and its budget is " + graph::write_duration(given->budget_ns),
                      given->place,
                      {"an item that waits for nothing needs " + graph::write_duration(least_ns) + " with its margin"},
                      "",
                      "budget: " + graph::write_duration(2 * least_ns)});
}

} // namespace

void price_groups(Draft& draft) {
  for (GroupPlan& group : draft.plan.groups) {
    for (uint32_t items = 1; items <= group.items_max; items *= 2) {
      const int64_t ns = firing_ns(draft, group, items);
      if (ns > 0) group.curve_ns.push_back(ns);
    }
    check_budget(draft, group);
  }
}

void refuse_groups_over_nodes(const Draft& draft) {
  for (const GroupPlan& group : draft.plan.groups) {
    const uint32_t node = node_of_streams(draft, group);
    const std::string items = "items of '" + group.set + "'";
    for (const uint32_t h : group.handlers)
      refuse_elsewhere(draft, draft.handlers[h], "takes " + items, "the streams begin on ", node);
    for (const DraftEdge& edge : draft.edges) {
      if (!(edge.enters || edge.leaves) || &group_of(draft, edge) != &group) continue;
      refuse_elsewhere(draft, draft.handlers[edge.source], "gives " + items, "they are taken on ", node);
      refuse_elsewhere(draft, draft.handlers[edge.target], "reads " + items, "they are taken on ", node);
    }
  }
}

} // namespace millrace::plan
