// Connects edges: within a pace an input reads its output's slot; a value enters a decoupled pace by a gate; `latest`,
// `align`, and `queue` between clocks go by a post and a resolve step (2.3).
#include <algorithm>
#include <map>
#include <tuple>

#include "observe/error.h"
#include "observe/error_codes.h"
#include "plan/expand.h"
#include "plan/far_feeds.h"
#include "plan/format_text.h"
#include "plan/group_steps.h"
#include "plan/memory.h"
#include "plugin/handler_info.h"

namespace millrace::plan {

namespace {

class ConnectEdges {
 public:
  explicit ConnectEdges(Expansion& all)
      : all_(all), draft_(all.draft), plan_(all.plan), counted_by_(all.counted_by), far_(all), groups_(all) {}

  void run() {
    for (uint32_t e = 0; e < draft_.edges.size(); ++e) connect(e);
    make_empty_gates();
    groups_.finish();
  }

 private:
  const DraftHandler& source_of(const DraftEdge& edge) const { return all_.source_of(edge); }
  const DraftHandler& target_of(const DraftEdge& edge) const { return all_.target_of(edge); }

  bool is_here(uint32_t pace) const { return plan_.paces[pace].node == draft_.options.node; }

  void connect(uint32_t e) {
    const DraftEdge& edge = draft_.edges[e];
    const graph::Edge& declared = *edge.declared;
    const bool is_made_here = is_here(source_of(edge).pace);
    const uint32_t made = !is_made_here ? kNone
                          : edge.leaves ? groups_.result(edge)
                                        : draft_.handler_output[edge.source] + edge.source_output;
    const auto finished = all_.finished.find(made);
    const uint32_t from = finished == all_.finished.end() ? made : finished->second;
    const uint32_t to = target_of(edge).step;
    if (declared.gap > 0 && target_of(edge).info->max_pending == 0)
      throw Failure(Error{code::meaningless_gap,
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
    const uint32_t source_pace = all_.pace_from(edge), target_pace = all_.pace_to(edge);
    const bool drops = declared.full != graph::Full::block;
    if (declared.policy == graph::Policy::queue && drops && !plan_.clocks[target_of(edge).clock].realtime())
      shown.note = edge.crosses_clocks ? "drops by media time" : "drop acts as block where the clock waits";
    if (edge.has_ports_policy) shown.note = "the input's own policy" + (shown.note.empty() ? "" : ": " + shown.note);
    if (declared.gap > 0 && counted_by_[edge.target] == edge.target)
      shown.note = "gap: not needed, since nothing waits for the ticks of a gap";
    if (declared.policy == graph::Policy::align) shown.note = note_of_align(edge);
    if (to == kNone) { // it is read on another node
      plan_.edges.push_back(shown);
      return;
    }
    if (edge.enters) {
      StepInput input = plan_.steps[to].inputs[edge.target_input];
      lead(e, input, from, source_pace, target_pace, shown);
      input.keeps = 0;
      const uint32_t item = groups_.give(edge, input); // may add a step
      plan_.steps[to].inputs[edge.target_input].output = item;
      shown.target_step = groups_.give_step(edge);
      shown.target_input = plan_.outputs[item].port;
    } else {
      StepInput input = plan_.steps[to].inputs[edge.target_input]; // a copy: ways in may add steps
      lead(e, input, from, source_pace, target_pace, shown);
      plan_.steps[to].inputs[edge.target_input] = input;
    }
    plan_.edges.push_back(shown);
  }

  // Leads the edge's value into the input of a step of `target_pace`.
  void lead(uint32_t e, StepInput& input, uint32_t from, uint32_t source_pace, uint32_t target_pace, EdgePlan& shown) {
    const DraftEdge& edge = draft_.edges[e];
    const graph::Edge& declared = *edge.declared;
    input.edge = e;
    const uint32_t gate_pace = all_.gate_pace(edge);
    if (joins_tick(edge) && source_pace != target_pace && plan_.paces[target_pace].kind == PaceKind::far) {
      input.output = far_.value_in(target_pace, e);
    } else if (joins_tick(edge) && source_pace != target_pace && gate_pace != source_pace) {
      input.output = through_gate(e, far_.value_in(gate_pace, e), gate_pace);
    } else if (declared.policy == graph::Policy::sync && source_pace == target_pace) {
      input.output = from;
      input.delay = declared.delay;
      input.initial_empty = declared.initial_empty;
      input.repeat_last = declared.delay > 0 && input.required;
    } else if (joins_tick(edge)) {
      if (source_pace == target_pace) {
        input.output = from;
        shown.note = "joined with its own tick again: the queue holds the tick open";
      } else {
        input.output = through_gate(e, from, source_pace);
      }
    } else {
      const uint32_t posting = far_.posting_pace(e);
      input.output = posting == kNone ? through_channel(e, from, source_pace)
                                      : through_channel(e, far_.value_in(posting, e), posting);
    }
  }

  std::string note_of_align(const DraftEdge& edge) const {
    const uint32_t source = draft_.clock_from(edge), target = draft_.clock_to(edge);
    if (!plan_.are_timed_separately(source, target)) return "";
    return "its clocks are on " + plan_.nodes[plan_.home_of(source)] + " and " + plan_.nodes[plan_.home_of(target)] +
           ": it is no better than they agree, which the report says";
  }

  // The entry's output that carries `from` into the pace of the edge's target.
  uint32_t through_gate(uint32_t e, uint32_t from, uint32_t parent) {
    const DraftEdge& edge = draft_.edges[e];
    const uint32_t pace = target_of(edge).pace;
    const uint32_t gate = gate_of(pace, parent);
    const uint32_t entry = plan_.paces[pace].entry;
    Channel& channel = plan_.channels[plan_.steps[gate].channel()];
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
    // The gate sees every tick and the steps after it do not, so the gate is the one that knows the last value.
    input.repeat_last = declared.delay > 0 && plan_.steps[target_of(edge).step].inputs[edge.target_input].required;
    input.edge = e;
    for (uint32_t i = 0; i < plan_.steps[gate].inputs.size(); ++i) {
      StepInput& known = plan_.steps[gate].inputs[i];
      if (known.output == from && known.delay == input.delay && known.initial_empty == input.initial_empty &&
          known.repeat_last == input.repeat_last) {
        plan_.channels[plan_.steps[gate].channel()].entries.back() = i;
        known.required = known.required || input.required;
        return plan_.steps[entry].outputs[i];
      }
    }
    plan_.steps[gate].inputs.push_back(input);
    const Output source = plan_.outputs[from];
    const uint32_t output = all_.add_output(entry, source.name, source.format, source.domain);
    plan_.outputs[output].origin = from;
    plan_.outputs[output].connected = true;
    return output;
  }

  uint32_t gate_of(uint32_t pace, uint32_t parent) {
    if (plan_.paces[pace].gate != kNone) return plan_.paces[pace].gate;
    std::string name;
    bool counts_firings = false;
    for (uint32_t h = 0; h < draft_.handlers.size(); ++h) {
      if (draft_.handlers[h].pace != pace) continue;
      if (name.empty()) name = draft_.handlers[h].declared->name;
      counts_firings = counts_firings || counted_by_[h] == h;
    }
    const auto number = static_cast<uint32_t>(plan_.channels.size());
    const uint32_t gate = all_.add_step(GateStep{number}, "gate of " + name, parent);
    const uint32_t entry = all_.add_step(EntryStep{number}, "entry of " + name, pace);
    Channel channel;
    channel.kind = ChannelKind::gate;
    channel.from = gate;
    channel.to = entry;
    channel.busy = !counts_firings;
    channel.on_firing = counts_firings;
    plan_.channels.push_back(channel);
    plan_.paces[pace].gate = gate;
    plan_.paces[pace].entry = entry;
    plan_.paces[pace].parent = parent;
    return gate;
  }

  // The resolve step's output from which a `latest`, `queue` or `align` edge is read. `latest` edges that agree share
  // one.
  uint32_t through_channel(uint32_t e, uint32_t from, uint32_t source_pace) {
    const DraftEdge& edge = draft_.edges[e];
    const graph::Edge& declared = *edge.declared;
    const uint32_t pace = all_.pace_to(edge);
    const auto key = std::make_tuple(from, pace, declared.policy, declared.lag, declared.initial_empty);
    if (declared.policy == graph::Policy::latest) {
      const auto known = latest_.find(key);
      if (known != latest_.end()) {
        Channel& shared = plan_.channels[plan_.steps[plan_.outputs[known->second].step].channel()];
        shared.edges.push_back(e);
        shared.entries.push_back(0);
        return known->second;
      }
    }
    const Output source = plan_.outputs[from];
    const std::string what = draft_.port_name(edge.source, false, edge.source_output);
    const auto number = static_cast<uint32_t>(plan_.channels.size());
    const uint32_t post = all_.add_step(PostStep{number}, "post " + what, source_pace);
    StepInput input;
    input.output = from;
    input.required = false;
    plan_.steps[post].inputs.push_back(input);
    const uint32_t resolve = all_.add_step(ResolveStep{number}, policy_word(declared.policy) + " " + what, pace);
    const uint32_t output = all_.add_output(resolve, source.name, source.format, source.domain);
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
    if (!channel.same_clock && channel.kind != ChannelKind::align)
      channel.rounding_ns =
          plan_.clocks[draft_.clock_from(edge)].rounding_ns + plan_.clocks[draft_.clock_to(edge)].rounding_ns;
    channel.initial_empty = declared.initial_empty;
    channel.edges.push_back(e);
    channel.entries.push_back(0);
    // A queue gives values only to the ticks on which its reader fires (8.6).
    if (declared.policy == graph::Policy::queue) plan_.steps[resolve].every = target_of(edge).declared->every;
    plan_.channels.push_back(channel);
    if (declared.policy == graph::Policy::latest) latest_[key] = output;
    return output;
  }

  // A pace that no edge feeds by sync or queue fires every tick: it gets a gate without values.
  void make_empty_gates() {
    for (uint32_t p = static_cast<uint32_t>(plan_.clocks.size()); p < plan_.paces.size(); ++p) {
      if (plan_.paces[p].kind != PaceKind::decoupled || plan_.paces[p].gate != kNone || !is_here(p)) continue;
      const auto member = std::find_if(draft_.handlers.begin(), draft_.handlers.end(),
                                       [&](const DraftHandler& handler) { return handler.pace == p; });
      gate_of(p, member->base == kNone ? plan_.paces[p].clock : member->base);
    }
  }

  Expansion& all_;
  Draft& draft_;
  Plan& plan_;
  const std::vector<uint32_t>& counted_by_;
  const FarFeeds far_;
  GroupSteps groups_;
  std::map<std::tuple<uint32_t, uint32_t, graph::Policy, uint32_t, bool>, uint32_t> latest_;
};

} // namespace

void connect_edges(Expansion& expansion) { ConnectEdges(expansion).run(); }

} // namespace millrace::plan
