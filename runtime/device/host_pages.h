// Pages of the host: rounds sizes to them, and touches them before they are needed.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace millrace::device {

// Rounds up to a whole number of pages; 0 if that overflows.
inline uint64_t round_up_to_pages(uint64_t bytes) {
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

// Makes the kernel give these bytes their pages now. Nobody else may use the bytes meanwhile; they keep their values.
inline void touch_pages(std::byte* begin, uint64_t bytes) {
  constexpr int kPopulateWrite = 23; // MADV_POPULATE_WRITE, since Linux 5.14; older headers lack the name
  const uint64_t page = round_up_to_pages(1);
  std::byte* const first = begin - reinterpret_cast<uintptr_t>(begin) % page;
  const auto length = static_cast<uint64_t>(begin + bytes - first);
  if (bytes == 0 || madvise(first, length, kPopulateWrite) == 0) return;
  for (uint64_t at = 0; at < bytes; at += page) {
    auto* const byte = reinterpret_cast<volatile unsigned char*>(begin + at);
    *byte = *byte;
  }
}

} // namespace millrace::device
