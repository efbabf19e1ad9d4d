// From a plan to what runs: memory, slots, paces, segments and steps, wired by pointers so that a tick looks nothing
// up.
#include <bit>
#include <map>

#include "exec/reader.h"
#include "exec/state.h"
#include "exec/tell.h"
#include "millrace/payload.h"
#include "observe/printable.h"

namespace millrace::exec {

namespace {

// How many pages a domain's rings take, pinned and not.
uint64_t ring_bytes(const plan::Plan& plan, uint32_t domain, bool pinned) {
  uint64_t bytes = 0;
  for (const plan::Ring& ring : plan.rings)
    if (ring.domain == domain && ring.pinned == pinned) bytes += ring.length * memory::block_bytes(ring.capacity);
  return bytes;
}

// Rings whose blocks lie side by side: at both ends of the copy in the order in which it has them.
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
    if (step.kind != plan::StepKind::transfer || step.inputs.size() == 1) continue;
    for (const plan::StepInput& input : step.inputs) add(input.output);
    for (const uint32_t output : step.outputs) add(output);
  }
  return packs;
}

mr_value header_of(const plan::Output& output) {
  mr_value value{};
  value.header.schema = output.format.schema;
  value.header.layout = output.format.layout;
  value.header.kind = output.format.kind;
  value.header.present = 1;
  return value;
}

// The planned shape, rows after rows. Returns how many elements it has.
int64_t lay_out_tensor(const mr_format& format, mr_tensor& tensor) {
  tensor.dtype_code = format.dtype_code;
  tensor.dtype_bits = format.dtype_bits;
  tensor.dtype_lanes = format.dtype_lanes;
  tensor.rank = format.rank;
  int64_t count = 1;
  for (uint32_t d = format.rank; d-- > 0;) {
    tensor.shape[d] = format.shape[d];
    tensor.strides[d] = count;
    count *= format.shape[d];
  }
  return count;
}

// A value of the output's format with a first extent of 0 (semantics.md 8.5); of a picture 0 × 0.
mr_value empty_value(const plan::Output& output) {
  const mr_format& format = output.format;
  mr_value value = header_of(output);
  if (format.kind == MR_KIND_RECORDS) value.as.records.record_size = format.record_size;
  if (format.kind == MR_KIND_IMAGE && format.pixel_formats) {
    lay_out_image(static_cast<Pixel>(std::countr_zero(format.pixel_formats)), 0, 0, value.as.image);
    take_over_meaning(format, value.as.image);
  }
  if (format.kind == MR_KIND_TENSOR) {
    lay_out_tensor(format, value.as.tensor);
    if (format.rank > 0) value.as.tensor.shape[0] = 0;
  }
  return value;
}

// What the plan knows of an output's values: what a body that is captured before the first tick is told of its inputs.
mr_value planned_value(const plan::Output& output) {
  const mr_format& format = output.format;
  mr_value value = header_of(output);
  if (format.kind == MR_KIND_IMAGE && format.pixel_formats) {
    const auto pixel = static_cast<Pixel>(std::countr_zero(format.pixel_formats));
    value.header.extent_bytes = lay_out_image(pixel, format.width, format.height, value.as.image);
    take_over_meaning(format, value.as.image);
  } else if (format.kind == MR_KIND_TENSOR) {
    const int64_t count = lay_out_tensor(format, value.as.tensor);
    value.header.extent_bytes = static_cast<uint64_t>(count) * format.dtype_bits * format.dtype_lanes / 8;
  } else if (format.kind == MR_KIND_RECORDS) {
    value.as.records = {format.record_count_max, format.record_size};
    value.header.extent_bytes = format.record_count_max * format.record_size;
  }
  return value;
}

// Whether the host keeps what it knows of the values of this ring beside their blocks: those of a device whose bodies
// enqueue, and what comes down from one or is written to the host by it.
bool needs_records(const plan::Plan& plan, const plan::Ring& ring) {
  if (!plan.in_host_memory(ring.domain)) return plan.domains[ring.domain].records_on_host;
  const plan::Step& producer = plan.steps[plan.outputs[ring.output].step];
  return plan.domains[producer.domain].records_on_host;
}

} // namespace

