// Keeps the last lines of a log; see log_tail.h.
#include "serve/log_tail.h"

#include <algorithm>

#include "observe/log_lines.h"

namespace millrace::serve {

void LogTail::put(const LogRecord& record) {
  std::string line = json_line(record);
  const std::lock_guard lock(mutex_);
  lines_.push_back(std::move(line));
  ++next_;
  if (lines_.size() > kLinesMax) lines_.pop_front();
}

uint64_t LogTail::next() const {
  const std::lock_guard lock(mutex_);
  return next_;
}

LogTail::Part LogTail::since(uint64_t number, size_t most) const {
  const std::lock_guard lock(mutex_);
  const uint64_t oldest = next_ - lines_.size(), begin = std::max(number, oldest);
  Part part;
  part.left_out = begin - number;
  part.next = std::min(next_, begin + most);
  for (uint64_t n = begin; n < part.next; ++n) part.lines.push_back(lines_[n - oldest]);
  return part;
}

} // namespace millrace::serve
