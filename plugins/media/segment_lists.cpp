// Reads lists of segments; see segment_lists.h.
#include "plugins/media/segment_lists.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include <millrace/read_number.h>

namespace millrace::media {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHead = "ffconcat version 1.0";
constexpr std::string_view kFile = "file '", kDuration = "duration ";
constexpr double kSecondsMax = 1e9; // 31 years

// The name in a line of the list: what segments.cpp's list_name() made of it.
std::string unquoted(std::string_view text) {
  std::string name;
  while (!text.empty()) {
    if (text.starts_with("'\\''")) {
      name += '\'';
      text.remove_prefix(4);
    } else if (text.front() == '\'') {
      break;
    } else {
      name += text.front();
      text.remove_prefix(1);
    }
  }
  return name.starts_with("file:") ? name.substr(5) : name;
}

void read_list(const fs::path& list, const std::map<std::string, std::string>& by_name,
               std::map<std::string, int64_t>& lengths) {
  std::ifstream file(list, std::ios::binary);
  std::string head(kHead.size() + 1, '\0');
  if (!file.read(head.data(), static_cast<std::streamsize>(head.size())) || head != std::string(kHead) + '\n') return;
  std::error_code error;
  const fs::file_time_type written = fs::last_write_time(list, error);
  for (std::string line, segment; std::getline(file, line);) {
    if (line.starts_with(kFile)) {
      const fs::path named = unquoted(std::string_view(line).substr(kFile.size()));
      const bool is_beside = !named.has_parent_path() || named.parent_path() == "." ||
                             fs::equivalent(named.parent_path(), list.parent_path(), error);
      const auto known = by_name.find(named.filename().string());
      segment = is_beside && known != by_name.end() ? known->second : "";
      if (!segment.empty() && fs::last_write_time(segment, error) > written) segment.clear();
    } else if (line.starts_with(kDuration) && !segment.empty()) {
      size_t length = 0;
      const double seconds = v1::detail::leading_number(std::string_view(line).substr(kDuration.size()), length);
      if (length > 0 && seconds > 0 && seconds < kSecondsMax) lengths[segment] = std::llround(seconds * 1e6) * 1000;
    }
  }
}

} // namespace

std::map<std::string, int64_t> listed_lengths(const std::string& folder, const std::vector<std::string>& segments) {
  std::map<std::string, int64_t> lengths;
  std::map<std::string, std::string> by_name;
  for (const std::string& segment : segments) by_name[fs::path(segment).filename().string()] = segment;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (!by_name.contains(entry->path().filename().string()) && entry->is_regular_file(ignored))
      read_list(entry->path(), by_name, lengths);
  }
  return lengths;
}

} // namespace millrace::media
