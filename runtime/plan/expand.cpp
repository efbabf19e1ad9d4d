// Handlers and edge policies become steps: who works behind is found (1.6), each group of those gets a pace of its
// own behind a gate, and `latest`, `queue` and `align` become a post and a resolve step (2.3).
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "plan/clock_circles.h"
#include "plan/draft.h"
#include "plan/order.h"
#include "plan/words.h"

namespace millrace::plan {

namespace {

class Expansion {
 public:
  explicit Expansion(Draft& draft) : draft_(draft), plan_(draft.plan) {}

  void run() {
    find_behind();
    find_apart();
    do make_paces();
    while (open_circle() || join_kinds());
    make_handler_steps();
    for (uint32_t e = 0; e < draft_.edges.size(); ++e) connect(e);
    make_empty_gates();
    find_callers();
    open_gates();
    open_gates_of_owing();
    keep_whole();
    for (Clock& clock : plan_.clocks)
      if (clock.driver != kNone) clock.driver = draft_.handlers[clock.driver].step;
  }

 private:
  const DraftHandler& source_of(const DraftEdge& edge) const { return draft_.handlers[edge.source]; }
  const DraftHandler& target_of(const DraftEdge& edge) const { return draft_.handlers[edge.target]; }
  static bool is_sync(const DraftEdge& edge) { return edge.declared->policy == graph::Policy::sync; }
  // A reader by queue runs at the value's own tick (2.3): where it holds the tick open, so does the writer.
  static bool joins_tick(const DraftEdge& edge) {
    return is_sync(edge) || (edge.declared->policy == graph::Policy::queue && !edge.crosses_clocks);
  }

  // 1.6. First those that no sync path joins to a source, and non-sources whose outputs all leave by other policies;
  // then back out whoever a handler that does hold the tick waits for.
  void find_behind() {
    const size_t count = draft_.handlers.size();
    std::vector<bool> joined(count), only_leaves(count);
    for (bool changed = true; changed;) { // delay edges run backwards in `order`
      changed = false;
      for (uint32_t h : draft_.order) {
        if (joined[h]) continue;
        joined[h] = draft_.handlers[h].is_source();
        for (uint32_t e : draft_.handlers[h].input_edge)
          if (e != kNone && is_sync(draft_.edges[e]) && joined[draft_.edges[e].source]) joined[h] = true;
        changed = changed || joined[h];
      }
    }
    for (uint32_t h = 0; h < count; ++h) only_leaves[h] = !draft_.handlers[h].is_source();
    std::vector<bool> leaves(count);
    for (const DraftEdge& edge : draft_.edges) {
      leaves[edge.source] = true;
      if (is_sync(edge)) only_leaves[edge.source] = false;
    }
    behind_.assign(count, false);
    for (uint32_t h = 0; h < count; ++h) behind_[h] = !joined[h] || (only_leaves[h] && leaves[h]);
    back_out();
  }

  void back_out() {
    for (bool changed = true; changed;) {
      changed = false;
      for (const DraftEdge& edge : draft_.edges) {
        if (!joins_tick(edge) || !behind_[edge.source] || behind_[edge.target]) continue;
        behind_[edge.source] = false;
        changed = true;
      }
    }
  }

  // 8.12. A handler that owes results gets a pace of its own, with all that depends on it, if that comes from it alone.
  // Every tick of the pace is a firing of the handler: a gap in its input holds nothing open, and nobody is drained.
  void find_apart() {
    const auto count = static_cast<uint32_t>(draft_.handlers.size());
    apart_.assign(count, kNone);
    apart_before_.assign(count, kNone);
    behind_alone_ = behind_;
    for (const uint32_t h :
         draft_.order) { // one that depends on another comes later, and its pace is within the other's
      const std::vector<uint32_t> group = dependents_alone(h);
      apart_before_[h] = apart_[h];
      for (const uint32_t member : group) {
        apart_[member] = h;
        behind_[member] = true;
      }
    }
  }

