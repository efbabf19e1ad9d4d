// Runs a function in a process of its own: if a foreign library crashes or hangs there, that is reported.
#pragma once

#include <functional>
#include <string>

namespace millrace::cli {

struct Subprocess {
  bool in_time = true; // false: it took too long and was killed
  int signal = 0;      // the signal that killed it; 0: none
  int status = 0;      // the status with which it exited
  std::string told;    // the result of the function, at most 64 KiB
};

// `silent`: its output is discarded. Throws Failure (MR0606) if no process can be made. Call it while this process has
// one thread.
Subprocess run_in_subprocess(const std::function<std::string()>& function, int seconds_max, bool silent);

} // namespace millrace::cli