RunState::RunState(const plan::Plan& the_plan, const graph::Graph& the_graph, plan::Facts& the_facts,
                   std::vector<device::Device*> the_devices, const RunOptions& the_options)
    : plan(the_plan), graph(the_graph), facts(the_facts), options(the_options), devices(std::move(the_devices)) {
  time = options.virtual_time ? static_cast<const device::Timeline*>(options.virtual_time) : &monotonic;
  is_virtual = options.virtual_time != nullptr;
  has_devices = plan.domains.size() > 1;
  several_threads = !is_virtual && plan.threads > 1;
  for (const plan::HandlerPlan& handler : plan.handlers) {
    // A blocking source has a thread of its own, and what is pending may be published from anywhere.
    const bool from_outside = handler.waits || handler.info->max_pending > 0;
    several_threads = several_threads || (from_outside && !is_virtual);
  }
  MR_ASSERT(devices.size() == plan.domains.size(), "a run needs a device for each domain of its plan");
  for (size_t c = 0; c < plan.clocks.size(); ++c)
    fail_index.push_back(std::make_unique<std::atomic<uint64_t>>(UINT64_MAX));
  streams.resize(devices.size());
  for (uint32_t d = 0; d < devices.size(); ++d) {
    compute.push_back(d ? make_stream(d, device::StreamKind::compute) : nullptr);
    copy_in.push_back(d ? make_stream(d, device::StreamKind::copy_in) : nullptr);
    copy_out.push_back(d ? make_stream(d, device::StreamKind::copy_out) : nullptr);
    copy_peer.push_back(d ? make_stream(d, device::StreamKind::copy_peer) : nullptr);
  }
  submitting.resize(devices.size());
  for (const plan::Segment& segment : plan.segments)
    if (segment.heavy && !submitting[segment.domain]) submitting[segment.domain] = std::make_unique<std::mutex>();
  for (uint32_t d = 1; d < devices.size() && devices.size() > 2; ++d)
    if (devices[d]->enqueues()) followed.push_back(devices[d]);
  for (uint32_t w = 0; w < plan.threads; ++w)
    add_trace((w < plan.workers ? "worker " : "thread ") + std::to_string(w)); // the first rings, by worker
  for (size_t d = 0; d < devices.size(); ++d) submissions_.push_back(d ? std::make_unique<Submissions>() : nullptr);
  make_memory();
  make_outputs();
  make_paces();
  make_segments();
  join_finishes();
  watch_sinks();
  join_segments();
  join_clocks();
  wire_stamps();
  make_regions();
}

RunState::~RunState() {
  for (auto& segment : segments) {
    for (auto& step : segment->steps) { // handlers may outlive their run
      if (!step->instance) continue;
      step->instance->on_log = nullptr;
      step->instance->clock_ns = nullptr;
      step->instance->in_run = nullptr;
    }
  }
  for (auto& pace : paces) pace->sources.clear(); // ends reader threads
}

void RunState::make_empty_record() {
  bool needed = false;
  for (const plan::Channel& channel : plan.channels) needed = needed || channel.initial_empty;
  for (const plan::Step& step : plan.steps)
    for (const plan::StepInput& input : step.inputs) needed = needed || input.initial_empty;
  const auto enqueues = [](const device::Device* device) { return device->enqueues(); };
  if (!needed || std::none_of(devices.begin(), devices.end(), enqueues)) return;
  device::DeviceStatus status;
  device::Arena* arena = devices[0]->allocate(sizeof(mr_value), {true}, status);
  if (!arena) throw Failure(701, "the host has no room for an empty value: " + status.sentence);
  empty_record = arena->base;
  std::fill_n(empty_record, sizeof(mr_value), std::byte{0});
}

