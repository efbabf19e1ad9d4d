// Passes the time that a test's handler is to take.
#pragma once

#include <cmath>
#include <ctime>

namespace millrace::handlers {

inline double now_us() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

// Keeps the processor busy.
inline void keep_busy(double us) {
  for (const double until = now_us() + us; now_us() < until;) {
  }
}

// Leaves the processor to others, except for the last tenth of a millisecond, which a sleep would miss.
inline void pass_time(double us) {
  const double until = now_us() + us;
  if (us > 100) {
    const double asleep = us - 100;
    const timespec time{static_cast<time_t>(asleep / 1e6), static_cast<long>(std::fmod(asleep, 1e6) * 1e3)};
    nanosleep(&time, nullptr);
  }
  while (now_us() < until) {
  }
}

} // namespace millrace::handlers
