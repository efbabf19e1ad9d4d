// Steps, the one kind of thing that runs in a plan. See plan.h.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "plan/none.h"

namespace millrace::plan {

// Each kind of step is a struct of its own, which holds the data of that kind alone.

// A handler: its segment calls it, or its device runs its body.
struct HandlerStep {
  uint32_t handler = kNone;   // index into Plan::handlers
  uint32_t owes = 0;          // ticks of its pace for which it may owe a firing: its pending ones and its gap
  bool on_value = false;      // reads a queue and requires nothing: fires if an input that `calls` has a value
  uint64_t scratch_bytes = 0; // that its GPU body works in; on the host, that its CPU body takes by itself
  uint64_t taken_bytes = 0;   // that its GPU body takes from its device by itself
  uint64_t state_bytes = 0;   // that the run keeps for it
  // By input, if the handler takes several items a call: the bytes into which the rows of a dense input are gathered.
  std::vector<uint64_t> gathers;
};

// A handler without inputs that the head of its clock asks.
struct SourceStep : HandlerStep {};

// Calls finish() of a handler whose body enqueued, once its device is done with the tick. Its inputs are the body's
// inputs and then the body's outputs. Its outputs pass on the body's outputs in host memory.
struct FinishStep {
  uint32_t body = kNone; // step
};

// Copies the buffers of its inputs to another domain.
struct CopyStep {
  std::vector<uint32_t> readers; // steps whose firing makes the copy certain
  std::vector<uint32_t> members; // copy of several outputs: by reader, the index of its value among the copy's inputs
  // Outputs that its readers need as well and that depend on this copy. To wait for them would take for ever, so they
  // are taken to have a value.
  std::vector<uint32_t> presumed;
};

// Lets ticks into a decoupled pace, and counts those that it turns away.
struct GateStep {
  uint32_t channel = kNone;
};

// The values that a gate let in, for the steps of such a pace.
struct EntryStep {
  uint32_t channel = kNone;
};

// Puts an output's values into a channel to another pace, or to a `latest` reader.
struct PostStep {
  uint32_t channel = kNone;
};

// Takes from a channel what the edge's policy says, once for all readers of a tick.
struct ResolveStep {
  uint32_t channel = kNone;
};

// Hands its inputs to a group as an item of the stream; its outputs are settled once the item has been dealt with.
struct GiveStep {
  uint32_t group = kNone;        // index into Plan::groups
  uint32_t stream = 0;           // by its number in the set
  uint32_t allowance = 1;        // items that the stream may have inside the group
  uint32_t owes = 0;             // ticks of its pace for which items may be inside
  std::vector<uint32_t> results; // by output: the deal's input that it gets; kNone: it is read in another domain alone
  // The handlers of the group that read its inputs, alike ones once: a tick is an item if one of them would fire.
  struct Reader {
    uint32_t every = 1;
    std::vector<uint32_t> required; // inputs
  };
  std::vector<Reader> readers;
  uint32_t rows_input = kNone; // the input whose rows are those that an item takes; kNone: it takes one
};

// Gives the outputs of a firing's items back to the ticks that they are of.
struct DealStep {
  uint32_t group = kNone;
};

using StepKind = std::variant<HandlerStep, SourceStep, FinishStep, CopyStep, GateStep, EntryStep, PostStep, ResolveStep,
                              GiveStep, DealStep>;

// How a step input is read.
struct StepInput {
  uint32_t output = kNone; // index into Plan::outputs; kNone: not connected
  uint32_t delay = 0;      // ticks before this one
  uint32_t edge = kNone;   // index into Plan::edges
  bool required = true;
  bool idle_without = false;  // its reader has nothing to do without it: an absent list is as one of no records (4.12)
  bool initial_empty = false; // before the first value: a value of extent 0
  bool repeat_last = false;   // a required delayed input repeats the last value if the slot is empty (2.3)
  uint32_t keeps = 0;         // past values that stay valid
  bool calls = false;         // sync or queue: a value of this tick, for HandlerStep::on_value
};

struct Step {
  StepKind kind;
  std::string name; // the handler's; a runtime step has a description: "copy video → sim:0"
  uint32_t pace = 0;
  uint32_t segment = kNone;      // the first of its lanes
  uint32_t domain = 0;           // index into Plan::domains
  std::vector<StepInput> inputs; // handlers: flat, as the ABI counts them
  std::vector<uint32_t> outputs; // indices into Plan::outputs; handlers: flat, as the ABI counts them
  std::vector<uint32_t> after; // steps that must have settled the same tick before: readers of what is written in place
  uint32_t every = 1;          // fires on ticks whose index is a multiple
  uint32_t level = 0;          // the sum of max_pending before it: steps of one segment share it
  uint32_t region = kNone;     // captured with others: index into Plan::regions

  template <class Kind>
  bool is() const {
    return std::holds_alternative<Kind>(kind);
  }
  template <class Kind>
  Kind& as() {
    return std::get<Kind>(kind);
  }
  template <class Kind>
  const Kind& as() const {
    return std::get<Kind>(kind);
  }
  // Its data as a handler or a source; null if it is neither.
  const HandlerStep* called() const;
  uint32_t handler() const { return called() ? called()->handler : kNone; }
  uint32_t owes() const {
    const auto* give = std::get_if<GiveStep>(&kind);
    return give ? give->owes : called() ? called()->owes : 0;
  }
  uint64_t scratch_bytes() const { return called() ? called()->scratch_bytes : 0; }
  uint64_t taken_bytes() const { return called() ? called()->taken_bytes : 0; }
  uint64_t state_bytes() const { return called() ? called()->state_bytes : 0; }
  uint32_t settled_level() const { return level + owes(); } // when the last result that it may owe is there
  uint32_t channel() const;                                 // for a gate, entry, post or resolve; else kNone
};

inline const HandlerStep* Step::called() const {
  if (const auto* source = std::get_if<SourceStep>(&kind)) return source;
  return std::get_if<HandlerStep>(&kind);
}

inline uint32_t Step::channel() const {
  return std::visit(
      [](const auto& own) {
        if constexpr (requires { own.channel; }) return own.channel;
        return kNone;
      },
      kind);
}

} // namespace millrace::plan
