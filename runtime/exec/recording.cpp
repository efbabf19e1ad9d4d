// Records a region: its bodies once for each slot of its rings, with the addresses that the slot has for ever
// (semantics.md 4.5).
//
// A body that runs by itself is recorded as it is: when it is replayed, it finds the tick, and which of its inputs are
// there, in its BodyCall. A body that enqueues is called, and the work that it enqueues is recorded. In that call it
// sees no tick and every input is there, and what it says of its outputs holds for every launch. So the region has a
// border that the host checks on each tick: each value that enters must be there and as the recording saw it, and each
// value that leaves gets its slot. Lists without which a body is idle need not be there: the launch makes them lists of
// no records.
#include <algorithm>
#include <cstring>
#include <map>

#include "exec/copy_step.h"
#include "exec/region.h"
#include "exec/run_options.h"
#include "exec/settle.h"
#include "plan/memory.h"
#include "plan/pace.h"
#include "plan/plan.h"
#include "plan/step.h"

namespace millrace::exec {

namespace {

// While a region is recorded its inputs carry these marks as their times and streams. The times and streams of its
// outputs then show which input they are taken from.
constexpr int64_t kMarkTick = INT64_MIN + 1, kMarkFirst = INT64_MIN + 2;
constexpr uint32_t kStreamMarkFirst = 1u << 31;

// Gives the body the addresses that this slot has in the rings for ever.
void freeze(BodyRun& step, BodyCall& body, uint32_t slot) {
  const auto at = [&](const void* address) { return step.on.device->body_address(bytes_at(address)); };
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    body.frozen[i] = {};
    body.input_blocks[i] = nullptr;
    if (!step.inputs[i].output) continue;
    const memory::Block& block = recorded_block(step.inputs[i], slot);
    body.frozen[i].value = reinterpret_cast<const mr_value*>(at(block.record));
    body.frozen[i].data = reinterpret_cast<const uint8_t*>(at(block.data));
  }
  body.recorded = body.frozen;
  for (size_t o = 0; o < step.outputs.size(); ++o) {
    body.output_blocks[o] = &step.outputs[o]->ring->block(slot);
    give_block(step, body, o);
  }
}

// The records that bodies see while they are recorded. They stand in for the rings' records, because ticks may be in
// flight whose records others read.
class Records {
 public:
  mr_value& of(const memory::Block& block) {
    const auto [at, is_new] = records_.try_emplace(block.record);
    if (is_new) at->second = *block.record;
    return at->second;
  }