  // The handler and all that depends on it. Empty if it owes nothing, if a reader waits for a tick of the group, or if
  // a member reads from elsewhere or fires on ticks on which the handler does not.
  std::vector<uint32_t> dependents_alone(uint32_t root) const {
    if (draft_.handlers[root].info->max_pending == 0 || !fires_on_values(root)) return {};
    std::vector<uint32_t> group{root};
    const auto has = [&](uint32_t h) { return std::find(group.begin(), group.end(), h) != group.end(); };
    for (size_t i = 0; i < group.size(); ++i) {
      for (const DraftEdge& edge : draft_.edges) {
        if (edge.source != group[i]) continue;
        if (!joins_tick(edge) || edge.declared->delay > 0) return {};
        if (!has(edge.target)) group.push_back(edge.target);
      }
    }
    for (const uint32_t h : group) {
      bool is_called = h == root;
      for (const DraftEdge& edge : draft_.edges) {
        if (edge.target != h) continue;
        if (has(edge.source) == (h == root)) return {};
        if (edge.crosses_clocks && edge.declared->policy != graph::Policy::latest) return {};
        is_called = is_called || (joins_tick(edge) && (!is_sync(edge) || !is_optional(edge)));
      }
      if (!is_called) return {};
    }
    return group;
  }

  // True if the handler fires on exactly those ticks that have a value of each of its required inputs.
  bool fires_on_values(uint32_t h) const {
    bool requires_one = false;
    for (const DraftEdge& edge : draft_.edges) {
      if (edge.target != h || !joins_tick(edge)) continue;
      if (!is_sync(edge) || edge.declared->delay > 0) return false;
      requires_one = requires_one || !is_optional(edge);
    }
    return requires_one;
  }

  bool is_optional(const DraftEdge& edge) const {
    const DraftHandler& handler = target_of(edge);
    return handler.info->ports[handler.input_port[edge.target_input]].optional();
  }

  // A group behind a gate begins as a whole, when all that feeds it is there. Where one of the group leads to another
  // by a way around it, the group would wait for itself: then it holds the tick open instead. True where one did.
  bool open_circle() {
    const auto handlers = static_cast<uint32_t>(draft_.handlers.size());
    std::vector<std::vector<uint32_t>> next(handlers + plan_.paces.size()); // handlers, then the paces' gates
    for (const DraftEdge& edge : draft_.edges) {
      if (edge.declared->delay > 0) continue;
      next[edge.source].push_back(edge.target);
      const uint32_t pace = target_of(edge).pace;
      if (joins_tick(edge) && behind_[edge.target] && source_of(edge).pace != pace)
        next[edge.source].push_back(handlers + pace);
    }
    for (uint32_t h = 0; h < handlers; ++h)
      if (behind_[h]) next[handlers + draft_.handlers[h].pace].push_back(h);
    for (uint32_t pace = 0; pace < plan_.paces.size(); ++pace) {
      if (!leads_to_itself(handlers + pace, next)) continue;
      hold_open(pace);
      return true;
    }
    return false;
  }

  // A group behind that reads from ticks of two kinds, its clock's and those that another group's gate let in, could
  // only go on where both have gone: it holds the tick open instead, and so do those that it reads from. True where one
  // did.
  bool join_kinds() {
    std::vector<uint32_t> parent(plan_.paces.size(), kNone);
    for (const DraftEdge& edge : draft_.edges) {
      const uint32_t from = source_of(edge).pace, to = target_of(edge).pace;
      if (!joins_tick(edge) || !behind_[edge.target] || from == to) continue;
      if (parent[to] != kNone && parent[to] != from) {
        plan_.notes.push_back(target_of(edge).declared->name +
                              " holds its tick open: it reads from ticks of two kinds, all of its clock and some");
        hold_open(to);
        return true;
      }
      parent[to] = from;
    }
    return false;
  }

