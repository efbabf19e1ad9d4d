// Makes the steps of groups; see group_steps.h.
#include "plan/group_steps.h"

#include <algorithm>

#include "batch/collector.h"
#include "plan/groups.h"
#include "plan/memory.h"
#include "plan/pace.h"
#include "plan/reachability.h"
#include "plugin/handler_info.h"

namespace millrace::plan {

uint32_t GroupSteps::group_named(const std::string& name) const {
  const auto at = std::find_if(plan_.groups.begin(), plan_.groups.end(),
                               [&](const GroupPlan& group) { return group.name == name; });
  return static_cast<uint32_t>(at - plan_.groups.begin());
}

// True if an item of a stream needs the result of an earlier one. Then the stream has one at a time inside.
bool GroupSteps::leads_back(const GroupPlan& group) const {
  Reachability ways(draft_.handlers.size());
  for (const DraftEdge& edge : draft_.edges) ways.add(edge.source, edge.target);
  for (const GroupPlan& other : plan_.groups) // one firing has all of a group
    for (const uint32_t h : other.handlers) ways.join(other.handlers[0], h);
  return std::any_of(draft_.edges.begin(), draft_.edges.end(), [&](const DraftEdge& edge) {
    const bool is_its = edge.leaves && all_.source_of(edge).declared->group == group.name;
    return is_its && (edge.target == edge.source || ways.leads(edge.target, edge.source));
  });
}

uint32_t GroupSteps::allowance(const GroupPlan& group, uint32_t stream_clock) const {
  const Clock& clock = plan_.clocks[stream_clock];
  if (!clock.realtime() || clock.rate.numerator == 0) return batch::kAllowanceFree;
  const int64_t period_ns = 1'000'000'000 * clock.rate.denominator / clock.rate.numerator;
  return batch::allowance_of(std::max<int64_t>(period_ns, 1), group.budget_ns);
}

void GroupSteps::begin(uint32_t group) {
  GroupPlan& plan = plan_.groups[group];
  if (plan.entry != kNone) return;
  plan.entry = all_.add_step(EntryStep{}, "items of " + plan.name, plan.clock);
  plan.deal = all_.add_step(DealStep{group}, "deal out " + plan.name, plan.clock);
  plan_.paces[plan.clock].entry = plan.entry;
}

void GroupSteps::finish() {
  for (const GroupPlan& group : plan_.groups)
    for (uint32_t s = 0; group.deal != kNone && s < plan_.steps.size(); ++s)
      if (plan_.steps[s].pace == group.clock && s != group.deal && s != group.entry)
        plan_.steps[group.deal].after.push_back(s);
}

uint32_t GroupSteps::give_of(uint32_t group, const DraftEdge& edge) {
  begin(group);
  uint32_t& step = plan_.groups[group].gives[edge.stream];
  if (step != kNone) return step;
  const GroupPlan& plan = plan_.groups[group];
  const auto [back, is_new] = leads_back_.try_emplace(group, false);
  if (is_new) back->second = leads_back(plan);
  GiveStep give;
  give.group = group;
  give.stream = edge.stream;
  if (!back->second) give.owes = give.allowance = allowance(plan, edge.stream_clock);
  step = all_.add_step(give, "give " + plan.name, edge.stream_clock);
  return step;
}

uint32_t GroupSteps::give(const DraftEdge& edge, const StepInput& input) {
  const uint32_t group = group_into(edge);
  const uint32_t step = give_of(group, edge);
  GroupPlan& plan = plan_.groups[group];
  const auto [at, is_new] = entries_.try_emplace({edge.target, edge.target_input}, kNone);
  if (is_new) {
    const Output source = plan_.outputs[input.output];
    // It has room for the largest of all streams' values.
    const mr_format& format = draft_.handlers[edge.target].inputs[edge.target_input];
    at->second = all_.add_output(plan.entry, source.name, format, source.domain);
    plan_.outputs[at->second].origin = input.output;
    plan_.outputs[at->second].connected = true;
  }
  check_domain_of_item(draft_, edge, plan_.outputs[at->second].domain, plan_.outputs[input.output].domain);
  Step& gives = plan_.steps[step];
  const uint32_t port = plan_.outputs[at->second].port;
  if (gives.inputs.size() <= port) gives.inputs.resize(port + 1);
  gives.inputs[port] = input;
  auto& readers = gives.as<GiveStep>().readers;
  const auto [reader, first] = readers_.try_emplace({step, edge.target}, readers.size());
  if (first) readers.push_back({draft_.handlers[edge.target].declared->every, {}});
  if (input.required && input.edge != kNone && is_sync(edge)) readers[reader->second].required.push_back(port);
  const auto& batch = draft_.handlers[edge.target].declared->batch;
  uint32_t& rows_input = gives.as<GiveStep>().rows_input;
  if (batch && batch->of_rows && rows_input == kNone) rows_input = port;
  return at->second;
}

bool GroupSteps::lies_dense(const Output& output) const {
  const Step& step = plan_.steps[output.step];
  if (step.handler() == kNone || !plan_.on_host(step.domain)) return false;
  const DraftHandler& handler = draft_.handlers[step.handler()];
  return handler.info->ports[handler.output_port[output.port]].raw.flags & MR_PORT_DENSE;
}

uint32_t GroupSteps::result(const DraftEdge& edge) {
  const uint32_t group = group_out_of(edge);
  const uint32_t step = give_of(group, edge);
  GroupPlan& plan = plan_.groups[group];
  const uint32_t made = draft_.handler_output[edge.source] + edge.source_output;
  const auto finished = all_.finished.find(made);
  const uint32_t from = finished == all_.finished.end() ? made : finished->second;
  std::vector<StepInput>& dealt = plan_.steps[plan.deal].inputs;
  auto at = std::find_if(dealt.begin(), dealt.end(), [&](const StepInput& input) { return input.output == from; });
  if (at == dealt.end()) {
    StepInput input;
    input.output = from;
    input.required = false;
    at = dealt.insert(at, input);
  }
  const auto number = static_cast<uint32_t>(at - dealt.begin());
  std::vector<uint32_t>& results = plan_.steps[step].as<GiveStep>().results;
  const auto known = std::find(results.begin(), results.end(), number);
  if (known != results.end()) return plan_.steps[step].outputs[static_cast<size_t>(known - results.begin())];
  results.push_back(number);
  const Output source = plan_.outputs[from];
  const uint32_t output = all_.add_output(step, source.name, source.format, source.domain);
  // Rows of a firing lie in one piece, which is free again once the next firings need it: items are copied out.
  if (!lies_dense(source)) plan_.outputs[output].origin = from;
  plan_.outputs[output].connected = true;
  return output;
}

} // namespace millrace::plan
