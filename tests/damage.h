// Damages bytes as a bad disk or a broken line does.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>

namespace millrace {

// Cuts the bytes off somewhere, or changes up to eight of them, half of the time near the beginning, where the headers
// are.
inline std::string damaged(std::string bytes, std::mt19937& random) {
  if (random() % 2 == 0) return bytes.substr(0, random() % bytes.size());
  const size_t reach = random() % 2 == 0 ? std::min<size_t>(bytes.size(), 512) : bytes.size();
  for (uint32_t flips = random() % 8 + 1; flips > 0; --flips)
    bytes[random() % reach] ^= static_cast<char>(random() % 255 + 1);
  return bytes;
}

} // namespace millrace
