// Prepares a body on a device for its submission: checks that all it needs is issued, fixes its inputs of this tick,
// and chooses the blocks of its outputs (semantics.md 3.4, 4.1).
#include <cstring>

#include "exec/channel.h"
#include "exec/group.h"
#include "exec/region.h"
#include "exec/settle.h"
#include "plan/memory.h"
#include "plan/plan.h"
#include "plan/step.h"

namespace millrace::exec {

namespace {

device::Access access_to(const memory::Block& block, bool writes) {
  return {bytes_at(block.value), sizeof(mr_value) + block.ring->capacity(), writes};
}

// Notes what the body reads of an input: this value, and those of earlier ticks that it keeps.
void record_reads(const BodyRun& step, BodyCall& body, const InputRun& input, const memory::Block& block) {
  if (!step.on.device->checks_accesses()) return;
  body.accesses.push_back(access_to(block, false));
  for (uint64_t back = 1; back <= input.keeps && back < input.kept_next; ++back) {
    const memory::Block* kept = input.kept[(input.kept_next - 1 - back) % input.kept.size()].block;
    if (kept) body.accesses.push_back(access_to(*kept, false));
  }
}

// The address of the bytes of an empty initial value, for a body. There are no bytes, but kernels read the record
// before that address, which says so (Cuda::value_of).
const uint8_t* no_bytes(const BodyRun& step) {
  if (!step.on.enqueuing) return nullptr;
  return reinterpret_cast<const uint8_t*>(step.on.device->body_address(step.run->empty_record) + sizeof(mr_value));
}

// Fixes one input of the body. False if the input is known to be empty.
bool fix_input(BodyRun& step, BodyCall& body, size_t i, uint64_t ordinal) {
  InputRun& input = step.inputs[i];
  body.frozen[i] = {};
  body.input_blocks[i] = nullptr;
  Slot room;
  const Slot* const slot = read(step, input, ordinal, room);
  if (!slot) return false;
  if (!slot->block) { // an empty initial value
    body.frozen[i] = {slot->value, no_bytes(step)};
    return true;
  }
  if (!input.kept.empty()) keep(input, *slot);
  body.frozen[i].value = reinterpret_cast<const mr_value*>(step.on.device->body_address(bytes_at(slot->value)));
  // Not slot->data: that may be foreign memory, which a device reads through the block that stands for it.
  body.frozen[i].data = reinterpret_cast<const uint8_t*>(step.on.device->body_address(bytes_at(slot->block->data)));
  if (slot->presence_pending && !step.on.enqueuing) body.input_blocks[i] = slot->block;
  record_reads(step, body, input, *slot->block);
  wait_for(*step.on.device, *step.on.stream, slot->fence);
  return true;
}

// True if the input is empty because its source has ended.
bool has_ended(const BodyRun& step, const InputRun& input, uint64_t ordinal) {
  if (!input.output) return false;
  const auto [back, at] = look_back(step, input, ordinal);
  if (back != Back::there) return false;
  const Slot& slot = input.output->at(at);
  return !slot.value && slot.cause == Cause::end;
}

void count_input(InputRun& input, bool there, Cause cause) {
  if (there) {
    ++input.totals->delivered;
  } else if (input.output) {
    ++input.totals->empty[static_cast<size_t>(cause)];
  }
}

} // namespace

bool is_issued(const StepRun& step, const InputRun& input, uint64_t ordinal) {
  if (!input.output || !input.producer) return true;
  const auto [back, at] = look_back(step, input, ordinal);
  return back != Back::there || input.producer->settled(at);
}

bool staged(const Slot& source) {
  const memory::Block& block = *source.block;
  if (source.data == block.data && block.record == block.value) return true;
  if (!source.fence.done()) return false; // the block is still being written
  memory::learn_count(*source.block);
  std::atomic<uint32_t>& state = source.block->staged;
  uint32_t expected = memory::Block::kNotStaged;
  if (!state.compare_exchange_strong(expected, memory::Block::kStaging, std::memory_order_acquire))
    return expected == memory::Block::kStaged;
  const uint64_t extent = source.value->header.extent_bytes;
  if (source.data != block.data && extent > 0) std::memcpy(block.data, source.data, extent);
  if (block.record != block.value) *block.value = *block.record;
  state.store(memory::Block::kStaged, std::memory_order_release);
  return true;
}

bool issued(const BodyRun& step, uint64_t ordinal) {
  // Steps of the same region are submitted together with this one.
  const auto same_region = [&](uint32_t other) {
    return step.on.region && step.run->planned.plan.steps[other].region == step.plan->region;
  };
  for (const InputRun& input : step.inputs) {
    if (!input.output || same_region(input.output->plan->step)) continue;
    if (!is_issued(step, input, ordinal)) return false;
    const auto [back, at] = look_back(step, input, ordinal);
    if (back != Back::there) continue;
    const Slot& slot = input.output->at(at);
    if (input.output->in_host_memory && slot.block && !staged(slot)) return false;
    if (decides_now(step.on, input) && slot.presence_pending && !slot.fence.done()) return false;
  }
  for (size_t i = 0; i < step.after.size(); ++i) {
    const StepStamps* before = step.after[i];
    if (!before || same_region(step.plan->after[i])) continue;
    if (!before->settled(ordinal)) return false;
  }
  return true;
}

bool fix_body(BodyRun& step, BodyCall& body, uint64_t ordinal, Cause& cause) {
  const mr_tick_info& info = step.pace->info(ordinal);
  cause = info.index % step.every == 0 ? Cause::input : Cause::every;
  bool fires = info.index % step.every == 0 && !later_ticks_void(*step.run, info);
  const bool asked = fires;
  body.accesses.clear();
  body.tick.ended = 0;
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    if (!asked && !step.inputs[i].repeat_last) continue; // each tick may bring a new last value
    body.absent[i] = !fix_input(step, body, i, ordinal);
    if (!asked) continue;
    const bool over = body.absent[i] && has_ended(step, step.inputs[i], ordinal);
    count_input(step.inputs[i], !body.absent[i], over ? Cause::end : Cause::silent);
    if (!body.absent[i]) continue;
    if (over) body.tick.ended |= bit_of_input(i);
    if (!step.inputs[i].required) continue;
    fires = false;
    if (over) cause = Cause::end;
  }
  if (!fires && step.reads_queue && (asked || cause == Cause::every)) count_lost(step, ordinal, cause);
  if (!fires) return false;
  for (const StepRun* before : step.after_on_device)
    wait_for(*step.on.device, *step.on.stream, before->on.fences[ordinal & step.pace->mask]);
  body.info = info;
  if (GroupRun* const group = step.pace->group) body.tick.stream = group->item(ordinal).give->give->stream;
  body.context = {&step, ordinal, &body, nullptr};
  return true;
}

