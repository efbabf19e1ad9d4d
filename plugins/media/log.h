// Routes FFmpeg's log to the handler that it concerns, never raw to the terminal.
//
// FFmpeg has one log for the whole process, and writes to it from its own threads. A line names its object. If that is
// a codec or format context of ours, its `opaque` is the Log or an object that the Log answers for. Otherwise the line
// belongs to the handler that the thread works for at the moment (LogScope). A line without a handler is dropped.
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

// The log of one handler. Lines come from any thread. Each distinct line is passed on once.
//
// `say` may take long, since its terminal may be stopped. It is called by one thread at a time, under no lock. A thread
// that logs meanwhile leaves its line in the queue and goes on, so at most one thread waits.
class Log {
 public:
  using Say = std::function<void(uint32_t level, const std::string& sentence)>;
  explicit Log(Say say);
  // Returns once the last line is said.
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  // Takes a line. If it returns true, the caller has to call speak(); no other thread will.
  [[nodiscard]] bool collect(int av_level, const std::string& line);
  // Passes on the collected lines until none is left.
  void speak();
  // A line so far that begins with these words; "" if there is none.
  std::string find(const std::string& begin) const;
  // Contexts whose `opaque` is this object also belong to the handler, until forget().
  void answer_for(const void* object);
  void forget(const void* object);

 private:
  static constexpr size_t kLinesMax = 32; // a damaged file causes hundreds, of a few kinds
  const Say say_;
  mutable std::mutex mutex_; // guards the members below
  std::condition_variable is_quiet_;
  std::set<std::string> seen_;
  std::deque<std::pair<uint32_t, std::string>> collected_; // kLinesMax at most
  bool is_speaking_ = false;
};

// Until the end of the scope the thread works for this handler.
class LogScope {
 public:
  explicit LogScope(Log& log);
  ~LogScope();
  LogScope(const LogScope&) = delete;
  LogScope& operator=(const LogScope&) = delete;

 private:
  Log* before_;
};

// Takes over FFmpeg's log, also from another library of the process that took it over since.
void take_over_log();

} // namespace millrace::media
