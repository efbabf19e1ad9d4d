// Milliseconds in nanoseconds, as tests write times.
#pragma once

#include <cstdint>

namespace millrace {

inline constexpr int64_t kMs = 1'000'000;

} // namespace millrace
