// Makes, copies and destroys a plan, which plan.h cannot: it does not have the types of all members.
#include "plan/plan.h"

#include "plan/explained.h"

namespace millrace::plan {

Plan::Plan() = default;
Plan::~Plan() = default;
Plan::Plan(const Plan&) = default;
Plan::Plan(Plan&&) noexcept = default;
Plan& Plan::operator=(const Plan&) = default;
Plan& Plan::operator=(Plan&&) noexcept = default;

} // namespace millrace::plan
