// Checks requests for live changes, and counts the clocks that have taken them; see change.h.
#include "exec/change.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "exec/group.h"
#include "exec/handler_run.h"
#include "exec/run.h"
#include "exec/run_options.h"
#include "exec/seats.h"
#include "observe/error.h"
#include "observe/error_codes.h"
#include "plan/format_text.h"
#include "plan/paths.h"
#include "plugin/registry.h"

namespace millrace::exec {

Error no_handler_named(const std::string& name, const std::vector<std::string>& names) {
  constexpr size_t kNamesListedMax = 32; // a longer list tells a person less than the nearest name
  Error error{
      code::unknown_handler, "there is no handler named \"" + name + "\"", {}, {}, nearest_name(name, names), ""};
  if (names.size() <= kNamesListedMax) error.notes.push_back("there are: " + listed_from(name, names));
  return error;
}

namespace {

// True once no tick of the clock can take a change any more.
bool is_over(const RunState& run, uint32_t clock) {
  const ClockRun& state = *run.clocks[clock];
  if (state.seat->vacant.load(std::memory_order_acquire)) return true;
  if (state.halted.load(std::memory_order_acquire) && !state.plan->restarts) return true;
  for (const auto& pace : run.planned.paces)
    if (pace->index == clock) // a clock's own pace has its number
      return pace->ended.load(std::memory_order_acquire);
  return false;
}

// A handler, or the instances of a template whose streams go on: the others take no change any more.
std::vector<uint32_t> find_handlers(const RunState& run, const std::string& name) {
  const plan::Plan& plan = run.planned.plan;
  std::vector<uint32_t> found, over;
  uint32_t was_there = plan::kNone; // the stream of this name was in that seat
  std::vector<std::string> names;
  for (uint32_t h = 0; h < plan.handlers.size(); ++h) {
    const plan::HandlerPlan& handler = plan.handlers[h];
    if (name_now(run, handler) == name) {
      if (!is_over(run, handler.clock)) return {h};
      if (was_there == plan::kNone) was_there = h;
    }
    if (handler.written_as == name) (is_over(run, handler.clock) ? over : found).push_back(h);
    const std::string& written = handler.written_as.empty() ? handler.name : handler.written_as;
    if (std::find(names.begin(), names.end(), written) == names.end()) names.push_back(written);
  }
  if (was_there != plan::kNone) return {was_there};
  if (!found.empty()) return found;
  if (!over.empty()) return over;
  throw Failure(no_handler_named(name, names));
}

const plugin::HandlerInfo::Param& find_param(const std::string& handler, const plugin::HandlerInfo& info,
                                             const std::string& name) {
  if (const auto* param = info.find_param(name)) return *param;
  std::vector<std::string> all, live;
  for (const plugin::HandlerInfo::Param& param : info.params) {
    all.push_back(param.name);
    if (param.live()) live.push_back(param.name);
  }
  throw Failure(Error{code::unknown_parameter,
                      handler + " (" + info.type + ") has no parameter \"" + name + "\"",
                      {},
                      {live.empty() ? "none of its parameters can be changed while it runs"
                                    : "these can be changed while it runs: " + listed_from(name, live)},
                      nearest_name(name, all),
                      ""});
}

[[noreturn]] void refuse_live(const std::string& what, const std::string& why) {
  throw Failure(Error{code::parameter_not_live, what, {}, {why}, "", ""});
}

// An edit is told as a person writes it after `millrace set`.
void check_value(const plugin::HandlerInfo& info, const plugin::HandlerInfo::Param& param, const ParamChange& change) {
  try {
    plugin::parse_param(info, param, change.text, {"--set", 0, 0});
  } catch (const Failure& failure) {
    Error error = failure.error();
    error.place = {};
    if (!error.edit.empty()) error.edit = change.handler + "." + error.edit;
    throw Failure(std::move(error));
  }
}

RunState::Change asked(uint32_t handler, const ParamChange& change) {
  RunState::Change asked{handler, change.param, change.text};
  asked.by = change.by;
  return asked;
}

} // namespace

std::vector<RunState::Change> check_changes(const RunState& run, const std::vector<ParamChange>& changes) {
  const plan::Plan& plan = run.planned.plan;
  std::vector<RunState::Change> checked;
  for (const ParamChange& change : changes) {
    for (const uint32_t index : find_handlers(run, change.handler)) {
      const plan::HandlerPlan& handler = plan.handlers[index];
      const plugin::HandlerInfo& info = plan.type_of(handler);
      if (RunState::is_of_batch(change.param)) {
        check_batch_change(run, handler, change);
        checked.push_back(asked(index, change));
        continue;
      }
      const auto& param = find_param(change.handler, info, change.param);
      if (!param.live())
        refuse_live(change.param + " of " + change.handler + " cannot be changed while it runs",
                    "`millrace inspect " + info.type + "` says which parameters are live");
      check_value(info, param, change);
      if (run.options.confine && handler.node == plan.node) // elsewhere its own node says which files it may have
        plan::refuse_outside(change.handler + " (" + info.type + ")", param, change.text, {}, *run.options.confine);
      checked.push_back(asked(index, change));
    }
  }
  return checked;
}

std::vector<HomeChanges> by_home(const RunState& run, const std::vector<RunState::Change>& changes) {
  const plan::Plan& plan = run.planned.plan;
  std::vector<HomeChanges> homes;
  for (const RunState::Change& change : changes) {
    const plan::HandlerPlan& handler = plan.handlers[change.handler];
    const uint32_t home = plan.home_of(handler.clock);
    auto known = std::find_if(homes.begin(), homes.end(), [&](const HomeChanges& one) { return one.node == home; });
    if (known == homes.end()) known = homes.insert(known, HomeChanges{home, {}, {}});
    const std::string clock = name_of(plan.clocks[handler.clock]);
    if (std::find(known->clocks.begin(), known->clocks.end(), clock) == known->clocks.end())
      known->clocks.push_back(clock);
    known->changes.push_back({name_now(run, handler), change.param, change.text, change.by});
  }
  return homes;
}

void require_home(const RunState& run, const std::vector<RunState::Change>& changes) {
  const plan::Plan& plan = run.planned.plan;
  if (!plan.is_over_nodes()) return;
  for (const RunState::Change& change : changes) {
    const plan::HandlerPlan& handler = plan.handlers[change.handler];
    const uint32_t home = plan.home_of(handler.clock);
    if (home != plan.node)
      refuse_live(change.param + " of " + handler.name + " cannot be changed on this node",
                  "its clock begins its ticks on node \"" + plan.nodes[home] + "\"");
  }
}

void ask_for(const RunState& run, std::vector<RunState::Change>& changes, const ChangesTaken& on_taken) {
  std::set<uint32_t> clocks;
  for (const RunState::Change& change : changes) clocks.insert(run.planned.plan.handlers[change.handler].clock);
  const auto request = std::make_shared<RunState::Request>(RunState::Request{on_taken, clocks.size(), {}});
  for (RunState::Change& change : changes) change.request = request;
}

void forget_taken(RunState& run) {
  if (run.options.keep_changes) return;
  std::erase_if(run.changes, [&](const RunState::Change& change) {
    const auto& lanes = run.lives[change.handler];
    return !change.request && std::all_of(lanes.begin(), lanes.end(),
                                          [&](const auto& life) { return life->changes_seen > change.number; });
  });
}

namespace {

using Requests = std::vector<std::shared_ptr<RunState::Request>>;

// Records that tick `index` of the clock took the change (kNoTickTook: no tick will). Adds the request to `done` once
// every clock has said so. Under changes_mutex.
void record_taken(const RunState& run, RunState::Change& change, uint64_t index, Requests& done) {
  const auto request = std::exchange(change.request, nullptr);
  if (!request) return;
  const uint32_t clock = run.planned.plan.handlers[change.handler].clock;
  const bool is_named = !run.planned.plan.clocks[clock].name.empty();
  const std::string name = is_named ? clock_now(run, clock) : name_of(run.planned.plan.clocks[clock]);
  for (const TickOfClock& known : request->taken)
    if (known.clock == name) return;
  request->taken.push_back({name, index});
  if (request->taken.size() == request->clocks) done.push_back(request);
}

// The same for those changes that were admitted for a tick of the clock. Under changes_mutex.
void record_admitted(RunState& run, uint32_t clock, uint64_t index, Requests& done) {
  bool untold = false;
  for (RunState::Change& change : run.changes) {
    if (run.planned.plan.handlers[change.handler].clock == clock) record_taken(run, change, index, done);
    untold = untold || change.request;
  }
  run.changes_untold.store(untold, std::memory_order_relaxed);
}

void tell(const Requests& done) {
  for (const auto& request : done) request->on_taken(request->taken);
}

} // namespace

void answer_taken(RunState& run, uint32_t clock, uint64_t index) {
  Requests done;
  {
    const std::lock_guard lock(run.changes_mutex);
    record_admitted(run, clock, index, done);
  }
  tell(done);
}

void give_up_changes(RunState& run, uint32_t clock) {
  Requests done;
  {
    const std::lock_guard lock(run.changes_mutex);
    record_admitted(run, clock, kNoTickTook, done);
    std::vector<RunState::Change> others;
    for (RunState::Change& change : run.requested) {
      if (run.planned.plan.handlers[change.handler].clock == clock)
        record_taken(run, change, kNoTickTook, done);
      else
        others.push_back(std::move(change));
    }
    run.requested = std::move(others);
    run.changes_waiting.store(!run.requested.empty(), std::memory_order_relaxed);
  }
  tell(done);
}

void give_up_late_changes(RunState& run, const std::vector<RunState::Change>& changes) {
  for (const RunState::Change& change : changes)
    if (const uint32_t clock = run.planned.plan.handlers[change.handler].clock; is_over(run, clock))
      give_up_changes(run, clock);
}

} // namespace millrace::exec
