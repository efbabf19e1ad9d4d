// Reads signals from a descriptor; see signals.h.
#include "cli/signals.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

#include "cli/exit_code.h"

namespace millrace::cli {

namespace {

// An interrupt that comes just before a call blocks is lost, so it is given again after this long.
constexpr int kAgainMs = 10;

bool is_ignored(int signal) {
  struct sigaction now {};
  return sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

} // namespace

void prepare_standard_streams() {
  for (const int signal : {SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_IGN);
  // Opened the wrong way round, so that reading or writing fails as it would on a closed stream. open() takes the
  // lowest number that is free, which is the one that was found closed.
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0 && errno == EBADF) open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

Signals::Signals() {
  sigset_t taken;
  sigemptyset(&taken);
  for (const int signal : {SIGHUP, SIGINT, SIGTERM})
    if (!is_ignored(signal)) sigaddset(&taken, signal);
  pthread_sigmask(SIG_BLOCK, &taken, nullptr);
  signals_ = signalfd(-1, &taken, SFD_CLOEXEC);
  end_ = eventfd(0, EFD_CLOEXEC);
  if (signals_ < 0 || end_ < 0) throw std::system_error(errno, std::generic_category(), "signals cannot be taken");
  thread_ = std::thread([this] { loop(); });
}

Signals::~Signals() {
  eventfd_write(end_, 1);
  thread_.join();
  close(signals_);
  close(end_);
}

void Signals::expect_run(std::function<void()> interrupt) {
  const std::lock_guard lock(mutex_);
  interrupt_ = std::move(interrupt);
  expected_ = true;
}

void Signals::attach(exec::Run& run) {
  const std::lock_guard lock(mutex_);
  run_ = &run;
  interrupt_ = nullptr;
  if (first_.load() != 0) run.stop();
}

void Signals::detach() {
  const std::lock_guard lock(mutex_);
  run_ = nullptr;
  interrupt_ = nullptr;
  expected_ = false;
}

void Signals::loop() {
  pollfd watched[2] = {{signals_, POLLIN, 0}, {end_, POLLIN, 0}};
  for (;;) {
    const int ready = poll(watched, 2, interrupted_start() ? kAgainMs : -1);
    if (ready < 0 && errno != EINTR) return;
    if (ready <= 0) continue;
    if (watched[1].revents) return;
    signalfd_siginfo info;
    if (watched[0].revents && read(signals_, &info, sizeof info) == sizeof info) take(static_cast<int>(info.ssi_signo));
  }
}

bool Signals::interrupted_start() {
  const std::lock_guard lock(mutex_);
  if (first_.load() == 0 || !interrupt_) return false;
  interrupt_();
  return true;
}

void Signals::take(int signal) {
  const std::lock_guard lock(mutex_);
  if (!expected_) _exit(kSignalled + signal);
  if (first_.load() == 0) {
    came_at_start_.store(!run_);
    first_.store(signal);
    if (run_) run_->stop();
    return;
  }
  if (run_) run_->interrupt(); // lets go of a camera or a socket
  _exit(kSignalled + signal);
}

} // namespace millrace::cli
