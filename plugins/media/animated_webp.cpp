// Reads the extended header of WebP (developers.google.com/speed/webp/docs/riff_container); see animated_webp.h.
#include "plugins/media/animated_webp.h"

#include <array>
#include <fstream>
#include <string_view>

namespace millrace::media {

bool is_animated_webp(const std::string& path) {
  constexpr char kAnimated = 0x02;
  std::array<char, 21> head{}; // "RIFF", size, "WEBP", "VP8X", size, flags
  std::ifstream file(path, std::ios::binary);
  if (!file.read(head.data(), head.size())) return false;
  const std::string_view text(head.data(), head.size());
  return text.starts_with("RIFF") && text.substr(8, 8) == "WEBPVP8X" && (head[20] & kAnimated);
}

} // namespace millrace::media
