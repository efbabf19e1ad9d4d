// Runs a function in a process of its own: what a stranger's library does to it is told and not suffered.
#pragma once

#include <functional>
#include <string>

namespace millrace::cli {

struct Subprocess {
  bool in_time = true; // false: it was ended
  int signal = 0;      // that it died of
  int status = 0;      // that it ended with
  std::string told;    // what the function returned, at most 64 KiB
};

// `silent`: what it prints is nobody's business. Throws Failure (MR0606) where no process can be made. Call it while
// this process has one thread.
Subprocess run_in_subprocess(const std::function<std::string()>& function, int seconds_max, bool silent);

} // namespace millrace::cli
