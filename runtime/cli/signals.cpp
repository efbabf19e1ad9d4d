// Reads signals from a descriptor; see signals.h.
#include "cli/signals.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <system_error>

#include "cli/exit_code.h"

namespace millrace::cli {

Signals::Signals() {
  sigset_t both;
  sigemptyset(&both);
  sigaddset(&both, SIGINT);
  sigaddset(&both, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &both, nullptr);
  signals_ = signalfd(-1, &both, SFD_CLOEXEC);
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

void Signals::expect_run() {
  const std::lock_guard lock(mutex_);
  expected_ = true;
}

void Signals::attach(exec::Run& run) {
  const std::lock_guard lock(mutex_);
  run_ = &run;
  if (first_.load() != 0) run.stop();
}

void Signals::detach() {
  const std::lock_guard lock(mutex_);
  run_ = nullptr;
  expected_ = false;
}

void Signals::loop() {
  pollfd watched[2] = {{signals_, POLLIN, 0}, {end_, POLLIN, 0}};
  for (;;) {
    if (poll(watched, 2, -1) < 0 && errno != EINTR) return;
    if (watched[1].revents) return;
    signalfd_siginfo info;
    if (watched[0].revents && read(signals_, &info, sizeof info) == sizeof info) take(static_cast<int>(info.ssi_signo));
  }
}

void Signals::take(int signal) {
  const std::lock_guard lock(mutex_);
  if (!expected_) _exit(kSignalled + signal);
  if (first_.load() == 0) {
    first_.store(signal);
    if (run_) run_->stop();
    return;
  }
  if (run_) run_->interrupt(); // lets go of a camera or a socket
  _exit(kSignalled + signal);
}

} // namespace millrace::cli