  void hold_open(uint32_t pace) {
    for (uint32_t h = 0; h < draft_.handlers.size(); ++h) {
      if (!behind_[h] || draft_.handlers[h].pace != pace) continue;
      if (apart_[h] != kNone) return join_again(apart_[h]);
      behind_[h] = false;
    }
    back_out();
  }

  // Takes the handler's pace of its own away: it and its dependents go back to where they were without it.
  void join_again(uint32_t root) {
    const uint32_t outside = apart_before_[root];
    for (uint32_t h = 0; h < draft_.handlers.size(); ++h) {
      if (apart_before_[h] == root) apart_before_[h] = outside;
      if (apart_[h] != root) continue;
      apart_[h] = outside;
      behind_[h] = outside != kNone || behind_alone_[h];
    }
  }

  static bool leads_to_itself(uint32_t node, const std::vector<std::vector<uint32_t>>& next) {
    std::vector<bool> seen(next.size());
    std::vector<uint32_t> todo = next[node];
    while (!todo.empty()) {
      const uint32_t at = todo.back();
      todo.pop_back();
      if (at == node) return true;
      if (seen[at]) continue;
      seen[at] = true;
      todo.insert(todo.end(), next[at].begin(), next[at].end());
    }
    return false;
  }

  void make_paces() {
    plan_.paces.clear();
    for (uint32_t c = 0; c < plan_.clocks.size(); ++c) {
      Pace pace;
      pace.clock = c;
      plan_.paces.push_back(pace);
    }
    for (uint32_t h = 0; h < draft_.handlers.size(); ++h)
      draft_.handlers[h].pace = behind_[h] ? kNone : draft_.handlers[h].clock;
    // Handlers that work behind share a pace if sync edges join them, also through one that stands apart.
    for (uint32_t h : draft_.order) {
      if (draft_.handlers[h].pace != kNone) continue;
      Pace pace;
      pace.kind = PaceKind::behind;
      pace.clock = draft_.handlers[h].clock;
      plan_.paces.push_back(pace);
      spread(h, static_cast<uint32_t>(plan_.paces.size() - 1));
    }
  }

  void spread(uint32_t h, uint32_t pace) {
    draft_.handlers[h].pace = pace;
    for (const DraftEdge& edge : draft_.edges) {
      if (!is_sync(edge)) continue;
      const uint32_t other = edge.source == h ? edge.target : edge.target == h ? edge.source : kNone;
      if (other == kNone) continue;
      if (takes_part(other, apart_[h])) spread(other, pace);
      // Two that feed one which stands apart share a pace: its gate waits for both.
      if (edge.source != h || apart_[other] != other || apart_before_[other] != apart_[h]) continue;
      for (const DraftEdge& beside : draft_.edges)
        if (beside.target == other && is_sync(beside) && takes_part(beside.source, apart_[h]))
          spread(beside.source, pace);
    }
  }

  // True if the handler works behind, within the pace of `root` (kNone: its clock's), and has no pace yet.
  bool takes_part(uint32_t h, uint32_t root) const {
    return behind_[h] && apart_[h] == root && draft_.handlers[h].pace == kNone;
  }

  uint32_t add_step(StepKind kind, std::string name, uint32_t pace) {
    Step step;
    step.kind = kind;
    step.name = std::move(name);
    step.pace = pace;
    plan_.steps.push_back(std::move(step));
    return static_cast<uint32_t>(plan_.steps.size() - 1);
  }

  uint32_t add_output(uint32_t step, std::string name, const mr_format& format, uint32_t domain) {
    Output output;
    output.step = step;
    output.port = static_cast<uint32_t>(plan_.steps[step].outputs.size());
    plan_.steps[step].outputs.push_back(static_cast<uint32_t>(plan_.outputs.size()));
    output.name = std::move(name);
    output.format = format;
    output.domain = domain;
    plan_.outputs.push_back(output);
    return static_cast<uint32_t>(plan_.outputs.size() - 1);
  }

