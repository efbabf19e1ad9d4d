// A source that blocks is read by a thread of its own, so that it delays nobody else (semantics.md 1.4).
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "exec/state.h"

namespace millrace::exec {

// What a source says when it is asked for its next value.
enum class Answer { value, not_yet, end };

// Reads ahead by at most plan::kReadAhead values. take() is the head's; the thread alone calls the handler.
struct Reader {
  explicit Reader(StepRun& step);
  ~Reader();
  Answer take(std::vector<Slot>& slots);
  // Ends the thread; a blocked call must have been interrupted.
  void stop();

 private:
  void loop();

  StepRun& step_;
  std::mutex mutex_;
  std::condition_variable room_;
  std::vector<std::vector<Slot>> values_;
  bool ended_ = false, stopping_ = false;
  mr_tick_info info_{};
  std::thread thread_; // last: it uses all of the above
};

} // namespace millrace::exec
