// Copies between domains: which values go, when, and what becomes of them (semantics.md 3.4).
#include "exec/copy_step.h"

#include <algorithm>
#include <optional>

#include "exec/firing.h"
#include "exec/group.h"
#include "exec/region.h"
#include "exec/run_options.h"
#include "exec/segment.h"
#include "exec/settle.h"
#include "plan/memory.h"
#include "plan/pace.h"
#include "plan/plan.h"
#include "plan/step.h"

namespace millrace::exec {

namespace {

// A device whose bodies do not enqueue calls the next three in stream order: the begin and the end of a copy, and the
// presence that goes with its bytes.
void begin_copy(void* context) {
  CopyCall& copy = *static_cast<CopyCall*>(context);
  copy.begun = copy.step->run->trace_now();
  copy.begun_ns = copy.step->run->now_ns();
}

void end_copy(void* context) {
  const CopyCall& copy = *static_cast<CopyCall*>(context);
  CopyRun& step = *copy.step;
  step.times.add(step.run->now_ns() - copy.begun_ns);
  step.run->trace_on_device(step, copy.info, TraceKind::copy, copy.begun, step.run->trace_now());
}

void carry_presence(void* context) {
  const CopyCall& copy = *static_cast<CopyCall*>(context);
  for (const auto& [from, to] : copy.carried)
    to->present.store(from->present.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

// Follows a reader's input back through the copies that were put in between.
const InputRun* copied_input(const StepRun& reader, const InputRun& input) {
  const InputRun* at = &input;
  while (at->output) {
    const plan::Step& producer = reader.run->planned.plan.steps[at->output->plan->step];
    if (!producer.is<plan::CopyStep>() || producer.pace != reader.plan->pace) break;
    at = &reader.run->planned.step_runs[at->output->plan->step]->inputs[at->output->plan->port];
  }
  return at;
}

bool reads_host(const CopyRun& transfer) { return transfer.inputs[0].output->in_host_memory; }
bool writes_host(const CopyRun& transfer) { return transfer.outputs[0]->in_host_memory; }

bool comes_by(const StepRun& reader, const InputRun& input, const CopyRun& transfer) {
  for (const InputRun* at = &input; at->output;) {
    const StepRun& producer = *reader.run->planned.step_runs[at->output->plan->step];
    if (&producer == &transfer) return true;
    if (!producer.plan->is<plan::CopyStep>()) return false;
    at = &producer.inputs[at->output->plan->port];
  }
  return false;
}

enum class Certain { yes, no, open };

// True, false, or open if the reader fires on this tick: open while an input that it needs is not settled (3.4).
Certain certain(const StepRun& reader, const CopyRun& transfer, uint64_t ordinal) {
  const mr_tick_info& info = transfer.pace->info(ordinal);
  for (const InputRun& input : reader.inputs)
    if (input.delay > 0 && comes_by(reader, input, transfer)) return Certain::yes; // a later tick reads it
  if (info.index % reader.every != 0 || later_ticks_void(*reader.run, info)) return Certain::no;
  for (const InputRun& input : reader.inputs) {
    if (!input.required || input.repeat_last || !input.output) continue;
    const auto [back, at] = look_back(reader, input, ordinal);
    if (back == Back::before_first) continue;
    if (back == Back::never) return Certain::no;
    const InputRun* source = copied_input(reader, input);
    const auto& presumed = transfer.plan->as<plan::CopyStep>().presumed;
    const auto output = static_cast<uint32_t>(source->output - reader.run->planned.outputs.data());
    if (std::find(presumed.begin(), presumed.end(), output) != presumed.end()) continue;
    const StepStamps& producer = reader.run->planned.shared[source->output->plan->step];
    if (producer.wanted && !producer.settled(at)) return Certain::open;
    if (!source->output->at(at).value) return Certain::no;
  }
  return Certain::yes;
}

// Enqueues one copy of all that the step carries: one block, or the blocks of a pack, which lie side by side at both
// ends. `last` is the slot of the last value.
void copy_blocks(CopyRun& step, const CopyCall& copy, const Slot& last, uint64_t ordinal) {
  for (const InputRun& input : step.inputs) // also unwanted ones, which lie between those that are wanted
    if (const Slot& source = input.output->at(ordinal); source.block)
      wait_for(*step.on.device, *step.on.stream, source.fence);
  uint64_t extent = last.block->ring->capacity();
  // The extent is known if the block has arrived on the host, or if the host keeps the block's header itself. Otherwise
  // the whole capacity goes: the block is still on its way, or was never written.
  if (reads_host(step) ? last.fence.done() && (!last.presence_pending || last.block->present.load())
                       : last.block->record != last.block->value)
    extent = last.value->header.extent_bytes;
  const auto [from, to] = copy.carried.front();
  const auto before_last = static_cast<uint64_t>(bytes_at(last.block->value) - bytes_at(from->value));
  // A single block goes without its header if the host keeps the header itself, unless the device writes the number of
  // records there.
  const bool bare = copy.carried.size() == 1 && to->record != to->value && writes_host(step) && !is_counted_late(*to);
  const uint64_t head = bare ? sizeof(mr_value) : 0;
  const uint64_t count = before_last + sizeof(mr_value) + extent - head;
  step.on.device->copy(*step.on.stream, bytes_at(to->value) + head, bytes_at(from->value) + head, count);
  ++step.copies;
  step.bytes_copied += count;
}

// True if the host must know that a copy's source is there before it submits the copy: if bodies enqueue on the copy's
// device, or if the source was itself copied down from such a device, whose failure no stream carries to this copy.
bool host_must_know(const CopyRun& step, const Slot& source) {
  return step.on.enqueuing || (source.block && source.block->record != source.block->value);
}

// The inputs of a copy that are wanted on this tick, as bits by input; nullopt if that cannot be said yet.
std::optional<uint64_t> wanted_members(const CopyRun& step, uint64_t ordinal) {
  uint64_t there = 0, wanted = 0, open = 0;
  for (size_t m = 0; m < step.inputs.size(); ++m) {
    const Slot& source = step.inputs[m].output->at(ordinal);
    // If the host must know presence, it does: can_begin() waited for it. Otherwise the host can only know that the
    // bytes will never come.
    const bool absent =
        source.presence_pending && (host_must_know(step, source) ? !arrived(*step.run, source) : lost(source));
    if (source.value && source.block && !absent) there |= uint64_t{1} << m;
  }
  for (const auto& [reader, member] : step.readers) {
    const uint64_t bit = uint64_t{1} << member;
    if (!(there & bit) || (wanted & bit)) continue;
    const Certain answer = certain(*reader, step, ordinal);
    if (answer == Certain::open) open |= bit;
    if (answer == Certain::yes) wanted |= bit;
  }
  if (open & ~wanted) return std::nullopt;
  return wanted;
}

// Settles one output of a copy as it will be at the copy's fence.
void settle_copied(CopyRun& step, const Slot& source, memory::Block& block, size_t m, uint64_t ordinal) {
  // The slot of a value that comes to the host waits for the fence; a lost device never completes it (4.9).
  const bool unknown = source.presence_pending || writes_host(step);
  // If bodies enqueue, the host knows presence and header at once, and readers learn from the fence if the copy failed
  // (arrived(), presence.h). Otherwise `present` is false until the copy carries it.
  const bool known = step.on.enqueuing;
  block.present.store(known || !unknown, std::memory_order_relaxed);
  if (known && block.record != block.value) *block.record = *source.value;
  if (known && writes_host(step)) count_late(block);
  settle(*step.outputs[m], ordinal, unknown ? awaited(block) : value_in(block));
}

void settle_not_copied(CopyRun& step, const Slot& source, size_t m, uint64_t ordinal) {
  Slot slot = nothing(source.value ? Cause::input : source.cause);
  if (source.value && !source.block) slot.value = source.value; // an empty initial value
  settle(*step.outputs[m], ordinal, slot);
}

bool is_kept(const CopyRun& step) { return step.outputs[0]->plan->kept; }

// True if the stream has room, and the host knows of each source what it must know.
bool can_begin(const CopyRun& step, uint64_t ordinal) {
  if (!step.on.device->has_room(*step.on.stream)) return false;
  return std::all_of(step.inputs.begin(), step.inputs.end(), [&](const InputRun& input) {
    const Slot& source = input.output->at(ordinal);
    return !source.presence_pending || source.fence.done() || !host_must_know(step, source);
  });
}

// Settles every output. Returns the source of the last one that is copied; null: none is.
const Slot* choose_targets(CopyRun& step, CopyCall& copy, uint64_t wanted, uint64_t ordinal) {
  const Slot* last = nullptr;
  copy.carried.clear();
  copy.brings_presence = false;
  for (size_t m = 0; m < step.inputs.size(); ++m) {
    const Slot& source = step.inputs[m].output->at(ordinal);
    if (!(wanted >> m & 1)) {
      settle_not_copied(step, source, m, ordinal);
      continue;
    }
    last = &source;
    memory::Block& block = step.outputs[m]->ring->take(ordinal);
    copy.carried.emplace_back(source.block, &block);
    discard(step, *step.outputs[m], block);
    settle_copied(step, source, block, m, ordinal);
    copy.brings_presence = copy.brings_presence || step.outputs[m]->at(ordinal).presence_pending;
  }
  return last;
}

void submit_copy(CopyRun& step, CopyCall& copy, const Slot& last, uint64_t ordinal) {
  copy.step = &step;
  copy.info = step.pace->info(ordinal);
  const bool timed = step.run->options.trace_all || (copy.info.index & kTimedMask) == 0;
  device::Stream& stream = *step.on.stream;
  if (step.on.enqueuing) {
    const bool spanned = timed && step.on.enqueuing->begin_span(stream);
    copy_blocks(step, copy, last, ordinal);
    if (spanned) step.on.enqueuing->end_span(stream, span_of(step.times));
    return;
  }
  if (timed) step.on.device->run(stream, {&begin_copy, &copy, "time", 0});
  copy_blocks(step, copy, last, ordinal);
  if (timed) step.on.device->run(stream, {&end_copy, &copy, "time", 0});
  if (copy.brings_presence) step.on.device->run(stream, {&carry_presence, &copy, "presence", 0});
}

// True once all that a copy for this ordinal needs is there; `wanted`: its inputs that are copied.
bool is_ready(CopyRun& step, uint64_t ordinal, uint64_t& wanted) {
  for (const InputRun& input : step.inputs)
    if (!is_issued(step, input, ordinal)) return false;
  if (!can_begin(step, ordinal)) return false;
  const std::optional<uint64_t> members = wanted_members(step, ordinal);
  if (!members) return false;
  for (size_t m = 0; m < step.inputs.size(); ++m)
    if ((*members >> m & 1) && reads_host(step) && !is_kept(step) && !staged(step.inputs[m].output->at(ordinal)))
      return false;
  wanted = *members;
  return true;
}

CopyCall& call_of(CopyRun& step, uint64_t ordinal) { return step.copy_calls[ordinal & step.pace->mask]; }

// True if the copy was part of its region's launch.
bool was_launched(const CopyRun& step, uint64_t ordinal) {
  return step.on.region && step.on.region->launched[ordinal % step.on.region->plan->slots] == ordinal + 1;
}

// True if the block and its target follow on those of `before`, at both ends by the same stride.
bool follows(const CopyRun& step, const CopyCall& before, const CopyCall& copy) {
  if (step.inputs.size() > 1) return false; // a pack goes by itself
  const auto stride = [](const memory::Block* a, const memory::Block* b) {
    return bytes_at(b->value) - bytes_at(a->value);
  };
  const auto [from, to] = copy.carried.front();
  const auto [before_from, before_to] = before.carried.back();
  const auto own = static_cast<std::ptrdiff_t>(memory::block_bytes(from->ring->capacity()));
  return from->ring == before_from->ring && stride(before_from, from) == own && stride(before_to, to) == own;
}

// Copies for the items of a firing: what lies side by side at both ends goes in one copy.
StepResult copy_firing(CopyRun& step, uint64_t first) {
  const uint32_t count = step.pace->group->firing(first).count;
  for (uint32_t i = 0; i < count; ++i)
    if (!was_launched(step, first + i) && !is_ready(step, first + i, step.wanted[i])) return StepResult::waiting;
  for (uint32_t i = 0; i < count; ++i)
    step.sources[i] = was_launched(step, first + i)
                          ? nullptr
                          : choose_targets(step, call_of(step, first + i), step.wanted[i], first + i);
  for (uint32_t begin = 0, end = 0; begin < count; begin = end) {
    end = begin + 1;
    if (!step.sources[begin]) continue;
    CopyCall& copy = call_of(step, first + begin);
    for (; end < count && step.sources[end] && follows(step, copy, call_of(step, first + end)); ++end) {
      const CopyCall& next = call_of(step, first + end);
      copy.carried.push_back(next.carried.front());
      copy.brings_presence = copy.brings_presence || next.brings_presence;
    }
    for (uint32_t i = begin; i + 1 < end; ++i)
      wait_for(*step.on.device, *step.on.stream, step.inputs[0].output->at(first + i).fence);
    submit_copy(step, copy, *step.sources[end - 1], first + end - 1);
    if (writes_host(step)) step.run->watch_device(step.plan->domain);
    const device::Fence fence = step.on.device->signal(*step.on.stream);
    for (uint32_t i = begin; i < end; ++i) leave_fence(step, first + i, fence);
  }
  for (uint32_t i = 0; i < count; ++i) stamp(step, first + i);
  return StepResult::settled;
}

// Copies a lasting value to a block of its own, from where its bytes are: they may be memory that a handler brought.
void copy_lasting(CopyRun& step, CopyCall& copy, const Slot& source, memory::Block& target, uint64_t ordinal) {
  copy.step = &step;
  copy.info = step.pace->info(ordinal);
  device::Device& device = *step.on.device;
  device::Stream& stream = *step.on.stream;
  const uint64_t extent = source.value->header.extent_bytes;
  wait_for(device, stream, source.fence);
  const bool spanned = step.on.enqueuing && step.on.enqueuing->begin_span(stream);
  if (!step.on.enqueuing) device.run(stream, {&begin_copy, &copy, "time", 0});
  const auto copy_up = [&](std::byte* to, const std::byte* from, uint64_t bytes) {
    reads_host(step) ? device.copy_pageable(stream, to, from, bytes) : device.copy(stream, to, from, bytes);
  };
  copy_up(bytes_at(target.value), bytes_at(source.block->value), sizeof(mr_value));
  copy_up(bytes_at(target.data), bytes_at(source.data), extent);
  if (spanned) step.on.enqueuing->end_span(stream, span_of(step.times));
  if (!step.on.enqueuing) device.run(stream, {&end_copy, &copy, "time", 0});
  if (!step.on.enqueuing && copy.brings_presence) device.run(stream, {&carry_presence, &copy, "presence", 0});
  ++step.copies;
  step.bytes_copied += sizeof(mr_value) + extent;
}

// True once every body that reads the copy is done with this ordinal, and so with those before.
bool is_read(const CopyRun& step, uint64_t ordinal) {
  return std::all_of(step.readers.begin(), step.readers.end(), [&](const CopyReader& reader) {
    const SegmentRun& segment = *reader.step->segment;
    return segment.progress.load(std::memory_order_acquire) > ordinal &&
           segment.fences[ordinal & segment.pace->mask].done();
  });
}

// Gives a tick the device's copy of a lasting value. It copies when the value differs from that of the tick before, by
// block and generation, and waits while a body still reads the block that it copies to (semantics.md 3.7).
StepResult advance_kept(CopyRun& step, uint64_t ordinal) {
  uint64_t wanted = 0;
  if (!is_ready(step, ordinal, wanted)) return StepResult::waiting;
  const Slot& source = step.inputs[0].output->at(ordinal);
  KeptCopies& kept = step.kept;
  if (wanted == 0) {
    settle_not_copied(step, source, 0, ordinal);
  } else if (kept.source == source.block && kept.generation == source.block->generation) {
    settle(*step.outputs[0], ordinal, kept.slot);
    kept.read_until[kept.newest] = ordinal + 1;
  } else {
    const uint32_t next = kept.source ? (kept.newest + 1) % step.outputs[0]->ring->length() : 0;
    if (kept.read_until[next] > 0 && !is_read(step, kept.read_until[next] - 1)) return StepResult::waiting;
    memory::Block& target = step.outputs[0]->ring->block(next);
    ++target.generation;
    CopyCall& copy = step.copy_calls[ordinal & step.pace->mask];
    copy.carried = {{source.block, &target}};
    discard(step, *step.outputs[0], target);
    settle_copied(step, source, target, 0, ordinal);
    copy.brings_presence = step.outputs[0]->at(ordinal).presence_pending;
    copy_lasting(step, copy, source, target, ordinal);
    leave_fence(step, ordinal, step.on.device->signal(*step.on.stream));
    kept.source = source.block;
    kept.generation = source.block->generation;
    kept.newest = next;
    kept.slot = step.outputs[0]->at(ordinal);
    kept.read_until[next] = ordinal + 1;
  }
  stamp(step, ordinal);
  return StepResult::settled;
}

} // namespace

StepResult CopyRun::advance(uint64_t ordinal) {
  if (is_kept(*this)) return advance_kept(*this, ordinal);
  if (pace->group) return copy_firing(*this, ordinal);
  if (was_launched(*this, ordinal) && std::all_of(inputs.begin(), inputs.end(), [&](const InputRun& input) {
        return is_issued(*this, input, ordinal);
      }))
    return StepResult::settled;
  uint64_t members = 0;
  if (!is_ready(*this, ordinal, members)) return StepResult::waiting;
  CopyCall& copy = copy_calls[ordinal & pace->mask];
  if (const Slot* const last = choose_targets(*this, copy, members, ordinal)) {
    submit_copy(*this, copy, *last, ordinal);
    if (writes_host(*this)) run->watch_device(plan->domain);
    leave_fence(*this, ordinal, on.device->signal(*on.stream));
  }
  stamp(*this, ordinal);
  return StepResult::settled;
}

} // namespace millrace::exec
