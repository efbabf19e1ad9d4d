// Rounds sizes to pages of the host.
#pragma once

#include <unistd.h>

#include <cstdint>

namespace millrace::device {

// Rounds up to a whole number of pages; 0 if that overflows.
inline uint64_t round_up_to_pages(uint64_t bytes) {
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

} // namespace millrace::device