void RunState::make_memory() {
  std::vector<std::array<std::byte*, 2>> next(plan.domains.size(), {nullptr, nullptr});
  std::vector<std::pair<uint32_t, device::Arena*>> arenas; // of devices
  for (uint32_t d = 0; d < plan.domains.size(); ++d) {
    for (const bool pinned : {false, true}) {
      const uint64_t bytes = ring_bytes(plan, d, pinned);
      if (bytes == 0) continue;
      device::DeviceStatus status;
      device::Arena* arena = devices[d]->allocate(bytes, {pinned}, status);
      if (!arena)
        throw Failure(
            Error{701,
                  plan.domains[d].name + " has no room for " + std::to_string(bytes) + " bytes: " + status.sentence,
                  {},
                  {},
                  "",
                  "a smaller in_flight:"});
      next[d][pinned] = arena->base;
      if (d != 0) arenas.emplace_back(d, arena);
    }
  }
  make_empty_record();
  std::map<uint32_t, Pack> packs = packs_of(plan);
  for (const plan::Ring& ring : plan.rings) {
    std::byte*& free = next[ring.domain][ring.pinned];
    memory::RingOptions ring_options{ring.length, ring.dynamic, ring.capacity, 0, needs_records(plan, ring)};
    std::byte* base = free;
    if (ring.pack == plan::kNone) {
      free += ring.length * memory::block_bytes(ring.capacity);
    } else {
      Pack& pack = packs.at(ring.pack);
      ring_options.stride = pack.stride;
      if (!pack.base) {
        pack.base = free;
        free += ring.length * pack.stride;
      }
      base = pack.base + pack.offsets.at(static_cast<uint32_t>(&ring - plan.rings.data()));
    }
    rings.push_back(std::make_unique<memory::Ring>(ring_options, base, plan.in_host_memory(ring.domain)));
    const plan::Output& output = plan.outputs[ring.output];
    if (ring_options.own_records)
      for (uint32_t b = 0; b < ring.length; ++b) *rings.back()->block(b).record = planned_value(output);
    ring_names.push_back(plan.steps[output.step].name + "." + output.name + " in " + plan.domains[ring.domain].name);
  }
  for (const auto& [domain, arena] : arenas) devices[domain]->name_parts(*arena, parts_of(*arena));
  if (!has_devices || is_virtual || !options.explain_crashes) return;
  const auto namer = [](void* run, const void* address) { return static_cast<RunState*>(run)->name_access(address); };
  access_guard = std::make_unique<device::AccessGuard>(namer, this);
}

// What one copy moves is whole, with the room between its blocks.
std::vector<device::NamedBytes> RunState::parts_of(const device::Arena& arena) const {
  std::vector<device::NamedBytes> parts;
  for (size_t r = 0; r < rings.size(); ++r) {
    const auto* const begin = reinterpret_cast<const std::byte*>(rings[r]->block(0).value);
    if (begin < arena.base || begin >= arena.base + arena.bytes) continue;
    const bool packed = plan.rings[r].pack != plan::kNone;
    const uint64_t bytes = packed ? memory::block_bytes(rings[r]->capacity()) : sizeof(mr_value) + rings[r]->capacity();
    for (uint32_t b = 0; b < rings[r]->length(); ++b)
      parts.push_back({reinterpret_cast<const std::byte*>(rings[r]->block(b).value), bytes, ring_names[r]});
  }
  return parts;
}

// Inside a signal handler: reads what was laid out before, writes into a buffer of its own, calls nothing that locks.
const char* RunState::name_access(const void* address) {
  static thread_local char text[256];
  const auto* at = static_cast<const std::byte*>(address);
  for (size_t r = 0; r < rings.size(); ++r) {
    const auto is_in = [&](const memory::Block& block) {
      const auto* begin = reinterpret_cast<const std::byte*>(block.value);
      return at >= begin && at < begin + memory::block_bytes(rings[r]->capacity());
    };
    bool found = false;
    for (uint32_t b = 0; b < rings[r]->length(); ++b) found = found || is_in(rings[r]->block(b));
    if (!found) continue;
    const plugin::CallName call = plugin::under_way.name();
    const char* culprit = call.handler ? call.handler : "the host";
    char* out = text;
    for (const char* part :
         {culprit, " touched the buffer of ", ring_names[r].c_str(), ", which only a body on that device may"})
      while (*part && out + 1 < text + sizeof text) *out++ = *part++;
    *out = 0;
    return text;
  }
  return nullptr;
}

