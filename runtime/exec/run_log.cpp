// Writes a run's lines and those of its handlers to the log; see run_log.h.
#include "exec/run_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>

#include "exec/channel.h"
#include "exec/region.h"
#include "exec/run_options.h"
#include "exec/run_state.h"
#include "exec/seats.h"
#include "exec/source.h"
#include "observe/error_codes.h"
#include "observe/log.h"
#include "observe/report.h"
#include "plan/domain.h"
#include "plan/partition.h"
#include "plan/plan.h"
#include "plan/step.h"

namespace millrace::exec {

namespace {

// Losses that stop for a shorter time than this count as going on.
constexpr int64_t kLossOverNs = 1'000'000'000;

std::string clock_of(const StepRun& step) { return clock_now(*step.run, step.pace->plan->clock); }

std::string stream_of(const RunState& run, const ClockRun& clock) {
  const std::lock_guard lock(run.seats_mutex);
  return clock.seat->name;
}

// True of the clock of a seat while no stream is in it: it has no name that a person knows.
bool is_free_seat(const ClockRun& clock) { return clock.plan->is_seat && clock.seat->vacant.load(); }

bool is_heard(const RunState& run, LogLevel level) { return run.options.log && run.options.log->takes(level); }

// Reads only the segment that this thread has claimed: another segment may be cut anew meanwhile.
uint64_t tick_of_call(const HandlerRun& step) {
  const SegmentRun* const here = Claim::here();
  if (!here || here->inside.load(std::memory_order_relaxed) != &step || step.life->drained) return LogRecord::kNoTick;
  if (step.plan->is<plan::SourceStep>()) // asked for the next tick; calls by a reader belong to no tick
    return step.trace ? LogRecord::kNoTick : step.context.ordinal;
  if (!here->in_tick.load(std::memory_order_relaxed)) return LogRecord::kNoTick;
  const PaceRun& pace = *here->pace;
  if (pace.is_clock) return here->ordinal;
  return pace.tick_index[here->ordinal & pace.mask].load(std::memory_order_relaxed);
}

uint32_t stream_of_call(const HandlerRun& step) {
  const bool may_change = step.on.device && step.pace->group; // while a body of an earlier item is on the device
  if (step.has_stream && !may_change) return step.tick.stream;
  if (step.on.device) return LogRecord::kNoStream; // its inputs are on a device
  for (const mr_input& input : step.raw_inputs)
    if (input.value) return input.value->header.stream;
  return LogRecord::kNoStream;
}

LogLevel level_of(uint32_t level) { return static_cast<LogLevel>(std::min<uint32_t>(level, MR_LOG_ERROR)); }

void say(const RunState& run, LogLevel level, const std::string& handler, const std::string& clock,
         const std::string& text, const Log::Context& context = {}) {
  run.options.log->say(level, run.options.log->source(handler, clock), text, context);
}

void warn_of_stream(const RunState& run, const std::string& stream, const std::string& text, int code) {
  Log::Context context;
  context.code = code;
  if (run.options.log)
    say(run, LogLevel::warning, "", stream, text, context);
  else if (run.options.on_message)
    run.options.on_message("warning: " + text);
}

std::string rate_words(const plan::Clock& clock) {
  const char* const mode = clock.mode == graph::ClockMode::realtime ? "realtime"
                           : clock.mode == graph::ClockMode::free   ? "free"
                                                                    : "source";
  if (clock.rate.numerator == 0) return mode;
  return fmt::format("{}, {:.6g} ticks a second", mode,
                     static_cast<double>(clock.rate.numerator) / static_cast<double>(clock.rate.denominator));
}

} // namespace

void lend_log(HandlerRun& step) {
  plugin::Instance& instance = *step.instance;
  Log& log = *step.run->options.log;
  const ClockRun& clock = *step.pace->clock;
  const bool comes = clock.plan->has_room && !clock.seat->name.empty(); // whoever gives the instance has the lock
  // The log keeps its sources, and of many streams that come and go few have something to say.
  const auto source = std::make_shared<std::atomic<const LogSource*>>(nullptr);
  const auto find = [&log, source, name = step.name, of = comes ? clock.seat->name : clock.plan->name] {
    const LogSource* found = source->load();
    if (!found) source->store(found = &log.source(name, of));
    return found;
  };
  if (!comes) find();
  instance.on_log = [&log, find, &step](uint32_t said_at, std::string_view sentence, bool first) {
    const LogLevel level = level_of(said_at);
    if (!log.takes(level)) return;
    Log::Context context;
    context.tick = tick_of_call(step);
    if (context.tick != LogRecord::kNoTick) context.stream = stream_of_call(step);
    context.by_handler = true;
    context.on_terminal = first;
    log.say(level, *find(), sentence, context);
  };
  for (const plugin::Message& said : instance.messages()) // while the plan was made
    instance.on_log(said.level, said.sentence, is_on_terminal(*step.run, said));
}

bool is_on_terminal(const RunState& run, const plugin::Message& said) {
  return !run.options.quiet || said.level > MR_LOG_INFO;
}

void log_clock_began(const PaceRun& pace) {
  if (!is_heard(*pace.run, LogLevel::info) || is_free_seat(*pace.clock)) return;
  say(*pace.run, LogLevel::info, "", clock_now(*pace.run, pace.plan->clock),
      "the clock begins: " + rate_words(*pace.clock->plan));
}

void log_clock_ended(const PaceRun& pace) {
  if (!is_heard(*pace.run, LogLevel::info) || !pace.is_clock) return;
  if (is_free_seat(*pace.clock)) return;
  say(*pace.run, LogLevel::info, "", clock_now(*pace.run, pace.plan->clock),
      fmt::format("the clock has ended: {} ticks, {} late, {} skipped", pace.admitted.load(), pace.clock->late.get(),
                  pace.clock->skipped.get()));
}

void log_region(const RegionRun& region) {
  const BodyRun& first = *region.steps[0];
  const RunState& run = *first.run;
  if (!is_heard(run, LogLevel::info) || region.recordings.empty()) return;
  std::string handlers;
  for (const BodyRun* step : region.steps) handlers += (handlers.empty() ? "" : ", ") + step->handler->name;
  say(run, LogLevel::info, "", clock_of(first),
      fmt::format("captured on {} as one: {}", run.planned.plan.domains[region.plan->domain].name, handlers));
}

void log_second_cut(const RunState& run) {
  if (!is_heard(run, LogLevel::info)) return;
  say(run, LogLevel::info, "", "",
      fmt::format("cut again by what the first ticks took: {} segments instead of {}",
                  run.planned.second_cut->segments.size(), run.planned.plan.segments.size()));
}

void log_not_cut(const RunState& run, const std::string& waits_for) {
  if (!is_heard(run, LogLevel::info)) return;
  say(run, LogLevel::info, "", "", "not cut again, since the run does not come to rest: " + waits_for);
}

void log_restart(const HandlerRun& step) {
  if (!is_heard(*step.run, LogLevel::info)) return;
  Log::Context context;
  context.tick = tick_of_call(step);
  say(*step.run, LogLevel::info, name_now(*step.run, *step.handler), clock_of(step),
      fmt::format("restart {}: {}", step.life->restarts, step.instance->taken_error()), context);
}

void log_stream_failed(const RunState& run, const FailureRecord& failure) {
  const plan::Clock& clock = run.planned.plan.clocks[failure.clock];
  const std::string stream = stream_of(run, *run.clocks[failure.clock]);
  const std::string where = failure.node.empty() ? "" : "on node " + failure.node + " ";
  const std::string text = "stream " + stream +
                           (clock.restarts ? " has failed and begins anew: " : " is over, and the others go on: ") +
                           where + failure.error.what;
  warn_of_stream(run, stream, text, failure.error.code);
}

void log_stream_absent(const RunState& run, uint32_t clock, const Error& error) {
  const std::string stream = stream_of(run, *run.clocks[clock]);
  warn_of_stream(run, stream, "stream " + stream + " is not there yet: " + error.what, error.code);
}

void log_stream_down(const PaceRun& pace, int64_t wait_ns) {
  if (!is_heard(*pace.run, LogLevel::info)) return;
  say(*pace.run, LogLevel::info, "", stream_of(*pace.run, *pace.clock),
      fmt::format("the stream begins anew in {:.1f} s", static_cast<double>(wait_ns) / 1e9));
}

void log_stream_began(const PaceRun& pace) {
  if (!is_heard(*pace.run, LogLevel::info)) return;
  const uint64_t restarts = pace.clock->restarts.get();
  say(*pace.run, LogLevel::info, "", stream_of(*pace.run, *pace.clock),
      restarts == 0 ? "the stream has begun" : fmt::format("the stream has begun anew ({} times so far)", restarts));
}

void log_stream_left(const PaceRun& pace) {
  if (!is_heard(*pace.run, LogLevel::info)) return;
  say(*pace.run, LogLevel::info, "", stream_of(*pace.run, *pace.clock), "the stream is over");
}

void log_budget(const RunState& run, const std::string& group, int64_t budget_ns, int64_t least_ns) {
  const auto ms = [](int64_t ns) { return fmt::format("{:.3g} ms", static_cast<double>(ns) / 1e6); };
  warn_of_stream(run, "",
                 "the group of " + group + " has a budget of " + ms(budget_ns) + ", and one item alone takes " +
                     ms(least_ns) + " with its margin; late items are done all the same",
                 code::budget_too_short);
}

void log_change_ignored(const RunState& run, const std::string& what) {
  warn_of_stream(run, "", "another node has changed " + what + ", which is no live parameter here: it stays as it was",
                 code::parameter_not_live);
}

void log_over(const RunState& run, const Result& result) {
  if (!run.options.log) return;
  if (!result.ok) {
    Log::Context context;
    context.code = result.error.code;
    context.on_terminal = false; // the caller of wait() has it from there
    say(run, LogLevel::error, "", "", result.error.what, context);
  }
  if (is_heard(run, LogLevel::info))
    say(run, LogLevel::info, "", "",
        fmt::format("the run is over: {} ticks in {:.3f} s", result.report.ticks_run, result.report.duration_s));
}

void LossWatch::mind(Loss& loss, uint64_t count, int64_t now, const LogSource& source, const std::string& what,
                     const std::string& lost) {
  if (count > loss.count) {
    loss.grew_ns = now;
    if (!loss.goes_on) {
      loss.goes_on = true;
      loss.before = loss.count;
      run_.options.log->say(LogLevel::info, source, what + " are " + lost);
    }
    loss.count = count;
  } else if (loss.goes_on && now - loss.grew_ns >= kLossOverNs) {
    loss.goes_on = false;
    run_.options.log->say(LogLevel::info, source, fmt::format("{} {} were {}", loss.count - loss.before, what, lost));
  }
}

void LossWatch::look_at(bool at_end) {
  if (!is_heard(run_, LogLevel::info)) return;
  Log& log = *run_.options.log;
  const int64_t now = at_end ? INT64_MAX : run_.now_ns();
  size_t next = 0;
  const auto loss = [&]() -> Loss& {
    if (next == losses_.size()) losses_.emplace_back();
    return losses_[next++];
  };
  for (const auto& pace : run_.planned.paces) {
    if (!pace->is_clock) continue;
    mind(loss(), pace->clock->late + pace->clock->skipped, now, log.source("", clock_now(run_, pace->plan->clock)),
         "ticks", "late");
  }
  for (const auto& channel : run_.planned.channels) {
    if (channel->plan->edges.empty()) continue;
    const plan::EdgePlan& edge = run_.planned.plan.edges[channel->plan->edges[0]];
    if (edge.target_step == plan::kNone) continue; // another node tells of its readers
    const StepRun& reader = *run_.planned.step_runs[edge.target_step];
    Drops dropped{}; // summed over all values that it carries
    {
      const std::lock_guard lock(channel->mutex);
      for (const Drops& drops : channel->dropped)
        for (size_t c = 0; c < drops.size(); ++c) dropped[c] += drops[c];
    }
    const uint32_t from = (channel->from ? channel->from : &reader)->pace->plan->clock;
    const LogSource& source = log.source(as_now(run_, reader.pace->plan->clock, reader.plan->name), clock_of(reader));
    const std::string what = "values of " + as_now(run_, from, edge.from);
    for (size_t c = 0; c < dropped.size(); ++c)
      mind(loss(), dropped[c], now, source, what, fmt::format("dropped ({})", kCauseNames[c]));
  }
}

void LossWatch::look() { look_at(false); }
void LossWatch::end() {
  look_at(false);
  look_at(true);
}

} // namespace millrace::exec
