// What becomes of what a handler says when it fails (semantics.md 2.6).
#include "exec/failure.h"

#include "exec/run_state.h"
#include "exec/state.h"
#include "exec/step.h"
#include "exec/tell.h"

namespace millrace::exec {

namespace {

void say(StepRun& step, const std::string& sentence) {
  step.instance->keep(MR_LOG_ERROR, sentence);
  RunState& run = *step.run;
  bool is_first = false; // of all lanes: on the terminal a handler is told of once
  {
    const std::lock_guard lock(run.failure_mutex);
    std::string& first = run.first_errors[step.index];
    is_first = first.empty();
    if (is_first) first = sentence;
  }
  if (step.instance->on_log) step.instance->on_log(MR_LOG_ERROR, sentence, is_first);
}

} // namespace

void note_error(StepRun& step, uint64_t index) {
  step.errors.fetch_add(1, std::memory_order_relaxed);
  if (step.handler->on_error != graph::OnError::fail) return say_error(step);
  step.run->fail(step, index, step.instance->take_error("process"));
}

void say_error(StepRun& step) { say(step, step.instance->take_error("process")); }

bool is_in_a_call() { return plugin::under_way.look_up || Claim::here(); }

void fail_outside_calls(StepRun& step, const std::string& sentence) {
  step.errors.fetch_add(1, std::memory_order_relaxed);
  if (step.handler->on_error != graph::OnError::fail) return say(step, sentence);
  const PaceRun* pace = step.pace;
  while (pace->parent) pace = pace->parent;
  step.run->fail(step, pace->admitted.load(std::memory_order_acquire), sentence);
}

} // namespace millrace::exec
