// The order of steps; see order.h.
#include "plan/order.h"

#include <algorithm>

namespace millrace::plan {

namespace {

// In ticks: a handler that fires on every k-th answers its firings as many ticks later.
uint32_t pending_of(const Plan& plan, const Step& step) {
  return step.handler == kNone ? 0 : plan.handlers[step.handler].info->max_pending * step.every;
}

// Where `latest` is waited for (2.5), what is pending before it is pending behind it, but for the ticks that it lags.
uint32_t level_through(const Plan& plan, const Channel& channel) {
  const Step& post = plan.steps[channel.from];
  const bool waits =
      channel.kind == ChannelKind::latest && channel.same_clock && !plan.clocks[plan.paces[post.pace].clock].realtime();
  return waits && post.level > channel.lag ? post.level - channel.lag : 0;
}

uint32_t level_of(const Plan& plan, const Step& step) {
  uint32_t level = 0;
  for (const StepInput& input : step.inputs) {
    if (input.output == kNone || input.delay > 0) continue;
    const Step& source = plan.steps[plan.outputs[input.output].step];
    if (source.pace == step.pace) level = std::max(level, source.level + pending_of(plan, source));
  }
  if (step.kind == StepKind::resolve) level = std::max(level, level_through(plan, plan.channels[step.channel]));
  for (uint32_t before : step.after)
    level = std::max(level, plan.steps[before].level + pending_of(plan, plan.steps[before]));
  // Nothing behind a gate runs before the gate has let its tick in.
  return std::max(level, base_level(plan, plan.paces[step.pace]));
}

void renumber(Plan& plan, const std::vector<uint32_t>& place) {
  const auto move = [&](uint32_t& step) {
    if (step != kNone) step = place[step];
  };
  for (Step& step : plan.steps) {
    for (uint32_t& s : step.after) move(s);
    for (uint32_t& s : step.readers) move(s);
  }
  for (Output& output : plan.outputs) move(output.step);
  for (HandlerPlan& handler : plan.handlers) move(handler.step);
  for (EdgePlan& edge : plan.edges) move(edge.target_step);
  for (TransferPlan& transfer : plan.transfers) move(transfer.step);
  for (Channel& channel : plan.channels) {
    move(channel.from);
    move(channel.to);
  }
  for (Clock& clock : plan.clocks) move(clock.driver);
  for (Pace& pace : plan.paces) {
    move(pace.gate);
    move(pace.entry);
    for (uint32_t& s : pace.sources) move(s);
  }
}

} // namespace

void order_steps(Draft& draft) {
  Plan& plan = draft.plan;
  std::vector<std::pair<uint32_t, uint32_t>> edges;
  for (uint32_t s = 0; s < plan.steps.size(); ++s) {
    for (const StepInput& input : plan.steps[s].inputs)
      if (input.output != kNone && input.delay == 0) edges.emplace_back(plan.outputs[input.output].step, s);
    for (uint32_t before : plan.steps[s].after) edges.emplace_back(before, s);
  }
  for (const Channel& channel : plan.channels) edges.emplace_back(channel.from, channel.to);
  const std::vector<uint32_t> order = topological_order(static_cast<uint32_t>(plan.steps.size()), edges);
  MR_ASSERT(order.size() == plan.steps.size(), "resolve() refused all cycles, and no pass may add one");
  std::vector<uint32_t> place(order.size());
  std::vector<Step> steps(order.size());
  for (uint32_t i = 0; i < order.size(); ++i) {
    place[order[i]] = i;
    steps[i] = std::move(plan.steps[order[i]]);
  }
  plan.steps = std::move(steps);
  renumber(plan, place);
}

uint32_t base_level(const Plan& plan, const Pace& pace) { return pace.gate == kNone ? 0 : plan.steps[pace.gate].level; }

void find_levels(Draft& draft) {
  Plan& plan = draft.plan;
  for (Step& step : plan.steps) step.level = 0;
  // A gate may stand later in the order than a step behind it, so one look at each is not enough; no more looks are
  // needed than there are paces.
  bool changed = true;
  for (size_t look = 0; changed && look <= plan.paces.size(); ++look) {
    changed = false;
    for (Step& step : plan.steps) {
      const uint32_t level = level_of(plan, step);
      changed = changed || level != step.level;
      step.level = level;
    }
  }
}

void check_pending_loops(Draft& draft) {
  Plan& plan = draft.plan;
  for (const Step& step : plan.steps) {
    for (const StepInput& input : step.inputs) {
      if (input.output == kNone || input.delay == 0) continue;
      const Step& source = plan.steps[plan.outputs[input.output].step];
      const uint32_t owed = source.level + pending_of(plan, source);
      if (source.pace != step.pace || owed <= step.level || input.delay > owed - step.level) continue;
      const graph::Edge* declared = input.edge == kNone ? nullptr : draft.edges[input.edge].declared;
      throw Failure(Error{405,
                          source.name + " may answer " + std::to_string(owed - step.level) + " ticks late, and " +
                              step.name + " reads it after " + std::to_string(input.delay),
                          declared ? declared->place : Place{},
                          {"the loop would wait for itself"},
                          "",
                          "delay: " + std::to_string(owed - step.level + 1)});
    }
  }
  // A queue that rejoins its own tick must hold what is pending on the path that it rejoins.
  for (uint32_t e = 0; e < draft.edges.size(); ++e) {
    const graph::Edge& declared = *draft.edges[e].declared;
    if (declared.policy != graph::Policy::queue || draft.edges[e].crosses_clocks) continue;
    const Step& reader = plan.steps[plan.edges[e].target_step];
    const Step& source = plan.steps[draft.handlers[draft.edges[e].source].step];
    if (reader.pace != source.pace || reader.level <= source.level || declared.depth >= reader.level - source.level)
      continue;
    throw Failure(Error{405,
                        "the queue of " + plan.edges[e].to + " holds " + std::to_string(declared.depth) +
                            " values, and the path that it rejoins keeps " +
                            std::to_string(reader.level - source.level) + " pending",
                        declared.place,
                        {},
                        "",
                        "depth: " + std::to_string(reader.level - source.level)});
  }
}

} // namespace millrace::plan
