// A recording in several files: when the next one begins, what it is called, and the list of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plugins/media/part_file.h"

namespace millrace::media {

// `segment`: a time ("10min") or a size ("100MB"); neither: one file.
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
// Throws std::invalid_argument where the pattern has another % than one %d.
void check_segment_pattern(const std::string& pattern);

// The finished segments, in the form of FFmpeg's concat demuxer: a file that is whole at any time, and locked from the
// beginning to the end. A list that is there stays until the first segment is finished; then lines are added to the new
// one, each by one write.
class SegmentList {
 public:
  // Throws std::runtime_error where the list could not be written, and where another process writes it.
  void begin(const std::string& path, const PartFile::Kept& kept);
  // Throws std::runtime_error where the list cannot be written; it is as long as before then.
  void add(const std::string& segment_path);
  // Lets go of the lock.
  void end() { file_.abandon(); }

 private:
  void write(const std::string& text, size_t at);

  std::string path_, text_;
  PartFile file_;
  bool is_there_ = false; // under its name
};

// "4M", "500k", "2000000" in bits a second; 0 for "". Throws std::invalid_argument.
int64_t read_bitrate(const std::string& text);

} // namespace millrace::media