  void make_handler_steps() {
    draft_.handler_output.resize(draft_.handlers.size());
    plan_.handlers.resize(draft_.handlers.size());
    for (uint32_t h : draft_.order) {
      DraftHandler& handler = draft_.handlers[h];
      const graph::Handler& declared = *handler.declared;
      // A source on a device is called as other bodies are, and its clock counts for it.
      const bool asked = handler.is_source() && plan_.on_host(handler.domain);
      handler.step = add_step(asked ? StepKind::source : StepKind::handler, declared.name, handler.pace);
      Step& step = plan_.steps[handler.step];
      step.handler = h;
      step.domain = handler.domain;
      step.every = declared.every;
      step.owes = ticks_owed(h);
      draft_.handler_output[h] = static_cast<uint32_t>(plan_.outputs.size());
      if (asked) plan_.paces[handler.pace].sources.push_back(handler.step);
      if (!asked && handler.is_source()) plan_.paces[handler.pace].generated = true;
      if (!asked && handler.is_source() && handler.facts.tick_count >= 0) {
        uint64_t& ticks_max = plan_.paces[handler.pace].ticks_max;
        ticks_max = std::min(ticks_max, static_cast<uint64_t>(handler.facts.tick_count));
      }
      const bool enqueues = plan_.domains[handler.domain].bodies == Bodies::enqueued;
      if (enqueues) step.scratch_bytes = draft_.facts.handlers[h].instance->scratch_bytes();
      for (uint32_t i = 0; i < handler.input_count; ++i) {
        const auto& port = handler.info->ports[handler.input_port[i]];
        StepInput input;
        input.required = !port.optional();
        input.keeps = port.raw.keeps;
        step.inputs.push_back(input);
      }
      for (uint32_t o = 0; o < handler.output_count; ++o) {
        const auto& port = handler.info->ports[handler.output_port[o]];
        const bool on_host = port.raw.memory == MR_MEMORY_CPU; // where a GPU body's kernels write it
        const uint32_t domain = on_host ? host_of(plan_.domains, handler.domain) : handler.domain;
        const uint32_t output = add_output(handler.step, port.name, handler.outputs[o], domain);
        const int32_t like =
            port.raw.like >= 0 ? static_cast<int32_t>(handler.first[static_cast<uint32_t>(port.raw.like)]) : -1;
        if (port.raw.flags & MR_PORT_FORWARDS) plan_.outputs[output].forwards = like;
        if (port.raw.flags & MR_PORT_IN_PLACE) plan_.outputs[output].in_place = like;
        plan_.outputs[output].connected = handler.edge_counts[handler.output_port[o]] > 0;
      }
      if (enqueues && (handler.info->traits & MR_TRAIT_FINISH)) add_finish(handler);
      describe(h);
    }
  }

  // In a pace of its own every tick is a firing. Elsewhere a handler with every: k owes a firing for k times as long.
  uint32_t ticks_owed(uint32_t h) const {
    const DraftHandler& handler = draft_.handlers[h];
    if (apart_[h] == h) return handler.info->max_pending;
    return handler.info->max_pending * handler.declared->every + gap_of(h);
  }

  uint32_t gap_of(uint32_t h) const {
    if (draft_.handlers[h].info->max_pending == 0) return 0;
    uint32_t gap = draft_.handlers[h].info->gap;
    for (const DraftEdge& edge : draft_.edges)
      if (edge.target == h) gap = std::max(gap, edge.declared->gap);
    return gap;
  }

