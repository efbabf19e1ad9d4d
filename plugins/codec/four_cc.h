// Four-letter codes of codecs, as packets carry them (mr_packet.codec): the first letter in the lowest byte.
#pragma once

#include <cstdint>

namespace millrace::codec {

constexpr uint32_t four_cc(const char (&letters)[5]) {
  uint32_t code = 0;
  for (int i = 3; i >= 0; --i) code = code << 8 | static_cast<uint8_t>(letters[i]);
  return code;
}

inline constexpr uint32_t kJpegCode = four_cc("JPEG"); // JFIF, one picture a packet
inline constexpr uint32_t kH264Code = four_cc("H264"); // Annex B, one access unit a packet

} // namespace millrace::codec
