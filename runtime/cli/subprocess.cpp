// Runs a child process with a pipe from it and a limit to its time.
#include "cli/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "observe/error.h"
#include "observe/error_codes.h"

namespace millrace::cli {

namespace {

constexpr size_t kToldBytesMax = 64u << 10; // a pipe holds this much, so a child never waits for its reader

[[noreturn]] void tell(int file, const std::function<std::string()>& function, bool silent) {
  if (silent) {
    const int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(nothing, STDOUT_FILENO);
    dup2(nothing, STDERR_FILENO);
  }
  const std::string text = function().substr(0, kToldBytesMax);
  for (size_t at = 0; at < text.size();) {
    const ssize_t written = write(file, text.data() + at, text.size() - at);
    if (written <= 0) break;
    at += static_cast<size_t>(written);
  }
  _exit(0); // skips what libraries have registered to run at exit
}

// Reads all that the child writes until it ends; false if that takes too long.
bool read_all(int file, int seconds_max, std::string& text) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::seconds(seconds_max);
  std::array<char, 4096> bytes;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd waited{file, POLLIN, 0};
    const int ready = left <= 0 ? 0 : poll(&waited, 1, static_cast<int>(left));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t count = read(file, bytes.data(), bytes.size());
    if (count <= 0) return true;
    text.append(bytes.data(), static_cast<size_t>(count));
  }
}

} // namespace

Subprocess run_in_subprocess(const std::function<std::string()>& function, int seconds_max, bool silent) {
  std::array<int, 2> ends;
  if (pipe(ends.data()) != 0)
    throw Failure(code::write_failed, std::string("cannot make a pipe: ") + std::strerror(errno));
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) throw Failure(code::write_failed, std::string("cannot begin a process: ") + std::strerror(errno));
  if (child == 0) {
    close(ends[0]);
    try {
      tell(ends[1], function, silent);
    } catch (...) {
      _exit(1);
    }
  }
  close(ends[1]);
  Subprocess result;
  result.in_time = read_all(ends[0], seconds_max, result.told);
  close(ends[0]);
  if (!result.in_time) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  if (WIFEXITED(status)) result.status = WEXITSTATUS(status);
  return result;
}

} // namespace millrace::cli