  // Behind a GPU body: whoever reads what lies on the host reads it there, since finish() may still write it.
  void add_finish(const DraftHandler& handler) {
    const uint32_t s = add_step(StepKind::finish, "finish " + handler.declared->name, handler.pace);
    plan_.steps[s].finishes = handler.step;
    plan_.steps[s].after.push_back(handler.step);
    const std::vector<uint32_t> made = plan_.steps[handler.step].outputs;
    for (uint32_t o = 0; o < made.size(); ++o) {
      const Output body_output = plan_.outputs[made[o]];
      if (!plan_.in_host_memory(body_output.domain)) continue;
      const uint32_t output = add_output(s, body_output.name, body_output.format, body_output.domain);
      plan_.outputs[output].connected = body_output.connected;
      plan_.outputs[output].forwards = static_cast<int32_t>(handler.input_count + o);
      finished_[made[o]] = output;
    }
  }

  void describe(uint32_t h) {
    const DraftHandler& handler = draft_.handlers[h];
    const graph::Handler& declared = *handler.declared;
    HandlerPlan& out = plan_.handlers[h];
    out.name = declared.name;
    out.type = declared.type;
    out.info = handler.info;
    out.step = handler.step;
    out.domain = handler.domain;
    out.clock = handler.clock;
    out.every = declared.every;
    out.gap = gap_of(h);
    out.lanes = std::max(1u, declared.concurrency);
    out.on_error = declared.on_error;
    out.budget_ns = declared.budget_ns;
    out.waits = (handler.info->traits & MR_TRAIT_BLOCKING) || (handler.is_source() && handler.facts.waits);
    const auto given = draft_.options.costs_ns.find(declared.name);
    out.cost_ns = given != draft_.options.costs_ns.end()
                      ? given->second
                      : std::llround(cost_in(draft_, handler, handler.domain).us * 1000);
    out.reason = handler.reason;
    out.edge_counts = handler.edge_counts;
    out.first_entry = handler.first;
    if (declared.on_error == graph::OnError::bypass) check_bypass(handler);
  }

  static void check_bypass(const DraftHandler& handler) {
    for (const auto& port : handler.info->ports)
      if (!port.is_input() && (port.raw.like < 0 || (port.raw.flags & MR_PORT_IN_PLACE)))
        throw Failure(Error{410,
                            handler.declared->name + " (" + handler.info->type + ") cannot be bypassed",
                            handler.declared->place,
                            {"its output " + port.name +
                             (port.raw.like < 0 ? " has another format than its input" : " is written in place")},
                            "",
                            "on_error: skip"});
  }

  void connect(uint32_t e) {
    const DraftEdge& edge = draft_.edges[e];
    const graph::Edge& declared = *edge.declared;
    const uint32_t made = draft_.handler_output[edge.source] + edge.source_output;
    const auto finished = finished_.find(made);
    const uint32_t from = finished == finished_.end() ? made : finished->second;
    const uint32_t to = target_of(edge).step;
    StepInput& input = plan_.steps[to].inputs[edge.target_input];
    if (declared.gap > 0 && target_of(edge).info->max_pending == 0)
      throw Failure(Error{417,
                          "the gap of " + draft_.port_name(edge.target, true, edge.target_input) + " means nothing: " +
                              target_of(edge).declared->name + " (" + target_of(edge).info->type + ") owes no results",
                          declared.place,
                          {"it is for the inputs of handlers that answer later"},
                          "",
                          "leave 'gap' out"});
    EdgePlan shown;
    shown.from = draft_.port_name(edge.source, false, edge.source_output);
    shown.to = draft_.port_name(edge.target, true, edge.target_input);
    shown.policy = declared.policy;
    shown.delay = declared.delay;
    shown.source_output = made;
    shown.target_step = to;
    shown.target_input = edge.target_input;
    input.edge = e;
    const uint32_t source_pace = source_of(edge).pace, target_pace = target_of(edge).pace;
    const bool drops = declared.full != graph::Full::block;
    if (declared.policy == graph::Policy::queue && drops && !plan_.clocks[target_of(edge).clock].realtime())
      shown.note = edge.crosses_clocks ? "drops by media time" : "drop acts as block where the clock waits";
    if (declared.gap > 0 && apart_[edge.target] == edge.target)
      shown.note = "gap: not needed, since nothing waits for the ticks of a gap";
    if (declared.policy == graph::Policy::sync && source_pace == target_pace) {
      input.output = from;
      input.delay = declared.delay;
      input.initial_empty = declared.initial_empty;
      input.repeat_last = declared.delay > 0 && input.required;
    } else if (joins_tick(edge)) {
      if (source_pace == target_pace) {
        input.output = from;
        shown.note = "joined with its own tick again: the queue holds the tick open";
      } else {
        input.output = through_gate(e, from);
      }
    } else {
      input.output = through_channel(e, from);
    }
    plan_.edges.push_back(shown);
  }

