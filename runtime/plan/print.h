// A plan in words, as JSON and as a drawing.
#pragma once

#include <string>

namespace millrace::plan {

struct Plan;

// The output of `millrace plan`.
std::string print_text(const Plan& plan);
std::string print_json(const Plan& plan);
std::string print_dot(const Plan& plan);

} // namespace millrace::plan
