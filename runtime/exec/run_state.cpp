// The run itself, whatever its plan contains: its beginning and end, its first failure, its traces; see run_state.h.
#include "exec/run_state.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "device/device.h"
#include "device/sim/access_guard.h"
#include "exec/channel.h"
#include "exec/copy_step.h"
#include "exec/firing.h"
#include "exec/group.h"
#include "exec/holds.h"
#include "exec/pending.h"
#include "exec/presence.h"
#include "exec/region.h"
#include "exec/run_log.h"
#include "exec/run_options.h"
#include "exec/seats.h"
#include "exec/sink_latency.h"
#include "exec/source.h"
#include "exec/stream_epochs.h"
#include "exec/tap_point.h"
#include "graph/graph.h"
#include "observe/error_codes.h"
#include "plan/domain.h"
#include "plan/pace.h"
#include "plan/partition.h"
#include "plan/plan.h"
#include "plan/predict.h"
#include "plan/prepare.h"
#include "plan/refusal.h"
#include "plan/step.h"

namespace millrace::exec {

namespace {

// Work still running after this long is declared stuck.
constexpr std::chrono::milliseconds kStuckAfter{500};

} // namespace

PlanRun::PlanRun(const plan::Plan& the_plan, const graph::Graph& the_graph, uint32_t the_revision)
    : plan(the_plan), graph(the_graph), revision(the_revision) {}
PlanRun::~PlanRun() = default;

RunState::RunState(const plan::Plan& the_plan, const graph::Graph& the_graph, plan::Handlers& the_handlers,
                   std::vector<device::Device*> the_devices, const RunOptions& the_options)
    : planned(the_plan, the_graph, the_options.revision),
      live(the_handlers),
      own_options(std::make_unique<RunOptions>(the_options)),
      options(*own_options),
      devices(std::move(the_devices)),
      tap_points(std::make_unique<TapPoints>()),
      holds(std::make_unique<Holds>(options.pages)),
      wakeup(the_plan.threads),
      begin_ns_(the_options.begin_ns) {
  const plan::Plan& plan = planned.plan;
  MR_ASSERT(options.begin_ns == kAtFirstLook || options.begin_ns >= 0, "a run cannot begin at a negative time");
  time = &monotonic;
  if (options.virtual_time) time = options.virtual_time;
  if (options.time) time = options.time;
  is_virtual = options.virtual_time != nullptr;
  has_devices = plan.domains.size() > 1;
  several_threads = !is_virtual && (plan.threads > 1 || !plan.crossings.empty()); // a link has a thread of its own
  for (const plan::HandlerPlan& handler : plan.handlers) {
    // A blocking source has a thread of its own, and what is pending may be published from anywhere.
    const bool from_outside = handler.waits || plan.type_of(handler).max_pending > 0;
    several_threads = several_threads || (from_outside && !is_virtual);
  }
  MR_ASSERT(devices.size() == plan.domains.size(), "a run needs a device for each domain of its plan");
  for (size_t c = 0; c < plan.clocks.size(); ++c) {
    clocks.push_back(std::make_unique<ClockRun>());
    clocks.back()->seat = std::make_unique<SeatRun>();
  }
  for (uint32_t w = 0; w < plan.threads; ++w)
    add_trace((w < plan.workers ? "worker " : "thread ") + std::to_string(w)); // the first rings, by worker
  submissions.resize(devices.size());
  for (uint32_t d = kFirstAccelerator; d < devices.size(); ++d) submissions[d] = std::make_unique<Submissions>();
}

RunState::~RunState() {
  tap_points->leave_run();    // while all that clients may still ask for is there
  for (auto& lanes : lives) { // instances may outlive their run
    for (auto& life : lanes) {
      life->instance->on_log = nullptr;
      life->instance->clock_ns = nullptr;
      life->instance->in_run = nullptr;
    }
  }
  for (auto& clock : clocks) clock->sources.clear(); // ends reader threads
}

void RunState::fail(HandlerRun& step, uint64_t index, const std::string& sentence, int fault) {
  // The index of a source counts its values. The tick that has to do without this value is the next one to be admitted.
  if (step.plan->is<plan::SourceStep>()) index = step.pace->admitted.load(std::memory_order_acquire);
  const std::string begins =
      name_now(*this, *step.handler) + " (" + step.handler->type + ") failed at tick " + std::to_string(index) + ": ";
  const graph::Handler& declared = plan::declared_of(planned.plan, planned.graph, step.plan->handler());
  Error error = plan::refusal(code::handler_failed, begins, declared, planned.plan.type_of(*step.plan), sentence);
  if (fault) error.code = fault;
  const bool is_outside = declared.stream.empty(); // it may be on a stream's clock all the same
  is_outside ? fail(std::move(error), step.pace->plan->clock, index) : fail_clock(std::move(error), *step.pace, index);
}

void RunState::fail_clock(Error error, const PaceRun& pace, uint64_t index) {
  const uint32_t clock = pace.plan->clock;
  if (!pace.clock->plan->fails_alone) return fail(std::move(error), clock, index);
  const FailureRecord failure{std::move(error), clock, index, true, "", root_of(pace).epoch.load()};
  if (record_stream_failure(failure) && options.on_failure) options.on_failure(failure); // outside of the lock
}

bool RunState::record_stream_failure(const FailureRecord& failure) {
  bool is_first = false, is_news = false;
  {
    const std::lock_guard lock(failure_mutex);
    ClockRun& stream = *clocks[failure.clock];
    const uint32_t newest = std::max(stream.epoch.load(), stream.failure ? stream.failed_epoch : 0);
    if (failure.epoch < newest) return false; // the stream has begun anew since then
    is_first = !stream.failure || failure.epoch > stream.failed_epoch;
    is_news = is_first || failure.index < stream.failed_at;
    if (is_news) {
      const uint32_t before = stream.fail_epoch.load(); // the run may have failed on the clock too
      const uint64_t least = before < failure.epoch ? UINT64_MAX : stream.fail_index.load();
      stream.fail_index.store(std::min(failure.index, least));
      stream.fail_epoch.store(std::max(failure.epoch, before));
      stream.failure = failure.error;
      stream.failed_at = failure.index;
      stream.failed_epoch = failure.epoch;
      stream.failed_on = failure.node;
    }
    stream.halted.store(true);
    any_failed.store(true);
  }
  notify_all();
  if (is_first) log_stream_failed(*this, failure);
  return is_news;
}

void RunState::fail(Error error, uint32_t clock, uint64_t index) {
  const FailureRecord failure{std::move(error), clock, index};
  if (record_run_failure(failure) && options.on_failure) options.on_failure(failure); // outside of the lock
}

bool RunState::record_run_failure(const FailureRecord& failure) {
  const std::lock_guard lock(failure_mutex);
  // The failure at the earliest tick is the cause, whichever thread met it first. A lost device comes before all
  // others, because handlers fail on the values that it left unfinished.
  const auto of_device = [](const Error& e) { return e.code / 100 == 7; };
  bool is_news = failures.empty();
  if (is_news) {
    failures.push_back(failure);
  } else {
    const FailureRecord& first = failures[0];
    is_news = of_device(failure.error) != of_device(first.error)
                  ? of_device(failure.error)
                  : first.clock == failure.clock && failure.index < first.index;
    if (is_news) failures[0] = failure;
  }
  std::atomic<uint64_t>& fail_index = clocks[failure.clock]->fail_index;
  if (failure.index < fail_index.load()) {
    fail_index.store(failure.index);
    is_news = true;
  }
  clocks[failure.clock]->fail_epoch.store(UINT32_MAX);
  failing.store(true);
  any_failed.store(true);
  notify_all();
  return is_news;
}

TraceRing& RunState::add_trace(const std::string& name) {
  // 256 KiB for the calls that are timed anyway; on request 16 MiB for every call, which is minutes of video.
  constexpr size_t kKept = size_t{1} << 14, kKeptOnRequest = size_t{1} << 20;
  const bool all = options.trace_all;
  traces.push_back(std::make_unique<TraceRing>(name, all ? kKeptOnRequest : kKept, all));
  return *traces.back();
}

TraceRing& RunState::trace_of(const device::Stream& stream, const plan::Step& step) {
  static constexpr const char* kKinds[] = {" compute", " copies in", " copies out", " peer copies"};
  const bool is_own = stream.kind == device::StreamKind::compute && &stream != compute[step.domain];
  const std::string name = planned.plan.domains[step.domain].name + kKinds[static_cast<size_t>(stream.kind)] +
                           (is_own ? " of " + step.name : "");
  for (const auto& ring : traces)
    if (ring->name() == name) return *ring;
  return add_trace(name);
}

void RunState::trace_on_device(StepRun& step, const mr_tick_info& info, TraceKind kind, int64_t begin, int64_t end) {
  const std::lock_guard lock(device_traces);
  step.trace->add({begin, end, info.trace_id, step.index, kind});
}

void RunState::begin_trace() {
  trace_begin_ns = now_ns();
  trace_begin_ticks = trace_now();
  trace_begin_error_ns = time->error_ns();
}

void RunState::notify_carrier() {
  if (options.on_crossing) options.on_crossing();
}

int64_t RunState::begin_ns() {
  int64_t unset = kAtFirstLook;
  const int64_t now = now_ns();
  return begin_ns_.compare_exchange_strong(unset, now) ? now : unset;
}

bool RunState::is_given_up(const StepRun& step) { return step.on.device && step.on.device->is_stuck(); }

void RunState::await_submitted(const StepRun& step, uint64_t ordinal, const device::Fence& fence) {
  if (!options.sync_devices || is_virtual) return;
  device::Device& device = *step.on.device;
  const int64_t begin = monotonic.now_ns();
  while (!fence.done()) {
    device.watch(); // a device whose words move by themselves looks for errors only when asked to
    if (!device.force(fence)) std::this_thread::yield();
    if (monotonic.now_ns() - begin > options.device_patience_ns)
      device.declare_lost(words_of_work(*this, step) + " did not finish tick " +
                          std::to_string(step.pace->info(ordinal).index));
  }
  if (device.failed()) watch_device(step.plan->domain);
}

bool RunState::has_stuck_devices() const {
  const auto stuck = [&] {
    return std::any_of(devices.begin(), devices.end(), [](const device::Device* device) { return device->is_stuck(); });
  };
  const auto until = std::chrono::steady_clock::now() + kStuckAfter;
  while (stuck() && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return stuck();
}

void RunState::watch_devices() {
  for (uint32_t d = kFirstAccelerator; d < devices.size(); ++d) watch_device(d);
}

void RunState::watch_device(uint32_t d) {
  const device::DeviceStatus status = devices[d]->status();
  if (status.ok()) return;
  const std::string what = " is lost: " + status.sentence + submissions[d]->under_way(*this, *devices[d]);
  fail(Error{code::device_lost, planned.plan.domains[d].name + what, {}, {}, "", ""}, 0, kWholeRun);
}

void RunState::await_devices() {
  for (uint32_t d = kFirstAccelerator; d < devices.size(); ++d) {
    const int64_t begin = monotonic.now_ns();
    for (device::Stream* stream : streams[d]) {
      while (stream->completed.load(std::memory_order_acquire) < stream->issued) {
        bool moved = false;
        for (device::Device* device : accelerators()) moved = device->force_any() || moved;
        if (!moved) std::this_thread::yield();
        if (monotonic.now_ns() - begin > options.device_patience_ns)
          devices[d]->declare_lost("it did not finish what it was given");
      }
    }
  }
}

void RunState::release_all_blocks() {
  for (auto& channel : planned.channels) release_channel(*channel);
  for (HandlerRun* step : planned.handlers) {
    if (std::exchange(step->calling, false)) settle_call(*step, step->segment->ordinal); // it was left in the middle
    flush_pending(*step); // from here on publish() refuses, whichever thread still tries
  }
  for (auto& step : planned.steps) {
    for (InputRun& input : step->inputs) {
      release(input.last);
      for (Slot& kept : input.kept) release(kept);
    }
  }
  for (auto& clock : clocks) {
    for (SourceState& source : clock->sources) {
      if (source.has_value) release_all(source.value);
      if (source.has_next) release_all(source.next);
    }
  }
  for (auto& pace : planned.paces) {
    for (OutputRun* output : pace->held_outputs)
      for (uint64_t at = 0; at <= output->mask; ++at) release(output->cells[at].slot);
  }
}

} // namespace millrace::exec
