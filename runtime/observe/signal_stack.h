// A stack for the signal handlers of one thread: after a stack overflow the thread's own stack has no room for a
// handler.
#pragma once

#include <csignal>
#include <cstddef>
#include <memory>

namespace millrace {

// Installs the stack for the calling thread. The destructor restores the one that was installed before.
class SignalStack {
 public:
  explicit SignalStack(bool wanted) {
    if (!wanted) return;
    memory_.reset(new std::byte[kBytes]); // its pages are not touched until they are needed
    stack_t mine{};
    mine.ss_sp = memory_.get();
    mine.ss_size = kBytes;
    sigaltstack(&mine, &before_);
  }
  ~SignalStack() {
    if (memory_) sigaltstack(&before_, nullptr);
  }
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  static constexpr size_t kBytes = size_t{64} << 10; // any processor's registers and a handler that prints
  std::unique_ptr<std::byte[]> memory_;
  stack_t before_{};
};

} // namespace millrace