void RunState::make_outputs() {
  outputs = std::vector<OutputRun>(plan.outputs.size());
  for (size_t o = 0; o < outputs.size(); ++o) {
    OutputRun& output = outputs[o];
    output.plan = &plan.outputs[o];
    empty_values.push_back(empty_value(*output.plan));
    const plan::Pace& pace = plan.paces[plan.steps[output.plan->step].pace];
    output.places = std::make_unique<SlotPlace[]>(pace.slots);
    output.mask = pace.slots - 1;
    output.ring = output.plan->ring == plan::kNone ? nullptr : rings[output.plan->ring].get();
    output.retain = output.plan->retain;
    output.holds = output.ring && output.ring->dynamic() && (output.plan->owns || output.plan->origin != plan::kNone);
  }
}

void RunState::make_paces() {
  for (uint32_t p = 0; p < plan.paces.size(); ++p) {
    auto pace = std::make_unique<PaceRun>();
    pace->run = this;
    pace->plan = &plan.paces[p];
    pace->clock = &plan.clocks[pace->plan->clock];
    pace->index = p;
    pace->window = pace->plan->window;
    pace->mask = pace->plan->slots - 1;
    pace->infos.resize(pace->plan->slots);
    pace->tick_index = std::make_unique<std::atomic<uint64_t>[]>(pace->plan->slots);
    pace->tick_media_ns = std::make_unique<std::atomic<int64_t>[]>(pace->plan->slots);
    pace->latency = std::make_unique<PaceRun::Latency[]>(pace->plan->slots);
    pace->watch = TickWatch(options.trace_all);
    if (pace->plan->kind == plan::PaceKind::clock && pace->clock->crowd_ticks + pace->clock->owed_ticks > 0)
      pace->recent_media_ns.resize(std::max(pace->clock->crowd_ticks, pace->clock->owed_ticks + 1));
    for (OutputRun& output : outputs)
      if (output.holds && plan.steps[output.plan->step].pace == p) pace->held_outputs.push_back(&output);
    paces.push_back(std::move(pace));
  }
  for (const plan::Channel& plan_channel : plan.channels) {
    auto channel = std::make_unique<ChannelRun>();
    channel->plan = &plan_channel;
    channel->ring.resize(plan_channel.capacity);
    const size_t values =
        plan_channel.kind == plan::ChannelKind::gate ? plan.steps[plan_channel.from].inputs.size() : 1;
    for (Entry& entry : channel->ring) entry.slots.resize(values);
    channel->current.slots.resize(values);
    channel->dropped.resize(values);
    channel->queued.resize(values);
    for (size_t e = 0; e < plan_channel.edges.size(); ++e)
      if (plan.edges[plan_channel.edges[e]].policy == graph::Policy::queue)
        channel->queued[plan_channel.entries[e]] = true;
    channels.push_back(std::move(channel));
  }
}

std::unique_ptr<SegmentRun> RunState::make_segment(const plan::Segment& plan_segment, uint64_t ordinal) {
  auto segment = std::make_unique<SegmentRun>();
  segment->run = this;
  segment->plan = &plan_segment;
  segment->pace = paces[plan_segment.pace].get();
  segment->device = !plan.on_host(plan_segment.domain);
  segment->submitting = submitting[plan_segment.domain].get();
  segment->traced = options.trace_all && !is_virtual;
  segment->ordinal = ordinal;
  segment->progress = ordinal;
  if (segment->device) segment->fences.resize(segment->pace->plan->slots);
  if (segment->pace->clock->realtime())
    segment->ended_at_ns = std::make_unique<std::atomic<int64_t>[]>(segment->pace->plan->slots);
  return segment;
}

