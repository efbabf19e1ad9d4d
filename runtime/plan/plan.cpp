// The functions of a plan: plan.h does not have the types of its members.
#include "plan/plan.h"

#include "plan/domain.h"
#include "plan/explained.h"
#include "plan/group_plan.h"
#include "plan/memory.h"
#include "plan/pace.h"
#include "plan/step.h"
#include "plugin/handler_info.h"

namespace millrace::plan {

Plan::Plan() = default;
Plan::~Plan() = default;
Plan::Plan(const Plan&) = default;
Plan::Plan(Plan&&) noexcept = default;
Plan& Plan::operator=(const Plan&) = default;
Plan& Plan::operator=(Plan&&) noexcept = default;

bool Plan::on_host(uint32_t domain) const { return domains[domain].is_host(); }

bool Plan::in_host_memory(uint32_t domain) const { return domains[domain].host_memory; }

uint32_t Plan::home_of(uint32_t clock) const { return paces[clock].node; }

bool Plan::are_timed_separately(uint32_t a, uint32_t b) const {
  return home_of(a) != home_of(b) && clocks[a].realtime() && clocks[b].realtime();
}

const plugin::HandlerInfo& Plan::type_of(const HandlerPlan& handler) const { return types[handler.info]; }

const plugin::HandlerInfo& Plan::type_of(const Step& step) const { return type_of(handlers[step.handler()]); }

} // namespace millrace::plan