  // The entry's output that carries `from` into the pace of the edge's target.
  uint32_t through_gate(uint32_t e, uint32_t from) {
    const DraftEdge& edge = draft_.edges[e];
    const uint32_t pace = target_of(edge).pace, parent = source_of(edge).pace;
    const uint32_t gate = gate_of(pace, parent);
    const uint32_t entry = plan_.paces[pace].entry;
    Channel& channel = plan_.channels[plan_.steps[gate].channel];
    const graph::Edge& declared = *edge.declared;
    if (declared.policy == graph::Policy::queue) {
      channel.depth = channel.queued ? std::min(channel.depth, declared.depth) : declared.depth;
      channel.full = declared.full;
      channel.queued = true;
      channel.busy = false;
    }
    channel.edges.push_back(e);
    channel.entries.push_back(static_cast<uint32_t>(plan_.steps[gate].inputs.size()));
    const uint32_t every = target_of(edge).declared->every;
    plan_.steps[gate].every = plan_.steps[gate].inputs.empty() || plan_.steps[gate].every == every ? every : 1;
    StepInput input;
    input.output = from;
    input.required = channel.on_firing && plan_.steps[target_of(edge).step].inputs[edge.target_input].required;
    input.delay = declared.delay;
    input.initial_empty = declared.initial_empty;
    // The gate sees every tick, whoever is let in does not: so it is the gate that knows the last value.
    input.repeat_last = declared.delay > 0 && plan_.steps[target_of(edge).step].inputs[edge.target_input].required;
    input.edge = e;
    for (uint32_t i = 0; i < plan_.steps[gate].inputs.size(); ++i) {
      StepInput& known = plan_.steps[gate].inputs[i];
      if (known.output == from && known.delay == input.delay && known.initial_empty == input.initial_empty &&
          known.repeat_last == input.repeat_last) {
        plan_.channels[plan_.steps[gate].channel].entries.back() = i;
        known.required = known.required || input.required;
        return plan_.steps[entry].outputs[i];
      }
    }
    plan_.steps[gate].inputs.push_back(input);
    const Output source = plan_.outputs[from];
    const uint32_t output = add_output(entry, source.name, source.format, source.domain);
    plan_.outputs[output].origin = from;
    plan_.outputs[output].connected = true;
    return output;
  }

  uint32_t gate_of(uint32_t pace, uint32_t parent) {
    if (plan_.paces[pace].gate != kNone) return plan_.paces[pace].gate;
    std::string name;
    bool apart = false;
    for (uint32_t h = 0; h < draft_.handlers.size(); ++h) {
      if (draft_.handlers[h].pace != pace) continue;
      if (name.empty()) name = draft_.handlers[h].declared->name;
      apart = apart || apart_[h] == h;
    }
    const uint32_t gate = add_step(StepKind::gate, "gate of " + name, parent);
    const uint32_t entry = add_step(StepKind::entry, "entry of " + name, pace);
    Channel channel;
    channel.kind = ChannelKind::gate;
    channel.from = gate;
    channel.to = entry;
    channel.busy = !apart;
    channel.on_firing = apart;
    plan_.channels.push_back(channel);
    plan_.steps[gate].channel = plan_.steps[entry].channel = static_cast<uint32_t>(plan_.channels.size() - 1);
    plan_.paces[pace].gate = gate;
    plan_.paces[pace].entry = entry;
    plan_.paces[pace].parent = parent;
    return gate;
  }

