// Finds the gates that let in every tick, and not only those with a value: gates of a group in which a handler fires on
// the other ticks too, looks back by ticks, reads a queue between clocks, or owes results that are waited for.
#include "observe/error.h"
#include "plan/clock_circles.h"
#include "plan/expand.h"
#include "plan/order.h"
#include "plugin/handler_info.h"

namespace millrace::plan {

namespace {

class OpenGates {
 public:
  explicit OpenGates(Expansion& all) : all_(all), draft_(all.draft), plan_(all.plan), decoupled_(all.decoupled) {}

  void run() {
    find_callers();
    open_gates();
    open_gates_of_owing();
  }

 private:
  const DraftHandler& source_of(const DraftEdge& edge) const { return all_.source_of(edge); }
  const DraftHandler& target_of(const DraftEdge& edge) const { return all_.target_of(edge); }

  // A handler without a required input of its tick fires every tick (2.2), so its gate lets every tick in. A handler
  // that reads a queue does not: it runs at the queue's values (2.3).
  void find_callers() {
    for (uint32_t h = 0; h < draft_.handlers.size(); ++h) {
      const DraftHandler& handler = draft_.handlers[h];
      if (handler.step == kNone) continue; // another node runs it
      Step& step = plan_.steps[handler.step];
      bool requires_one = false, reads_queue = false;
      for (uint32_t i = 0; i < handler.input_count; ++i) {
        if (handler.input_edge[i] == kNone || !joins_tick(draft_.edges[handler.input_edge[i]])) continue;
        step.inputs[i].calls = true;
        requires_one = requires_one || step.inputs[i].required;
        reads_queue = reads_queue || !is_sync(draft_.edges[handler.input_edge[i]]);
      }
      if (reads_queue && !requires_one) step.as<HandlerStep>().on_value = true;
      if (decoupled_[h] && !requires_one && !reads_queue) open_gate(handler.pace);
    }
  }

  // A delay counts ticks, so the gate of a group that looks back within itself lets in every tick. So does the gate of
  // a group that reads a queue between clocks: the queue gives a value to a tick whatever the group's other inputs have
  // (8.6).
  void open_gates() {
    for (const DraftEdge& edge : draft_.edges) {
      if (!decoupled_[edge.target]) continue;
      const bool looks_back = edge.declared->delay > 0 && source_of(edge).pace == target_of(edge).pace;
      const bool takes = edge.declared->policy == graph::Policy::queue && edge.crosses_clocks;
      if (looks_back || takes) open_gate(target_of(edge).pace);
    }
  }

  // A group that owes results has to see every tick if a reader outside it, or another clock of a circle, waits for
  // them: only ticks drain a handler that is not called (8.3, 8.4). The writer into such a reader's channel waits too,
  // until the reader has come to its tick and made room.
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
    for (const DraftEdge& edge : draft_.edges) // the reader's gate waits for these
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

  // Opens the gate of the pace, and the gates before it, to every tick. Another node opens its own.
  void open_gate(uint32_t pace) {
    for (; plan_.paces[pace].gate != kNone; pace = plan_.paces[pace].parent) {
      Step& gate = plan_.steps[plan_.paces[pace].gate];
      MR_ASSERT(!plan_.channels[gate.channel()].on_firing, "nothing waits for a tick of such a pace");
      plan_.channels[gate.channel()].every_tick = true;
      gate.every = 1;
    }
  }

  Expansion& all_;
  Draft& draft_;
  Plan& plan_;
  const std::vector<bool>& decoupled_;
};

} // namespace

void open_gates(Expansion& expansion) { OpenGates(expansion).run(); }

} // namespace millrace::plan