void RunState::make_segments() {
  shared.resize(plan.steps.size());
  step_runs.resize(plan.steps.size(), nullptr);
  first_errors.resize(plan.steps.size());
  segments.reserve(plan.segments.size() + plan.steps.size()); // another cut makes more, and moves none in memory
  for (const plan::Segment& plan_segment : plan.segments) {
    segments.push_back(make_segment(plan_segment, plan_segment.lane));
    for (uint32_t step : plan_segment.steps) make_step(*segments.back(), plan.steps[step], step);
  }
  segments_left = static_cast<uint32_t>(segments.size());
  for (auto& pace : paces) {
    if (pace->plan->kind == plan::PaceKind::behind) {
      pace->parent = paces[pace->plan->parent].get();
      pace->gate = step_runs[pace->plan->gate];
      pace->entry = step_runs[pace->plan->entry];
      pace->feed = channels[plan.steps[pace->plan->gate].channel].get();
      continue;
    }
    for (uint32_t source : pace->plan->sources) {
      SourceState state;
      state.step = step_runs[source];
      state.value.resize(state.step->outputs.size());
      state.next.resize(state.step->outputs.size());
      pace->sources.push_back(std::move(state));
    }
  }
  for (auto& segment : segments)
    for (auto& step : segment->steps) make_inputs(*step);
}

// What steps of several clocks have to do with each other: which decide by time; who leads a clock without sources, and
// what it is fed by (not what comes back from clocks that it leads to, which end with it).
void RunState::join_clocks() {
  for (const auto& channel : plan.channels)
    if (channel.kind == plan::ChannelKind::align && step_runs[channel.to]->pace->clock->realtime())
      timed_steps.push_back(step_runs[channel.to]);
  const auto clock_of = [&](uint32_t step) { return plan.paces[plan.steps[step].pace].clock; };
  for (auto& pace : paces) {
    if (pace->plan->kind != plan::PaceKind::clock || pace->clock->leaders.empty()) continue;
    for (const uint32_t leader : pace->clock->leaders) pace->leaders.push_back(paces[leader].get());
    std::vector<bool> led(plan.clocks.size());
    led[pace->plan->clock] = true;
    for (bool changed = true; changed;) {
      changed = false;
      for (const plan::Channel& channel : plan.channels) {
        if (!led[clock_of(channel.from)] || led[clock_of(channel.to)]) continue;
        led[clock_of(channel.to)] = changed = true;
      }
    }
    for (auto& channel : channels)
      if (clock_of(channel->plan->to) == pace->plan->clock && !led[clock_of(channel->plan->from)])
        pace->fed_by.push_back(channel.get());
  }
}

// What follows from which segments there are and which steps are in them.
void RunState::join_segments() {
  for (auto& pace : paces) pace->segments.clear();
  for (auto& segment : segments) {
    segment->head = false;
    segment->first = nullptr;
    segment->pending_steps.clear();
    if (!segment->done) segment->pace->segments.push_back(segment.get());
  }
  for (auto& pace : paces) {
    const bool behind = pace->plan->kind == plan::PaceKind::behind;
    if (pace->segments.empty()) continue;
    (behind                  ? pace->entry->segment
     : pace->sources.empty() ? pace->segments[0]
                             : pace->sources[0].step->segment)
        ->head = true;
  }
  for (auto& segment : segments) {
    for (auto& step : segment->steps) {
      if (step->plan->kind != plan::StepKind::source) wire(*step); // who reads one may be in its call
      if (!step->deferred.empty()) segment->pending_steps.push_back(step.get());
    }
    if (segment->head || segment->steps.empty()) continue;
    for (const InputRun& input : segment->steps[0]->inputs)
      if (!segment->first && input.delay == 0) segment->first = input.producer;
  }
}

