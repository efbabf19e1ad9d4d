// Names the handler calls of a run that are under way: for a crash report of this thread, and for callers outside the
// run.
#include "exec/under_way.h"

#include "exec/handler_run.h"
#include "exec/run.h"
#include "exec/run_state.h"
#include "exec/seats.h"
#include "plan/plan.h"
#include "plugin/under_way.h"

namespace millrace::exec {

namespace {

plugin::CallName call_name(const HandlerRun& step, uint64_t tick) {
  return {step.name.c_str(), step.handler->type.c_str(), function_of(step), tick};
}

CallUnderWay described(const HandlerRun& step, uint64_t tick) {
  return {name_now(*step.run, *step.handler) + " (" + step.handler->type + ")", function_of(step), tick};
}

} // namespace

const char* function_of(const HandlerRun& step) {
  return step.in_finish.load(std::memory_order_relaxed) ? "finish" : "process";
}

plugin::CallName name_call_in(const void* segment_run) {
  const auto& segment = *static_cast<const SegmentRun*>(segment_run);
  const HandlerRun* step = segment.inside.load(std::memory_order_relaxed);
  return step ? call_name(*step, segment.pace->tick_at(segment.ordinal)) : plugin::CallName{};
}

plugin::CallName name_call_outside(const void* step_run) {
  const auto& step = *static_cast<const HandlerRun*>(step_run);
  const uint64_t tick = step.tick_outside.load(std::memory_order_relaxed);
  return tick == HandlerRun::kNoCall ? plugin::CallName{} : call_name(step, tick);
}

std::vector<CallUnderWay> calls_under_way(const RunState& run) {
  std::vector<CallUnderWay> calls;
  for (const auto& segment : run.planned.segments) {
    const HandlerRun* step = segment->inside.load(std::memory_order_relaxed);
    if (step && !step->instance->is_watched())
      calls.push_back(described(*step, segment->pace->tick_at(segment->progress.load(std::memory_order_relaxed))));
  }
  for (const HandlerRun* step : run.planned.called_outside) {
    const uint64_t tick = step->tick_outside.load(std::memory_order_relaxed);
    if (tick != HandlerRun::kNoCall) calls.push_back(described(*step, tick));
  }
  return calls;
}

std::string words_of(const CallUnderWay& call) {
  return call.handler + " in " + call.function + " of tick " + std::to_string(call.tick);
}

} // namespace millrace::exec
