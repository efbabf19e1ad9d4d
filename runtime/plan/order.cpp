// The order of steps; see order.h.
#include "plan/order.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "observe/error.h"
#include "observe/error_codes.h"
#include "plan/explained.h"
#include "plan/group_plan.h"
#include "plan/memory.h"

namespace millrace::plan {

namespace {

// If `latest` is waited for (2.5), ticks that are pending before it are pending after it too, less those that it lags.
uint32_t level_through(const Plan& plan, const Channel& channel) {
  const Step& post = plan.steps[channel.from];
  const bool waits =
      channel.kind == ChannelKind::latest && channel.same_clock && !plan.clocks[plan.paces[post.pace].clock].realtime();
  return waits && post.level > channel.lag ? post.level - channel.lag : 0;
}

// The number of ticks by which a step is later than the newest tick that its source has begun. In a loop the reader
// comes before its source within a tick, so there the answer must be older by one.
uint32_t lag_of(const Plan& plan, uint32_t s, const StepInput& input, const std::vector<uint32_t>& loop) {
  const uint32_t from = plan.outputs[input.output].step;
  const Step& source = plan.steps[from];
  if (source.pace != plan.steps[s].pace) return 0;
  const uint32_t owed = source.settled_level() + (input.delay > 0 && loop[s] == loop[from] ? 1 : 0);
  return owed > input.delay ? owed - input.delay : 0;
}

uint32_t level_of(const Plan& plan, uint32_t s, const std::vector<uint32_t>& loop) {
  const Step& step = plan.steps[s];
  uint32_t level = 0;
  for (const StepInput& input : step.inputs)
    if (input.output != kNone) level = std::max(level, lag_of(plan, s, input, loop));
  if (step.is<ResolveStep>()) level = std::max(level, level_through(plan, plan.channels[step.channel()]));
  for (uint32_t before : step.after) level = std::max(level, plan.steps[before].settled_level());
  // Nothing after a gate runs before the gate has let its tick in.
  return std::max(level, base_level(plan, plan.paces[step.pace]));
}

// By node, the number of its strongly connected component: two nodes with one number lead to each other. Tarjan,
// "Depth-first search and linear graph algorithms", 1972; without recursion, since a chain may be as long as a graph.
std::vector<uint32_t> components(const std::vector<std::vector<uint32_t>>& next) {
  const auto count = static_cast<uint32_t>(next.size());
  std::vector<uint32_t> number(count, kNone), lowest(count), child(count), component(count, kNone), open, path;
  uint32_t seen = 0;
  for (uint32_t root = 0; root < count; ++root) {
    if (number[root] != kNone) continue;
    path.push_back(root);
    while (!path.empty()) {
      const uint32_t at = path.back();
      if (number[at] == kNone) {
        number[at] = lowest[at] = seen++;
        open.push_back(at);
      }
      if (child[at] < next[at].size()) {
        const uint32_t to = next[at][child[at]++];
        if (number[to] == kNone)
          path.push_back(to);
        else if (component[to] == kNone)
          lowest[at] = std::min(lowest[at], number[to]);
        continue;
      }
      path.pop_back();
      if (!path.empty()) lowest[path.back()] = std::min(lowest[path.back()], lowest[at]);
      if (lowest[at] != number[at]) continue;
      for (bool last = false; !last; open.pop_back()) {
        last = open.back() == at;
        component[open.back()] = at;
      }
    }
  }
  return component;
}

// A number for each step of the plan. Steps with the same number lead to each other: they are a loop.
std::vector<uint32_t> find_loops(const Plan& plan) {
  std::vector<std::vector<uint32_t>> next(plan.steps.size());
  for (uint32_t s = 0; s < plan.steps.size(); ++s) {
    for (const StepInput& input : plan.steps[s].inputs)
      if (input.output != kNone) next[plan.outputs[input.output].step].push_back(s);
    for (const uint32_t before : plan.steps[s].after) next[before].push_back(s);
    if (const uint32_t entry = entry_before(plan, s); entry != kNone) next[entry].push_back(s);
    if (const auto* give = std::get_if<GiveStep>(&plan.steps[s].kind))
      next[s].push_back(plan.groups[give->group].entry);
  }
  for (const Channel& channel : plan.channels)
    if (is_whole(channel)) next[channel.from].push_back(channel.to);
  return components(next);
}

} // namespace

void renumber(Plan& plan, const std::vector<uint32_t>& position) {
  const auto move = [&](uint32_t& step) {
    if (step != kNone) step = position[step];
  };
  for (Step& step : plan.steps) {
    for (uint32_t& s : step.after) move(s);
    if (auto* copy = std::get_if<CopyStep>(&step.kind)) std::for_each(copy->readers.begin(), copy->readers.end(), move);
    if (auto* finish = std::get_if<FinishStep>(&step.kind)) move(finish->body);
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
  for (GroupPlan& group : plan.groups) {
    move(group.entry);
    move(group.deal);
    std::for_each(group.gives.begin(), group.gives.end(), move);
  }
  for (Pace& pace : plan.paces) {
    move(pace.gate);
    move(pace.entry);
    for (uint32_t& s : pace.sources) move(s);
  }
}

uint32_t entry_before(const Plan& plan, uint32_t s) {
  const uint32_t entry = plan.paces[plan.steps[s].pace].entry;
  return entry == s ? kNone : entry;
}

void order_steps(Draft& draft) {
  Plan& plan = draft.plan;
  const std::vector<uint32_t> loop = find_loops(plan);
  std::vector<std::pair<uint32_t, uint32_t>> edges;
  for (uint32_t s = 0; s < plan.steps.size(); ++s) {
    for (const StepInput& input : plan.steps[s].inputs) {
      if (input.output == kNone) continue;
      // Only in a loop does a reader by delay come before its source. Elsewhere it comes after: in one segment it would
      // otherwise wait for an owed value, and keep the handler that owes it from running.
      const uint32_t source = plan.outputs[input.output].step;
      if (input.delay == 0 || loop[source] != loop[s]) edges.emplace_back(source, s);
    }
    for (uint32_t before : plan.steps[s].after) edges.emplace_back(before, s);
    if (const uint32_t entry = entry_before(plan, s); entry != kNone) edges.emplace_back(entry, s);
    if (const auto* give = std::get_if<GiveStep>(&plan.steps[s].kind))
      edges.emplace_back(s, plan.groups[give->group].entry);
  }
  for (const Channel& channel : plan.channels)
    if (is_whole(channel)) edges.emplace_back(channel.from, channel.to);
  const std::vector<uint32_t> order = topological_order(static_cast<uint32_t>(plan.steps.size()), edges);
  MR_ASSERT(order.size() == plan.steps.size(), "resolve() refused all cycles, and no pass may add one");
  std::vector<uint32_t> position(order.size());
  std::vector<Step> steps(order.size());
  for (uint32_t i = 0; i < order.size(); ++i) {
    position[order[i]] = i;
    steps[i] = std::move(plan.steps[order[i]]);
  }
  plan.steps = std::move(steps);
  renumber(plan, position);
}

bool is_waited_for_apart(const Plan& plan, const Channel& channel) {
  if (!is_whole(channel)) return false;
  const uint32_t to = plan.steps[channel.to].pace;
  return channel.kind != ChannelKind::gate && channel.same_clock && plan.steps[channel.from].pace != to &&
         !plan.clocks[plan.paces[to].clock].realtime();
}

bool reads_owed_aside(const Plan& plan, uint32_t clock) {
  for (const Step& step : plan.steps)
    for (const StepInput& input : step.inputs) {
      if (input.output == kNone || input.delay == 0 || plan.paces[step.pace].clock != clock) continue;
      const Step& source = plan.steps[plan.outputs[input.output].step];
      if (source.settled_level() > 0) return true;
    }
  return std::any_of(plan.channels.begin(), plan.channels.end(), [&](const Channel& channel) {
    if (!is_whole(channel)) return false; // a gate
    const Step& from = plan.steps[channel.from];
    return plan.paces[from.pace].clock == clock && from.level > 0 &&
           (channel.lag > 0 || is_waited_for_apart(plan, channel));
  });
}

bool waits_in_time(const Plan& plan, const Step& reader, const StepInput& input) {
  if (input.output == kNone) return false;
  const Step& source = plan.steps[plan.outputs[input.output].step];
  return input.delay == 0 || source.settled_level() >= reader.level + input.delay;
}

uint32_t base_level(const Plan& plan, const Pace& pace) {
  return pace.gate == kNone ? pace.level : plan.steps[pace.gate].level;
}

void find_levels(Draft& draft) {
  Plan& plan = draft.plan;
  const std::vector<uint32_t> loop = find_loops(plan);
  for (Step& step : plan.steps) step.level = 0;
  // A gate may be later in the order than a step that it leads to, and delayed edges run backwards in it. One pass for
  // each of those settles everything but loops that owe ever more.
  size_t looks = plan.paces.size() + 1;
  for (const Step& step : plan.steps)
    looks += static_cast<size_t>(
        std::count_if(step.inputs.begin(), step.inputs.end(), [](const StepInput& input) { return input.delay > 0; }));
  for (bool changed = true; changed && looks > 0; --looks) {
    changed = false;
    for (uint32_t s = 0; s < plan.steps.size(); ++s) {
      const uint32_t level = level_of(plan, s, loop);
      changed = changed || level != plan.steps[s].level;
      plan.steps[s].level = level;
    }
  }
}

void check_pending_loops(Draft& draft) {
  Plan& plan = draft.plan;
  const std::vector<uint32_t> loop = find_loops(plan);
  for (uint32_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    for (const StepInput& input : step.inputs) {
      if (input.output == kNone || input.delay == 0 || lag_of(plan, s, input, loop) <= step.level) continue;
      const Step& source = plan.steps[plan.outputs[input.output].step];
      const uint32_t pending = source.owes();
      const graph::Edge* declared = input.edge == kNone ? nullptr : draft.edges[input.edge].declared;
      throw Failure(Error{code::queue_too_shallow,
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
    if (plan.edges[e].target_step == kNone || plan.edges[e].source_output == kNone) continue; // on another node
    const Step& reader = plan.steps[plan.edges[e].target_step];
    const Step& source = plan.steps[plan.handlers[draft.edges[e].source].step];
    const uint32_t settled = source.settled_level();
    if (reader.pace != source.pace || reader.level <= settled || declared.depth >= reader.level - settled) continue;
    throw Failure(Error{code::queue_too_shallow,
                        "the queue of " + plan.edges[e].to + " holds " + std::to_string(declared.depth) +
                            " values, and the path that it rejoins keeps " + std::to_string(reader.level - settled) +
                            " pending",
                        declared.place,
                        {},
                        "",
                        "depth: " + std::to_string(reader.level - settled)});
  }
}

std::vector<uint32_t> topological_order(uint32_t count, const std::vector<std::pair<uint32_t, uint32_t>>& edges) {
  std::vector<std::vector<uint32_t>> targets(count);
  std::vector<uint32_t> waiting(count, 0);
  for (const auto& [source, target] : edges) {
    targets[source].push_back(target);
    ++waiting[target];
  }
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ready;
  for (uint32_t i = 0; i < count; ++i)
    if (waiting[i] == 0) ready.push(i);
  std::vector<uint32_t> order;
  while (!ready.empty()) {
    const uint32_t at = ready.top();
    ready.pop();
    order.push_back(at);
    for (uint32_t target : targets[at])
      if (--waiting[target] == 0) ready.push(target);
  }
  return order;
}

} // namespace millrace::plan
