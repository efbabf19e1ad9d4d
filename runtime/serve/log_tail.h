// The last lines of a run's log, numbered, for clients that follow it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "millrace/log.h"

namespace millrace::serve {

class LogTail {
 public:
  static constexpr size_t kLinesMax = 1000;

  void put(const LogRecord& record); // by the log's thread
  // The number of the line that comes next. Any thread.
  uint64_t next() const;
  struct Part {
    std::vector<std::string> lines; // JSON objects, as json_line() makes them; the oldest first
    uint64_t left_out = 0;          // lines before them that are not kept any more
    uint64_t next = 0;              // the number after the last one
  };
  // Lines from this number on, at most so many. Any thread.
  Part since(uint64_t number, size_t most) const;

 private:
  mutable std::mutex mutex_;
  std::deque<std::string> lines_;
  uint64_t next_ = 0;
};

} // namespace millrace::serve
