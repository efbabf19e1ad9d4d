// Reads the text of an HLS list (RFC 8216): its segments, and what it says of its end.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::media {

struct ListSegment {
  std::string name; // as the list has it: an address, or a path beside the list
  int64_t duration_ns = 0;
  int64_t offset = 0, size = 0;  // a byte range; size 0: the whole file
  bool is_discontinuous = false; // its times do not follow on those of the segment before
  std::string key, map;          // the names of its key and of its header; "": it has none
  int64_t map_offset = 0, map_size = 0;
  std::string key_tag, map_tag; // the whole lines
};

struct HlsList {
  bool is_master = false;   // it lists other lists
  bool is_finished = false; // #EXT-X-ENDLIST: no segment will be added
  int64_t first = 0;        // the number of segments[0] in the stream; it grows while a live list moves on
  int64_t target_ns = 0;    // the longest duration that a segment may have
  std::vector<ListSegment> segments;

  int64_t end() const { return first + static_cast<int64_t>(segments.size()); }
  int64_t duration_ns() const;
  // The number of the first segment after this one whose times begin again; end() if there is none.
  int64_t section_end(int64_t number) const;
};

// True if a file that begins like this is a list.
bool begins_as_list(std::string_view head);
HlsList read_hls_list(std::string_view text);
// The text of a list of the segments with these numbers. `is_finished`: it says its end.
std::string write_hls_list(const HlsList& list, int64_t begin, int64_t end, bool is_finished);
// The address of what a list at `list` calls `name`, as FFmpeg makes it.
std::string whole_address(std::string_view list, std::string_view name);

} // namespace millrace::media
