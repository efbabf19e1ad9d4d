// A plan as JSON, whole, and read again: what is written, read and written once more is the same bytes. A plan can be
// kept so, compared, and shipped to where it runs. (What `millrace plan --json` prints is for people and their scripts:
// print_json() in plan.h.)
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "plan/plan.h"

namespace millrace::plan {

nlohmann::json write_plan(const Plan& plan);
// Throws Failure (MR0115): it says what is missing, or of another type than it should be. Indices are not followed.
Plan read_plan(const nlohmann::json& json);

} // namespace millrace::plan
