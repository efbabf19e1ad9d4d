// Milliseconds of the system's steady clock, for limits of time that people and programs outside have.
#pragma once

#include <chrono>
#include <cstdint>

namespace millrace {

inline int64_t steady_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

} // namespace millrace
