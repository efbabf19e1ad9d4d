// Writes a whole plan as JSON and reads it again: a plan that is written, read and written once more gives the same
// bytes. So a plan can be kept, compared, and shipped to where it runs. (What `millrace plan --json` prints is for
// people and their scripts: print_json() in plan.h.)
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "plan/plan.h"

namespace millrace::plan {

nlohmann::json write_plan(const Plan& plan);
// Throws Failure (MR0115), which says what is missing or of the wrong type. Indices are not checked, but for those of
// record types.
Plan read_plan(const nlohmann::json& json);

// Facts alone. Reading throws nlohmann::json::exception.
nlohmann::json write_facts(const mr_facts& facts);
mr_facts read_facts(const nlohmann::json& json);

} // namespace millrace::plan
