// Regions: device handlers recorded once per ring slot and replayed as one, with frozen arguments and addresses
// (semantics.md 4.5). What changes from tick to tick lies in the bodies' parameter blocks.
#include "exec/region.h"

#include "exec/device_step.h"
#include "exec/firing.h"
#include "exec/run_state.h"
#include "exec/state.h"
#include "exec/step.h"

namespace millrace::exec {

void freeze(StepRun& step, BodyCall& body, uint32_t slot) {
  const auto at = [&](const void* address) {
    return step.device->body_address(static_cast<std::byte*>(const_cast<void*>(address)));
  };
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    body.frozen[i] = {};
    body.input_blocks[i] = nullptr;
    if (!step.inputs[i].output) continue;
    const memory::Block& block = step.inputs[i].output->ring->block(slot);
    body.frozen[i].value = reinterpret_cast<const mr_value*>(at(block.record));
    body.frozen[i].data = reinterpret_cast<const uint8_t*>(at(block.data));
  }
  body.recorded = body.frozen;
  for (size_t o = 0; o < step.outputs.size(); ++o) {
    memory::Ring& ring = *step.outputs[o]->ring;
    memory::Block& block = ring.block(slot);
    body.output_blocks[o] = &block;
    body.outputs[o] = {};
    body.outputs[o].value = reinterpret_cast<mr_value*>(at(block.record));
    body.outputs[o].data = reinterpret_cast<uint8_t*>(at(block.data));
    body.outputs[o].capacity = ring.capacity();
    body.outputs[o].token = reinterpret_cast<uint64_t>(&block);
  }
}

namespace {

// What a replay reads: the tick, presence, and which bodies do not fire. The addresses must be those recorded.
bool prepare(StepRun& step, BodyCall& body, uint64_t ordinal) {
  Cause cause = Cause::input;
  const bool fires = fix_body(step, body, ordinal, cause);
  body.silent = !fires;
  for (size_t i = 0; i < body.recorded.size(); ++i)
    MR_ASSERT(body.absent[i] || !fires || body.frozen[i].data == body.recorded[i].data,
              "a slot of a region is a function of the index");
  body.frozen = body.recorded; // of one size: no allocation
  if (fires) {
    choose_blocks(step, body, ordinal);
    return true;
  }
  // Silent by presence word: the body is replayed, calls nobody, and leaves its outputs absent.
  body.accesses.clear();
  clear_outputs(step, ordinal, cause);
  return false;
}

} // namespace

void record_region(RegionRun& region) {
  StepRun& first = *region.steps[0];
  if (first.enqueuing) {
    capture_region(region);
    if (first.run->options.measure_bodies) measure_empty_span(region);
    return;
  }
  for (uint32_t slot = 0; slot < region.plan->slots; ++slot) {
    for (StepRun* step : region.steps) freeze(*step, step->bodies[slot], slot);
    first.device->begin_record(*first.stream);
    for (StepRun* step : region.steps) {
      const int64_t cost = step->run->options.cost_ns ? step->run->options.cost_ns(step->handler->name, 0) : 0;
      BodyCall& body = step->bodies[slot];
      first.device->run(*first.stream, {&run_body, &body, step->handler->name.c_str(), cost, &body.accesses});
    }
    region.recordings.push_back(first.device->end_record(*first.stream));
  }
}

StepResult run_region(RegionRun& region, uint64_t ordinal) {
  if (region.steps[0]->enqueuing) return run_captured(region, ordinal);
  for (const StepRun* step : region.steps)
    if (!issued(*step, ordinal)) return StepResult::waiting;
  for (StepRun* step : region.steps)
    if (!change_live(*step, ordinal)) return StepResult::waiting;
  const auto slot = static_cast<uint32_t>(ordinal % region.plan->slots);
  bool any = false;
  for (StepRun* step : region.steps) any = prepare(*step, step->bodies[slot], ordinal) || any;
  StepRun& first = *region.steps[0];
  if (!any) {
    for (StepRun* step : region.steps) stamp(*step, ordinal);
    return StepResult::settled;
  }
  const RunState& run = *first.run;
  const int64_t begin_ns = run.options.on_launch ? run.now_ns() : 0;
  first.device->replay(*first.stream, *region.recordings[slot]);
  const device::Fence fence = first.device->signal(*first.stream);
  if (run.options.on_launch) run.options.on_launch(first.pace->info(ordinal).index, begin_ns, run.now_ns());
  for (StepRun* step : region.steps) {
    leave_fence(*step, ordinal, fence);
    stamp(*step, ordinal);
  }
  return StepResult::settled;
}

} // namespace millrace::exec