// The run's words and its time, for the handler's own use.
void RunState::lend(StepRun& step) {
  plugin::Instance& instance = *step.instance;
  instance.in_run = &step;
  if (options.log) {
    lend_log(step);
  } else if (options.on_message) {
    instance.on_log = [this, name = step.handler->name](uint32_t level, std::string_view sentence, bool first) {
      static constexpr const char* kLevels[] = {"debug", "info", "warning", "error"};
      if (first && level >= MR_LOG_INFO && level <= MR_LOG_ERROR)
        options.on_message(std::string(kLevels[level]) + " " + name + ": " + printable(sentence));
    };
    for (const auto& said : instance.messages()) // when it was probed
      if (!said.noted) instance.on_log(said.level, said.sentence, true);
  }
  if (is_virtual) instance.clock_ns = [this] { return now_ns(); };
}

device::Stream* RunState::make_stream(uint32_t domain, device::StreamKind kind) {
  device::Stream* const stream = devices[domain]->create_stream(kind);
  stream->bell = bell;
  streams[domain].push_back(stream);
  return stream;
}

// Of a device's step: copies have streams of their own, one a direction and one for those between peers.
device::Stream* RunState::stream_of(const plan::Step& step) const {
  if (step.kind != plan::StepKind::transfer) return compute[step.domain];
  if (plan.in_host_memory(plan.outputs[step.outputs[0]].domain)) return copy_out[step.domain];
  return plan.in_host_memory(plan.outputs[step.inputs[0].output].domain) ? copy_in[step.domain]
                                                                         : copy_peer[step.domain];
}

void RunState::make_step(SegmentRun& segment, const plan::Step& plan_step, uint32_t index) {
  auto step = std::make_unique<StepRun>();
  step->run = this;
  step->plan = &plan_step;
  step->index = index;
  step->segment = &segment;
  step->pace = segment.pace;
  step->shared = &shared[index];
  step->every = plan_step.every;
  if (plan_step.handler != plan::kNone) {
    step->handler = &plan.handlers[plan_step.handler];
    step->instance = facts.handlers[plan_step.handler].instance.get();
    if (segment.plan->lane > 0) {
      clones.push_back(plan::clone(graph.handlers[plan_step.handler], *step->handler->info, *step->handler,
                                   host_table(), facts.watch));
      step->instance = clones.back().get();
      std::vector<mr_format> inputs, formats; // the formats that the plan settled
      for (const plan::StepInput& input : plan_step.inputs)
        inputs.push_back(input.output == plan::kNone ? mr_format{} : plan.outputs[input.output].format);
      for (uint32_t o : plan_step.outputs) formats.push_back(plan.outputs[o].format);
      step->instance->configure(inputs, formats);
    }
    step->self = step->instance->self();
    lend(*step);
    step->process = step->handler->info->table->process;
    step->process_cuda = step->handler->info->table->process_cuda;
    step->finish = step->handler->info->table->finish;
  }
  for (uint32_t o : plan_step.outputs) step->outputs.push_back(&outputs[o]);
  step->raw_inputs.resize(plan_step.inputs.size());
  step->raw_outputs.resize(plan_step.outputs.size());
  step->context.step = step.get();
  step->tick.size = sizeof(mr_tick);
  step->tick.device = MR_DEVICE_CPU;
  step->tick.inputs = step->raw_inputs.data();
  step->tick.outputs = step->raw_outputs.data();
  step->tick.input_count = static_cast<uint32_t>(step->raw_inputs.size());
  step->tick.output_count = static_cast<uint32_t>(step->raw_outputs.size());
  step->tick.host = &host_table();
  step->tick.context = &step->context;
  if (step->handler && step->handler->info->max_pending > 0) make_deferred(*step);
  if (segment.device) {
    step->device = devices[plan_step.domain];
    step->stream =
        segment.plan->heavy ? make_stream(plan_step.domain, device::StreamKind::compute) : stream_of(plan_step);
    step->trace = &trace_of(*step->stream, plan_step);
    step->fences.resize(segment.pace->plan->slots);
    if (plan_step.scratch_bytes > 0) step->scratch = make_scratch(plan_step);
    const bool in_region =
        plan_step.region != plan::kNone && plan_step.kind == plan::StepKind::handler && !options.sync_devices;
    step->bodies.resize(in_region ? plan.regions[plan_step.region].slots : segment.pace->plan->slots);
    for (BodyCall& body : step->bodies) {
      body.inputs.resize(plan_step.inputs.size());
      body.frozen.resize(plan_step.inputs.size());
      body.absent.resize(plan_step.inputs.size());
      body.input_blocks.resize(plan_step.inputs.size());
      body.outputs.resize(plan_step.outputs.size());
      body.given.resize(plan_step.outputs.size());
      body.output_blocks.resize(plan_step.outputs.size());
      body.carried.reserve(plan_step.outputs.size());
      body.tick = step->tick;
      body.tick.stands_in = step->handler && !step->device->enqueues();
      if (step->device->enqueues()) {
        body.tick.device = MR_DEVICE_CUDA;
        body.tick.library = step->device->library();
        body.tick.scratch = step->scratch;
      }
      body.tick.info = &body.info;
      body.tick.inputs = body.inputs.data();
      body.tick.outputs = body.outputs.data();
      body.tick.context = &body.context;
      body.context = {step.get(), 0, &body, nullptr};
    }
  }
  if (segment.plan->lane == 0) step_runs[index] = step.get();
  segment.steps.push_back(std::move(step));
}

