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

// Ticks that a step lags behind the newest that its source has begun. A loop's reader comes before its source within a
// tick, so there the answer must be older by one.
uint32_t lag_of(const Plan& plan, uint32_t s, const StepInput& input, const std::vector<bool>& in_loop) {
  const Step& source = plan.steps[plan.outputs[input.output].step];
  if (source.pace != plan.steps[s].pace) return 0;
  const uint32_t owed = source.level + pending_of(plan, source) + (input.delay > 0 && in_loop[s] ? 1 : 0);
  return owed > input.delay ? owed - input.delay : 0;
}

uint32_t level_of(const Plan& plan, uint32_t s, const std::vector<bool>& in_loop) {
  const Step& step = plan.steps[s];
  uint32_t level = 0;
  for (const StepInput& input : step.inputs)
    if (input.output != kNone) level = std::max(level, lag_of(plan, s, input, in_loop));
  if (step.kind == StepKind::resolve) level = std::max(level, level_through(plan, plan.channels[step.channel]));
  for (uint32_t before : step.after)
    level = std::max(level, plan.steps[before].level + pending_of(plan, plan.steps[before]));
  // Nothing behind a gate runs before the gate has let its tick in.
  return std::max(level, base_level(plan, plan.paces[step.pace]));
}

// The nodes of a graph that lead back to themselves: those whose strongly connected component has another node, or that
// lead to themselves at once. Tarjan, "Depth-first search and linear graph algorithms", 1972; without recursion, since
// a chain may be as long as a graph.
std::vector<bool> nodes_in_loops(const std::vector<std::vector<uint32_t>>& next) {
  const auto count = static_cast<uint32_t>(next.size());
  std::vector<uint32_t> number(count, kNone), lowest(count), child(count), open, path;
  std::vector<bool> is_open(count), in_loop(count);
  uint32_t seen = 0;
  for (uint32_t root = 0; root < count; ++root) {
    if (number[root] != kNone) continue;
    path.push_back(root);
    while (!path.empty()) {
      const uint32_t at = path.back();
      if (number[at] == kNone) {
        number[at] = lowest[at] = seen++;
        open.push_back(at);
        is_open[at] = true;
      }
      if (child[at] < next[at].size()) {
        const uint32_t to = next[at][child[at]++];
        if (to == at) in_loop[at] = true;
        if (number[to] == kNone)
          path.push_back(to);
        else if (is_open[to])
          lowest[at] = std::min(lowest[at], number[to]);
        continue;
      }
      path.pop_back();
      if (!path.empty()) lowest[path.back()] = std::min(lowest[path.back()], lowest[at]);
      if (lowest[at] != number[at]) continue;
      const bool alone = open.back() == at;
      for (bool last = false; !last; open.pop_back()) {
        last = open.back() == at;
        is_open[open.back()] = false;
        if (!alone) in_loop[open.back()] = true;
      }
    }
  }
  return in_loop;
}

// Steps that lead back to themselves by delayed edges.
std::vector<bool> find_loops(const Plan& plan) {
  std::vector<std::vector<uint32_t>> next(plan.steps.size());
  for (uint32_t s = 0; s < plan.steps.size(); ++s)
    for (const StepInput& input : plan.steps[s].inputs)
      if (input.output != kNone) next[plan.outputs[input.output].step].push_back(s);
  for (const Channel& channel : plan.channels) next[channel.from].push_back(channel.to);
  return nodes_in_loops(next);
}

} // namespace

void renumber(Plan& plan, const std::vector<uint32_t>& place) {
  const auto move = [&](uint32_t& step) {
    if (step != kNone) step = place[step];
  };
  for (Step& step : plan.steps) {
    for (uint32_t& s : step.after) move(s);
    for (uint32_t& s : step.readers) move(s);
    move(step.finishes);
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
  const std::vector<bool> in_loop = find_loops(plan);
  for (Step& step : plan.steps) step.level = 0;
  // A gate may stand later in the order than a step behind it, and delayed edges run backwards in it: a look for each
  // of those settles all but loops that owe ever more.
  size_t looks = plan.paces.size() + 1;
  for (const Step& step : plan.steps)
    looks += static_cast<size_t>(
        std::count_if(step.inputs.begin(), step.inputs.end(), [](const StepInput& input) { return input.delay > 0; }));
  for (bool changed = true; changed && looks > 0; --looks) {
    changed = false;
    for (uint32_t s = 0; s < plan.steps.size(); ++s) {
      const uint32_t level = level_of(plan, s, in_loop);
      changed = changed || level != plan.steps[s].level;
      plan.steps[s].level = level;
    }
  }
}

void check_pending_loops(Draft& draft) {
  Plan& plan = draft.plan;
  const std::vector<bool> in_loop = find_loops(plan);
  for (uint32_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    for (const StepInput& input : step.inputs) {
      if (input.output == kNone || input.delay == 0 || lag_of(plan, s, input, in_loop) <= step.level) continue;
      const Step& source = plan.steps[plan.outputs[input.output].step];
      const uint32_t pending = pending_of(plan, source);
      const graph::Edge* declared = input.edge == kNone ? nullptr : draft.edges[input.edge].declared;
      throw Failure(Error{405,
                          source.name + " reads, by way of a loop, what it answers too late itself: " + step.name +
                              " reads it after " + std::to_string(input.delay),
                          declared ? declared->place : Place{},
                          {"the loop would wait for itself"},
                          "",
                          "delay: " + std::to_string(std::max(pending, input.delay) + 1)});
    }
  }
  // A queue that rejoins its own tick must hold what is pending on the path that it rejoins.
  for (uint32_t e = 0; e < draft.edges.size(); ++e) {
    const graph::Edge& declared = *draft.edges[e].declared;
    if (declared.policy != graph::Policy::queue || draft.edges[e].crosses_clocks) continue;
    const Step& reader = plan.steps[plan.edges[e].target_step];
    const Step& source = plan.steps[plan.handlers[draft.edges[e].source].step];
    const uint32_t behind = source.level + pending_of(plan, source);
    if (reader.pace != source.pace || reader.level <= behind || declared.depth >= reader.level - behind) continue;
    throw Failure(Error{405,
                        "the queue of " + plan.edges[e].to + " holds " + std::to_string(declared.depth) +
                            " values, and the path that it rejoins keeps " + std::to_string(reader.level - behind) +
                            " pending",
                        declared.place,
                        {},
                        "",
                        "depth: " + std::to_string(reader.level - behind)});
  }
}

} // namespace millrace::plan
