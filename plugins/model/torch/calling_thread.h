// One thread that makes all calls of a network. OpenMP, by which libtorch computes with several threads, keeps a team
// of them for each thread that has called it: with a run's workers as callers there would be as many teams.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace millrace::model::libtorch {

class CallingThread {
 public:
  CallingThread() : thread_([this] { work(); }) {}
  CallingThread(const CallingThread&) = delete;
  ~CallingThread() {
    call_and_wait(nullptr);
    thread_.join();
  }

  // Calls the function there and waits for it. Throws what it throws.
  void within(const std::function<void()>& call) {
    call_and_wait(&call);
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  // Null ends the thread.
  void call_and_wait(const std::function<void()>* call) {
    std::unique_lock lock(mutex_);
    call_ = call;
    is_asked_ = true;
    moved_.notify_all();
    moved_.wait(lock, [this] { return !is_asked_; });
  }

  void work() {
    for (bool ends = false; !ends;) {
      std::unique_lock lock(mutex_);
      moved_.wait(lock, [this] { return is_asked_; });
      ends = !call_;
      try {
        if (call_) (*call_)();
      } catch (...) {
        error_ = std::current_exception();
      }
      is_asked_ = false;
      moved_.notify_all();
    }
  }

  std::mutex mutex_; // the caller waits, so the thread holds it during a call
  std::condition_variable moved_;
  const std::function<void()>* call_ = nullptr;
  bool is_asked_ = false;
  std::exception_ptr error_;
  std::thread thread_; // last: it uses all others
};

} // namespace millrace::model::libtorch