void RunState::make_deferred(StepRun& step) const {
  const size_t most = step.handler->info->max_pending;
  step.deferred = std::vector<Deferred>(most + 1 + kVoidedMax); // one more while it publishes
  for (Deferred& deferred : step.deferred) {
    deferred.outputs.reserve(step.raw_outputs.size());
    deferred.inputs.reserve(step.raw_inputs.size());
  }
  step.asynchronous = step.handler->info->traits & MR_TRAIT_ASYNCHRONOUS;
  step.counts_firings = step.asynchronous && !step.pace->clock->realtime();
  step.counted.reserve(most);
}

void* RunState::make_scratch(const plan::Step& step) {
  device::DeviceStatus status;
  device::Arena* arena = devices[step.domain]->allocate(step.scratch_bytes, {}, status);
  if (arena) return arena->base;
  throw Failure(
      Error{701,
            plan.domains[step.domain].name + " has no room for what " + step.name + " works in: " + status.sentence,
            {},
            {},
            "",
            ""});
}

// The output whose values this one is a copy of.
uint32_t RunState::before_copies(uint32_t output) const {
  for (;;) {
    const plan::Step& step = plan.steps[plan.outputs[output].step];
    if (step.kind != plan::StepKind::transfer) return output;
    const auto at = std::find(step.outputs.begin(), step.outputs.end(), output) - step.outputs.begin();
    output = step.inputs[static_cast<size_t>(at)].output;
  }
}

void RunState::make_inputs(StepRun& step) {
  for (const plan::StepInput& plan_input : step.plan->inputs) {
    InputRun input;
    input.delay = plan_input.delay;
    input.keeps = plan_input.keeps;
    input.required = plan_input.required;
    input.initial_empty = plan_input.initial_empty;
    input.repeat_last = plan_input.repeat_last;
    input.calls = plan_input.calls;
    input.edge = plan_input.edge;
    if (plan_input.output != plan::kNone) {
      input.output = &outputs[plan_input.output];
      // What a device made, or carried here, comes with a fence; so does what passed through from another pace.
      input.may_be_late = has_devices;
      // On a device a value is kept until the last body that may look at it is done, not only issued.
      const uint32_t issued = step.device ? step.pace->plan->room : 0;
      if (input.keeps > 0 || (input.repeat_last && step.device)) input.kept.resize(input.keeps + 1 + issued);
    }
    const bool queued = input.output && step.handler && input.edge != plan::kNone &&
                        plan.edges[input.edge].policy == graph::Policy::queue;
    if (queued) input.queue = &outputs[before_copies(plan_input.output)];
    step.reads_queue = step.reads_queue || queued;
    step.inputs.push_back(std::move(input));
  }
  for (uint32_t before : step.plan->after)
    if (!plan.on_host(plan.steps[before].domain)) step.after_on_device.push_back(step_runs[before]);
  for (size_t r = 0; r < step.plan->readers.size(); ++r)
    step.readers.push_back({step_runs[step.plan->readers[r]], step.plan->members.empty() ? 0 : step.plan->members[r]});
}

