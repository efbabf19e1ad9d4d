// Steps of a device: bodies are submitted and run later, copies move blocks between domains, and both leave a fence
// instead of a result (semantics.md 4.1, 3.4).
#include <algorithm>
#include <cstring>
#include <optional>

#include "exec/state.h"

namespace millrace::exec {

namespace {

std::byte* bytes(const void* address) { return static_cast<std::byte*>(const_cast<void*>(address)); }

device::Access access_to(const memory::Block& block, bool writes) {
  return {bytes(block.value), sizeof(mr_value) + block.ring->capacity(), writes};
}

// What the body reads of an input: this value, and those of earlier ticks that it keeps.
void note_reads(const StepRun& step, BodyCall& body, const InputRun& input, const memory::Block& block) {
  if (!step.device->checks_accesses()) return;
  body.accesses.push_back(access_to(block, false));
  for (uint64_t back = 1; back <= input.keeps && back < input.kept_next; ++back) {
    const memory::Block* kept = input.kept[(input.kept_next - 1 - back) % input.kept.size()].block;
    if (kept) body.accesses.push_back(access_to(*kept, false));
  }
}

bool stamped(const StepRun& step, const InputRun& input, uint64_t ordinal) {
  if (!input.output || !input.producer) return true;
  const auto [back, at] = look_back(step, input, ordinal);
  if (back != Back::there) return true;
  return input.producer->settled(at);
}

// Forwards and bypasses on a device: a copy within it.
void copy_input(const StepRun& step, const mr_input& input, const memory::Block& block, mr_output& output) {
  std::memcpy(step.device->body_address(bytes(block.value)), input.value, sizeof(mr_value));
  const uint64_t extent = std::min(input.value->header.extent_bytes, output.capacity);
  if (extent > 0) std::memcpy(step.device->body_address(bytes(block.data)), input.data, extent);
  output.state = MR_OUTPUT_OWN;
}

void carry_presence(void* context) {
  const BodyCall& body = *static_cast<BodyCall*>(context);
  for (const auto& [from, to] : body.carried)
    to->present.store(from->present.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

void begin_copy(void* context) {
  BodyCall& body = *static_cast<BodyCall*>(context);
  body.begun = body.context.step->run->trace_now();
  body.begun_ns = body.context.step->run->now_ns();
}

void end_copy(void* context) {
  const BodyCall& body = *static_cast<BodyCall*>(context);
  StepRun& step = *body.context.step;
  step.times.add(step.run->now_ns() - body.begun_ns);
  step.run->trace_on_device(step, body.info, TraceKind::copy, body.begun, step.run->trace_now());
}

// Foreign memory is not pinned: it goes to devices through the block that stands for it, brought there once by the
// first of its copies. False while another thread does.
// So does the record of what came down from a device, which is kept beside its block (memory::Block::record).
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

// Where a body finds the bytes of an empty initial value, of which there are none: behind a record that says so, which
// kernels read (Cuda::value_of).
const uint8_t* no_bytes(const StepRun& step) {
  if (!step.device->enqueues()) return nullptr;
  return reinterpret_cast<const uint8_t*>(step.device->body_address(step.run->empty_record) + sizeof(mr_value));
}

// Fixes one input of a body; false where it is known to be empty.
bool fix_input(StepRun& step, BodyCall& body, size_t i, uint64_t ordinal) {
  InputRun& input = step.inputs[i];
  body.frozen[i] = {};
  body.input_blocks[i] = nullptr;
  if (!input.output) return false;
  const auto initial = [&] {
    if (!input.initial_empty) return false;
    body.frozen[i].value = &step.run->empty_values[static_cast<size_t>(input.output - step.run->outputs.data())];
    body.frozen[i].data = no_bytes(step);
    return true;
  };
  const auto [back, earlier] = look_back(step, input, ordinal);
  if (back == Back::before_first) return initial();
  Slot nothing;
  Slot& at = back == Back::there ? input.output->at(earlier) : nothing;
  Slot* slot = &at;
  if (input.repeat_last || !input.kept.empty()) { // issued() saw to it that presence is known
    const bool there = present(*step.run, at);
    if (!there && !input.repeat_last) return false;
    if (input.repeat_last) {
      if (there) remember(input, at);
      if (!input.last.value) return initial();
      slot = &input.last;
    }
    if (there && !input.kept.empty()) keep(input, at);
  }
  if (!slot->value) return false;
  if (slot->block) {
    body.frozen[i].value = reinterpret_cast<const mr_value*>(step.device->body_address(bytes(slot->value)));
    // Not slot->data: that may be foreign memory, which a device reads through the block that stands for it.
    body.frozen[i].data = reinterpret_cast<const uint8_t*>(step.device->body_address(bytes(slot->block->data)));
    if (slot->unknown) body.input_blocks[i] = slot->block;
    note_reads(step, body, input, *slot->block);
    wait_for(*step.device, *step.stream, slot->fence);
  } else {
    body.frozen[i] = {slot->value, no_bytes(step)}; // an empty initial value
  }
  return true;
}

// The output that a reader's input stands for, through the copies that were put in between.
const InputRun* behind_copies(const StepRun& reader, const InputRun& input) {
  const InputRun* at = &input;
  while (at->output) {
    const plan::Step& producer = reader.run->plan.steps[at->output->plan->step];
    if (producer.kind != plan::StepKind::transfer || producer.pace != reader.plan->pace) break;
    at = &reader.run->step_runs[at->output->plan->step]->inputs[at->output->plan->port];
  }
  return at;
}

// Of a copy: whether its source, or its target, is host memory.
bool reads_host(const StepRun& transfer) {
  return transfer.run->plan.in_host_memory(transfer.run->plan.outputs[transfer.plan->inputs[0].output].domain);
}
bool writes_host(const StepRun& transfer) {
  return transfer.run->plan.in_host_memory(transfer.outputs[0]->plan->domain);
}

bool comes_by(const StepRun& reader, const InputRun& input, const StepRun& transfer) {
  for (const InputRun* at = &input; at->output;) {
    const StepRun& producer = *reader.run->step_runs[at->output->plan->step];
    if (&producer == &transfer) return true;
    if (producer.plan->kind != plan::StepKind::transfer) return false;
    at = &producer.inputs[at->output->plan->port];
  }
  return false;
}

enum class Certain { yes, no, open };

// Whether the reader fires on this tick, as far as presence is known without its inputs' bytes (3.4).
Certain certain(const StepRun& reader, const StepRun& transfer, uint64_t ordinal) {
  const mr_tick_info& info = transfer.pace->info(ordinal);
  for (const InputRun& input : reader.inputs)
    if (input.delay > 0 && comes_by(reader, input, transfer)) return Certain::yes; // a later tick will tell
  if (info.index % reader.every != 0 || later_ticks_void(*reader.run, info)) return Certain::no;
  for (const InputRun& input : reader.inputs) {
    if (!input.required || input.repeat_last || !input.output) continue;
    const auto [back, at] = look_back(reader, input, ordinal);
    if (back == Back::before_first) continue;
    if (back == Back::never) return Certain::no;
    const InputRun* source = behind_copies(reader, input);
    const auto& presumed = transfer.plan->presumed;
    const auto output = static_cast<uint32_t>(source->output - reader.run->outputs.data());
    if (std::find(presumed.begin(), presumed.end(), output) != presumed.end()) continue;
    const StepShared& producer = reader.run->shared[source->output->plan->step];
    if (producer.wanted && !producer.settled(at)) return Certain::open;
    if (!source->output->at(at).value) return Certain::no;
  }
  return Certain::yes;
}

// One copy of all that `body` carries, whose last value is in `last`: one block, or those of a pack, which lie side by
// side at both ends.
void copy_blocks(StepRun& step, const BodyCall& body, const Slot& last, uint64_t ordinal) {
  for (const InputRun& input : step.inputs) // also of what is not wanted, and lies between what is
    if (const Slot& source = input.output->at(ordinal); source.block)
      wait_for(*step.device, *step.stream, source.fence);
  uint64_t extent = last.block->ring->capacity();
  // Else the block is still on its way here, or was never written, and its extent is not known.
  if (reads_host(step) ? last.fence.done() && (!last.unknown || last.block->present.load())
                       : last.block->record != last.block->value)
    extent = last.value->header.extent_bytes;
  const auto [from, to] = body.carried.front();
  const auto before_last = static_cast<uint64_t>(bytes(last.block->value) - bytes(from->value));
  // Of one block whose record is at the host already that need not come, unless it says how many records there are.
  const bool bare = body.carried.size() == 1 && to->record != to->value && writes_host(step) && !is_counted_late(*to);
  const uint64_t head = bare ? sizeof(mr_value) : 0;
  const uint64_t count = before_last + sizeof(mr_value) + extent - head;
  step.device->copy(*step.stream, bytes(to->value) + head, bytes(from->value) + head, count);
  ++step.copies;
  step.bytes_copied += count;
}

} // namespace

// Runs on the device's time: presence of the inputs, the handler, presence of the outputs.
void run_body(void* context) {
  BodyCall& body = *static_cast<BodyCall*>(context);
  StepRun& step = *body.context.step;
  bool fires = !body.silent, called = !step.plan->on_value;
  for (size_t i = 0; i < body.inputs.size(); ++i) {
    const memory::Block* block = body.input_blocks[i];
    const bool absent = body.absent[i] || (block && !block->present.load(std::memory_order_relaxed));
    body.inputs[i] = absent ? mr_input{} : body.frozen[i];
    if (!body.inputs[i].value && step.inputs[i].required) fires = false;
    called = called || (body.inputs[i].value && step.inputs[i].calls);
  }
  fires = fires && called && (!step.down || bring_up(step)); // on the device's own time: the next body waits for it
  for (mr_output& output : body.outputs) output.state = MR_OUTPUT_SILENT;
  mr_status status = MR_OK;
  if (fires) {
    RunState& run = *step.run;
    ++step.calls;
    const int64_t begin = run.trace_now(), begun_ns = run.now_ns();
    const plugin::UnderWayScope here({&name_call_apart, &step});
    step.apart.store(body.info.index, std::memory_order_relaxed);
    status = run_bodies(step, &body.tick);
    step.apart.store(StepRun::kNotApart, std::memory_order_relaxed);
    step.times.add(run.is_virtual ? body.cost_ns : run.now_ns() - begun_ns);
    // In virtual time a body runs when its time is over.
    run.trace_on_device(step, body.info, TraceKind::call, begin - body.cost_ns, run.trace_now());
    note_reached(step, body.context.ordinal);
  }
  status = status_of_call(step, status, body.outputs, body.inputs);
  if (status == MR_END) step.run->stopping.store(true);
  if (status < 0) {
    note_error(step, body.info.index);
    for (mr_output& output : body.outputs) output.state = MR_OUTPUT_SILENT;
    if (step.handler->on_error == graph::OnError::restart) begin_restart(step);
  }
  for (size_t o = 0; o < body.outputs.size(); ++o) {
    mr_output& output = body.outputs[o];
    memory::Block& block = *body.output_blocks[o];
    const bool bypassed = status < 0 && step.handler->on_error == graph::OnError::bypass;
    if (output.state == MR_OUTPUT_FORWARDED || bypassed) {
      const mr_input& input = body.inputs[bypassed ? bypass_input(step, o) : output.source];
      if (input.value) copy_input(step, input, block, output);
    }
    block.present.store(output.state != MR_OUTPUT_SILENT, std::memory_order_relaxed);
  }
}

void wait_for(device::Device& device, device::Stream& stream, const device::Fence& fence) {
  if (fence.word && fence.word != &stream.completed) device.wait(stream, fence);
}

void copy_value(const StepRun& step, uint8_t* to, const uint8_t* from, const mr_value& value) {
  const uint64_t head = value.header.kind == MR_KIND_RECORDS ? sizeof(mr_value) : 0;
  step.device->copy(*step.stream, bytes(to) - head, bytes(from) - head, head + value.header.extent_bytes);
}

device::Span span_of(Histogram& times) {
  return {[](void* context, int64_t took_ns) { static_cast<Histogram*>(context)->add(took_ns); }, &times};
}

Slot& open_slot(OutputRun& output, uint64_t ordinal, memory::Block& block) {
  Slot& slot = output.at(ordinal);
  slot = Slot{};
  slot.value = block.record;
  slot.data = block.data;
  slot.block = &block;
  return slot;
}

// A block that is taken again is unwritten to whoever writes it, where that device poisons what is unwritten.
void discard(StepRun& step, const OutputRun& output, const memory::Block& block) {
  if (output.plan->owns && output.plan->domain == step.plan->domain && step.device->poisons_discarded())
    step.device->discard(*step.stream, bytes(block.data), block.ring->capacity());
}

void choose_blocks(StepRun& step, BodyCall& body, uint64_t ordinal) {
  for (size_t o = 0; o < step.outputs.size(); ++o) {
    OutputRun& output = *step.outputs[o];
    const int32_t place = output.plan->owns ? -1 : output.plan->in_place;
    memory::Block& block =
        place >= 0 ? *step.inputs[static_cast<size_t>(place)].output->at(ordinal).block : output.ring->take(ordinal);
    // Absent until the body says otherwise: on a device that is lost it never will, and its bytes are never read.
    if (place < 0) block.present.store(0, std::memory_order_relaxed);
    if (place < 0) discard(step, output, block);
    body.output_blocks[o] = &block;
    if (step.device->checks_accesses()) body.accesses.push_back(access_to(block, true));
    mr_output& raw = body.outputs[o];
    raw = {};
    raw.value = reinterpret_cast<mr_value*>(step.device->body_address(bytes(block.record)));
    raw.data = reinterpret_cast<uint8_t*>(step.device->body_address(bytes(block.data)));
    raw.capacity = output.ring->capacity();
    raw.token = reinterpret_cast<uint64_t>(&block);
    open_slot(output, ordinal, block).unknown = true;
  }
}

void leave_fence(StepRun& step, uint64_t ordinal, const device::Fence& fence) {
  step.run->note_submitted(step, ordinal, fence);
  step.run->await_submitted(step, ordinal, fence);
  step.fences[ordinal & step.pace->mask] = fence;
  step.last_fence = fence;
  step.segment->fences[ordinal & step.pace->mask] = fence;
  for (OutputRun* output : step.outputs) output->at(ordinal).fence = fence;
}

bool issued(const StepRun& step, uint64_t ordinal) {
  // What comes from the step's own region is submitted with it.
  const auto same_region = [&](uint32_t other) {
    return step.region && step.run->plan.steps[other].region == step.plan->region;
  };
  for (const InputRun& input : step.inputs) {
    if (!input.output || same_region(input.output->plan->step)) continue;
    if (!stamped(step, input, ordinal)) return false;
    const auto [back, at] = look_back(step, input, ordinal);
    if (back != Back::there) continue;
    const Slot& slot = input.output->at(at);
    if (step.run->plan.in_host_memory(input.output->plan->domain) && slot.block && !staged(slot)) return false;
    // Which value is repeated or kept is the host's to decide, so presence must be known; and so it must where the host
    // calls the body.
    const bool host_decides = input.repeat_last || !input.kept.empty() || step.device->enqueues();
    if (host_decides && slot.unknown && !slot.fence.done()) return false;
  }
  for (size_t i = 0; i < step.after.size(); ++i) {
    const StepShared* before = step.after[i];
    if (!before || same_region(step.plan->after[i])) continue;
    if (!before->settled(ordinal)) return false;
  }
  return true;
}

bool change_live(StepRun& step, uint64_t ordinal) {
  if (step.run->changes_admitted.load(std::memory_order_acquire) == step.changes_seen) return true;
  if (!at_rest(step)) return false; // those at issue count (2.7), and earlier bodies may still run
  apply_changes(step, step.pace->info(ordinal).index);
  return true;
}

namespace {

// True if the input is empty because its source has ended.
bool has_ended(const StepRun& step, const InputRun& input, uint64_t ordinal) {
  if (!input.output) return false;
  const auto [back, at] = look_back(step, input, ordinal);
  if (back != Back::there) return false;
  const Slot& slot = input.output->at(at);
  return !slot.value && slot.cause == Cause::end;
}

} // namespace

bool fix_body(StepRun& step, BodyCall& body, uint64_t ordinal, Cause& cause) {
  const mr_tick_info& info = step.pace->info(ordinal);
  cause = info.index % step.every == 0 ? Cause::input : Cause::every;
  bool fires = info.index % step.every == 0 && !later_ticks_void(*step.run, info);
  const bool asked = fires;
  body.accesses.clear();
  body.tick.ended = 0;
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    if (!asked && !step.inputs[i].repeat_last) continue; // the last value is minded on every tick
    body.absent[i] = !fix_input(step, body, i, ordinal);
    if (asked && !body.absent[i]) ++step.inputs[i].delivered;
    if (!body.absent[i]) continue;
    const bool over = asked && has_ended(step, step.inputs[i], ordinal);
    if (over) body.tick.ended |= bit_of_input(i);
    if (!step.inputs[i].required) continue;
    fires = false;
    if (over) cause = Cause::end;
  }
  if (!fires && step.reads_queue && (asked || cause == Cause::every)) count_lost(step, ordinal, cause);
  if (!fires) return false;
  for (const StepRun* before : step.after_on_device)
    wait_for(*step.device, *step.stream, before->fences[ordinal & step.pace->mask]);
  body.info = info;
  body.context = {&step, ordinal, &body, nullptr};
  return true;
}

StepResult run_on_device(StepRun& step, uint64_t ordinal) {
  if (step.region) {
    // The first of the region submits all; the others find themselves settled.
    return step.region->steps[0] == &step ? run_region(*step.region, ordinal) : StepResult::settled;
  }
  if (step.device->enqueues()) return run_enqueued(step, ordinal);
  if (!issued(step, ordinal) || !change_live(step, ordinal)) return StepResult::waiting;
  BodyCall& body = step.bodies[ordinal & step.pace->mask];
  Cause cause = Cause::input;
  if (!fix_body(step, body, ordinal, cause)) {
    settle_empty(step, ordinal, cause);
    return StepResult::settled;
  }
  choose_blocks(step, body, ordinal);
  body.cost_ns = step.run->options.cost_ns ? step.run->options.cost_ns(step.handler->name, body.info.index) : 0;
  step.device->run(*step.stream, {&run_body, &body, step.handler->name.c_str(), body.cost_ns, &body.accesses});
  leave_fence(step, ordinal, step.device->signal(*step.stream));
  stamp(step, ordinal);
  return StepResult::settled;
}

namespace {

// Whether the host is to know that a copy's source is there before it submits the copy: on a device whose bodies
// enqueue, and of what came down from one, whose failure nothing carries on.
bool host_must_know(const StepRun& step, const Slot& source) {
  return step.device->enqueues() || (source.block && source.block->record != source.block->value);
}

// What of a copy's inputs is wanted on this tick: bits by input; none where that cannot be said yet.
std::optional<uint64_t> wanted_members(const StepRun& step, uint64_t ordinal) {
  uint64_t there = 0, wanted = 0, open = 0;
  for (size_t m = 0; m < step.inputs.size(); ++m) {
    const Slot& source = step.inputs[m].output->at(ordinal);
    // Where presence is the host's to know, it is: run_transfer() waited for it. Else what the host knows is that its
    // bytes will never come.
    const bool absent = source.unknown && (host_must_know(step, source) ? !arrived(*step.run, source) : lost(source));
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

// The slot of one output of a copy, as it will be behind the copy's fence.
void settle_copied(StepRun& step, BodyCall& body, size_t m, uint64_t ordinal) {
  const Slot& source = step.inputs[m].output->at(ordinal);
  memory::Block& block = *body.carried.back().second;
  // What comes to the host is absent until the device has carried it here: one that is lost never does (4.9).
  const bool unknown = source.unknown || writes_host(step);
  // Of a device whose bodies enqueue the host knows presence and record at once; that the copy failed is told by its
  // fence's word (read()).
  const bool known = step.device->enqueues();
  block.present.store(known || !unknown, std::memory_order_relaxed);
  if (known && block.record != block.value) *block.record = *source.value;
  if (known && writes_host(step)) count_late(block);
  open_slot(*step.outputs[m], ordinal, block).unknown = unknown;
}

void settle_not_copied(StepRun& step, size_t m, uint64_t ordinal) {
  const Slot& source = step.inputs[m].output->at(ordinal);
  Slot& slot = step.outputs[m]->at(ordinal);
  slot = Slot{};
  slot.cause = source.value ? Cause::input : source.cause;
  if (source.value && !source.block) slot.value = source.value; // an empty initial value
}

} // namespace

StepResult run_transfer(StepRun& step, uint64_t ordinal) {
  for (const InputRun& input : step.inputs)
    if (!stamped(step, input, ordinal)) return StepResult::waiting;
  if (step.region && step.region->launched[ordinal % step.region->plan->slots] == ordinal + 1)
    return StepResult::settled; // it was part of the launch
  if (!step.device->has_room(*step.stream)) return StepResult::waiting;
  for (const InputRun& input : step.inputs)
    if (const Slot& source = input.output->at(ordinal);
        source.unknown && !source.fence.done() && host_must_know(step, source))
      return StepResult::waiting;
  const std::optional<uint64_t> wanted = wanted_members(step, ordinal);
  if (!wanted) return StepResult::waiting;
  for (size_t m = 0; m < step.inputs.size(); ++m)
    if ((*wanted >> m & 1) && reads_host(step) && !staged(step.inputs[m].output->at(ordinal)))
      return StepResult::waiting;
  BodyCall& body = step.bodies[ordinal & step.pace->mask];
  body.carried.clear();
  bool unknown = false;
  const Slot* last = nullptr;
  for (size_t m = 0; m < step.inputs.size(); ++m) {
    if (!(*wanted >> m & 1)) {
      settle_not_copied(step, m, ordinal);
      continue;
    }
    last = &step.inputs[m].output->at(ordinal);
    body.carried.emplace_back(last->block, &step.outputs[m]->ring->take(ordinal));
    discard(step, *step.outputs[m], *body.carried.back().second);
    settle_copied(step, body, m, ordinal);
    unknown = unknown || step.outputs[m]->at(ordinal).unknown;
  }
  if (!last) {
    stamp(step, ordinal);
    return StepResult::settled;
  }
  body.context.step = &step;
  body.info = step.pace->info(ordinal);
  const bool timed = step.run->options.trace_all || (body.info.index & kTimedMask) == 0;
  if (step.device->enqueues()) {
    const bool spanned = timed && step.device->begin_span(*step.stream);
    copy_blocks(step, body, *last, ordinal);
    if (spanned) step.device->end_span(*step.stream, span_of(step.times));
  } else {
    if (timed) step.device->run(*step.stream, {&begin_copy, &body, "time", 0});
    copy_blocks(step, body, *last, ordinal);
    if (timed) step.device->run(*step.stream, {&end_copy, &body, "time", 0});
    if (unknown) step.device->run(*step.stream, {&carry_presence, &body, "presence", 0});
  }
  if (writes_host(step)) step.run->watch_device(step.plan->domain);
  leave_fence(step, ordinal, step.device->signal(*step.stream));
  stamp(step, ordinal);
  return StepResult::settled;
}

} // namespace millrace::exec
