// Bodies on devices: what one is given (prepare_body.cpp), and how it is submitted and comes to its results (body.cpp).
#pragma once

#include <cstdint>
#include <vector>

#include "exec/handler_run.h"

namespace millrace::exec {

struct FinishRun;

// A call whose arguments outlive the submitting function: it runs on a device's own time, or its kernels do
// (semantics.md 4.1).
struct BodyCall {
  mr_tick tick{};
  mr_tick_info info{};
  TickContext context;
  std::vector<mr_input> inputs;
  std::vector<memory::Block*> input_blocks; // whose presence is asked when the body runs; null: known
  std::vector<mr_output> outputs;
  std::vector<memory::Block*> output_blocks;
  std::vector<mr_output> given;   // `outputs` as the body was given them
  std::vector<mr_input> frozen;   // what the body is given each time it runs; `inputs` is this without what is absent
  std::vector<mr_input> recorded; // region: what the recording froze
  std::vector<uint8_t> absent;    // per input: known to be empty when it was submitted
  std::vector<device::Access> accesses; // what it may touch on this tick, where the device looks at that
  bool silent = false;                  // region: replayed with the others, and does not fire on this tick
  bool failed = false;
  bool to_finish = false; // it went well and did not end the stream: its finish() is called
  int64_t cost_ns = 0;    // virtual time: what it was said to take
};

// A handler whose body runs on a device.
struct BodyRun : HandlerRun {
  StepResult advance(uint64_t ordinal) override;

  // built
  mr_status (*process_cuda)(void*, mr_tick*) = nullptr;
  void* scratch = nullptr;
  std::vector<BodyCall> bodies; // by ordinal mod their number
  // The step that calls its finish() on a worker (finish_step.h); null: it has none. The handler is one object: whoever
  // calls it has `entered` it and keeps the other out, who comes again. `submitted_on` and `called_below` are told by
  // the body's stamps; the finish says with its `passed` what it is done with.
  FinishRun* finisher = nullptr;

  // claimer
  std::vector<uint8_t> submitted_on; // [ordinal & mask] whether the body ran, called or launched
  uint64_t called_below = 0;         // ordinals below it were submitted, or did not fire
  int64_t empty_span_ns = 0;         // measure_bodies: the time of a span on its stream that has nothing in it

  // any
  std::atomic<bool> entered{false};
  std::atomic<bool> restart_asked{false}; // it failed; nothing may be under way when the handler restarts
};

// An address as devices and copies take it.
inline std::byte* bytes_at(const void* address) { return static_cast<std::byte*>(const_cast<void*>(address)); }

// ---- prepare_body.cpp

// Whether the value of this tick is issued: its slot is settled.
bool is_issued(const StepRun& step, const InputRun& input, uint64_t ordinal);
// Whether everything that the submission of a body needs is issued.
bool issued(const BodyRun& step, uint64_t ordinal);
// True once the bytes of a value of the host are where a device may copy them from: foreign memory is not pinned, and
// goes to devices through the block that stands for it. The first of its copies brings it there; false while another
// thread does. So goes the record of what came down from a device, which is kept beside its block.
bool staged(const Slot& source);
// Decides whether the body fires on this tick, as far as the host knows, and fixes its inputs. False with the cause.
bool fix_body(BodyRun& step, BodyCall& body, uint64_t ordinal, Cause& cause);
// Takes the blocks of this ordinal for the body's outputs and opens their slots.
void choose_blocks(BodyRun& step, BodyCall& body, uint64_t ordinal);
// Fixes where one output goes: `output_blocks` has the block.
void give_block(const BodyRun& step, BodyCall& body, size_t o);
// Lists the bytes that a recorded body may touch, where the device looks at that.
void note_accesses(const BodyRun& step, BodyCall& body, uint32_t slot);
// A block that is taken again is unwritten to whoever writes it, where that device poisons what is unwritten.
void discard(StepRun& step, const OutputRun& output, const memory::Block& block);
// True if the body may leave this output empty: its finish() may still make something of it.
inline bool is_for_finish(const BodyRun& step, const OutputRun& output) {
  return step.finisher && output.in_host_memory;
}
// Whether the host decides about this input when it submits the body, so that presence must be known: where the host
// calls the body, and where it chooses the value that is repeated or kept.
inline bool decides_now(const OnDevice& on, const InputRun& input) {
  return on.enqueuing || input.repeat_last || !input.kept.empty();
}
// The bit of mr_tick.ended of a flat input; 0 where it has none.
inline uint64_t bit_of_input(size_t flat) { return flat < 64 ? uint64_t{1} << flat : 0; }

// ---- body.cpp

// Of a body that no region launches.
StepResult run_alone(BodyRun& step, uint64_t ordinal);
// A device that has failed is given nothing more: a body of it that does not return may still read its call, and that
// is of this ordinal's slot.
void settle_failed(BodyRun& step, uint64_t ordinal);
enum class Timing { as_it_comes, held }; // held: its device time without what the host takes to submit it
// All that it needs is issued, and nobody is in its handler.
void submit_body(BodyRun& step, uint64_t ordinal, Timing timing);
// A device calls these: the first for a body that runs by itself, the second for one that enqueues.
void simulate_body(void* body_call);
void enqueue_body(void* body_call);
inline BodyCall& body_of(BodyRun& step, uint64_t ordinal) { return step.bodies[ordinal % step.bodies.size()]; }
inline device::TickNumbers numbers_of(const mr_tick_info& info) { return {info.index, info.media_time_ns}; }
// Applies what was changed up to this tick. False where a body that was issued before may still run.
bool change_live(BodyRun& step, uint64_t ordinal);
// The fence of what was submitted for this ordinal, of a body or copy.
void leave_fence(StepRun& step, uint64_t ordinal, const device::Fence& fence);
// For finish(); before the body's stamp.
void note_called(BodyRun& step, uint64_t ordinal, bool called);
// The stream goes on after the fence, where it is not its own.
void wait_for(device::Device& device, device::Stream& stream, const device::Fence& fence);
// Enqueues a copy of the bytes of `value`; of records with the count before them, which the device alone knows.
void copy_value(const OnDevice& on, uint8_t* to, const uint8_t* from, const mr_value& value);
// Device time that goes into a histogram.
device::Span span_of(Histogram& times);

} // namespace millrace::exec