// What a step has to wait for: all that is not before it in its own segment.
void RunState::wire(StepRun& step) {
  const bool alone = step.segment->plan->lanes == 1;
  step.plain = step.plan->kind == plan::StepKind::handler && !step.device;
  step.fed_by_others = false;
  for (InputRun& input : step.inputs) {
    if (!input.output) continue;
    const StepRun& producer = *step_runs[input.output->plan->step];
    const bool same = alone && producer.segment == step.segment && producer.deferred.empty();
    input.producer = same ? nullptr : producer.shared;
    step.plain = step.plain && !has_devices && input.delay == 0 && input.keeps == 0;
    step.fed_by_others = step.fed_by_others || !same;
  }
  step.after.clear();
  for (uint32_t before : step.plan->after) {
    const StepRun& other = *step_runs[before];
    const bool same = alone && other.segment == step.segment && !other.device;
    step.after.push_back(same ? nullptr : other.shared);
    if (!same) step.plain = false;
  }
}

void RunState::join_finishes() {
  for (StepRun* step : step_runs) {
    if (step->plan->kind != plan::StepKind::finish) continue;
    StepRun& body = *step_runs[step->plan->finishes];
    step->finishes = &body;
    body.finisher = step;
    body.called.resize(body.pace->plan->slots);
    step->raw_outputs.resize(body.outputs.size());
    step->tick.outputs = step->raw_outputs.data();
    step->tick.output_count = static_cast<uint32_t>(body.outputs.size());
    step->tick.input_count = static_cast<uint32_t>(body.inputs.size()); // what follows is what the body made
  }
}

void RunState::make_regions() {
  if (options.sync_devices) return; // each body by itself
  for (uint32_t r = 0; r < plan.regions.size(); ++r) {
    if (plan.regions[r].steps.empty()) continue;
    auto region = std::make_unique<RegionRun>();
    region->plan = &plan.regions[r];
    for (uint32_t s : region->plan->steps) {
      const bool rides = step_runs[s]->plan->kind == plan::StepKind::transfer;
      (rides ? region->riders : region->steps).push_back(step_runs[s]);
      step_runs[s]->region = region.get();
    }
    region->launched.resize(region->plan->slots);
    regions.push_back(std::move(region));
  }
}

void RunState::wire_stamps() {
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const plan::Pace& pace = plan.paces[plan.steps[s].pace];
    shared[s].mask = pace.slots - 1;
    if (plan.steps[s].outputs.empty()) shared[s].own_places = std::make_unique<SlotPlace[]>(pace.slots);
    shared[s].places =
        plan.steps[s].outputs.empty() ? shared[s].own_places.get() : outputs[plan.steps[s].outputs[0]].places.get();
    shared[s].wanted = has_devices;
  }
  want_stamps();
}

// Marks those that somebody waits for; of a step that nobody waited for until now, the stamps of its last ordinals come
// late.
void RunState::want_stamps() {
  const auto want = [&](const StepShared* waited_for) {
    if (!waited_for || waited_for->wanted) return;
    const auto s = static_cast<size_t>(waited_for - shared.data());
    const PaceRun& pace = *paces[plan.steps[s].pace];
    shared[s].wanted = true;
    const uint64_t admitted = pace.admitted.load();
    for (uint64_t back = 1; back <= std::min<uint64_t>(admitted, pace.mask + 1); ++back)
      shared[s].stamp(admitted - back).store(admitted - back + 1);
  };
  for (auto& segment : segments) {
    for (auto& step : segment->steps) {
      for (const InputRun& input : step->inputs) want(input.producer);
      for (const StepShared* before : step->after) want(before);
    }
  }
}

} // namespace millrace::exec
