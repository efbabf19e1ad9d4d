// Makes a thread, or says which one could not be made; see start_thread.h.
#include "observe/start_thread.h"

#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "observe/error.h"
#include "observe/error_codes.h"
#include "observe/plain_numbers.h"

namespace millrace {

namespace {

std::string threads_of_this_process() {
  std::error_code unreadable;
  const std::filesystem::directory_iterator tasks("/proc/self/task", unreadable);
  if (unreadable) return "";
  const auto count = std::distance(begin(tasks), end(tasks));
  return "this process has " + std::to_string(count) + (count == 1 ? " thread" : " threads");
}

} // namespace

std::thread start_thread(const std::string& name, std::function<void()> body) {
  try {
    return std::thread([body = std::move(body)] {
      const PlainNumbers numbers;
      body();
    });
  } catch (const std::system_error& refused) {
    Error error{code::no_thread, "cannot start " + name + ": " + refused.code().message(), {}, {}, "", ""};
    if (const std::string count = threads_of_this_process(); !count.empty()) error.notes.push_back(count);
    error.edit = "fewer workers (--threads 1), or higher limits: ulimit -u, ulimit -v, pids.max of the control group";
    throw Failure(std::move(error));
  }
}

} // namespace millrace
