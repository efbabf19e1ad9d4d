// Bodies on devices: preparation of inputs and blocks (prepare_body.cpp), submission and settling (body.cpp).
#pragma once

#include <cstdint>
#include <vector>

#include "device/device.h"
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
  std::vector<memory::Block*> input_blocks; // presence is read when the body runs; null: known before
  std::vector<mr_output> outputs;
  std::vector<memory::Block*> output_blocks;
  std::vector<mr_output> given;         // `outputs` as the body was given them
  std::vector<mr_input> frozen;         // all inputs; each run gets a copy in `inputs`, without the absent ones
  std::vector<mr_input> recorded;       // region: `frozen` as it was recorded
  std::vector<uint8_t> absent;          // per input: it was known to be empty at submission
  std::vector<device::Access> accesses; // bytes that it may touch on this tick, if the device checks
  bool silent = false;                  // region: it is replayed but does not fire on this tick
  bool failed = false;
  bool to_finish = false; // it returned MR_OK and nothing failed: its finish() is called
  int64_t cost_ns = 0;    // virtual time: its cost by RunOptions::cost_ns
};

// A handler whose body runs on a device.
struct BodyRun : HandlerRun {
  StepResult advance(uint64_t ordinal) override;

  // built
  mr_status (*process_cuda)(void*, mr_tick*) = nullptr;
  void* scratch = nullptr;
  std::vector<BodyCall> bodies; // by ordinal mod their number
  // The step that calls finish() on a worker (finish_step.h); null: the handler has no finish(). Body and finish() are
  // calls of one handler object, so the step that is in a call has `entered` set, and the other step waits and tries
  // again. The body's stamp publishes `finish_due`; the finish step reports its progress in `passed`.
  FinishRun* finisher = nullptr;

  // claimer
  std::vector<uint8_t> finish_due; // [ordinal & mask] finish() is due: the body returned MR_OK or was launched
  uint64_t called_below = 0;       // every ordinal below it was submitted or did not fire
  int64_t empty_span_ns = 0;       // measure_bodies: how long an empty span takes on its stream

  // any
  std::atomic<bool> entered{false};
  std::atomic<bool> restart_asked{false}; // it failed, and restarts once no work of it is under way
};

// An address as devices and copies take it.
inline std::byte* bytes_at(const void* address) { return static_cast<std::byte*>(const_cast<void*>(address)); }

// ---- prepare_body.cpp

// True if the value of this input for the tick is issued, that is, its slot is settled.
bool is_issued(const StepRun& step, const InputRun& input, uint64_t ordinal);
// True if everything that the body's submission needs is issued.
bool issued(const BodyRun& step, uint64_t ordinal);
// True once a value in host memory lies where a device may copy it from. Foreign memory is not pinned, so its bytes
// move into the block that stands for it. A record of a value that came down from a device is kept apart from the block
// and moves into it too. The first caller moves them; false while another thread does, or while the block is still
// being written.
bool staged(const Slot& source);
// Decides if the body fires on this tick, as far as the host knows, and fixes its inputs. If it does not fire, returns
// false and sets `cause`.
bool fix_body(BodyRun& step, BodyCall& body, uint64_t ordinal, Cause& cause);
// Takes the blocks of this ordinal for the body's outputs and opens their slots.
void choose_blocks(BodyRun& step, BodyCall& body, uint64_t ordinal);
// Points one output of the body at its block in `output_blocks`.
void give_block(const BodyRun& step, BodyCall& body, size_t o);
// The block of an input in a region's recording of this slot.
const memory::Block& recorded_block(const InputRun& input, uint32_t slot);
// Lists the bytes that a recorded body may touch, if the device checks accesses.
void record_accesses(const BodyRun& step, BodyCall& body, uint32_t slot);
// Marks the bytes of a newly taken block as unwritten, if the block is on the step's device and that device poisons
// unwritten bytes.
void discard(StepRun& step, const OutputRun& output, const memory::Block& block);
// True if the body may leave this output empty: its finish() may still make something of it.
inline bool is_for_finish(const BodyRun& step, const OutputRun& output) {
  return step.finisher && output.in_host_memory;
}
// True if the host must know the presence of this input when it submits the body: because the host calls the body, or
// because it chooses the value that is repeated or kept.
inline bool decides_now(const OnDevice& on, const InputRun& input) {
  return on.enqueuing || input.repeat_last || !input.kept.empty();
}
// The bit of mr_tick.ended of a flat input; 0 if it has none.
inline uint64_t bit_of_input(size_t flat) { return flat < 64 ? uint64_t{1} << flat : 0; }

// ---- body.cpp

// Submits a body that no region launches.
StepResult run_alone(BodyRun& step, uint64_t ordinal);
// Settles the ordinal empty, with Cause::error, and submits nothing, because the device has failed. A body there that
// never returned may still read its BodyCall, which this ordinal would use again.
void settle_failed(BodyRun& step, uint64_t ordinal);
enum class Timing { as_it_comes, held }; // held: its device time is measured without the host's time for submitting it
// Call it when everything that the body needs is issued and no thread is in its handler.
void submit_body(BodyRun& step, uint64_t ordinal, Timing timing);
// A device calls these: the first for a body that runs by itself, the second for one that enqueues.
void simulate_body(void* body_call);
void enqueue_body(void* body_call);
inline BodyCall& body_of(BodyRun& step, uint64_t ordinal) { return step.bodies[ordinal % step.bodies.size()]; }
inline device::TickNumbers numbers_of(const mr_tick_info& info) { return {info.index, info.media_time_ns}; }
// Applies live parameter changes up to this tick. False if an earlier body or its finish() may still run.
bool change_live(BodyRun& step, uint64_t ordinal);
// Stores the fence of the body or copy that was submitted for this ordinal.
void leave_fence(StepRun& step, uint64_t ordinal, const device::Fence& fence);
// Tells the finish step if finish() is due for this ordinal. Called before the body's stamp is stored.
void record_called(BodyRun& step, uint64_t ordinal, bool called);
// Makes the stream wait for the fence, unless the fence is the stream's own.
void wait_for(device::Device& device, device::Stream& stream, const device::Fence& fence);
// Enqueues a copy of the bytes of `value`. For records the copy includes the mr_value before them, because only the
// device may know their count.
void copy_value(const OnDevice& on, uint8_t* to, const uint8_t* from, const mr_value& value);
// A span whose device time is added to a histogram.
device::Span span_of(Histogram& times);

} // namespace millrace::exec
