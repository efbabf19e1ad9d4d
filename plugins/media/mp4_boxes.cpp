// Walks along the heads of boxes (ISO/IEC 14496-12, 4.2); see mp4_boxes.h.
#include "plugins/media/mp4_boxes.h"

#include <array>
#include <cstdint>
#include <fstream>
#include <string_view>

namespace millrace::media {

namespace {

constexpr uint64_t kBoxesMax = 4'000'000; // two each half second: eleven days
constexpr uint64_t kHeadBytes = 8, kLongHeadBytes = 16;

uint64_t big_endian(const char* bytes, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

} // namespace

bool breaks_off_in_a_box(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return false;
  const auto size = static_cast<uint64_t>(file.tellg());
  bool wants_pictures = false; // the last box was the head of a fragment
  uint64_t at = 0;
  for (uint64_t boxes = 0; boxes < kBoxesMax && size - at >= kHeadBytes; ++boxes) {
    std::array<char, kLongHeadBytes> head{};
    file.seekg(static_cast<std::streamoff>(at));
    file.read(head.data(), kLongHeadBytes);
    file.clear(); // the last box may be shorter than the longest head
    const std::string_view type(head.data() + 4, 4);
    uint64_t bytes = big_endian(head.data(), 4);
    if (bytes == 0) return false; // it goes to the end of the file
    if (bytes == 1) bytes = big_endian(head.data() + kHeadBytes, 8);
    if (bytes < kHeadBytes) return false;
    // Only these types count, because bytes that programs append after the last box may look like a head.
    if (bytes > size - at) return type == "mdat" || type == "moof" || type == "moov";
    wants_pictures = type == "moof" || (wants_pictures && type != "mdat");
    at += bytes;
  }
  return wants_pictures;
}

} // namespace millrace::media
