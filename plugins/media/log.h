// FFmpeg's log, led to the handler whose work it speaks of: never raw on the terminal.
//
// FFmpeg has one log for the whole process, and writes to it from threads of its own. A line names the object it is of:
// where that is a codec or a format context of ours, its `opaque` is the Log or what the Log answers for; else it
// belongs to the handler that the thread works for at the moment (LogScope). What belongs to nobody is dropped.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "millrace/handler.h"

namespace millrace::media {

// One handler's. Lines come from any thread; each is passed on once.
//
// `say` may take long: the terminal that it writes to may be stopped. It is called by one thread at a time, under no
// lock. A thread whose line comes meanwhile leaves it there and goes on, so that one thread waits at most.
class Log {
 public:
  using Say = std::function<void(uint32_t level, const std::string& sentence)>;
  explicit Log(Say say);
  // Returns once the last line is said.
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  // Takes a line. True: the caller has to call speak(), and no other thread will.
  [[nodiscard]] bool collect(int av_level, const std::string& line);
  // Says what was collected, until nothing is left.
  void speak();
  // A line that came and begins with these words; "": none did.
  std::string find(const std::string& begin) const;
  // Contexts whose `opaque` is this object are the handler's, too, until forget().
  void answer_for(const void* object);
  void forget(const void* object);

 private:
  static constexpr size_t kLinesMax = 32; // a damaged file makes hundreds, all of the same few kinds
  const Say say_;
  mutable std::mutex mutex_; // of what follows
  std::condition_variable is_quiet_;
  std::set<std::string> seen_;
  std::deque<std::pair<uint32_t, std::string>> collected_; // kLinesMax at most
  bool is_speaking_ = false;
};

// What the thread does until the end of the scope is done for this handler.
class LogScope {
 public:
  explicit LogScope(Log& log);
  ~LogScope();
  LogScope(const LogScope&) = delete;
  LogScope& operator=(const LogScope&) = delete;

 private:
  Log* before_;
};

// Takes FFmpeg's log over, also from another library of the process that has taken it since.
void take_over_log();

} // namespace millrace::media
