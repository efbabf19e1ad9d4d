// Carries live changes from node to node; see live_changes.h.
#include "exec/live_changes.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>

#include "exec/run.h"
#include "exec/run_log.h"
#include "observe/error.h"
#include "observe/error_codes.h"
#include "plan/pace.h"
#include "plan/plan.h"
#include "plugin/registry.h"

namespace millrace::exec {

namespace {

bool is_same_param(const LiveChange& one, const LiveChange& other) {
  return one.handler == other.handler && one.param == other.param;
}

bool is_before(const LiveChange& change, const mr_tick_info& tick) {
  return std::tie(change.epoch, change.index) <= std::tie(tick.epoch, tick.index);
}

// A value that no tick of the channel will see any more is not told. So no more of them wait than there are parameters,
// and as many more for each tick that waits, however long the other node is away.
void put_untold(ChannelRun& channel, const LiveChange& change) {
  const std::lock_guard lock(channel.mutex);
  const auto is_seen = [&](const LiveChange& older) {
    for (size_t i = channel.taken; i < channel.count; ++i) {
      const mr_tick_info& tick = channel.at(i).info;
      if (is_before(older, tick) && !is_before(change, tick)) return true;
    }
    return false;
  };
  std::erase_if(channel.untold,
                [&](const LiveChange& older) { return is_same_param(older, change) && !is_seen(older); });
  channel.untold.push_back(change);
}

// Keeps it, and puts it into each crossing by which ticks of the clock leave this node. Under changes_mutex.
void pass_on(RunState& run, uint32_t clock, const LiveChange& change) {
  std::vector<LiveChange>& latest = run.live_changes[clock].latest;
  std::erase_if(latest, [&](const LiveChange& older) { return is_same_param(older, change); });
  latest.push_back(change);
  for (const auto& channel : run.planned.channels)
    if (!channel->to && channel->from && channel->from->pace->plan->clock == clock) put_untold(*channel, change);
}

} // namespace

void send_change(RunState& run, uint32_t clock, uint32_t epoch, const RunState::Change& change) {
  const plan::HandlerPlan& handler = run.planned.plan.handlers[change.handler];
  RunState::ClockChanges& known = run.live_changes[clock];
  known.epoch = epoch;
  pass_on(run, clock, {epoch, change.at_index, ++known.number, handler.name, change.param, change.text});
}

void take_untold(ChannelRun& channel, const mr_tick_info& tick, std::vector<LiveChange>& changes) {
  changes.clear();
  while (!channel.untold.empty() && changes.size() < kLiveChangesMax && is_before(channel.untold.front(), tick)) {
    changes.push_back(std::move(channel.untold.front()));
    channel.untold.erase(channel.untold.begin());
  }
}

void take_in_changes(RunState& run, uint32_t clock, const Parcel& parcel) {
  const plan::Plan& plan = run.planned.plan;
  const std::lock_guard lock(run.changes_mutex);
  RunState::ClockChanges& known = run.live_changes[clock];
  for (const LiveChange& change : parcel.changes) {
    if (std::tie(change.epoch, change.number) <= std::tie(known.epoch, known.number)) continue;
    const auto handler = std::find_if(plan.handlers.begin(), plan.handlers.end(), [&](const plan::HandlerPlan& one) {
      return one.clock == clock && one.name == change.handler;
    });
    const auto* const param =
        handler == plan.handlers.end() ? nullptr : plan.type_of(*handler).find_param(change.param);
    if (!param || !param->live()) {
      // The home refuses it, and this node does too if it is asked: the plans differ.
      log_change_ignored(run, change.handler + "." + change.param);
      continue;
    }
    std::tie(known.epoch, known.number) = std::tie(change.epoch, change.number);
    pass_on(run, clock, change);
    if (handler->node != plan.node) continue;
    // The ticks of a later epoch may count from 0 again.
    const uint64_t index = change.epoch < parcel.tick.epoch ? 0 : change.index;
    const auto number = static_cast<uint32_t>(handler - plan.handlers.begin());
    run.requested.push_back({number, change.param, change.text, index});
    run.changes_waiting.store(true, std::memory_order_relaxed);
  }
}

void send_changes_again(RunState& run, ChannelRun& channel) {
  const std::lock_guard lock(run.changes_mutex);
  const auto known = run.live_changes.find(channel.from->pace->plan->clock);
  if (known == run.live_changes.end()) return;
  const std::lock_guard also(channel.mutex);
  channel.untold = known->second.latest;
}

void require_goes_over_links(const RunState& run, const std::vector<RunState::Change>& changes) {
  const plan::Plan& plan = run.planned.plan;
  const auto refuse = [&](const RunState::Change& change, const std::string& why) {
    const plan::HandlerPlan& handler = plan.handlers[change.handler];
    throw Failure(
        Error{code::parameter_not_live,
              change.param + " of " + handler.name + " cannot be changed on node \"" + plan.nodes[handler.node] + "\"",
              {},
              {why},
              "",
              ""});
  };
  std::map<uint32_t, std::vector<LiveChange>> all; // those that are known and those that come, by clock
  for (const auto& [clock, known] : run.live_changes) all[clock] = known.latest;
  for (const RunState::Change& change : changes) {
    const plan::HandlerPlan& handler = plan.handlers[change.handler];
    if (handler.node == plan.node || RunState::is_of_group(change)) continue; // a group is at its clock's home
    if (change.text.size() > kLiveTextBytesMax)
      refuse(change, "a link carries values of " + std::to_string(kLiveTextBytesMax) + " bytes");
    if (std::max(handler.name.size(), change.param.size()) > kLiveNameBytesMax)
      refuse(change, "a link carries names of " + std::to_string(kLiveNameBytesMax) + " bytes");
    const LiveChange next{0, 0, 0, handler.name, change.param, ""};
    std::vector<LiveChange>& of_clock = all[handler.clock];
    const bool is_new =
        std::none_of(of_clock.begin(), of_clock.end(), [&](const LiveChange& one) { return is_same_param(one, next); });
    if (is_new && of_clock.size() >= kLiveChangesMax)
      refuse(change, "a clock carries changes of " + std::to_string(kLiveChangesMax) + " parameters to other nodes");
    if (is_new) of_clock.push_back(next);
  }
}

} // namespace millrace::exec
