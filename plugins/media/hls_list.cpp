// Reads the tags of an HLS list that name its segments; see hls_list.h.
#include "plugins/media/hls_list.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "millrace/read_number.h"

namespace millrace::media {

namespace {

constexpr double kSecondsMax = 1e6; // eleven days for one segment; a larger number is damage
constexpr int64_t kNumberMax = int64_t{1} << 53;

std::string_view without_spaces(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

double number_at(std::string_view text) {
  size_t length = 0;
  return detail::leading_number(text, length);
}

int64_t ns_at(std::string_view text) { return std::llround(std::clamp(number_at(text), 0.0, kSecondsMax) * 1e9); }

int64_t whole_at(std::string_view text) {
  return static_cast<int64_t>(std::clamp(number_at(text), 0.0, static_cast<double>(kNumberMax)));
}

// The value of NAME=… or NAME="…" in a tag's attributes; "" if it is not there.
std::string_view attribute(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    text = without_spaces(text);
    const size_t equals = text.find('=');
    if (equals == text.npos) return {};
    const std::string_view key = text.substr(0, equals);
    text.remove_prefix(equals + 1);
    const bool is_quoted = text.starts_with('"');
    if (is_quoted) text.remove_prefix(1);
    const std::string_view value = text.substr(0, text.find(is_quoted ? '"' : ','));
    if (key == name) return value;
    const size_t comma = text.find(',', value.size());
    text = comma == text.npos ? std::string_view{} : text.substr(comma + 1);
  }
  return {};
}

// SIZE or SIZE@OFFSET; without an offset it goes on where the last range ended.
void read_range(std::string_view text, int64_t& size, int64_t& offset) {
  size = whole_at(text);
  if (const size_t at = text.find('@'); at != text.npos) offset = whole_at(text.substr(at + 1));
}

class ListReader {
 public:
  void take(std::string_view line) {
    if (line.empty()) return;
    if (line[0] != '#') return add(line);
    const auto tag = [&](std::string_view name) {
      if (!line.starts_with(name)) return false;
      line.remove_prefix(name.size());
      return true;
    };
    if (tag("#EXTINF:"))
      next_.duration_ns = ns_at(line);
    else if (tag("#EXT-X-BYTERANGE:"))
      read_range(line, next_.size, range_end_);
    else if (tag("#EXT-X-DISCONTINUITY-SEQUENCE:"))
      return;
    else if (tag("#EXT-X-DISCONTINUITY"))
      next_.is_discontinuous = true;
    else if (tag("#EXT-X-TARGETDURATION:"))
      list.target_ns = ns_at(line);
    else if (tag("#EXT-X-MEDIA-SEQUENCE:"))
      list.first = whole_at(line);
    else if (tag("#EXT-X-ENDLIST"))
      list.is_finished = true;
    else if (tag("#EXT-X-STREAM-INF:"))
      list.is_master = true;
    else if (tag("#EXT-X-MAP:"))
      take_map(line);
    else if (tag("#EXT-X-KEY:"))
      take_key(line);
  }

  HlsList list;

 private:
  void take_map(std::string_view line) {
    next_.map_tag = "#EXT-X-MAP:" + std::string(line);
    next_.map = attribute(line, "URI");
    next_.map_offset = 0;
    read_range(attribute(line, "BYTERANGE"), next_.map_size, next_.map_offset);
  }

  void take_key(std::string_view line) {
    next_.key_tag = "#EXT-X-KEY:" + std::string(line);
    next_.key = attribute(line, "METHOD") == "NONE" ? std::string_view{} : attribute(line, "URI");
  }

  void add(std::string_view name) {
    if (list.is_master) return;
    next_.name = name;
    if (next_.size == 0) range_end_ = 0;
    next_.offset = std::exchange(range_end_, range_end_ + next_.size);
    list.segments.push_back(next_);
    // Key and header hold until others are said.
    next_.duration_ns = next_.size = 0;
    next_.is_discontinuous = false;
  }

  ListSegment next_;
  int64_t range_end_ = 0;
};

} // namespace

int64_t HlsList::duration_ns() const {
  int64_t sum = 0;
  for (const ListSegment& segment : segments) sum += segment.duration_ns;
  return sum;
}

bool begins_as_list(std::string_view head) { return head.starts_with("#EXTM3U"); }

HlsList read_hls_list(std::string_view text) {
  ListReader reading;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    reading.take(without_spaces(text.substr(0, end)));
    text = end == text.npos ? std::string_view{} : text.substr(end + 1);
  }
  return std::move(reading.list);
}

int64_t HlsList::section_end(int64_t number) const {
  int64_t next = std::max(number + 1, first);
  while (next < end() && !segments[static_cast<size_t>(next - first)].is_discontinuous) ++next;
  return std::min(next, end());
}

std::string write_hls_list(const HlsList& list, int64_t begin, int64_t end, bool is_finished) {
  constexpr int64_t kSecond = 1'000'000'000;
  std::string text =
      "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:" + std::to_string((list.target_ns + kSecond - 1) / kSecond) +
      "\n#EXT-X-MEDIA-SEQUENCE:" + std::to_string(begin) + "\n";
  std::string key, map;
  const auto say = [&](std::string& said, const std::string& tag) {
    if (!tag.empty() && tag != said) text += tag + "\n";
    said = tag;
  };
  for (int64_t number = begin; number < end; ++number) {
    const ListSegment& segment = list.segments[static_cast<size_t>(number - list.first)];
    say(key, segment.key_tag);
    say(map, segment.map_tag);
    const std::string fraction = std::to_string(segment.duration_ns % kSecond);
    text += "#EXTINF:" + std::to_string(segment.duration_ns / kSecond) + "." + std::string(9 - fraction.size(), '0') +
            fraction + ",\n";
    if (segment.size > 0)
      text += "#EXT-X-BYTERANGE:" + std::to_string(segment.size) + "@" + std::to_string(segment.offset) + "\n";
    text += segment.name + "\n";
  }
  return text + (is_finished ? "#EXT-X-ENDLIST\n" : "");
}

std::string whole_address(std::string_view list, std::string_view name) {
  const size_t scheme = name.find(':');
  if (scheme != name.npos && scheme < name.find('/')) return std::string(name);
  list = list.substr(0, list.find_first_of("?#"));
  const size_t slashes = list.find("//");
  const size_t host_end =
      slashes == list.npos ? list.find(':') + 1 : std::min(list.find('/', slashes + 2), list.size());
  if (name.starts_with("//")) return std::string(list.substr(0, list.find(':') + 1)) + std::string(name);
  std::string whole(name.starts_with('/') ? list.substr(0, host_end)
                                          : list.substr(0, std::max(host_end, list.rfind('/') + 1)));
  if (!whole.ends_with('/') && !name.starts_with('/') && slashes != list.npos) whole += '/';
  // "./" is left out, "../" goes up one folder, but not above the host.
  std::string_view rest = name;
  for (;;) {
    if (rest.starts_with("./")) {
      rest.remove_prefix(2);
    } else if (const size_t folder = whole.rfind('/', whole.size() - 2);
               rest.starts_with("../") && whole.size() > host_end + 1 && folder != whole.npos) {
      whole.erase(folder + 1);
      rest.remove_prefix(3);
    } else {
      return whole + std::string(rest);
    }
  }
}

} // namespace millrace::media
