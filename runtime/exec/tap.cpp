// Shows values of outputs to taps; see tap.h and tap_point.h.
#include "exec/tap.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "exec/param_change.h"
#include "exec/run_state.h"
#include "exec/seats.h"
#include "exec/tap_point.h"
#include "observe/error_codes.h"
#include "plan/domain.h"
#include "plan/memory.h"
#include "plan/pace.h"
#include "plan/plan.h"
#include "plan/step.h"
#include "plugin/handler_info.h"

namespace millrace::exec {

Tap::Tap(std::shared_ptr<TapPoint> point, std::string handler, const mr_format& format, const TapOptions& options)
    : point_(std::move(point)), handler_(std::move(handler)), options_(options), pick_(format, options.width) {
  MR_ASSERT(options.width >= kTapWidthMin && options.width <= kTapWidthMax, "a tap has a width of 16 to 960");
  point_->add(*this);
}
Tap::~Tap() { point_->remove(*this); }

void Tap::arm() {
  if (state_.load(std::memory_order_relaxed) == State::idle) point_->arm(*this);
}

std::optional<TapSample> Tap::take() {
  if (!has_taken()) return std::nullopt;
  std::optional<TapSample> sample;
  if (point_->is_of(handler_)) { // else another stream has come meanwhile
    sample.emplace();
    sample->tick = tick_;
    sample->media_ns = media_ns_;
    if (!is_empty_) pick_.show(*sample);
  }
  state_.store(State::idle, std::memory_order_release);
  return sample;
}

TapPoint::TapPoint(RunState& run, PaceRun& pace, uint32_t handler, bool by_body)
    : run_(&run), pace_(pace), handler_(handler), by_body_(by_body) {}

// For clients. The settling thread would have to call the system to wake one that sleeps.
std::unique_lock<std::mutex> TapPoint::lock() {
  std::unique_lock held(mutex_, std::defer_lock);
  while (!held.try_lock()) std::this_thread::yield();
  return held;
}

uint64_t TapPoint::missed() const { return pace_.clock->late + pace_.clock->skipped; }

// False if the tap leaves this tick out, though it is armed.
bool TapPoint::is_wanted(Tap& tap, bool is_there) const {
  const uint64_t missed_now = missed();
  const bool came_late = std::exchange(tap.missed_seen_, missed_now) != missed_now;
  if (is_there && !came_late) return true;
  return run_->now_ns() - tap.armed_at_ns_ >= tap.options_.patience_ns;
}

void TapPoint::show(const mr_tick_info& info, const mr_value* value, const uint8_t* data) {
  const std::unique_lock held(mutex_, std::try_to_lock);
  if (!held) return;
  for (Tap* const tap : taps_) {
    if (tap->state_.load(std::memory_order_relaxed) != Tap::State::armed || !is_wanted(*tap, value != nullptr))
      continue;
    tap->tick_ = info.index;
    tap->media_ns_ = info.media_time_ns;
    tap->is_empty_ = !value || !tap->pick_.pick(*value, data);
    tap->state_.store(Tap::State::taken, std::memory_order_release);
    pace_.taps_armed.fetch_sub(1, std::memory_order_relaxed);
    if (tap->options_.on_taken) tap->options_.on_taken();
  }
}

void TapPoint::show(uint64_t ordinal, const Slot& slot) {
  if (by_body_ && slot.value) return; // its body shows it once it has run
  show(pace_.info(ordinal), slot.value, slot.data);
}

void TapPoint::add(Tap& tap) {
  const std::unique_lock held = lock();
  if (run_) tap.missed_seen_ = missed();
  taps_.push_back(&tap);
}

void TapPoint::remove(Tap& tap) {
  const std::unique_lock held = lock();
  std::erase(taps_, &tap);
  if (run_ && tap.state_.load(std::memory_order_relaxed) == Tap::State::armed)
    pace_.taps_armed.fetch_sub(1, std::memory_order_relaxed);
}

bool TapPoint::is_of(const std::string& handler) {
  const std::unique_lock held = lock();
  return !run_ || name_now(*run_, run_->planned.plan.handlers[handler_]) == handler;
}

void TapPoint::arm(Tap& tap) {
  const std::unique_lock held = lock();
  if (!run_ || name_now(*run_, run_->planned.plan.handlers[handler_]) != tap.handler_) return;
  tap.armed_at_ns_ = run_->now_ns();
  tap.state_.store(Tap::State::armed, std::memory_order_relaxed);
  pace_.taps_armed.fetch_add(1, std::memory_order_relaxed);
}

void TapPoint::leave_run() {
  const std::unique_lock held = lock();
  run_ = nullptr;
}

void TapPoints::leave_run() {
  for (const auto& [output, point] : by_output) point->leave_run();
}

namespace {

[[noreturn]] void refuse(const std::string& output, const std::string& why) {
  throw Failure(code::output_not_shown, output + " cannot be shown: " + why);
}

uint32_t find_handler(const RunState& run, const std::string& name) {
  const plan::Plan& plan = run.planned.plan;
  std::vector<std::string> names;
  for (uint32_t h = 0; h < plan.handlers.size(); ++h) {
    const uint32_t clock = plan.handlers[h].clock;
    if (plan.clocks[clock].has_room && run.clocks[clock]->seat->vacant) continue; // its stream has gone
    names.push_back(name_now(run, plan.handlers[h]));
    if (names.back() == name) return h;
  }
  throw Failure(no_handler_named(name, names));
}

// The place of the port among the handler's outputs. "": the only one.
size_t find_port(const plugin::HandlerInfo& info, const std::string& handler, const std::string& name) {
  std::vector<std::string> names;
  for (const plugin::HandlerInfo::Port& port : info.ports)
    if (!port.is_input()) names.push_back(port.name);
  if (names.empty()) refuse(handler, "it has no outputs");
  if (name.empty() && names.size() == 1) return 0;
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  const std::string there = "there are: " + listed_from(name, names);
  if (name.empty()) throw Failure(Error{code::ambiguous_port, handler + " has several outputs", {}, {there}, "", ""});
  throw Failure(Error{code::unknown_port,
                      handler + " (" + info.type + ") has no output \"" + name + "\"",
                      {},
                      {there},
                      nearest_name(name, names),
                      ""});
}

// The output by which finish() of the handler passes this one on, if there is one; else this one.
uint32_t finished_output(const plan::Plan& plan, uint32_t output) {
  for (const plan::Step& step : plan.steps) {
    if (!step.is<plan::FinishStep>()) continue;
    for (const uint32_t passed_on : step.outputs)
      if (step.inputs[static_cast<size_t>(plan.outputs[passed_on].forwards)].output == output) return passed_on;
  }
  return output;
}

// Throws Failure if the output's values cannot be read on the thread that settles it. True if a body shows them that a
// device runs by itself.
bool is_shown_by_body(const RunState& run, const std::string& name, uint32_t output) {
  const PlanRun& planned = run.planned;
  const plan::Output& plan = planned.plan.outputs[output];
  if (plan.format.kind == MR_KIND_OBJECT) refuse(name, "an object of a plugin's own has nothing to show");
  const StepRun& step = *planned.step_runs[plan.step];
  if (!step.on.device) return false;
  const std::string& domain = planned.plan.domains[step.plan->domain].name;
  if (step.on.region)
    refuse(name, "its handler is part of a region that " + domain + " replays, which is not shown yet");
  if (step.on.enqueuing) refuse(name, "it is on " + domain + ", which is not shown yet");
  return true;
}

std::shared_ptr<TapPoint> point_of(RunState& run, uint32_t handler, uint32_t output, bool by_body) {
  const std::lock_guard lock(run.tap_points->mutex);
  std::shared_ptr<TapPoint>& point = run.tap_points->by_output[output];
  if (!point) {
    PaceRun& pace = *run.planned.step_runs[run.planned.plan.outputs[output].step]->pace;
    point = std::make_shared<TapPoint>(run, pace, handler, by_body);
    run.planned.outputs[output].tapped.store(point.get(), std::memory_order_release);
  }
  return point;
}

} // namespace

std::shared_ptr<Tap> make_tap(RunState& run, const std::string& output, const TapOptions& options) {
  const plan::Plan& plan = run.planned.plan;
  const size_t dot = output.rfind('.');
  const std::string name = output.substr(0, dot), port = dot == std::string::npos ? "" : output.substr(dot + 1);
  const uint32_t h = find_handler(run, name);
  const plan::HandlerPlan& handler = plan.handlers[h];
  const size_t place = find_port(plan.type_of(handler), name, port);
  if (handler.node != plan.node) refuse(output, "its handler runs on node \"" + plan.nodes[handler.node] + "\"");
  const uint32_t number = finished_output(plan, plan.steps[handler.step].outputs[place]);
  const bool by_body = is_shown_by_body(run, output, number);
  return std::make_shared<Tap>(point_of(run, h, number, by_body), name, plan.outputs[number].format, options);
}

} // namespace millrace::exec
