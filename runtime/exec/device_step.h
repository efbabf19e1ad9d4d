// Steps of a device: the bodies that it runs and the copies that it makes (device_step.cpp).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "exec/step.h"

namespace millrace::exec {

// A call whose arguments outlive the submitting function: it runs on a device's own time (semantics.md 4.1).
struct BodyCall {
  mr_tick tick{};
  mr_tick_info info{};
  TickContext context;
  std::vector<mr_input> inputs;
  std::vector<memory::Block*> input_blocks; // whose presence is asked when the body runs; null: known
  std::vector<mr_output> outputs;
  std::vector<memory::Block*> output_blocks;
  std::vector<mr_output> given;   // `outputs` as a body that enqueues was given them
  std::vector<mr_input> frozen;   // what the body is given each time it runs; `inputs` is this without what is absent
  std::vector<mr_input> recorded; // region: what the recording froze
  std::vector<uint8_t> absent;    // per input: known to be empty when it was submitted
  std::vector<device::Access> accesses; // what it may touch on this tick, where the device looks at that
  bool silent = false;                  // region: replayed with the others, and does not fire on this tick
  bool failed = false;                  // a body that enqueues said so
  bool to_finish = false;               // it went well and did not end the stream: its finish() is called
  int64_t cost_ns = 0;                  // virtual time: what it was said to take
  int64_t begun = 0, begun_ns = 0;      // transfer: trace time, and the run's
  // transfer: blocks that were copied, and what to; presence goes with the bytes
  std::vector<std::pair<memory::Block*, memory::Block*>> carried;
};

void run_body(void* body_call);
// Whether everything that the submission of a body needs is issued.
bool issued(const StepRun& step, uint64_t ordinal);
// Applies what was changed up to this tick. False where a body that was issued before may still run.
bool change_live(StepRun& step, uint64_t ordinal);
// The bit of mr_tick.ended of a flat input; 0 where it has none.
inline uint64_t bit_of_input(size_t flat) { return flat < 64 ? uint64_t{1} << flat : 0; }
// Decides whether the body fires on this tick, as far as the host knows, and fixes its inputs. False with the cause.
bool fix_body(StepRun& step, BodyCall& body, uint64_t ordinal, Cause& cause);
// The stream goes on after the fence, where it is not its own.
void wait_for(device::Device& device, device::Stream& stream, const device::Fence& fence);
// Enqueues a copy of the bytes of `value`; of records with the count before them, which the device alone knows.
void copy_value(const StepRun& step, uint8_t* to, const uint8_t* from, const mr_value& value);
// Device time that goes into a histogram.
device::Span span_of(Histogram& times);
// The output's slot of this ordinal anew: a value in this block.
Slot& open_slot(OutputRun& output, uint64_t ordinal, memory::Block& block);
// Takes the blocks of this ordinal for the body's outputs and opens their slots.
void choose_blocks(StepRun& step, BodyCall& body, uint64_t ordinal);
void leave_fence(StepRun& step, uint64_t ordinal, const device::Fence& fence);
StepResult run_on_device(StepRun& step, uint64_t ordinal);
StepResult run_transfer(StepRun& step, uint64_t ordinal);

} // namespace millrace::exec
