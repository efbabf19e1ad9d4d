// Reads pictures without a container: the bytes of one picture follow those of the other, as file.raw_writer writes
// them.
#pragma once

#include <millrace/payload.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "handlers/file/open.h"

namespace millrace::handlers {

struct RawFrame {
  Pixel pixel = Pixel::rgb8;
  uint32_t width = 0, height = 0;
  bool indexed = false; // 8 bytes, lowest first, stand before each picture

  // The bytes of the rows of all planes, without padding.
  uint64_t picture_bytes() const;
  uint64_t bytes() const { return picture_bytes() + (indexed ? 8 : 0); }
};

// The index that stands before a frame's picture, from the frame's first eight bytes. Throws cannot_read if it exceeds
// kNamedTickMax.
uint64_t index_before(std::span<const uint8_t> frame, const std::string& path);
// Copies the picture of a frame into `target`, which must have the frame's format and size.
void copy_frame(const RawFrame& frame, std::span<const uint8_t> bytes, const ImageSpan& target);

class RawFrames {
 public:
  // Throws std::runtime_error if the file cannot be opened.
  RawFrames(const std::string& path, const RawFrame& frame);

  // The number of whole frames in the file, and of the bytes after the last one.
  uint64_t count() const { return bytes_ / frame_.bytes(); }
  uint64_t rest() const { return bytes_ % frame_.bytes(); }
  // The index before the last whole frame, or count() - 1 if frames have no index. count() must be > 0.
  uint64_t last_index();

  // The index of the next frame, which a following read() gives; empty at the end.
  std::optional<uint64_t> next_index();
  // Reads the frame into a picture of the frame's format and size.
  void read(const ImageSpan& target);
  // Goes back to the first frame.
  void rewind();

 private:
  void read_bytes(uint8_t* target, size_t count);
  uint64_t read_index();
  void go_to(uint64_t frame);

  std::string path_;
  RawFrame frame_;
  File file_;
  uint64_t bytes_ = 0; // size of the file when it was opened
  uint64_t given_ = 0; // frames given so far
};

} // namespace millrace::handlers
