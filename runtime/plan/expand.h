// State that the parts of expand() share: the decoupled handlers, their paces, and the steps made so far. Private to
// runtime/plan.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "plan/draft.h"
#include "plan/step.h"
#include "plugin/handler_info.h"

namespace millrace::plan {

struct Expansion {
  explicit Expansion(Draft& of) : draft(of), plan(of.plan) {}

  Draft& draft;
  Plan& plan;
  std::vector<bool> decoupled;           // by handler: by rule 1.6, or because its pace counts its own firings
  std::vector<uint32_t> counted_by;      // by handler: the handler whose firings its pace counts (8.12), or kNone
  std::map<uint32_t, uint32_t> finished; // a body's output on the host → the finish step's output for it

  const DraftHandler& source_of(const DraftEdge& edge) const { return draft.handlers[edge.source]; }
  const DraftHandler& target_of(const DraftEdge& edge) const { return draft.handlers[edge.target]; }
  // The paces in which the edge's value is made and read. Items are made and read in their stream's.
  uint32_t pace_from(const DraftEdge& edge) const { return edge.leaves ? edge.stream_clock : source_of(edge).pace; }
  uint32_t pace_to(const DraftEdge& edge) const { return edge.enters ? edge.stream_clock : target_of(edge).pace; }
  // The pace in which a gate lets the edge's value into the decoupled pace of its target.
  uint32_t gate_pace(const DraftEdge& edge) const {
    const DraftHandler &source = source_of(edge), &target = target_of(edge);
    return target.base == kNone || source.base == target.base ? pace_from(edge) : target.base;
  }
  // True if the port that the edge leads to need not have a value.
  bool is_optional(const DraftEdge& edge) const {
    const DraftHandler& handler = target_of(edge);
    return handler.info->ports[handler.input_port[edge.target_input]].optional();
  }
  // The most ticks of its pace for which the handler may owe a firing. In a pace of its own every tick is a firing.
  // Elsewhere a handler with every: k owes a firing for k times as long.
  uint32_t ticks_owed(uint32_t handler) const;
  uint32_t gap_of(uint32_t handler) const; // ticks without a firing that it is planned for while it owes one
  uint32_t add_step(StepKind kind, std::string name, uint32_t pace);
  uint32_t add_output(uint32_t step, std::string name, const mr_format& format, uint32_t domain);
};

inline bool is_sync(const DraftEdge& edge) { return edge.declared->policy == graph::Policy::sync; }
// A queue's reader runs at the value's own tick (2.3): if the reader holds the tick open, so does the writer.
inline bool joins_tick(const DraftEdge& edge) {
  return is_sync(edge) || (edge.declared->policy == graph::Policy::queue && !edge.crosses_clocks);
}

// The parts, in order.
void make_paces(Expansion& expansion);         // the handlers that are decoupled, and the pace of each handler
void make_handler_steps(Expansion& expansion); // a step for each handler and each finish(), with inputs and outputs
void connect_edges(Expansion& expansion);      // each edge to its input: straight, by a gate or by a channel
void open_gates(Expansion& expansion);         // marks the gates that let every tick in

} // namespace millrace::plan
