// The life of one run; see run.h.
#include "exec/run.h"

#include <utility>

#include "exec/reader.h"
#include "exec/source.h"
#include "exec/tell.h"
#include "exec/threads.h"
#include "exec/trace_file.h"
#include "observe/log.h"
#include "plan/refusal.h"

namespace millrace::exec {

struct Run::Threads {
  explicit Threads(RunState& run) : workers(run), monitor(run, workers) {}
  Workers workers;
  Monitor monitor;
  int64_t begin_ns = 0;
  std::atomic<int64_t> end_ns{INT64_MIN}; // while it runs: not yet
  bool started = false;
};

void RunState::fail(StepRun& step, uint64_t index, const std::string& sentence) {
  // A source counts its own values; the tick that has to do without is the next one to be admitted.
  if (step.plan->kind == plan::StepKind::source) index = step.pace->admitted.load(std::memory_order_acquire);
  const std::string begins =
      step.plan->name + " (" + step.handler->type + ") failed at tick " + std::to_string(index) + ": ";
  fail(plan::refusal(601, begins, graph.handlers[step.plan->handler], *step.handler->info, sentence),
       step.pace->plan->clock, index);
}

void RunState::fail(Error error, uint32_t clock, uint64_t index) {
  const std::lock_guard lock(failure_mutex);
  // Of several failures the one at the earliest tick is the cause, whichever thread met it first. Before all comes a
  // device that is lost: handlers fail on what it leaves behind.
  const auto of_device = [](const Error& e) { return e.code / 100 == 7; };
  if (failures.empty()) {
    failures.push_back({std::move(error), clock, index});
  } else if (of_device(error) != of_device(failures[0].error)) {
    if (of_device(error)) failures[0] = {std::move(error), clock, index};
  } else if (failures[0].clock == clock && index < failures[0].index) {
    failures[0] = {std::move(error), clock, index};
  }
  if (index < fail_index[clock]->load()) fail_index[clock]->store(index);
  failing.store(true);
  notify();
}

TraceRing& RunState::add_trace(const std::string& name) {
  // 256 KiB of what is timed anyway; on request 16 MiB of every call, which is minutes of video.
  constexpr size_t kKept = size_t{1} << 14, kKeptOnRequest = size_t{1} << 20;
  const bool all = options.trace_all;
  traces.push_back(std::make_unique<TraceRing>(name, all ? kKeptOnRequest : kKept, all));
  return *traces.back();
}

TraceRing& RunState::trace_of(const device::Stream& stream, const plan::Step& step) {
  static constexpr const char* kKinds[] = {" compute", " copies in", " copies out", " peer copies"};
  const bool is_own = stream.kind == device::StreamKind::compute && &stream != compute[step.domain];
  const std::string name =
      plan.domains[step.domain].name + kKinds[static_cast<size_t>(stream.kind)] + (is_own ? " of " + step.name : "");
  for (const auto& ring : traces)
    if (ring->name() == name) return *ring;
  return add_trace(name);
}

void RunState::trace_on_device(StepRun& step, const mr_tick_info& info, TraceKind kind, int64_t begin, int64_t end) {
  const std::lock_guard lock(device_traces);
  step.trace->add({begin, end, info.trace_id, step.index, kind});
}

void RunState::await_devices() {
  for (size_t d = 1; d < devices.size(); ++d) {
    const int64_t begin = monotonic.now_ns();
    for (device::Stream* stream : streams[d]) {
      while (stream->completed.load(std::memory_order_acquire) < stream->issued) {
        bool moved = false;
        for (size_t other = 1; other < devices.size(); ++other) moved = devices[other]->force_any() || moved;
        if (!moved) std::this_thread::yield();
        if (monotonic.now_ns() - begin > options.device_patience_ns)
          devices[d]->declare_lost("it did not finish what it was given");
      }
    }
  }
}

void RunState::let_go() {
  for (auto& channel : channels) release_channel(*channel);
  for (auto& segment : segments) {
    for (auto& step : segment->steps) {
      if (std::exchange(step->calling, false)) settle_call(*step, segment->ordinal); // it was left in the middle
      flush_pending(*step); // from here on publish() refuses, whichever thread still tries
      for (InputRun& input : step->inputs) {
        release(input.last);
        for (Slot& kept : input.kept) release(kept);
      }
    }
  }
  for (auto& pace : paces) {
    for (SourceState& source : pace->sources) {
      if (source.has_value) release_all(source.value);
      if (source.has_next) release_all(source.next);
    }
    for (OutputRun* output : pace->held_outputs)
      for (uint64_t at = 0; at <= output->mask; ++at) release(output->places[at].slot);
  }
}

Run::Run(const plan::Plan& plan, const graph::Graph& graph, plan::Facts& facts, std::vector<device::Device*> devices,
         const RunOptions& options)
    : state_(std::make_unique<RunState>(plan, graph, facts, std::move(devices), options)),
      threads_(std::make_unique<Threads>(*state_)) {}

Run::~Run() {
  if (threads_->started) {
    stop();
    interrupt();
    threads_->workers.join();
    threads_->monitor.stop();
    state_->await_devices();
  }
  if (is_stuck()) (void)state_.release(); // what still runs there works on all of it
}

bool Run::is_stuck() const { return state_->has_stuck_devices(); }

void Run::start() {
  RunState& run = *state_;
  std::vector<plugin::Instance*> started;
  for (auto& segment : run.segments) {
    for (auto& step : segment->steps) {
      if (!step->instance) continue;
      if (step->instance->start() == MR_OK) {
        started.push_back(step->instance);
        continue;
      }
      const Error error =
          plan::refusal(605, step->plan->name + " (" + step->handler->type + ") could not start: ",
                        run.graph.handlers[step->plan->handler], *step->handler->info, step->instance->error());
      for (plugin::Instance* instance : started) instance->stop();
      throw Failure(error);
    }
  }
  for (const AppliedChange& scripted : run.options.script) {
    uint32_t handler = 0;
    while (handler < run.plan.handlers.size() && run.plan.handlers[handler].name != scripted.change.handler) ++handler;
    if (handler == run.plan.handlers.size())
      throw Failure(301, "the script changes " + scripted.change.handler + ", which is no handler");
    run.requested.push_back({handler, scripted.change.param, scripted.change.text, scripted.tick});
    run.changes_waiting = true;
  }
  for (auto& region : run.regions) {
    const plugin::UnderWayScope here({&name_call_apart, region->steps[0]});
    record_region(*region);
    tell_region(*region);
  }
  for (device::Device* device : run.devices) device->steady(true);
  threads_->begin_ns = run.trace_begin_ns = run.now_ns();
  run.trace_begin_ticks = run.trace_now();
  threads_->started = true;
  for (auto& segment : run.segments)
    for (auto& step : segment->steps)
      if (step->instance && step->device && !step->device->enqueues()) run.apart.push_back(step.get());
  if (run.is_virtual) return; // wait() runs it
  try {
    start_threads();
  } catch (const Failure&) { // those that are there end, and handlers stop
    interrupt();
    wait();
    throw;
  }
}

void Run::start_threads() {
  RunState& run = *state_;
  for (auto& pace : run.paces)
    for (SourceState& source : pace->sources)
      if (source.step->handler->waits) {
        source.step->trace = &run.add_trace(source.step->plan->name + " reads");
        run.apart.push_back(source.step);
        source.reader = std::make_shared<Reader>(*source.step);
      }
  threads_->monitor.start();
  threads_->workers.start();
}

Result Run::wait() {
  RunState& run = *state_;
  if (run.is_virtual) run_in_virtual_time(run);
  threads_->workers.join();
  for (auto& pace : run.paces)
    for (SourceState& source : pace->sources)
      if (source.reader) source.reader->stop();
  threads_->monitor.stop();
  run.await_devices();
  for (device::Device* device : run.devices) device->collect_spans();
  run.watch_devices(); // the monitor looks now and then: a late fault must not pass for success
  threads_->end_ns.store(run.now_ns());
  for (device::Device* device : run.devices) device->steady(false);
  run.let_go();
  for (auto& ring : run.rings) ring->retire_all(); // foreign memory goes back before its handler stops
  for (auto& segment : run.segments)
    for (auto& step : segment->steps)
      if (step->instance && !RunState::is_given_up(*step) && step->instance->stop() != MR_OK)
        run.fail(*step, segment->ordinal, step->instance->error());
  threads_->started = false;
  Result result;
  result.ok = run.failures.empty();
  if (!result.ok) result.error = run.failures[0].error;
  result.report = report();
  tell_over(run, result);
  return result;
}

Report Run::report() const {
  Report report = make_report(*state_);
  const int64_t end_ns = threads_->end_ns.load();
  const int64_t until_ns = end_ns == INT64_MIN ? state_->now_ns() : end_ns;
  report.duration_s = static_cast<double>(until_ns - threads_->begin_ns) / 1e9;
  if (const Log* log = state_->options.log) report.log_lost = log->lost();
  return report;
}

void Run::stop() {
  RunState& run = *state_;
  run.stopping.store(true);
  if (run.facts.watch) run.facts.watch->stop();
  for (auto& pace : run.paces)
    for (SourceState& source : pace->sources)
      if (source.reader || source.step->segment->inside.load(std::memory_order_relaxed) == source.step)
        source.step->instance->interrupt();
  run.bell->ring();
}

void Run::interrupt() {
  RunState& run = *state_;
  run.stopping.store(true);
  run.abort.store(true);
  for (const auto& handler : run.facts.handlers) handler.instance->interrupt();
  for (const auto& lane : run.clones) lane->interrupt();
  run.bell->ring();
}

std::vector<CallUnderWay> Run::calls_under_way() const { return exec::calls_under_way(*state_); }

bool Run::finished() const { return state_->finished(); }

void Run::set(const std::vector<ParamChange>& changes) {
  RunState& run = *state_;
  std::vector<RunState::Change> checked;
  for (const ParamChange& change : changes) {
    uint32_t handler = 0;
    while (handler < run.plan.handlers.size() && run.plan.handlers[handler].name != change.handler) ++handler;
    if (handler == run.plan.handlers.size()) throw Failure(301, "there is no handler named \"" + change.handler + "\"");
    const plugin::HandlerInfo& info = *run.plan.handlers[handler].info;
    const auto* param = info.find_param(change.param);
    if (!param) throw Failure(310, change.handler + " (" + info.type + ") has no parameter \"" + change.param + "\"");
    if (!param->live()) throw Failure(316, change.param + " of " + change.handler + " cannot be changed while it runs");
    plugin::parse_param(info, *param, change.text, {});
    checked.push_back({handler, change.param, change.text, UINT64_MAX});
  }
  const std::lock_guard lock(run.changes_mutex);
  for (RunState::Change& change : checked) run.requested.push_back(std::move(change));
  run.changes_waiting.store(true);
}

std::vector<AppliedChange> Run::changes() const {
  const std::lock_guard lock(state_->changes_mutex);
  std::vector<AppliedChange> applied;
  for (const RunState::Change& change : state_->changes)
    applied.push_back({change.at_index, {state_->plan.handlers[change.handler].name, change.param, change.text}});
  return applied;
}

void Run::write_trace(std::ostream& out) const { exec::write_trace(*state_, out); }

uint64_t Run::ticks() const {
  uint64_t ticks = 0;
  for (const auto& pace : state_->paces)
    if (pace->plan->kind == plan::PaceKind::clock) ticks = std::max(ticks, pace->admitted.load());
  return ticks;
}

} // namespace millrace::exec
