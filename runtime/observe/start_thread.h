// Starts every thread of the runtime, so that a thread that cannot be started is always reported in the same way.
#pragma once

#include <functional>
#include <string>
#include <thread>

namespace millrace {

// Starts a thread that runs `body`, with numbers as in the C locale (PlainNumbers). Throws Failure MR0612 if the system
// has no thread left, with `name` ("worker 3 of 8" or "the thread that …") and the number of threads that this process
// has.
std::thread start_thread(const std::string& name, std::function<void()> body);

} // namespace millrace
