// Reads signals from a descriptor; see signals.h.
#include "cli/signals.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

#include "cli/exit_code.h"
#include "observe/error.h"
#include "observe/start_thread.h"

namespace millrace::cli {

namespace {

// A second signal is answered within a second; what is not written by then is lost.
constexpr std::chrono::milliseconds kGiveUpWithin{900};

constexpr int kTaken[] = {SIGHUP, SIGINT, SIGTERM, SIGQUIT};

// Their default is to end the process that writes.
constexpr std::array kOfWrites = {SIGPIPE, SIGXFSZ};
std::array<bool, kOfWrites.size()> ignored_by_us = {}; // and not by the caller; set before there are other threads

bool is_ignored(int signal) {
  struct sigaction now {};
  return sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

sigset_t taken_signals() {
  sigset_t taken;
  sigemptyset(&taken);
  for (const int signal : kTaken)
    if (!is_ignored(signal)) sigaddset(&taken, signal);
  return taken;
}

} // namespace

void prepare_standard_streams() {
  for (size_t i = 0; i < kOfWrites.size(); ++i) ignored_by_us[i] = std::signal(kOfWrites[i], SIG_IGN) != SIG_IGN;
  // Each is opened for the wrong direction, so that reading or writing fails as it would on a closed stream. open()
  // takes the lowest free number, which is that of the stream found closed.
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0 && errno == EBADF) open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

void hold_signals() {
  const sigset_t taken = taken_signals();
  pthread_sigmask(SIG_BLOCK, &taken, nullptr);
}

void release_signals() {
  const sigset_t taken = taken_signals();
  pthread_sigmask(SIG_UNBLOCK, &taken, nullptr);
}

void restore_signals() {
  for (size_t i = 0; i < kOfWrites.size(); ++i)
    if (ignored_by_us[i]) std::signal(kOfWrites[i], SIG_DFL);
  release_signals();
}

Signals::Signals(Asked asked) : asked_(std::move(asked)) {
  hold_signals();
  const sigset_t taken = taken_signals();
  signals_ = signalfd(-1, &taken, SFD_CLOEXEC);
  end_ = eventfd(0, EFD_CLOEXEC);
  if (signals_ < 0 || end_ < 0) throw std::system_error(errno, std::generic_category(), "signals cannot be taken");
  thread_ = start_thread("the thread that takes signals", [this] { loop(); });
}

Signals::~Signals() {
  join_doing();
  eventfd_write(end_, 1);
  thread_.join();
  join_doing();
  close(signals_);
  close(end_);
  release_signals(); // from here on a signal ends the process, because the rest may hang as well
}

void Signals::do_apart(std::function<void()> what) {
  const std::lock_guard lock(doing_mutex_);
  try {
    doing_.push_back(start_thread("the thread that does what a signal asked for", what));
  } catch (const Failure&) { // no thread: the next signal waits until this is done
    what();
  }
}

void Signals::join_doing() {
  std::vector<std::thread> doing;
  {
    const std::lock_guard lock(doing_mutex_);
    doing.swap(doing_);
  }
  for (std::thread& one : doing) one.join();
}

void Signals::loop() {
  pollfd watched[2] = {{signals_, POLLIN, 0}, {end_, POLLIN, 0}};
  for (;;) {
    int wait_ms = -1;
    if (second_ != 0) {
      const auto left = ends_at_ - std::chrono::steady_clock::now();
      wait_ms = std::max(0, static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(left).count()));
      if (wait_ms == 0) _exit(kSignalled + second_);
    }
    const int ready = poll(watched, 2, wait_ms);
    if (ready < 0 && errno != EINTR) return;
    if (ready <= 0) continue;
    if (watched[1].revents && second_ == 0) return;
    watched[1].fd = second_ == 0 ? end_ : -1; // after a second signal this thread goes on until the process ends
    signalfd_siginfo info;
    if (watched[0].revents && read(signals_, &info, sizeof info) == sizeof info) take(static_cast<int>(info.ssi_signo));
  }
}

void Signals::take(int signal) {
  if (second_ != 0) _exit(kSignalled + signal);
  const bool is_first = first_.load() == 0;
  if (is_first) first_.store(signal);
  if (is_first && signal != SIGQUIT) {
    do_apart([this, signal] { asked_.stop(signal); });
    return;
  }
  second_ = signal;
  ends_at_ = std::chrono::steady_clock::now() + kGiveUpWithin;
  do_apart([this, signal] {
    asked_.give_up(signal);
    _exit(kSignalled + signal);
  });
}

} // namespace millrace::cli
