// Writes guard bytes after blocks and checks them; see guard_bytes.h.
#include "exec/guard_bytes.h"

#include <algorithm>
#include <cstddef>

#include "plan/memory.h"

namespace millrace::exec {

namespace {

// As far as a row of a small picture; the room up to the next multiple of 256 comes before it.
constexpr uint64_t kGuardBytes = 256;
constexpr uint8_t kGuard = 0xA5;

struct Guard {
  uint8_t* begin;
  uint8_t* end;
};

Guard guard_of(const memory::Block& block) {
  const uint64_t capacity = block.ring->capacity();
  return {block.data + capacity, block.data + memory::block_bytes(capacity) - sizeof(mr_value) + kGuardBytes};
}

} // namespace

uint64_t guard_bytes_of([[maybe_unused]] const plan::Ring& ring, [[maybe_unused]] bool in_host_memory) {
#ifdef MILLRACE_CHECK_BYTES
  if (in_host_memory && !ring.pinned && !ring.dense && ring.pack == plan::kNone) return kGuardBytes;
#endif
  return 0;
}

void lay_guards(memory::Ring& ring) {
  for (uint32_t b = 0; b < ring.length(); ++b) {
    const Guard guard = guard_of(ring.block(b));
    std::fill(guard.begin, guard.end, kGuard);
  }
}

bool guard_is_whole(const memory::Block& block) {
  const Guard guard = guard_of(block);
  if (std::all_of(guard.begin, guard.end, [](uint8_t byte) { return byte == kGuard; })) return true;
  std::fill(guard.begin, guard.end, kGuard);
  return false;
}

} // namespace millrace::exec
