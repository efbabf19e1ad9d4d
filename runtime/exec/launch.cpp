// Launches a region: a tick of all its bodies is one command of its device (semantics.md 4.5).
//
// A body that runs by itself finds in its BodyCall which inputs are there on this tick, and whether it fires. For
// bodies that enqueue, the host looks only at the region's border: if a value that enters is missing, or is not as it
// was recorded, the tick is not launched and its bodies are submitted one by one. A list that may be missing becomes a
// list of no records, and the tick is launched.
#include <algorithm>
#include <cstring>

#include "exec/copy_step.h"
#include "exec/failure.h"
#include "exec/finish_step.h"
#include "exec/firing.h"
#include "exec/group.h"
#include "exec/handler_state.h"
#include "exec/region.h"
#include "exec/run_options.h"
#include "exec/settle.h"
#include "plan/memory.h"
#include "plan/pace.h"
#include "plan/step.h"

namespace millrace::exec {

namespace {

// ---- one command for all bodies

// The time at which a launch begins; 0 if there is no on_launch to tell it to.
int64_t asked_ns(const RegionRun& region) {
  const RunState& run = *region.steps[0]->run;
  return run.options.on_launch ? run.now_ns() : 0;
}

device::Fence replay(RegionRun& region, uint64_t ordinal, int64_t begin_ns) {
  BodyRun& first = *region.steps[0];
  const RunState& run = *first.run;
  const mr_tick_info& info = first.pace->info(ordinal);
  const bool sampled = first.on.enqueuing && has_span(info.index) && first.on.enqueuing->begin_span(*first.on.stream);
  first.on.device->replay(*first.on.stream, *region.recordings[ordinal % region.plan->slots], numbers_of(info),
                          region.lists);
  if (sampled) first.on.enqueuing->end_span(*first.on.stream, span_of(region.times));
  const device::Fence fence = first.on.device->signal(*first.on.stream);
  if (run.options.on_launch) run.options.on_launch(info.index, begin_ns, run.now_ns());
  return fence;
}

// ---- bodies that run by themselves

// Prepares what the replay of a body reads: the tick, presence, and whether the body fires. The addresses must be those
// recorded. False if the body does not fire.
bool prepare(BodyRun& step, BodyCall& body, uint64_t ordinal) {
  Cause cause = Cause::input;
  const bool fires = fix_body(step, body, ordinal, cause);
  body.silent = !fires;
  for (size_t i = 0; i < body.recorded.size(); ++i) {
    if (step.inputs[i].output && step.inputs[i].output->plan->kept) body.recorded[i] = body.frozen[i];
    MR_ASSERT(body.absent[i] || !fires || body.frozen[i].data == body.recorded[i].data,
              "a slot of a region is a function of the index");
  }
  body.frozen = body.recorded; // the same size each time: no allocation
  if (fires) {
    choose_blocks(step, body, ordinal);
    return true;
  }
  // The body is replayed all the same: it finds that it is silent, calls no handler, and leaves its outputs absent.
  body.accesses.clear();
  clear_outputs(step, ordinal, cause);
  return false;
}

StepResult launch_runs(RegionRun& region, uint64_t ordinal) {
  for (const BodyRun* step : region.steps)
    if (!issued(*step, ordinal)) return StepResult::waiting;
  for (BodyRun* step : region.steps)
    if (!change_live(*step, ordinal)) return StepResult::waiting;
  if (region.steps[0]->on.device->failed()) {
    for (BodyRun* step : region.steps) settle_failed(*step, ordinal);
    return StepResult::settled;
  }
  bool any = false;
  for (BodyRun* step : region.steps) any = prepare(*step, body_of(*step, ordinal), ordinal) || any;
  const device::Fence fence = any ? replay(region, ordinal, asked_ns(region)) : device::Fence{};
  for (BodyRun* step : region.steps) {
    if (any) leave_fence(*step, ordinal, fence);
    stamp(*step, ordinal);
  }
  return StepResult::settled;
}

// ---- bodies that enqueue

// True if a value is as the recording saw it, as far as bodies look at it on the host. The number of records is left
// out, because bodies read it on the device.
bool same_kind(const mr_value& value, const mr_value& recorded) {
  if (value.header.kind != recorded.header.kind || value.header.layout != recorded.header.layout) return false;
  if (value.header.kind == MR_KIND_IMAGE)
    return std::memcmp(&value.as.image, &recorded.as.image, sizeof(mr_image)) == 0;
  if (value.header.kind == MR_KIND_TENSOR)
    return std::memcmp(&value.as.tensor, &recorded.as.tensor, sizeof(mr_tensor)) == 0;
  return true;
}

// True if the host knows that every value that enters is there, or may be absent, and is as the recording saw it.
bool as_recorded(const RegionRun& region, uint64_t ordinal) {
  return std::all_of(region.entries.begin(), region.entries.end(), [&](const RegionInput& entry) {
    const Slot& slot = entry.input->output->at(ordinal);
    if (!slot.value) return entry.may_be_absent;
    return !entry.input->output->in_host_memory && same_kind(*slot.value, entry.recorded);
  });
}

// True if everything that a launch looks at is issued, and its presence is known.
bool border_is_ready(const RegionRun& region, uint64_t ordinal) {
  for (const RegionInput& entry : region.entries) {
    if (entry.input->producer && !entry.input->producer->settled(ordinal)) return false;
    const Slot& slot = entry.input->output->at(ordinal);
    if (slot.presence_pending && !slot.fence.done()) return false;
  }
  return std::all_of(region.steps.begin(), region.steps.end(),
                     [&](const BodyRun* step) { return step->after.empty() || issued(*step, ordinal); });
}

// Notes which of the values that enter are there, and their headers: an exit may be written over an entry.
void look_at_entries(RegionRun& region, uint64_t ordinal) {
  auto list = region.lists.begin();
  for (RegionInput& entry : region.entries) {
    const Slot& slot = entry.input->output->at(ordinal);
    entry.is_there = slot.value;
    if (entry.is_there) entry.header = slot.value->header;
    if (!entry.may_be_absent) continue;
    const memory::Block& block = entry.input->output->ring->block(static_cast<uint32_t>(ordinal % region.plan->slots));
    std::byte* const address = region.steps[0]->on.device->body_address(bytes_at(block.value));
    *list++ = {reinterpret_cast<mr_value*>(address), entry.is_there};
  }
}

// Settles the value of an exit: its record as the bodies wrote it when they were recorded, with the times of this tick.
void settle_exit(const RegionRun& region, const RegionOutput& exit, uint64_t ordinal, const device::Fence& fence) {
  memory::Block& block = exit.output->ring->take(ordinal);
  const mr_value& recorded = exit.recorded[ordinal % region.plan->slots];
  if (!recorded.header.present) {
    block.present.store(0, std::memory_order_relaxed);
    settle(*exit.output, ordinal, awaited(block, fence));
    return;
  }
  *block.record = recorded;
  mr_header& header = block.record->header;
  header.pts_ns = region.steps[0]->pace->info(ordinal).media_time_ns;
  const auto entry = [&](int32_t number) -> const RegionInput* { // null: there is none, or not on this tick
    const RegionInput* const found = number < 0 ? nullptr : &region.entries[static_cast<size_t>(number)];
    return found && found->is_there ? found : nullptr;
  };
  if (const RegionInput* const from = entry(exit.times_of)) {
    header.pts_ns = from->header.pts_ns;
    header.duration_ns = from->header.duration_ns;
  }
  if (exit.stream_of >= 0) header.stream = 0; // the recording left a mark there
  if (GroupRun* const group = region.steps[0]->pace->group)
    header.stream = group->item(ordinal).give->give->stream;
  else if (const RegionInput* const from = entry(exit.stream_of))
    header.stream = from->header.stream;
  Slot& slot = settle(*exit.output, ordinal, value_in(block, fence));
  if (exit.output->in_host_memory) await_host_block(slot);
}

// Settles a small copy that was part of the launch.
void settle_fused_download(CopyRun& download, uint64_t ordinal, const device::Fence& fence) {
  const Slot& source = download.inputs[0].output->at(ordinal);
  memory::Block& block = download.outputs[0]->ring->take(ordinal);
  *block.record = *source.value;
  block.present.store(1, std::memory_order_relaxed);
  count_late(block);
  settle(*download.outputs[0], ordinal, awaited(block)); // the fence says whether the device failed
  ++download.copies;
  download.bytes_copied += source.value->header.extent_bytes;
  leave_fence(download, ordinal, fence);
  stamp(download, ordinal);
}

void launch_calls(RegionRun& region, uint64_t ordinal) {
  BodyRun& first = *region.steps[0];
  const int64_t begin_ns = asked_ns(region);
  for (const RegionInput& entry : region.entries)
    wait_for(*first.on.device, *first.on.stream, entry.input->output->at(ordinal).fence);
  for (const BodyRun* step : region.steps)
    for (const StepRun* before : step->after_on_device)
      if (before->on.region != &region)
        wait_for(*first.on.device, *first.on.stream, before->on.fences[ordinal & before->pace->mask]);
  look_at_entries(region, ordinal);
  for (BodyRun* step : region.steps) clear_state_if_due(*step);
  const device::Fence fence = replay(region, ordinal, begin_ns);
  if (lost(fence)) first.run->watch_device(region.plan->domain);
  for (const RegionOutput& exit : region.exits) settle_exit(region, exit, ordinal, fence);
  first.run->submissions[first.plan->domain]->record(first, ordinal, fence);
  first.segment->fences[ordinal & first.pace->mask] = fence;
  for (BodyRun* step : region.stamped) step->on.fences[ordinal & step->pace->mask] = fence;
  for (BodyRun* step : region.steps) {
    step->on.last_fence = fence;
    record_called(*step, ordinal, true);
  }
  ++region.replays;
  for (const RegionInput& entry : region.entries) // after the replay is counted, from which a report subtracts them
    if (!entry.is_there) ++entry.input->totals->absent_from_launch;
  for (CopyRun* download : region.fused_downloads) settle_fused_download(*download, ordinal, fence);
  region.launched[ordinal % region.plan->slots] = ordinal + 1;
  for (BodyRun* step : region.stamped) stamp(*step, ordinal);
}

// Applies changed live parameters, and restarts handlers, once nothing of the region is under way. False until then.
bool take_changes(RegionRun& region, uint64_t ordinal) {
  const bool changed = region.steps[0]->run->changes_admitted.load(std::memory_order_acquire) != region.changes_seen;
  const bool to_restart = std::any_of(region.steps.begin(), region.steps.end(),
                                      [](const BodyRun* step) { return step->restart_asked.load(); });
  if (!changed && !to_restart) return true;
  for (const BodyRun* step : region.steps)
    if (!at_rest(*step)) return false;
  region.changes_seen = SIZE_MAX;
  for (BodyRun* step : region.steps) {
    const size_t before = step->life->changes_seen;
    region.stale = region.stale || step->restart_asked.load();
    restart_where_asked(*step);
    change_live(*step, ordinal);
    region.stale = region.stale || step->life->changes_seen != before;
    region.changes_seen = std::min<size_t>(region.changes_seen, step->life->changes_seen);
  }
  return true;
}

// Records the region again: its bodies are called anew, so that their kernels get the new values. False while one of
// them may still run.
bool record_again(RegionRun& region) {
  for (const BodyRun* step : region.steps)
    if (!at_rest(*step)) return false;
  record_region(region);
  return true;
}

// Marks the region stale if a lasting value lies in another block than its recordings read (semantics.md 3.7).
void follow_successors(RegionRun& region, uint64_t ordinal) {
  for (RegionInput& entry : region.entries) {
    const Slot& slot = entry.input->output->at(ordinal);
    if (!entry.input->output->plan->kept || !slot.value || &recorded_block(*entry.input, 0) == slot.block) continue;
    entry.input->recorded = slot.block;
    region.stale = true;
  }
}

StepResult submit_one_by_one(RegionRun& region, uint64_t ordinal, Timing timing) {
  for (const BodyRun* step : region.steps)
    if (!issued(*step, ordinal)) return StepResult::waiting;
  for (size_t s = 0; s < region.steps.size(); ++s) {
    if (enter(*region.steps[s])) continue;
    while (s-- > 0) leave(*region.steps[s]);
    return StepResult::waiting;
  }
  for (BodyRun* step : region.steps) {
    submit_body(*step, ordinal, timing);
    leave(*step);
  }
  ++region.streamed;
  return StepResult::settled;
}

} // namespace

StepResult run_region(RegionRun& region, uint64_t ordinal) {
  BodyRun& first = *region.steps[0];
  if (!first.on.enqueuing) return launch_runs(region, ordinal);
  if (!first.on.device->has_room(*first.on.stream) || !border_is_ready(region, ordinal) ||
      !take_changes(region, ordinal))
    return StepResult::waiting;
  follow_successors(region, ordinal);
  const bool down =
      std::any_of(region.steps.begin(), region.steps.end(), [](const BodyRun* step) { return step->life->down; });
  if (region.stale && !down && !record_again(region)) return StepResult::waiting;
  if (!first.on.region) return run_alone(first, ordinal); // it could not be recorded again
  const RunState& run = *first.run;
  const bool measured = run.options.measure_bodies && (first.pace->info(ordinal).index & kTimedMask) == 0;
  if (!down && !measured && !run.any_failed.load(std::memory_order_relaxed) && as_recorded(region, ordinal)) {
    launch_calls(region, ordinal);
    return StepResult::settled;
  }
  // The stream can be held: a body that could be recorded does not wait for its stream while it is called.
  return submit_one_by_one(region, ordinal, measured ? Timing::held : Timing::as_it_comes);
}

void warm_up(RegionRun& region, uint64_t ordinal) {
  if (region.recordings.empty() || !region.steps[0]->on.enqueuing) return;
  const BodyRun& first = *region.steps[0];
  first.on.enqueuing->warm_up(*first.on.stream, *region.recordings[ordinal % region.plan->slots]);
}

} // namespace millrace::exec
