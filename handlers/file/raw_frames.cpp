// Reads raw frames from regular files; see raw_frames.h.
#include "handlers/file/raw_frames.h"

#include <array>
#include <cerrno>
#include <cstring>

#include "handlers/file/named_tick.h"
#include "handlers/image/picture.h"

namespace millrace::handlers {

uint64_t RawFrame::picture_bytes() const {
  mr_image image{};
  lay_out_image(pixel, width, height, image);
  uint64_t bytes = 0;
  for (uint32_t plane = 0; plane < image.plane_count; ++plane)
    bytes += uint64_t{plane_row_bytes(pixel, width, plane)} * image.planes[plane].rows;
  return bytes;
}

uint64_t index_before(std::span<const uint8_t> frame, const std::string& path) {
  uint64_t index = 0;
  for (size_t i = 0; i < 8; ++i) index |= uint64_t{frame[i]} << (8 * i);
  if (index > kNamedTickMax) throw cannot_read(path, "the index " + std::to_string(index) + " is damaged, or none");
  return index;
}

void copy_frame(const RawFrame& frame, std::span<const uint8_t> bytes, const ImageSpan& target) {
  const uint8_t* from = bytes.data() + (frame.bytes() - frame.picture_bytes());
  for (uint32_t plane = 0; plane < target.plane_count(); ++plane) {
    const size_t row = plane_row_bytes(target.pixel(), target.width(), plane);
    for (uint32_t y = 0; y < target.rows(plane); ++y, from += row) std::memcpy(target.row(y, plane), from, row);
  }
}

RawFrames::RawFrames(const std::string& path, const RawFrame& frame)
    : path_(path), frame_(frame), file_(open_to_read(path)), bytes_(size_of(file_.get())) {}

uint64_t RawFrames::last_index() {
  if (!frame_.indexed) return count() - 1;
  go_to(count() - 1);
  const uint64_t index = read_index();
  go_to(given_);
  return index;
}

std::optional<uint64_t> RawFrames::next_index() {
  if (given_ >= count()) return {};
  return frame_.indexed ? read_index() : given_;
}

void RawFrames::read(const ImageSpan& target) {
  for (uint32_t plane = 0; plane < target.plane_count(); ++plane) {
    const size_t bytes = plane_row_bytes(target.pixel(), target.width(), plane);
    for (uint32_t y = 0; y < target.rows(plane); ++y) read_bytes(target.row(y, plane), bytes);
  }
  ++given_;
}

void RawFrames::rewind() {
  given_ = 0;
  go_to(0);
}

void RawFrames::go_to(uint64_t frame) {
  if (fseeko(file_.get(), static_cast<off_t>(frame * frame_.bytes()), SEEK_SET) != 0)
    throw cannot_read(path_, std::strerror(errno));
}

uint64_t RawFrames::read_index() {
  std::array<uint8_t, 8> bytes;
  read_bytes(bytes.data(), bytes.size());
  return index_before(bytes, path_);
}

void RawFrames::read_bytes(uint8_t* target, size_t count) {
  if (std::fread(target, 1, count, file_.get()) == count) return;
  throw cannot_read(path_, std::ferror(file_.get()) ? std::strerror(errno) : "it became shorter while it was read");
}

} // namespace millrace::handlers
