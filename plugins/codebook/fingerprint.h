// FNV-1a of 64 bits, by which the results of a fit are compared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace millrace::codebook {

inline uint64_t fingerprint(std::span<const std::byte> bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const std::byte byte : bytes) hash = (hash ^ static_cast<uint64_t>(byte)) * 0x100000001b3u;
  return hash;
}

} // namespace millrace::codebook
