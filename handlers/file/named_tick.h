// The largest tick that a file may name.
#pragma once

#include <cstdint>

namespace millrace::handlers {

// Ten years at thirty ticks a second. A larger number means that the file is damaged; a source would otherwise go
// towards it through empty ticks.
inline constexpr uint64_t kNamedTickMax = 10'000'000'000;

} // namespace millrace::handlers