 private:
  std::map<const mr_value*, mr_value> records_;
};

// Prepares a call that sees no tick: every input is there, and all times are marks.
void ready_to_record(BodyRun& step, uint32_t slot, Records& records) {
  BodyCall& body = step.bodies[slot];
  freeze(step, body, slot);
  body.inputs = body.frozen;
  for (size_t i = 0; i < step.inputs.size(); ++i)
    if (step.inputs[i].output) body.inputs[i].value = &records.of(recorded_block(step.inputs[i], slot));
  for (size_t o = 0; o < step.outputs.size(); ++o) {
    body.outputs[o].value = &records.of(*body.output_blocks[o]);
    body.outputs[o].value->header.present = 1;
  }
  record_accesses(step, body, slot);
  body.info = {};
  body.info.media_time_ns = kMarkTick;
}

// The region's steps that a body has to come after: those whose outputs it reads, and those that read what it writes
// over.
std::vector<uint32_t> needed_by(const RegionRun& region, const BodyRun& step) {
  std::vector<uint32_t> needed;
  const auto add = [&](uint32_t plan_step) {
    for (uint32_t s = 0; s < region.steps.size(); ++s)
      if (region.steps[s]->index == plan_step) needed.push_back(s);
  };
  for (const plan::StepInput& input : step.plan->inputs)
    if (input.output != plan::kNone) add(step.run->planned.plan.outputs[input.output].step);
  for (uint32_t before : step.plan->after) add(before);
  return needed;
}

// Why a body that enqueues cannot be recorded, by what it said; "" if it can.
std::string refused_by(BodyRun& step, BodyCall& body) {
  std::string why;
  if (body.failed) why = step.handler->name + " failed while it was captured: " + step.instance->error();
  for (size_t o = 0; o < step.outputs.size(); ++o) {
    if (body.outputs[o].state != MR_OUTPUT_SILENT) continue;
    body.outputs[o].value->header.present = 0;
    const bool is_awaited = step.outputs[o]->plan->connected && !is_for_finish(step, *step.outputs[o]);
    if (why.empty() && is_awaited)
      why = step.handler->name + " left " + step.outputs[o]->plan->name + " empty while it was captured";
  }
  return why;
}

// Records one slot of a region whose bodies enqueue. Null if that fails, with the reason in `why`.
std::unique_ptr<device::Recording> record_calls(RegionRun& region, uint32_t slot, Records& records, std::string& why) {
  BodyRun& first = *region.steps[0];
  device::Device& device = *first.on.device;
  for (BodyRun* step : region.steps) ready_to_record(*step, slot, records);
  uint32_t number = 0;
  for (const RegionInput& entry : region.entries) {
    mr_value& record = records.of(recorded_block(*entry.input, slot));
    record = entry.recorded;
    record.header.pts_ns = kMarkFirst + number;
    record.header.stream = kStreamMarkFirst + number++;
  }
  device.begin_record(*first.on.stream);
  for (BodyRun* step : region.steps) {
    BodyCall& body = step->bodies[slot];
    const std::vector<uint32_t> needed = needed_by(region, *step);
    const char* const name = step->handler->name.c_str();
    for (size_t o = 0; o < step->outputs.size(); ++o) discard(*step, *step->outputs[o], *body.output_blocks[o]);
    step->on.enqueuing->call(*first.on.stream, {&enqueue_body, &body, name, 0, &body.accesses, &needed});
    if (const std::string refused = refused_by(*step, body); !refused.empty() && why.empty()) why = refused;
  }
  for (const CopyRun* download : region.fused_downloads) {
    const memory::Block& from = download->inputs[0].output->ring->block(slot);
    const memory::Block& to = download->outputs[0]->ring->block(slot);
    copy_value(first.on, to.data, from.data, records.of(from));
  }
  std::unique_ptr<device::Recording> recording = device.end_record(*first.on.stream);
  if (why.empty() && !recording) why = first.on.enqueuing->record_failure();
  return why.empty() ? std::move(recording) : nullptr;
}

// Records one slot of a region whose bodies run by themselves.
std::unique_ptr<device::Recording> record_runs(RegionRun& region, uint32_t slot) {
  BodyRun& first = *region.steps[0];
  for (BodyRun* step : region.steps) freeze(*step, step->bodies[slot], slot);
  first.on.device->begin_record(*first.on.stream);
  for (BodyRun* step : region.steps) {
    const int64_t cost = step->run->options.cost_ns ? step->run->options.cost_ns(step->handler->name, 0) : 0;
    BodyCall& body = step->bodies[slot];
    first.on.device->run(*first.on.stream, {&simulate_body, &body, step->handler->name.c_str(), cost, &body.accesses});
  }
  return first.on.device->end_record(*first.on.stream);
}

// True if the value may be absent from a launch: it is a list without which its reader has nothing to do. The launch
// writes to the list's block. So the block must be in the device's memory, and no other output may share it.
bool may_be_absent(const InputRun& input) {
  const plan::Output& output = *input.output->plan;
  return !output.kept && !input.required && input.idle_without && output.format.kind == MR_KIND_RECORDS &&
         output.owns && !input.output->in_host_memory;
}

// Finds what enters the region, and which of its outputs and bodies other steps read or wait for.
void find_border(RegionRun& region) {
  const RunState& run = *region.steps[0]->run;
  const auto is_inside = [&](uint32_t s) { // bodies only: the copies that are recorded with them count as outside
    const plan::Step& step = run.planned.plan.steps[s];
    return step.region == region.steps[0]->plan->region && step.is<plan::HandlerStep>();
  };
  region.entries.clear();
  region.exits.clear();
  region.stamped.clear();
  for (BodyRun* step : region.steps) {
    for (InputRun& input : step->inputs)
      if (input.output && !is_inside(input.output->plan->step))
        region.entries.push_back({&input, *input.output->ring->block(0).record, may_be_absent(input)});
    bool waited_for = false;
    for (uint32_t o : step->plan->outputs) {
      bool read_outside = false;
      for (uint32_t s = 0; s < run.planned.plan.steps.size(); ++s)
        for (const plan::StepInput& input : run.planned.plan.steps[s].inputs)
          read_outside = read_outside || (input.output == o && !is_inside(s));
      if (read_outside) region.exits.push_back({&const_cast<RunState&>(run).planned.outputs[o], -1, -1, {}});
      waited_for = waited_for || read_outside;
    }
    for (uint32_t s = 0; s < run.planned.plan.steps.size(); ++s)
      for (uint32_t before : run.planned.plan.steps[s].after)
        waited_for = waited_for || (before == step->index && !is_inside(s));
    if (waited_for) region.stamped.push_back(step);
  }
}

// Learns whose times and stream each value that leaves the region has, from the marks that the recorded values carry.
void learn_origins(RegionRun& region) {
  const auto entry_of = [&](int64_t number) {
    return number >= 0 && number < static_cast<int64_t>(region.entries.size()) ? static_cast<int32_t>(number) : -1;
  };
  for (RegionOutput& exit : region.exits) {
    const mr_header& header = exit.recorded[0].header;
    exit.times_of = header.pts_ns < 0 ? entry_of(header.pts_ns - kMarkFirst) : -1;
    exit.stream_of = entry_of(int64_t{header.stream} - kStreamMarkFirst);
  }
}

void leave_to_streams(RegionRun& region, const std::string& why) {
  RunState& run = *region.steps[0]->run;
  for (BodyRun* step : region.steps) { // its fused_downloads know by themselves which ticks were launched
    step->life->other_calls += region.replays;
    for (InputRun& input : step->inputs)
      if (input.output) input.totals->delivered += region.replays;
    step->on.region = nullptr;
  }
  region.recordings.clear();
  if (run.options.on_message)
    run.options.on_message("warning " + region.steps[0]->handler->name + " and " +
                           std::to_string(region.steps.size() - 1) + " more run on streams: " + why);
}

bool record_calls(RegionRun& region, std::string& why) {
  if (region.entries.empty() && region.exits.empty()) find_border(region);
  const bool first_time = region.replays == 0;
  for (uint32_t slot = 0; slot < region.plan->slots; ++slot) {
    Records records;
    std::unique_ptr<device::Recording> recording = record_calls(region, slot, records, why);
    if (!recording) return false;
    region.recordings.push_back(std::move(recording));
    for (RegionOutput& exit : region.exits) {
      memory::Block& block = exit.output->ring->block(slot);
      exit.recorded.resize(region.plan->slots);
      exit.recorded[slot] = records.of(block);
      if (first_time && exit.recorded[slot].header.present)
        *block.record = exit.recorded[slot]; // regions that are recorded after this one read it as their input
    }
  }
  learn_origins(region);
  // A launch has room for so many. Lists beyond are treated as other values.
  size_t lists = 0;
  for (RegionInput& entry : region.entries)
    entry.may_be_absent = entry.may_be_absent && lists++ < device::kRecordedListsMax;
  region.lists.resize(std::min(lists, device::kRecordedListsMax));
  return true;
}

} // namespace

void record_region(RegionRun& region) {
  region.recordings.clear();
  region.stale = false;
  if (region.steps[0]->on.enqueuing) {
    std::string why;
    if (!record_calls(region, why)) leave_to_streams(region, why);
    return;
  }
  for (uint32_t slot = 0; slot < region.plan->slots; ++slot) region.recordings.push_back(record_runs(region, slot));
}

} // namespace millrace::exec
