// Sizes in pages of the host.
#pragma once

#include <unistd.h>

#include <cstdint>

namespace millrace::device {

// The next multiple of a page; 0 where that does not exist.
inline uint64_t round_up_to_pages(uint64_t bytes) {
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

} // namespace millrace::device
