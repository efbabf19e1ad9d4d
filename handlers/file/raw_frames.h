// Pictures without any container: the bytes of one behind those of the other, as file.raw_writer leaves them.
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

  // Of the rows of all planes, without padding.
  uint64_t picture_bytes() const;
  uint64_t bytes() const { return picture_bytes() + (indexed ? 8 : 0); }
};

// The index before a frame's picture, from its first eight bytes. Throws cannot_read where it is beyond reason.
uint64_t index_before(std::span<const uint8_t> frame, const std::string& path);
// The picture of a frame, of its format and size, into `target`.
void copy_frame(const RawFrame& frame, std::span<const uint8_t> bytes, const ImageSpan& target);

class RawFrames {
 public:
  // Throws std::runtime_error where the file cannot be opened.
  RawFrames(const std::string& path, const RawFrame& frame);

  // Whole frames in the file, and the bytes behind the last one.
  uint64_t count() const { return bytes_ / frame_.bytes(); }
  uint64_t rest() const { return bytes_ % frame_.bytes(); }
  // The index that stands before the last whole frame, or count() - 1 where none stands there; count() > 0.
  uint64_t last_index();

  // The index of the next frame, which read() gives then; nothing at the end.
  std::optional<uint64_t> next_index();
  // Into a picture of the frame's format and size.
  void read(const ImageSpan& target);
  // To the first frame.
  void rewind();

 private:
  void read_bytes(uint8_t* target, size_t count);
  uint64_t read_index();
  void go_to(uint64_t frame);

  std::string path_;
  RawFrame frame_;
  File file_;
  uint64_t bytes_ = 0; // of the file when it was opened
  uint64_t given_ = 0; // frames before the next
};

} // namespace millrace::handlers
