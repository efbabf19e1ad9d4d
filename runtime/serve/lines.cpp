// Splits a connection's bytes into lines; see lines.h.
#include "serve/lines.h"

namespace millrace::serve {

void Lines::add(std::string_view bytes) {
  bytes_.erase(0, begin_);
  looked_ -= begin_;
  begin_ = 0;
  bytes_ += bytes;
}

std::optional<Lines::Line> Lines::next() {
  while (true) {
    const size_t end = bytes_.find('\n', looked_);
    if (end == std::string::npos) break;
    const size_t begin = begin_;
    begin_ = looked_ = end + 1;
    if (skips_) { // it was told before
      skips_ = false;
      continue;
    }
    if (end - begin > line_bytes_max_) return Line{"", true};
    return Line{bytes_.substr(begin, end - begin), false};
  }
  looked_ = bytes_.size();
  if (!skips_ && bytes_.size() - begin_ <= line_bytes_max_) return std::nullopt;
  begin_ = bytes_.size();
  if (skips_) return std::nullopt;
  skips_ = true;
  return Line{"", true};
}

bool Lines::end() {
  const bool is_within = skips_ || begin_ < bytes_.size();
  bytes_.clear();
  begin_ = looked_ = 0;
  skips_ = false;
  return is_within;
}

} // namespace millrace::serve
