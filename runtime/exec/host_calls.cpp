// The functions that handlers of a run may call: memory from the plan, and firings that publish later (the host's side
// of mr_host).
#include <cstring>

#include "exec/body.h"
#include "exec/failure.h"
#include "exec/firing.h"
#include "exec/holds.h"
#include "exec/items_run.h"
#include "exec/pending.h"
#include "exec/presence.h"
#include "exec/run.h"
#include "millrace/payload/size.h"
#include "plan/memory.h"
#include "plan/pace.h"
#include "plan/plan.h"

namespace millrace::exec {

namespace {

TickContext& context_of(mr_tick* tick) { return *static_cast<TickContext*>(tick->context); }

mr_status refuse(HandlerRun& step, const std::string& sentence) {
  step.instance->set_error(sentence);
  return MR_ERROR;
}

// The output's number comes from the handler, so it is checked.
bool has_output(const mr_tick& tick, uint32_t output) { return output < tick.output_count; }
mr_status refuse_output(const mr_tick& tick, HandlerRun& step, uint32_t output) {
  return refuse(step, "it asks for output " + std::to_string(output) + " and has " + std::to_string(tick.output_count));
}

// The mr_output::source of an output that does not write over an input.
constexpr uint32_t kNoSource = UINT32_MAX;

std::string too_large(const HandlerRun& step, uint32_t output, uint64_t asked, uint64_t planned) {
  const std::string bytes = asked == kTooManyBytes ? "more bytes than 64 bits count" : std::to_string(asked) + " bytes";
  return "the output " + step.outputs[output]->plan->name + " asks for " + bytes + " where " + std::to_string(planned) +
         " were planned";
}

// On a device the block was chosen when the body was submitted.
mr_status allocate_in_body(TickContext& context, uint32_t output, uint64_t bytes) {
  mr_output& raw = context.body->outputs[output];
  if (bytes > raw.capacity) return refuse(*context.step, too_large(*context.step, output, bytes, raw.capacity));
  raw.state = MR_OUTPUT_OWN;
  return MR_OK;
}

// In finish() the output has the block that the body had. An output on a device is final, because its readers have
// begun.
mr_status allocate_in_finish(HandlerRun& step, mr_output& raw, uint32_t output, uint64_t bytes) {
  if (!step.run->planned.plan.in_host_memory(step.outputs[output]->plan->domain))
    return refuse(step, "the output " + step.outputs[output]->plan->name +
                            " is on a device: its body says what it holds, and finish cannot publish it any more");
  if (bytes > raw.capacity) return refuse(step, too_large(step, output, bytes, raw.capacity));
  raw.state = MR_OUTPUT_OWN;
  return MR_OK;
}

enum class Brings { nothing, memory };

// Gives an output its block. If the handler brings memory along, the block stands for it.
mr_status own_block(mr_tick* tick, uint32_t output, uint64_t bytes, Brings brings) {
  TickContext& context = context_of(tick);
  HandlerRun& step = *context.step;
  // Held until the firing owns the block, because a drain may settle the firing meanwhile.
  std::unique_lock lock(step.pending_mutex, std::defer_lock);
  if (context.deferred) lock.lock();
  if (context.deferred && context.deferred->state != Deferred::State::owed)
    return refuse(step, "the firing was settled without it, when the handler was drained or failed");
  OutputRun& run = *step.outputs[output];
  mr_output& raw = tick->outputs[output];
  const bool adopted = run.plan->format.adopted;
  if (!run.plan->owns || !run.ring) return refuse(step, "the output " + run.plan->name + " only forwards its input");
  if (adopted && brings == Brings::nothing)
    return refuse(step, "the output " + run.plan->name + " was said to give adopted memory alone");
  const uint64_t most = adopted ? plan::capacity_of(run.plan->format) : run.ring->capacity();
  if (bytes > most) return refuse(step, too_large(step, output, bytes, most));
  if (raw.state == MR_OUTPUT_OWN) return MR_OK; // asked again in the same firing: the same block
  if (raw.state == MR_OUTPUT_ADOPTED)
    return refuse(step, "the output " + run.plan->name + " holds adopted memory already");
  memory::Block& block = run.ring->take(context.ordinal);
  raw = {block.value, block.data, run.ring->capacity(), MR_OUTPUT_OWN, kNoSource, reinterpret_cast<uint64_t>(&block)};
  return MR_OK;
}

mr_status allocate(mr_tick* tick, uint32_t output, uint64_t bytes) {
  const TickContext& context = context_of(tick);
  if (!has_output(*tick, output)) return refuse_output(*tick, *context.step, output);
  if (context.body) return allocate_in_body(context_of(tick), output, bytes);
  if (context.finishes) return allocate_in_finish(*context.step, tick->outputs[output], output, bytes);
  return own_block(tick, output, bytes, Brings::nothing);
}

// Adopted memory must not be written, so its bytes are copied into the block that stands for it, which has room for
// them.
void own_bytes(mr_output& raw) {
  auto* block = reinterpret_cast<memory::Block*>(raw.token);
  if (!block || raw.data == block->data) return;
  // An empty value may have no bytes at all.
  if (raw.value->header.extent_bytes > 0) std::memcpy(block->data, raw.data, raw.value->header.extent_bytes);
  raw.data = block->data;
}

mr_status modify(mr_tick* tick, uint32_t output, uint32_t input) {
  TickContext& context = context_of(tick);
  HandlerRun& step = *context.step;
  if (context.deferred) return refuse(step, "a pending firing has no inputs any more");
  if (context.finishes) return refuse(step, "finish has no input to write over: its bytes are on a device");
  if (!has_output(*tick, output)) return refuse_output(*tick, step, output);
  if (input >= tick->input_count)
    return refuse(step,
                  "it writes over input " + std::to_string(input) + " and has " + std::to_string(tick->input_count));
  const mr_input& from = tick->inputs[input];
  if (!from.value) return refuse(step, "there is no input to write over");
  mr_output& raw = tick->outputs[output];
  if (raw.state == MR_OUTPUT_OWN && raw.source == input && !context.body) return MR_OK; // again in the same firing
  const plan::Output& plan = *step.outputs[output]->plan;
  const bool in_place = !plan.owns && plan.in_place == static_cast<int32_t>(input);
  if (in_place && !context.body) {
    raw.value = const_cast<mr_value*>(from.value);
    raw.data = const_cast<uint8_t*>(from.data);
    raw.capacity = step.outputs[output]->ring->capacity();
    raw.token = reinterpret_cast<uint64_t>(step.inputs[input].output->at(context.ordinal).block);
    raw.state = MR_OUTPUT_OWN;
    raw.source = input;
    own_bytes(raw);
    return MR_OK;
  }
  if (in_place) { // on a device the output's block is the input's
    raw.state = MR_OUTPUT_OWN;
    return MR_OK;
  }
  const mr_status status = allocate(tick, output, from.value->header.extent_bytes);
  if (status != MR_OK) return status;
  raw.source = input;
  std::memcpy(raw.value, from.value, sizeof(mr_value));
  if (context.body && step.on.enqueuing)
    copy_value(step.on, raw.data, from.data, *raw.value);
  else if (from.value->header.extent_bytes > 0)
    std::memcpy(raw.data, from.data, from.value->header.extent_bytes);
  return MR_OK;
}

mr_status take_foreign(mr_tick* tick, uint32_t output, const void* data, uint64_t bytes, void (*release)(void*),
                       void* release_context) {
  TickContext& context = context_of(tick);
  HandlerRun& step = *context.step;
  if (context.body || context.finishes) return refuse(step, "foreign memory cannot be adopted on a device yet");
  if (!has_output(*tick, output)) return refuse_output(*tick, step, output);
  mr_output& raw = tick->outputs[output];
  if (raw.state != MR_OUTPUT_SILENT)
    return refuse(step, "the output " + step.outputs[output]->plan->name + " holds something already on this tick");
  const mr_status status = own_block(tick, output, bytes, Brings::memory);
  if (status != MR_OK) return status;
  auto& block = *reinterpret_cast<memory::Block*>(raw.token);
  block.foreign = data;
  block.foreign_release = release;
  block.foreign_context = release_context;
  raw.data = static_cast<uint8_t*>(const_cast<void*>(data));
  raw.capacity = bytes;
  raw.state = MR_OUTPUT_ADOPTED;
  return MR_OK;
}

// The runtime owns the memory from the moment of the call, so a refusal releases it here.
mr_status adopt(mr_tick* tick, uint32_t output, const void* data, uint64_t bytes, void (*release)(void*),
                void* release_context) {
  const mr_status status = take_foreign(tick, output, data, bytes, release, release_context);
  if (status != MR_OK && release) release(release_context);
  return status;
}

// ---- blocks that a handler holds: they belong to no tick, or to the tick that it gave them to

OutputRun* lent_output(void* instance, uint32_t output) {
  auto* step = static_cast<HandlerRun*>(static_cast<plugin::Instance*>(instance)->in_run);
  return step && output < step->outputs.size() ? step->outputs[output] : nullptr;
}

mr_status borrow(void* instance, uint32_t output, mr_block* block) {
  OutputRun* run = lent_output(instance, output);
  if (!run || !run->ring || !run->plan->owns) return MR_ERROR;
  const uint32_t most = run->plan->format.held;
  uint32_t held = run->borrowed.load(std::memory_order_relaxed);
  do {
    if (held >= most) return MR_ERROR;
  } while (!run->borrowed.compare_exchange_weak(held, held + 1, std::memory_order_acq_rel));
  memory::Block& taken = run->ring->take(0); // the ring is dynamic: the next free one, whatever the ordinal
  taken.given = false;
  *block = {taken.data, run->ring->capacity(), reinterpret_cast<uint64_t>(&taken)};
  return MR_OK;
}

mr_status give(mr_tick* tick, uint32_t output, uint64_t token) {
  TickContext& context = context_of(tick);
  HandlerRun& step = *context.step;
  if (!has_output(*tick, output)) return refuse_output(*tick, step, output);
  mr_output& raw = tick->outputs[output];
  auto* block = reinterpret_cast<memory::Block*>(token);
  if (context.body || context.finishes || !block || block->ring != step.outputs[output]->ring)
    return refuse(step, "the output " + step.outputs[output]->plan->name + " gives a block that it did not borrow");
  if (raw.state != MR_OUTPUT_SILENT)
    return refuse(step, "the output " + step.outputs[output]->plan->name + " gives a second block on one tick");
  if (block->given)
    return refuse(step,
                  "the output " + step.outputs[output]->plan->name + " gives a block that is another tick's value");
  block->given = true;
  memory::hold(block); // the tick's slot holds it too; the handler keeps its own hold
  raw = {block->value, block->data, block->ring->capacity(), MR_OUTPUT_OWN, kNoSource, token};
  return MR_OK;
}

void give_back(void* instance, uint32_t output, uint64_t token) {
  OutputRun* run = lent_output(instance, output);
  if (!run || !token) return;
  memory::release(reinterpret_cast<memory::Block*>(token));
  run->borrowed.fetch_sub(1, std::memory_order_acq_rel); // only after the ring has its room again
}

mr_tick* defer(mr_tick* tick) {
  TickContext& context = context_of(tick);
  if (context.body || context.deferred || context.finishes) return nullptr;
  return defer_firing(*context.step, *tick, context.ordinal);
}

mr_status publish(mr_tick* tick) {
  TickContext& context = context_of(tick);
  return context.deferred ? publish_firing(*context.step, *context.deferred) : MR_ERROR;
}

// In a call the sentence is kept until the call has its status. A thread of the handler's own has no status to return,
// so the failure is handled here.
void fail_as(void* instance, uint32_t fault, const char* sentence) {
  auto& handler = *static_cast<plugin::Instance*>(instance);
  auto* const step = static_cast<HandlerRun*>(handler.in_run);
  if (!step || is_in_a_call()) return handler.set_error(sentence, fault);
  fail_outside_calls(*step, sentence, fault);
}

void fail(void* instance, const char* sentence) { fail_as(instance, MR_FAULT_NONE, sentence); }

mr_status allocate_items(mr_tick* const* items, uint32_t count, uint32_t output, const uint64_t* bytes) {
  HandlerRun& step = *context_of(items[0]).step;
  if (!has_output(*items[0], output)) return refuse_output(*items[0], step, output);
  auto* const several = context_of(items[0]).failure ? static_cast<ItemsRun*>(&step) : nullptr;
  if (several && several->is_dense_output[output]) {
    for (uint32_t i = 0; i < count; ++i)
      if (bytes[i] > step.outputs[output]->ring->capacity())
        return refuse(step, too_large(step, output, bytes[i], step.outputs[output]->ring->capacity()));
    return allocate_side_by_side(*several, items, count, output, bytes);
  }
  for (uint32_t i = 0; i < count; ++i)
    if (const mr_status status = allocate(items[i], output, bytes[i]); status != MR_OK) return status;
  return MR_OK;
}

mr_status find_gpu(void* instance, mr_gpu* gpu) {
  auto* const step = static_cast<HandlerRun*>(static_cast<plugin::Instance*>(instance)->in_run);
  const auto* const body = dynamic_cast<const BodyRun*>(step);
  if (!body || !body->on.enqueuing) return MR_ERROR;
  gpu->native_stream = body->on.stream->native;
  gpu->scratch = body->scratch;
  if (gpu->size >= offsetof(mr_gpu, library) + sizeof gpu->library) gpu->library = body->on.enqueuing->library();
  return MR_OK;
}

constexpr const char* kNoRun = "share() and serve() belong to start() and to what follows it: there is no run yet";

void* share(void* instance, const char* name, void* (*make)(void*), void (*drop)(void*), void* context) {
  auto& handler = *static_cast<plugin::Instance*>(instance);
  auto* const step = static_cast<HandlerRun*>(handler.in_run);
  if (!step) {
    handler.set_error(kNoRun);
    return nullptr;
  }
  void* const object = step->run->holds->share(handler, name, make, drop, context);
  if (!object) handler.set_error("an object that it shares could not be made");
  return object;
}

mr_status serve(void* instance, const mr_site* site) {
  auto& handler = *static_cast<plugin::Instance*>(instance);
  auto* const step = static_cast<HandlerRun*>(handler.in_run);
  if (!step) {
    handler.set_error(kNoRun);
    return MR_ERROR;
  }
  try {
    step->run->holds->serve(handler, *site);
    return MR_OK;
  } catch (const Failure& failure) {
    handler.set_error(format_code(failure.error().code) + ": " + failure.error().what);
  } catch (const std::bad_alloc&) {
    handler.set_error("there is no memory for its page");
  }
  return MR_ERROR;
}

// In a call for one item the sentence is that of the call.
void fail_item(mr_tick* item, const char* sentence) {
  TickContext& context = context_of(item);
  if (!context.failure) return context.step->instance->set_error(sentence);
  *context.failure = sentence;
  context.has_failed = true;
}

mr_host make_host() {
  mr_host host = plugin::basic_host();
  host.allocate_items = &allocate_items;
  host.fail_item = &fail_item;
  host.fail = &fail;
  host.fail_as = &fail_as;
  host.find_gpu = &find_gpu;
  host.share = &share;
  host.serve = &serve;
  host.allocate = &allocate;
  host.modify = &modify;
  host.adopt = &adopt;
  host.defer = &defer;
  host.publish = &publish;
  host.borrow = &borrow;
  host.give = &give;
  host.give_back = &give_back;
  return host;
}

} // namespace

const mr_host& host_table() {
  static const mr_host host = make_host();
  return host;
}

} // namespace millrace::exec