  // The resolve step's output that a `latest`, `queue` or `align` edge is read from; shared by readers that agree.
  uint32_t through_channel(uint32_t e, uint32_t from) {
    const DraftEdge& edge = draft_.edges[e];
    const graph::Edge& declared = *edge.declared;
    const uint32_t pace = target_of(edge).pace;
    const auto key = std::make_tuple(from, pace, declared.policy, declared.lag, declared.initial_empty);
    if (declared.policy == graph::Policy::latest) {
      const auto known = latest_.find(key);
      if (known != latest_.end()) {
        Channel& shared = plan_.channels[plan_.steps[plan_.outputs[known->second].step].channel];
        shared.edges.push_back(e);
        shared.entries.push_back(0);
        return known->second;
      }
    }
    const Output source = plan_.outputs[from];
    const std::string what = draft_.port_name(edge.source, false, edge.source_output);
    const uint32_t post = add_step(StepKind::post, "post " + what, source_of(edge).pace);
    StepInput input;
    input.output = from;
    input.required = false;
    plan_.steps[post].inputs.push_back(input);
    const uint32_t resolve = add_step(StepKind::resolve, policy_word(declared.policy) + " " + what, pace);
    const uint32_t output = add_output(resolve, source.name, source.format, source.domain);
    plan_.outputs[output].origin = from;
    plan_.outputs[output].connected = true;
    Channel channel;
    channel.kind = declared.policy == graph::Policy::latest  ? ChannelKind::latest
                   : declared.policy == graph::Policy::queue ? ChannelKind::queue
                                                             : ChannelKind::align;
    channel.from = post;
    channel.to = resolve;
    channel.depth = declared.policy == graph::Policy::queue ? declared.depth : 1;
    channel.full = declared.full;
    channel.lag = declared.lag;
    channel.within_ns = declared.within_ns;
    channel.same_clock = !edge.crosses_clocks;
    channel.initial_empty = declared.initial_empty;
    channel.edges.push_back(e);
    channel.entries.push_back(0);
    // A queue gives to the ticks that its reader fires on, and to no other (8.6).
    if (declared.policy == graph::Policy::queue) plan_.steps[resolve].every = target_of(edge).declared->every;
    plan_.channels.push_back(channel);
    plan_.steps[post].channel = plan_.steps[resolve].channel = static_cast<uint32_t>(plan_.channels.size() - 1);
    if (declared.policy == graph::Policy::latest) latest_[key] = output;
    return output;
  }

  // A pace that nothing feeds by sync or queue fires every tick: a gate without values.
  void make_empty_gates() {
    for (uint32_t p = static_cast<uint32_t>(plan_.clocks.size()); p < plan_.paces.size(); ++p)
      if (plan_.paces[p].gate == kNone) gate_of(p, plan_.paces[p].clock);
  }

  // Without a required input of its tick a handler fires every tick (2.2), so its gate lets every tick in; but one that
  // reads a queue runs at the queue's values (2.3).
  void find_callers() {
    for (uint32_t h = 0; h < draft_.handlers.size(); ++h) {
      const DraftHandler& handler = draft_.handlers[h];
      Step& step = plan_.steps[handler.step];
      bool requires_one = false, reads_queue = false;
      for (uint32_t i = 0; i < handler.input_count; ++i) {
        if (handler.input_edge[i] == kNone || !joins_tick(draft_.edges[handler.input_edge[i]])) continue;
        step.inputs[i].calls = true;
        requires_one = requires_one || step.inputs[i].required;
        reads_queue = reads_queue || !is_sync(draft_.edges[handler.input_edge[i]]);
      }
      step.on_value = reads_queue && !requires_one;
      if (behind_[h] && !requires_one && !reads_queue) open_gate(handler.pace);
    }
  }