void discard(StepRun& step, const OutputRun& output, const memory::Block& block) {
  if (output.plan->owns && output.plan->domain == step.plan->domain && step.on.device->poisons_discarded())
    step.on.device->discard(*step.on.stream, bytes_at(block.data), block.ring->capacity());
}

void choose_blocks(BodyRun& step, BodyCall& body, uint64_t ordinal) {
  for (size_t o = 0; o < step.outputs.size(); ++o) {
    OutputRun& output = *step.outputs[o];
    const int32_t place = output.plan->owns ? -1 : output.plan->in_place;
    memory::Block& block =
        place >= 0 ? *step.inputs[static_cast<size_t>(place)].output->at(ordinal).block : output.ring->take(ordinal);
    // Absent until the body says otherwise. If the device is lost it never does, and the bytes are never read.
    if (place < 0) block.present.store(0, std::memory_order_relaxed);
    if (place < 0) discard(step, output, block);
    body.output_blocks[o] = &block;
    if (step.on.device->checks_accesses()) body.accesses.push_back(access_to(block, true));
    give_block(step, body, o);
    settle(output, ordinal, awaited(block));
  }
}

const memory::Block& recorded_block(const InputRun& input, uint32_t slot) {
  if (!input.output->plan->kept) return input.output->ring->block(slot);
  return input.recorded ? *input.recorded : input.output->ring->block(0); // the first value is copied there
}

void record_accesses(const BodyRun& step, BodyCall& body, uint32_t slot) {
  body.accesses.clear();
  if (!step.on.device->checks_accesses()) return;
  for (const InputRun& input : step.inputs)
    if (input.output) body.accesses.push_back(access_to(recorded_block(input, slot), false));
  for (const memory::Block* block : body.output_blocks) body.accesses.push_back(access_to(*block, true));
}

void give_block(const BodyRun& step, BodyCall& body, size_t o) {
  const memory::Block& block = *body.output_blocks[o];
  mr_output& raw = body.outputs[o];
  raw = {};
  raw.value = reinterpret_cast<mr_value*>(step.on.device->body_address(bytes_at(block.record)));
  raw.data = reinterpret_cast<uint8_t*>(step.on.device->body_address(bytes_at(block.data)));
  raw.capacity = step.outputs[o]->ring->capacity();
  raw.token = reinterpret_cast<uint64_t>(&block);
}

} // namespace millrace::exec
