// Handles failures of handlers: reports them, and applies the on_error policy of the handler (semantics.md 2.6).
#include "exec/failure.h"

#include <algorithm>

#include "exec/finish_step.h"
#include "exec/handler_state.h"
#include "exec/run_log.h"
#include "exec/run_state.h"
#include "observe/error_codes.h"
#include "plan/pace.h"
#include "plan/plan.h"
#include "plan/step.h"

namespace millrace::exec {

namespace {

void say(HandlerRun& step, const std::string& sentence) {
  step.instance->keep(MR_LOG_ERROR, sentence);
  RunState& run = *step.run;
  bool is_first = false; // the first of all lanes: only that one goes to the terminal
  {
    const std::lock_guard lock(run.failure_mutex);
    std::string& first = run.lives[step.plan->handler()][0]->first_error;
    is_first = first.empty();
    if (is_first) first = sentence;
  }
  if (step.instance->on_log) step.instance->on_log(MR_LOG_ERROR, sentence, is_first);
}

} // namespace

namespace {

// The back-off before a failed handler is started again. It doubles with each restart, up to kRestartMaxNs.
constexpr int64_t kRestartFirstNs = 10'000'000;
constexpr int64_t kRestartMaxNs = 5'000'000'000;

void begin_restart(HandlerRun& step) {
  step.life->down = true;
  const int64_t wait = std::min(kRestartMaxNs, kRestartFirstNs << std::min(step.life->restarts, 20u));
  ++step.life->restarts;
  log_restart(step);
  if (stop_handler(step) != MR_OK) log_error(step);
  step.life->restart_at_ns = step.pace->clock->plan->realtime() ? step.run->now_ns() + wait : 0;
}

// The input that stands in for a failed output. The plan guarantees that there is one.
size_t bypass_input(const HandlerRun& step, size_t output) {
  const plan::HandlerPlan& handler = *step.handler;
  for (size_t p = 0, flat = 0; p < step.instance->info().ports.size(); ++p) {
    const auto& port = step.instance->info().ports[p];
    if (!port.is_input() && flat++ == output) return handler.first_entry[static_cast<size_t>(port.raw.like)];
  }
  return 0;
}

} // namespace

void apply_on_error(HandlerRun& step, uint64_t index) {
  record_error(step, index);
  if (step.handler->on_error == graph::OnError::restart) take_down(step);
}

void fail_outputs(const HandlerRun& step, std::span<mr_output> outputs, std::span<const mr_input> inputs) {
  for (size_t o = 0; o < outputs.size(); ++o) {
    outputs[o].state = MR_OUTPUT_SILENT;
    if (step.handler->on_error != graph::OnError::bypass) continue;
    const size_t like = bypass_input(step, o);
    if (!inputs[like].value) continue;
    outputs[o].state = MR_OUTPUT_FORWARDED;
    outputs[o].source = static_cast<uint32_t>(like);
  }
}

void take_down(HandlerRun& step) {
  auto* const body = dynamic_cast<BodyRun*>(&step);
  if (body && body->on.enqueuing)
    body->restart_asked.store(true); // earlier bodies, and finish(), may be under way
  else
    begin_restart(step);
}

bool restart_where_asked(BodyRun& step) {
  if (!step.restart_asked.load()) return true;
  if (!at_rest(step)) return false;
  step.restart_asked.store(false);
  begin_restart(step);
  return true;
}

bool is_up(HandlerRun& step) {
  if (!step.life->down) return true;
  if (step.life->restart_at_ns > step.run->now_ns()) return false;
  reset_handler(step);
  if (start_handler(step) != MR_OK) {
    begin_restart(step);
    return false;
  }
  step.life->down = false;
  return true;
}

void record_error(HandlerRun& step, uint64_t index) {
  step.life->errors.fetch_add(1, std::memory_order_relaxed);
  if (step.handler->on_error != graph::OnError::fail) return log_error(step);
  const int fault = step.instance->fault();
  step.run->fail(step, index, step.instance->take_error("process"), fault);
}

void log_error(HandlerRun& step) { say(step, step.instance->take_error("process")); }

bool is_in_a_call() { return plugin::under_way.look_up || Claim::here(); }

void fail_outside_calls(HandlerRun& step, const std::string& sentence, uint32_t fault) {
  step.life->errors.fetch_add(1, std::memory_order_relaxed);
  if (step.handler->on_error != graph::OnError::fail) return say(step, sentence);
  const PaceRun* pace = step.pace;
  while (pace->parent) pace = pace->parent;
  step.run->fail(step, pace->admitted.load(std::memory_order_acquire), sentence,
                 is_code_of_handlers(fault) ? static_cast<int>(fault) : 0);
}

} // namespace millrace::exec
