// Reads segment lengths, makes names and writes the list; see segments.h.
#include "plugins/media/segments.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string_view>

#include <millrace/path_pattern.h>
#include <millrace/read_number.h>

#include "plugins/media/quiet_write.h"

namespace millrace::media {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kIndex = "{index}";
constexpr size_t kIndexDigits = 3;
constexpr double kShortestSeconds = 0.1;
constexpr double kSmallestBytes = 1000;

struct Unit {
  std::string_view name;
  double factor;
};
constexpr Unit kTimes[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"min", 60}, {"h", 3600}};
constexpr Unit kSizes[] = {{"kB", 1e3},
                           {"KB", 1e3},
                           {"MB", 1e6},
                           {"GB", 1e9},
                           {"B", 1},
                           {"KiB", 1024},
                           {"MiB", 1024.0 * 1024},
                           {"GiB", 1024.0 * 1024 * 1024}};

std::string numbered(uint64_t index, size_t digits) {
  std::string text = std::to_string(index);
  if (text.size() < digits) text.insert(0, digits - text.size(), '0');
  return text;
}

std::string decimal_seconds(int64_t us) {
  return std::to_string(us / 1'000'000) + "." + numbered(static_cast<uint64_t>(us % 1'000'000), 6);
}

// The position and length of a %d or %0Nd, and N. Length 0: there is none.
struct Directive {
  size_t at = 0, length = 0, digits = 1;
};
Directive find_directive(const std::string& pattern) {
  for (size_t at = pattern.find('%', folder_length(pattern)); at != std::string::npos; at = pattern.find('%', at + 1)) {
    size_t end = at + 1;
    while (end < pattern.size() && pattern[end] >= '0' && pattern[end] <= '9') ++end;
    if (end - at > 3 || end >= pattern.size() || pattern[end] != 'd') continue;
    const std::string digits = pattern.substr(at + 1, end - at - 1);
    return {at, end + 1 - at, digits.empty() ? 1 : static_cast<size_t>(std::atoi(digits.c_str()))};
  }
  return {};
}

} // namespace

SegmentLength read_segment_length(const std::string& text) {
  SegmentLength length;
  if (text.empty()) return length;
  size_t digits = 0;
  const double number = v1::detail::leading_number(text, digits);
  const std::string_view unit = std::string_view(text).substr(digits);
  if (digits > 0 && std::isfinite(number)) {
    for (const Unit& time : kTimes)
      if (unit == time.name && number * time.factor >= kShortestSeconds && number * time.factor < 1e9)
        length.time_ns = std::llround(number * time.factor * 1e9);
    for (const Unit& size : kSizes)
      if (unit == size.name && number * size.factor >= kSmallestBytes && number * size.factor < 1e18)
        length.bytes = static_cast<uint64_t>(number * size.factor);
  }
  if (!length.is_set())
    throw std::invalid_argument("parameter 'segment': '" + text +
                                "' is neither a time of at least 100ms such as 10min nor a size such as 100MB");
  return length;
}

void check_segment_pattern(const std::string& pattern) {
  const Directive directive = find_directive(pattern);
  const bool has_more = directive.length > 0 && pattern.find('%', directive.at + directive.length) != std::string::npos;
  if (has_more || (directive.length > 0 && pattern.find(kIndex, folder_length(pattern)) != std::string::npos))
    throw std::invalid_argument("the path '" + pattern + "' of segments has more than one place for their number");
}

std::string segment_path(const std::string& pattern, uint64_t index) {
  if (const size_t at = pattern.find(kIndex, folder_length(pattern)); at != std::string::npos)
    return std::string(pattern).replace(at, kIndex.size(), numbered(index, kIndexDigits));
  if (const Directive directive = find_directive(pattern); directive.length > 0)
    return std::string(pattern).replace(directive.at, directive.length, numbered(index, directive.digits));
  const fs::path whole = pattern;
  return (whole.parent_path() /
          (whole.stem().string() + "-" + numbered(index, kIndexDigits) + whole.extension().string()))
      .string();
}

std::string list_name(const std::string& list_path, const std::string& segment_path) {
  std::error_code error;
  const fs::path folder = fs::absolute(fs::path(list_path), error).parent_path();
  const fs::path segment = fs::absolute(fs::path(segment_path), error);
  // Relative if both are in one folder, so that the folder can be moved. FFmpeg finds a relative name by the list's own
  // address, and in that it cuts at '?' and '#'.
  const bool is_beside = segment.parent_path() == folder && folder.string().find_first_of("?#") == std::string::npos;
  std::string name = (is_beside ? segment.filename() : segment).string();
  // By default FFmpeg takes relative names of these characters only (`-safe 1`). In any other name it would see a
  // protocol before a colon, so the name is written as a path or as an address of a file.
  const bool is_plain = std::all_of(name.begin(), name.end(), [](char c) {
    return v1::detail::is_letter(c) || v1::detail::is_digit(c) || c == '.' || c == '_' || c == '-';
  });
  if (!is_plain) name = (is_beside ? "./" : "file:") + name;
  for (size_t at = name.find('\''); at != std::string::npos; at = name.find('\'', at + 4)) name.replace(at, 1, "'\\''");
  return "'" + name + "'";
}

void check_list_name(const std::string& path) {
  if (path.find_first_of("\n\r") != std::string::npos)
    throw std::invalid_argument("`list` has one line for each segment, and the path '" + path + "' has a line break");
}

void SegmentList::begin(const std::string& path, const PartFile::Kept& kept) {
  path_ = path;
  text_ = "ffconcat version 1.0\n";
  is_there_ = false;
  file_.open(path_, true, kept);
}

void SegmentList::add(const std::string& segment_path, int64_t duration_us) {
  if (path_.empty()) return;
  if (is_there_ && !file_.is_in_place()) { // the list was moved or removed: write it anew
    file_.open(path_, true, [](const std::string&, const std::string&) {});
    is_there_ = false;
  }
  const size_t before = is_there_ ? text_.size() : 0;
  text_ += "file " + list_name(path_, segment_path) + "\nduration " + decimal_seconds(duration_us) + "\n";
  write(text_.substr(before), before);
  if (is_there_)
    fdatasync(file_.descriptor()); // a failure is no error: the folder's files can restore the line
  else
    file_.commit();
  is_there_ = true;
}

void SegmentList::write(const std::string& text, size_t at) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  for (size_t written = 0; written < text.size();) {
    const ptrdiff_t count = write_some(file_.descriptor(), bytes + written, text.size() - written);
    if (count < 0) {
      const int error = errno;
      const bool is_cut = ftruncate(file_.descriptor(), static_cast<off_t>(at)) == 0; // removes half a line
      throw std::runtime_error("cannot write '" + path_ + "': " + std::strerror(error) + " (at byte " +
                               std::to_string(at + written) + ")" + (is_cut ? "" : "; its last line is not whole"));
    }
    written += static_cast<size_t>(count);
  }
}

int64_t read_bitrate(const std::string& text) {
  if (text.empty()) return 0;
  size_t digits = 0;
  const double number = v1::detail::leading_number(text, digits);
  const std::string_view unit = std::string_view(text).substr(digits);
  const double factor = unit == "k" || unit == "K" ? 1e3 : unit == "M" ? 1e6 : unit == "G" ? 1e9 : unit.empty() ? 1 : 0;
  const double bits = number * factor;
  if (!(bits >= 1000 && bits <= 1e12))
    throw std::invalid_argument("parameter 'bitrate': '" + text + "' is no number of bits a second such as 4M or 500k");
  return static_cast<int64_t>(bits);
}

} // namespace millrace::media
