// An index that names nothing in a plan.
#pragma once

#include <cstdint>

namespace millrace::plan {

// No such step, output, … of a plan.
inline constexpr uint32_t kNone = UINT32_MAX;

} // namespace millrace::plan
