// A stack for the signal handlers of one thread: who has used up its own has nothing left to run one on.
#pragma once

#include <csignal>
#include <cstddef>
#include <memory>

namespace millrace {

// Of the thread that makes it, while it lives; the one that was there before comes back.
class SignalStack {
 public:
  explicit SignalStack(bool wanted) {
    if (!wanted) return;
    memory_.reset(new std::byte[kBytes]); // not touched before it is needed
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
  static constexpr size_t kBytes = size_t{64} << 10; // the registers of any processor, and a handler that prints
  std::unique_ptr<std::byte[]> memory_;
  stack_t before_{};
};

} // namespace millrace
