// The largest tick that a file may name.
#pragma once

#include <cstdint>

namespace millrace::handlers {

// Ten years at thirty a second. A larger one is a damaged digit, and a source would go towards it through empty ticks.
inline constexpr uint64_t kNamedTickMax = 10'000'000'000;

} // namespace millrace::handlers
