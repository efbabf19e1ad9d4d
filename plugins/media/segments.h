// Splits a recording into several files: their length, their names and the list of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plugins/media/part_file.h"

namespace millrace::media {

// The parameter `segment`: a time ("10min") or a size ("100MB"); neither: one file.
struct SegmentLength {
  int64_t time_ns = 0;
  uint64_t bytes = 0;
  bool is_set() const { return time_ns > 0 || bytes > 0; }
};
// Throws std::invalid_argument.
SegmentLength read_segment_length(const std::string& text);

// The name of segment `index` by a pattern: "{index}" (three digits at least) or one of %d and %03d stands for the
// number; without either, "-000" stands before the extension.
std::string segment_path(const std::string& pattern, uint64_t index);
// Throws std::invalid_argument if the pattern has another % after %d, or both %d and {index}.
void check_segment_pattern(const std::string& pattern);

// The name of a segment in a list, quoted as FFmpeg's concat demuxer reads it.
std::string list_name(const std::string& list_path, const std::string& segment_path);
// Throws std::invalid_argument if a list cannot hold such a path.
void check_list_name(const std::string& path);

// The list of finished segments, in the form of FFmpeg's concat demuxer. The file is complete at any time, and locked
// from beginning to end. An existing list stays until the first segment is finished. Then a new list replaces it, and
// each further segment adds its lines by one write.
class SegmentList {
 public:
  // Throws std::runtime_error if the list cannot be written, or if another process writes it.
  void begin(const std::string& path, const PartFile::Kept& kept);
  // Throws std::runtime_error if the list cannot be written; then it keeps its old length.
  void add(const std::string& segment_path, int64_t duration_us);
  // Releases the lock.
  void end() { file_.abandon(); }

 private:
  void write(const std::string& text, size_t at);

  std::string path_, text_;
  PartFile file_;
  bool is_there_ = false; // the list has its name
};

// "4M", "500k", "2000000" in bits a second; 0 for "". Throws std::invalid_argument.
int64_t read_bitrate(const std::string& text);

} // namespace millrace::media
