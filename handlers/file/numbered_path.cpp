// Finds and fills in the number in a path; see numbered_path.h.
#include "handlers/file/numbered_path.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <stdexcept>
#include <system_error>

#include <millrace/path_pattern.h>

#include "handlers/file/named_tick.h"
#include "handlers/file/open.h"

namespace millrace::handlers {

namespace {

constexpr std::string_view kIndex = "{index}";
constexpr size_t kIndexDigits = 6; // nine hours of ticks at 30 a second

struct Place {
  size_t at = std::string::npos, length = 0, digits = 0;
};

// Finds "%d" or "%01d" to "%09d"; any other percent sign is literal.
Place percent_place(const std::string& pattern, size_t from) {
  for (size_t at = pattern.find('%', from); at != std::string::npos; at = pattern.find('%', at + 1)) {
    if (pattern.compare(at, 2, "%d") == 0) return {at, 2, 1};
    const bool padded = at + 3 < pattern.size() && pattern[at + 1] == '0' && pattern[at + 3] == 'd';
    if (padded && pattern[at + 2] >= '1' && pattern[at + 2] <= '9')
      return {at, 4, static_cast<size_t>(pattern[at + 2] - '0')};
  }
  return {};
}

Place place_in(const std::string& pattern, size_t from) {
  const Place percent = percent_place(pattern, from);
  const size_t braces = pattern.find(kIndex, from);
  return braces < percent.at ? Place{braces, kIndex.size(), kIndexDigits} : percent;
}

} // namespace

NumberedPath::NumberedPath(const std::string& pattern) : before_(pattern) {
  const Place place = place_in(pattern, folder_length(pattern));
  if (place.at == std::string::npos) return;
  numbered_ = true;
  digits_ = place.digits;
  before_ = pattern.substr(0, place.at);
  after_ = pattern.substr(place.at + place.length);
  if (place_in(after_, 0).at != std::string::npos)
    throw std::invalid_argument("'" + pattern + "' has two places for a number");
  if (after_.find('/') != std::string::npos)
    throw std::invalid_argument("'" + pattern + "' has its number in the name of a folder");
}

std::string NumberedPath::of(uint64_t number) const {
  if (!numbered_) return before_;
  std::string digits = std::to_string(number);
  if (digits.size() < digits_) digits.insert(0, digits_ - digits.size(), '0');
  return before_ + digits + after_;
}

std::vector<uint64_t> NumberedPath::existing() const {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(before_).parent_path();
  const std::string head = before_.substr(before_.rfind('/') + 1); // npos + 1 is 0
  std::error_code error;
  fs::directory_iterator entries(folder.empty() ? "." : folder, error);
  if (error) throw cannot_read(folder.string(), error.message());
  std::vector<uint64_t> numbers;
  for (const fs::directory_entry& entry : entries) {
    const std::string name = entry.path().filename().string();
    if (name.size() <= head.size() + after_.size() || !name.starts_with(head) || !name.ends_with(after_)) continue;
    const char* const begin = name.data() + head.size();
    const char* const end = name.data() + name.size() - after_.size();
    uint64_t number = 0;
    const auto read = std::from_chars(begin, end, number);
    // Accepts only names that of() gives: "7" is not the file of "000007".
    if (read.ec != std::errc() || read.ptr != end || number > kNamedTickMax) continue;
    if (fs::path(of(number)).filename().string() == name) numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

} // namespace millrace::handlers