  // A delay counts ticks, so a group that looks back within itself is let into every one of them. So is one that reads
  // a queue between clocks, which gives a value to a tick whatever the group's other inputs have (8.6).
  void open_gates() {
    for (const DraftEdge& edge : draft_.edges) {
      if (!behind_[edge.target]) continue;
      const bool looks_back = edge.declared->delay > 0 && source_of(edge).pace == target_of(edge).pace;
      const bool takes = edge.declared->policy == graph::Policy::queue && edge.crosses_clocks;
      if (looks_back || takes) open_gate(target_of(edge).pace);
    }
  }

  // A group that owes results has to see every tick if a reader outside it, or another clock of a circle, waits for
  // them: ticks are what drains a handler that is not called (8.3, 8.4). The writer into such a reader's channel waits
  // too, until the reader has come to its tick and made room.
  void open_gates_of_owing() {
    const ClockCircles circles(plan_);
    std::vector<bool> waited_for(draft_.handlers.size()), reads(plan_.paces.size());
    std::vector<uint32_t> todo;
    const auto add_inputs = [&](const DraftHandler& handler) {
      for (const uint32_t e : handler.input_edge)
        if (e != kNone && !draft_.edges[e].crosses_clocks) todo.push_back(draft_.edges[e].source);
    };
    for (const Channel& channel : plan_.channels) {
      if (!is_waited_for_apart(plan_, channel) && !circles.joins(channel)) continue;
      todo.push_back(draft_.edges[channel.edges[0]].source);
      for (const uint32_t e : channel.edges) add_inputs(target_of(draft_.edges[e]));
      reads[plan_.steps[channel.to].pace] = true;
    }
    for (const DraftEdge& edge : draft_.edges) // what the gate of the reader waits for
      if (reads[target_of(edge).pace] && joins_tick(edge) && source_of(edge).pace != target_of(edge).pace)
        todo.push_back(edge.source);
    while (!todo.empty()) {
      const uint32_t h = todo.back();
      todo.pop_back();
      if (waited_for[h]) continue;
      waited_for[h] = true;
      if (draft_.handlers[h].info->max_pending > 0) open_gate(draft_.handlers[h].pace);
      add_inputs(draft_.handlers[h]);
    }
  }

  // To every tick, with the gates before it.
  void open_gate(uint32_t pace) {
    for (; plan_.paces[pace].kind == PaceKind::behind; pace = plan_.paces[pace].parent) {
      Step& gate = plan_.steps[plan_.paces[pace].gate];
      MR_ASSERT(!plan_.channels[gate.channel].on_firing, "nobody waits for a tick of such a pace");
      plan_.channels[gate.channel].every_tick = true;
      gate.every = 1;
    }
  }

  // An instance among several does not see the ticks between its own, so it could not tell the last value.
  void keep_whole() {
    for (HandlerPlan& handler : plan_.handlers) {
      if (handler.lanes == 1) continue;
      for (const StepInput& input : plan_.steps[handler.step].inputs) {
        if (!input.repeat_last && input.keeps == 0) continue;
        handler.lanes = 1;
        plan_.notes.push_back(handler.name + " runs as one instance: an input of it repeats or keeps earlier values");
        break;
      }
    }
  }

  Draft& draft_;
  Plan& plan_;
  std::vector<bool> behind_;              // works behind, by rule 1.6 or because it stands apart
  std::vector<bool> behind_alone_;        // by rule 1.6 alone
  std::vector<uint32_t> apart_;           // by handler: the handler with whose firings its pace counts
  std::vector<uint32_t> apart_before_;    // by such a handler: what apart_ said of it without its own pace
  std::map<uint32_t, uint32_t> finished_; // what a body makes on the host → what finish() makes of it
  std::map<std::tuple<uint32_t, uint32_t, graph::Policy, uint32_t, bool>, uint32_t> latest_;
};

} // namespace

void expand(Draft& draft) { Expansion(draft).run(); }

} // namespace millrace::plan
