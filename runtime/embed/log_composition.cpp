// Logs the plugins, the plan and the devices of a run; see log_composition.h.
#include "embed/log_composition.h"

#include <fmt/format.h>

#include <set>
#include <string>

#include "plan/domain.h"
#include "plan/explained.h"
#include "plan/notes.h"
#include "plan/pace.h"
#include "plan/plan.h"
#include "plugin/handler_info.h"

namespace millrace::embed {

namespace {

std::string list_of(const std::vector<plan::Domain>& domains) {
  std::string list;
  for (const plan::Domain& domain : domains) list += (list.empty() ? "" : ", ") + domain.name;
  return list;
}

std::string counted(size_t count, const char* one, const char* several) {
  return std::to_string(count) + " " + (count == 1 ? one : several);
}

void log_plugins(Log& log, const plan::Plan& plan) {
  std::set<std::string> paths_told;
  for (const plan::HandlerPlan& handler : plan.handlers)
    if (!plan.type_of(handler).path.empty() && paths_told.insert(plan.type_of(handler).path).second)
      log.say(LogLevel::info, log.source(),
              "plugin " + plan.type_of(handler).plugin + ": " + plan.type_of(handler).path);
}

void log_plan(Log& log, const plan::Plan& plan) {
  log.say(LogLevel::info, log.source(),
          fmt::format("plan: {} in {} on {}, {}", counted(plan.handlers.size(), "handler", "handlers"),
                      counted(plan.segments.size(), "segment", "segments"), list_of(plan.domains),
                      counted(plan.transfers.size(), "copy", "copies")));
  Log::Context elsewhere; // `millrace run` prints notes on its terminal itself
  elsewhere.on_terminal = false;
  for (const std::string& note : plan::notes_of_run(plan, true))
    log.say(LogLevel::info, log.source(), "note: " + note, elsewhere);
  if (!log.takes(LogLevel::debug)) return;
  for (const plan::HandlerPlan& handler : plan.handlers)
    log.say(LogLevel::debug, log.source(handler.name, plan.clocks[handler.clock].name),
            handler.type + " runs on " + plan.domains[handler.domain].name);
  for (const plan::TransferPlan& transfer : plan.transfers)
    log.say(LogLevel::debug, log.source(), fmt::format("{}: {} bytes", plan.steps[transfer.step].name, transfer.bytes));
}

} // namespace

void log_composition(Log& log, const plan::Plan& plan) {
  if (!log.takes(LogLevel::info)) return;
  log_plugins(log, plan);
  log_plan(log, plan);
  for (const plan::Domain& domain : plan.domains)
    if (!domain.is_host()) log.say(LogLevel::info, log.source(), "device opened: " + domain.name);
}

} // namespace millrace::embed
