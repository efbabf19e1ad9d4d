// Starts a run, drives it to its end and reports what it did; see run.h.
#include "exec/run.h"

#include <algorithm>
#include <set>
#include <utility>

#include "exec/build.h"
#include "exec/change.h"
#include "exec/counters.h"
#include "exec/handler_state.h"
#include "exec/live_changes.h"
#include "exec/param_values.h"
#include "exec/reader.h"
#include "exec/region.h"
#include "exec/report.h"
#include "exec/report_streams.h"
#include "exec/run_log.h"
#include "exec/run_options.h"
#include "exec/run_state.h"
#include "exec/seats.h"
#include "exec/tap_point.h"
#include "exec/threads.h"
#include "exec/under_way.h"
#include "exec/virtual_driver.h"
#include "exec/window.h"
#include "graph/graph.h"
#include "observe/error_codes.h"
#include "observe/log.h"
#include "observe/trace_file.h"
#include "plan/pace.h"
#include "plan/plan.h"
#include "plan/prepare.h"
#include "plan/refusal.h"
#include "plan/step.h"

namespace millrace::exec {

struct Run::Threads {
  explicit Threads(RunState& run) : workers(run), monitor(run, workers) {}
  Workers workers;
  Monitor monitor;
  std::atomic<int64_t> begin_ns{0};
  std::atomic<int64_t> end_ns{INT64_MIN}; // INT64_MIN while it runs
  bool started = false;
};

Run::Run(const plan::Plan& plan, const graph::Graph& graph, plan::Handlers& handlers,
         std::vector<device::Device*> devices, const RunOptions& options)
    : state_(build(plan, graph, handlers, std::move(devices), options)), threads_(std::make_unique<Threads>(*state_)) {}

Run::~Run() {
  if (threads_->started) {
    stop();
    interrupt();
    threads_->workers.join();
    threads_->monitor.stop();
    state_->await_devices();
  }
  if (is_stuck()) (void)state_.release(); // work that still runs on the device uses all of it
}

bool Run::is_stuck() const { return state_->has_stuck_devices(); }

void Run::start() {
  RunState& run = *state_;
  std::vector<HandlerRun*> started;
  for (HandlerRun* step : run.planned.handlers) {
    const bool begins_later = step->pace->clock->plan->begins_later() && !step->handler->stream.empty();
    if (begins_later) continue; // it starts with its stream
    if (start_handler(*step) == MR_OK) {
      started.push_back(step);
      step->life->is_started = true;
      continue;
    }
    const Error error =
        plan::refusal(code::start_failed, step->plan->name + " (" + step->handler->type + ") could not start: ",
                      plan::declared_of(run.planned.plan, run.planned.graph, step->plan->handler()), *step->instance);
    for (HandlerRun* other : started) stop_handler(*other);
    throw Failure(error);
  }
  for (const AppliedChange& scripted : run.options.script) {
    uint32_t handler = 0;
    while (handler < run.planned.plan.handlers.size() &&
           run.planned.plan.handlers[handler].name != scripted.change.handler)
      ++handler;
    if (handler == run.planned.plan.handlers.size())
      throw Failure(code::unknown_handler, "the script changes " + scripted.change.handler + ", which is no handler");
    run.requested.push_back({handler, scripted.change.param, scripted.change.text, scripted.tick});
    run.requested.back().by = "the script";
    run.changes_waiting = true;
  }
  for (auto& region : run.planned.regions) {
    const plugin::UnderWayScope here({&name_call_outside, region->steps[0]});
    record_region(*region);
    if (run.options.measure_bodies) measure_empty_span(*region);
    log_region(*region);
  }
  for (uint32_t c = 0; c < run.clocks.size(); ++c)
    if (run.clocks[c]->seat->is_awaited) log_stream_absent(run, c, *run.clocks[c]->failure);
  for (device::Device* device : run.devices) device->steady(true);
  run.begin_trace();
  threads_->begin_ns.store(run.trace_begin_ns);
  threads_->started = true;
  for (const HandlerRun* step : run.planned.handlers)
    if (step->on.device && !step->on.enqueuing) run.planned.called_outside.push_back(step);
  if (run.is_virtual) return; // wait() runs it
  try {
    start_threads();
  } catch (const Failure&) { // threads that have started end, and handlers stop
    interrupt();
    wait();
    throw;
  }
}

void Run::start_threads() {
  RunState& run = *state_;
  for (auto& clock : run.clocks)
    for (SourceState& source : clock->sources)
      if (source.step->handler->waits) {
        source.step->trace = &run.add_trace(source.step->plan->name + " reads");
        run.planned.called_outside.push_back(source.step);
        source.reader = std::make_shared<Reader>(*source.step, !clock->plan->begins_later());
      }
  threads_->monitor.start();
  threads_->workers.start();
}

void Run::time_goes_on() {
  RunState& run = *state_;
  threads_->begin_ns.store(std::max(run.now_ns(), run.options.begin_ns));
  run.begin_trace();
}

Result Run::wait() {
  RunState& run = *state_;
  if (run.is_virtual) {
    VirtualDriver driver(*run.options.virtual_time);
    driver.add(*this);
    driver.drive();
  }
  // In virtual time others may have gone on after this run.
  const int64_t after_end_ns = run.is_virtual ? run.now_ns() - run.virtual_end_ns : 0;
  threads_->workers.join();
  end_seats(run);
  for (auto& clock : run.clocks)
    for (SourceState& source : clock->sources)
      if (source.reader) source.reader->stop();
  threads_->monitor.stop();
  run.await_devices();
  for (device::Enqueuing* device : run.enqueuing)
    if (device) device->collect_spans();
  run.watch_devices(); // the monitor looks now and then: a late fault must not pass for success
  threads_->end_ns.store(run.now_ns() - after_end_ns);
  for (device::Device* device : run.devices) device->steady(false);
  run.release_all_blocks();
  for (auto& ring : run.planned.rings) ring->retire_all(); // foreign memory goes back before its handler stops
  for (HandlerRun* step : run.planned.handlers)
    if (!RunState::is_given_up(*step) && step->life->is_started && stop_handler(*step) != MR_OK)
      run.fail(*step, step->segment->ordinal, step->instance->error());
  threads_->started = false;
  Result result;
  {
    const std::lock_guard lock(run.failure_mutex); // fail() may still come
    result.ok = run.failures.empty();
    if (!result.ok) result.error = run.failures[0].error;
    if (const Error* const error = error_of_all_streams(run); result.ok && error) {
      result.ok = false;
      result.error = *error;
      result.error.notes.push_back("every stream of its set has failed");
    }
  }
  result.report = report();
  log_over(run, result);
  return result;
}

Report Run::report() const {
  Report report = make_report(*state_);
  const int64_t end_ns = threads_->end_ns.load();
  const int64_t until_ns = end_ns == INT64_MIN ? state_->now_ns() : end_ns;
  report.duration_s = static_cast<double>(std::max<int64_t>(until_ns - threads_->begin_ns.load(), 0)) / 1e9;
  if (const Log* log = state_->options.log) report.log_lost = log->lost();
  return report;
}

std::shared_ptr<Tap> Run::tap(const std::string& output, const TapOptions& options) {
  return make_tap(*state_, output, options);
}

std::unique_ptr<Counters> Run::counters() const { return std::make_unique<Counters>(*state_); }

void Run::stop() {
  RunState& run = *state_;
  run.stop();
  if (run.live.watch) run.live.watch->stop();
  const std::lock_guard lock(run.instances_mutex);
  for (auto& clock : run.clocks)
    for (SourceState& source : clock->sources)
      if (source.reader || source.step->segment->inside.load(std::memory_order_relaxed) == source.step)
        source.step->instance->interrupt();
}

bool Run::have_clocks_ended() const {
  const auto& paces = state_->planned.paces;
  return std::all_of(paces.begin(), paces.end(), [&](const auto& pace) {
    const bool is_home = pace->is_clock && pace->plan->node == state_->planned.plan.node;
    return !is_home || pace->ended.load();
  });
}

void Run::clocks_are_over() {
  state_->clocks_over.store(true);
  state_->notify_all();
}

void Run::interrupt() {
  RunState& run = *state_;
  run.abort.store(true);
  run.stop();
  const std::lock_guard lock(run.instances_mutex);
  for (const auto& lanes : run.lives)
    for (const auto& life : lanes) life->instance->interrupt();
}

void Run::fail(const Error& error, uint32_t clock, uint64_t index) {
  MR_ASSERT(clock < state_->clocks.size(), "a run fails on a clock of its plan");
  state_->record_run_failure({error, clock, index});
}

void Run::fail_stream(const FailureRecord& failure) {
  MR_ASSERT(failure.clock < state_->clocks.size(), "a stream's clock is one of the plan");
  state_->record_stream_failure(failure);
}

std::vector<CallUnderWay> Run::calls_under_way() const { return exec::calls_under_way(*state_); }

bool Run::finished() const { return state_->finished(); }

void Run::set(const std::vector<ParamChange>& changes, const ChangesTaken& on_taken) {
  RunState& run = *state_;
  std::vector<RunState::Change> checked = check_changes(run, changes);
  require_home(run, checked);
  if (on_taken) ask_for(run, checked, on_taken);
  {
    const std::lock_guard lock(run.changes_mutex);
    if (run.planned.plan.is_over_nodes()) require_goes_over_links(run, checked);
    run.requested.insert(run.requested.end(), checked.begin(), checked.end());
    run.changes_waiting.store(!run.requested.empty());
  }
  run.notify_all(); // heads look before their beats
  give_up_late_changes(run, checked);
}

std::vector<HomeChanges> Run::by_home(const std::vector<ParamChange>& changes) const {
  return exec::by_home(*state_, check_changes(*state_, changes));
}

std::vector<std::string> Run::nodes_of(const std::vector<ParamChange>& changes) const {
  const plan::Plan& plan = state_->planned.plan;
  std::set<uint32_t> nodes;
  for (const RunState::Change& change : check_changes(*state_, changes))
    nodes.insert(plan.handlers[change.handler].node);
  nodes.erase(plan.node);
  std::vector<std::string> names;
  if (plan.is_over_nodes())
    for (const uint32_t node : nodes) names.push_back(plan.nodes[node]);
  return names;
}

uint32_t Run::take_seat(const std::string& set, const std::string& name) { return exec::take_seat(*state_, set, name); }
void Run::give_up_seat(uint32_t clock) { exec::give_up_seat(*state_, clock); }
bool Run::is_awaited(uint32_t clock) const { return exec::is_awaited(*state_, clock); }
void Run::still_absent(uint32_t clock, const Error& error) { exec::still_absent(*state_, clock, error); }
void Run::add(uint32_t clock, NewStream stream) { come(*state_, clock, std::move(stream)); }
void Run::remove(const std::string& set, const std::string& name, StreamDone done) {
  go(*state_, set, name, std::move(done));
}

void Run::end_streams() { end_seats(*state_); }

std::vector<HandlerValues> Run::values() const { return values_now(*state_); }

std::vector<AppliedChange> Run::changes() const {
  const std::lock_guard lock(state_->changes_mutex);
  std::vector<AppliedChange> applied;
  for (const RunState::Change& change : state_->changes)
    applied.push_back(
        {change.at_index, {state_->planned.plan.handlers[change.handler].name, change.param, change.text}});
  return applied;
}

TraceOfRun Run::trace() const {
  const RunState& run = *state_;
  TraceOfRun traced;
  traced.name = run.planned.graph.name;
  traced.begin_ns = run.trace_begin_ns;
  traced.error_ns = std::max(run.trace_begin_error_ns, run.time->error_ns());
  TraceClock line;
  line.begin(run.trace_begin_ticks, run.trace_begin_ns);
  line.end(run.trace_now(), run.now_ns());
  for (const auto& ring : run.traces) add_track(*ring, line, traced);
  for (const plan::Step& step : run.planned.plan.steps) traced.steps.push_back(step.name);
  for (const plan::Clock& clock : run.planned.plan.clocks) traced.clocks.push_back(clock.name);
  return traced;
}

void Run::write_trace(std::ostream& out) const { millrace::write_trace({trace()}, out); }

uint64_t Run::ticks() const {
  uint64_t ticks = 0;
  for (uint32_t clock = 0; clock < state_->clocks.size(); ++clock)
    ticks = std::max(ticks, ticks_here(state_->planned, clock));
  return ticks;
}

} // namespace millrace::exec
