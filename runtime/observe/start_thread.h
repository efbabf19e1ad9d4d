// All threads of the runtime are made here, so that one that cannot be made is told in one way.
#pragma once

#include <functional>
#include <string>
#include <thread>

namespace millrace {

// A thread that runs `body`. Where the system has none left: Failure MR0612 with its name, "worker 3 of 8" or "the
// thread that …", and with how many this process has.
std::thread start_thread(const std::string& name, std::function<void()> body);

} // namespace millrace
