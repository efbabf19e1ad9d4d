// Makes the memory of a run: an arena for each domain, the rings in it, and the names of their blocks for error
// messages.
#include "exec/build.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "device/device.h"
#include "device/host_pages.h"
#include "device/sim/access_guard.h"
#include "exec/guard_bytes.h"
#include "exec/run_options.h"
#include "exec/run_state.h"
#include "memory/ring.h"
#include "observe/error_codes.h"
#include "plan/domain.h"
#include "plan/memory.h"
#include "plan/pace.h"
#include "plan/plan.h"
#include "plan/planned_value.h"
#include "plan/step.h"
#include "plugin/under_way.h"

namespace millrace::exec {

namespace {

// How many bytes the pinned rings of a domain take, or those that are not pinned.
uint64_t ring_bytes(const plan::Plan& plan, uint32_t domain, bool pinned) {
  uint64_t bytes = 0;
  for (const plan::Ring& ring : plan.rings)
    if (ring.domain == domain && ring.pinned == pinned)
      bytes += ring.length * (memory::block_bytes(ring.capacity) + guard_bytes_of(ring, plan.in_host_memory(domain)));
  return bytes;
}

// Rings whose blocks lie side by side, at both ends of a copy in the order in which the copy has them.
struct Pack {
  uint64_t stride = 0;
  std::map<uint32_t, uint64_t> offsets; // by ring
  std::byte* base = nullptr;
};

std::map<uint32_t, Pack> packs_of(const plan::Plan& plan) {
  std::map<uint32_t, Pack> packs;
  const auto add = [&](uint32_t output) {
    const uint32_t r = plan.outputs[output].ring;
    Pack& pack = packs[plan.rings[r].pack];
    pack.offsets[r] = pack.stride;
    pack.stride += memory::block_bytes(plan.rings[r].capacity);
  };
  for (const plan::Step& step : plan.steps) {
    if (!step.is<plan::CopyStep>() || step.inputs.size() == 1) continue;
    for (const plan::StepInput& input : step.inputs) add(input.output);
    for (const uint32_t output : step.outputs) add(output);
  }
  return packs;
}

// True if the host keeps the records of this ring's values apart from their blocks. It does so for rings of a device
// whose bodies enqueue, for rings that such a device copies down to the host or writes there, and for rings whose items
// lie side by side.
bool needs_records(const plan::Plan& plan, const plan::Ring& ring) {
  if (ring.dense) return true; // rows lie over the room of records
  if (!plan.in_host_memory(ring.domain)) return plan.domains[ring.domain].records_on_host;
  const plan::Step& producer = plan.steps[plan.outputs[ring.output].step];
  return plan.domains[producer.domain].records_on_host;
}

void make_empty_record(RunState& run) {
  PlanRun& planned = run.planned;
  bool needed = false;
  for (const plan::Channel& channel : planned.plan.channels) needed = needed || channel.initial_empty;
  for (const plan::Step& step : planned.plan.steps)
    for (const plan::StepInput& input : step.inputs) needed = needed || input.initial_empty;
  const auto has_records = [](const plan::Domain& domain) { return domain.records_on_host; };
  if (!needed || std::none_of(planned.plan.domains.begin(), planned.plan.domains.end(), has_records)) return;
  device::DeviceStatus status;
  device::Arena* arena = run.devices[0]->allocate(sizeof(mr_value), {true}, status);
  if (!arena) throw Failure(code::device_out_of_memory, "the host has no room for an empty value: " + status.sentence);
  run.empty_record = arena->base;
  std::fill_n(run.empty_record, sizeof(mr_value), std::byte{0});
}

// The parts of an arena that rings use. In a pack a part includes the room up to the next block, because one copy moves
// them all.
std::vector<device::NamedBytes> parts_of(const RunState& run, const device::Arena& arena) {
  const PlanRun& planned = run.planned;
  std::vector<device::NamedBytes> parts;
  for (size_t r = 0; r < planned.rings.size(); ++r) {
    const auto* const begin = reinterpret_cast<const std::byte*>(planned.rings[r]->block(0).value);
    if (begin < arena.base || begin >= arena.base + arena.bytes) continue;
    const bool packed = planned.plan.rings[r].pack != plan::kNone;
    const uint64_t bytes =
        packed ? memory::block_bytes(planned.rings[r]->capacity()) : sizeof(mr_value) + planned.rings[r]->capacity();
    for (uint32_t b = 0; b < planned.rings[r]->length(); ++b)
      parts.push_back(
          {reinterpret_cast<const std::byte*>(planned.rings[r]->block(b).value), bytes, planned.ring_names[r]});
  }
  return parts;
}

// Runs inside a signal handler: reads what was laid out before, writes into a buffer of its own, calls nothing that
// locks.
const char* name_access(const RunState& run, const void* address) {
  const PlanRun& planned = run.planned;
  static thread_local char text[256];
  const auto* at = static_cast<const std::byte*>(address);
  for (size_t r = 0; r < planned.rings.size(); ++r) {
    const auto is_in = [&](const memory::Block& block) {
      const auto* begin = reinterpret_cast<const std::byte*>(block.value);
      return at >= begin && at < begin + memory::block_bytes(planned.rings[r]->capacity());
    };
    bool found = false;
    for (uint32_t b = 0; b < planned.rings[r]->length(); ++b) found = found || is_in(planned.rings[r]->block(b));
    if (!found) continue;
    const plugin::CallName call = plugin::under_way.name();
    const char* culprit = call.handler ? call.handler : "the host";
    char* out = text;
    for (const char* part :
         {culprit, " touched the buffer of ", planned.ring_names[r].c_str(), ", which only a body on that device may"})
      while (*part && out + 1 < text + sizeof text) *out++ = *part++;
    *out = 0;
    return text;
  }
  return nullptr;
}

} // namespace

void make_memory(RunState& run) {
  PlanRun& planned = run.planned;
  std::vector<std::array<std::byte*, 2>> next(planned.plan.domains.size(), {nullptr, nullptr});
  std::vector<std::pair<uint32_t, device::Arena*>> arenas; // only of devices
  for (uint32_t d = 0; d < planned.plan.domains.size(); ++d) {
    for (const bool pinned : {false, true}) {
      const uint64_t bytes = ring_bytes(planned.plan, d, pinned);
      if (bytes == 0) continue;
      device::DeviceStatus status;
      device::Arena* arena = run.devices[d]->allocate(bytes, {pinned}, status);
      if (!arena)
        throw Failure(Error{
            code::device_out_of_memory,
            planned.plan.domains[d].name + " has no room for " + std::to_string(bytes) + " bytes: " + status.sentence,
            {},
            {},
            "",
            "a smaller in_flight:"});
      next[d][pinned] = arena->base;
      if (d != 0) arenas.emplace_back(d, arena);
    }
  }
  make_empty_record(run);
  const auto is_realtime = [](const plan::Clock& clock) { return clock.realtime(); };
  const bool touches_early =
      !run.is_virtual && std::any_of(planned.plan.clocks.begin(), planned.plan.clocks.end(), is_realtime);
  std::map<uint32_t, Pack> packs = packs_of(planned.plan);
  for (const plan::Ring& ring : planned.plan.rings) {
    std::byte*& free = next[ring.domain][ring.pinned];
    memory::RingOptions ring_options{ring.length, ring.dynamic, ring.capacity, 0, needs_records(planned.plan, ring),
                                     ring.lasting};
    std::byte* base = free;
    const uint64_t guard_bytes = guard_bytes_of(ring, planned.plan.in_host_memory(ring.domain));
    if (ring.pack == plan::kNone) {
      ring_options.stride = guard_bytes > 0 ? memory::block_bytes(ring.capacity) + guard_bytes : 0;
      free += ring.length * (memory::block_bytes(ring.capacity) + guard_bytes);
    } else {
      Pack& pack = packs.at(ring.pack);
      ring_options.stride = pack.stride;
      if (!pack.base) {
        pack.base = free;
        free += ring.length * pack.stride;
      }
      base = pack.base + pack.offsets.at(static_cast<uint32_t>(&ring - planned.plan.rings.data()));
    }
    planned.rings.push_back(
        std::make_unique<memory::Ring>(ring_options, base, planned.plan.in_host_memory(ring.domain)));
    if (guard_bytes > 0) lay_guards(*planned.rings.back());
    if (touches_early && planned.plan.in_host_memory(ring.domain) && !ring.lasting && ring.pack == plan::kNone)
      device::touch_pages(base, static_cast<uint64_t>(free - base));
    const plan::Output& output = planned.plan.outputs[ring.output];
    if (ring_options.own_records)
      for (uint32_t b = 0; b < ring.length; ++b) *planned.rings.back()->block(b).record = plan::planned_value(output);
    planned.ring_names.push_back(planned.plan.steps[output.step].name + "." + output.name + " in " +
                                 planned.plan.domains[ring.domain].name);
  }
  for (const auto& [domain, arena] : arenas) run.devices[domain]->name_parts(*arena, parts_of(run, *arena));
  if (!run.has_devices || run.is_virtual || !run.options.explain_crashes) return;
  const auto namer = [](void* state, const void* address) {
    return name_access(*static_cast<const RunState*>(state), address);
  };
  run.access_guard = std::make_unique<device::AccessGuard>(namer, &run);
}

} // namespace millrace::exec
