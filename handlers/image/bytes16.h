// Holds sixteen bytes as one vector, for shuffles that compilers do not find by themselves.
#pragma once

#include <cstdint>
#include <cstring>

namespace millrace::handlers {

using Bytes16 = uint8_t __attribute__((vector_size(16)));

inline Bytes16 load16(const uint8_t* from) {
  Bytes16 bytes;
  std::memcpy(&bytes, from, sizeof bytes);
  return bytes;
}
inline void store16(uint8_t* to, const Bytes16& bytes) { std::memcpy(to, &bytes, sizeof bytes); }

} // namespace millrace::handlers
