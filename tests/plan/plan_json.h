// Writes a whole plan as JSON and reads it again: a plan that is written, read and written once more gives the same
// bytes. So tests ask and run plans that are data and nothing else, and compare two of them. (`millrace plan --json`
// prints another form, for people and their scripts: print_json() in plan.h.)
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "plan/plan.h"

namespace millrace::test {

nlohmann::json write_plan(const plan::Plan& plan);
// Throws Failure (MR0115), which says what is missing or of the wrong type. Indices are not checked, but for those of
// record types.
plan::Plan read_plan(const nlohmann::json& json);

} // namespace millrace::test
