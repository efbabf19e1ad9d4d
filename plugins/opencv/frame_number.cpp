// Writes numbers into paths and reads them back; see frame_number.h.
#include "plugins/opencv/frame_number.h"

#include <charconv>
#include <system_error>

#include "millrace/path_pattern.h"

namespace millrace::opencv {

std::optional<FrameNumber> FrameNumber::find(const std::string& pattern) {
  for (size_t at = pattern.find('%', folder_length(pattern)); at != std::string::npos; at = pattern.find('%', at + 1)) {
    const std::string_view rest = std::string_view(pattern).substr(at);
    const bool plain = rest.starts_with("%d");
    const bool padded = rest.size() >= 4 && rest[1] == '0' && rest[2] >= '1' && rest[2] <= '9' && rest[3] == 'd';
    if (!plain && !padded) continue;
    FrameNumber found;
    found.before_ = pattern.substr(0, at);
    found.after_ = rest.substr(plain ? 2 : 4);
    found.digits_ = plain ? 1 : static_cast<size_t>(rest[2] - '0');
    return found;
  }
  return {};
}

std::string FrameNumber::path_of(uint64_t number) const {
  std::string digits = std::to_string(number);
  if (digits.size() < digits_) digits.insert(0, digits_ - digits.size(), '0');
  return before_ + digits + after_;
}

std::optional<uint64_t> FrameNumber::number_of(std::string_view path) const {
  if (path.size() <= before_.size() + after_.size()) return {};
  if (!path.starts_with(before_) || !path.ends_with(after_)) return {};
  const char* const begin = path.data() + before_.size();
  const char* const end = path.data() + path.size() - after_.size();
  uint64_t number = 0;
  const auto read = std::from_chars(begin, end, number);
  if (read.ec != std::errc() || read.ptr != end || path_of(number) != path) return {};
  return number;
}

} // namespace millrace::opencv
