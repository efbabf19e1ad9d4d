// What runs: a plan knows one kind of thing that does, the step. See plan.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace millrace::plan {

// No such step, output, … of a plan.
inline constexpr uint32_t kNone = UINT32_MAX;

enum class StepKind {
  source,   // a handler without inputs; the head of its clock runs it
  handler,  // a handler
  finish,   // calls finish() of a handler whose body enqueued, once its device is done with the tick
  transfer, // copies one output's buffer to another domain
  entry,    // the values that a gate let into a pace that works behind
  gate,     // lets ticks into such a pace, and counts what it turns away
  post,     // puts an output's values into a channel to another pace, or to a `latest` reader
  resolve,  // takes from a channel what the edge's policy says, once for all readers of a tick
};

// How a step input is read.
struct StepInput {
  uint32_t output = kNone; // index into Plan::outputs; kNone: not connected
  uint32_t delay = 0;      // ticks before this one
  uint32_t edge = kNone;   // index into Plan::edges
  bool required = true;
  bool initial_empty = false; // before the first value: a value of extent 0
  bool repeat_last = false;   // a required delayed input repeats the last value where the slot is empty (2.3)
  uint32_t keeps = 0;         // past values that stay valid
  bool calls = false;         // sync or queue: a value of this tick, for Step::on_value
};

struct Step {
  StepKind kind = StepKind::handler;
  std::string name;         // the handler's; of a runtime step a description: "copy video → sim:0"
  uint32_t handler = kNone; // index into Plan::handlers
  uint32_t pace = 0;
  uint32_t segment = kNone;      // the first of its lanes
  uint32_t domain = 0;           // index into Plan::domains
  std::vector<StepInput> inputs; // handlers: flat, as the ABI counts them
  std::vector<uint32_t> outputs; // indices into Plan::outputs; of a handler flat, as the ABI counts them
  std::vector<uint32_t> after; // steps that must have settled the same tick before: readers of what is written in place
  uint32_t channel = kNone;    // gate, entry, post, resolve
  uint32_t every = 1;          // fires on ticks whose index is a multiple
  uint32_t owes = 0;           // handler: ticks of its pace for which it may owe a firing: its pending ones and its gap
  bool on_value = false;       // reads a queue and requires nothing: fires where an input that `calls` has a value
  uint32_t level = 0;          // the sum of max_pending before it: steps of one segment share it
  uint32_t settled_level() const { return level + owes; } // when the last result that it may owe is there
  uint32_t region = kNone;                                // captured with others: index into Plan::regions
  uint64_t scratch_bytes = 0;                             // device memory that its GPU body works in
  // finish: the step of the body. Its inputs are what that reads and then what it makes; its outputs pass on what of
  // that lies on the host.
  uint32_t finishes = kNone;
  std::vector<uint32_t> readers; // transfer: the steps whose firing makes the copy certain
  std::vector<uint32_t> members; // transfer of several outputs: which of its inputs each of `readers` reads
  // transfer: outputs that its readers need as well and that come after it: to wait for those would be for ever, so
  // they are taken to have a value.
  std::vector<uint32_t> presumed;
};

} // namespace millrace::plan
