// Finds writes past the end of a block: in debug builds and under sanitizers the blocks of host rings have bytes after
// them that no handler may write (guard_bytes.cpp).
//
// A block's memory is its ring's, so AddressSanitizer sees nothing of such a write. Without guards it falls into the
// room up to the next multiple of 256, or into the next block's header.
#pragma once

#include <cstdint>

#include "memory/ring.h"

namespace millrace::plan {
struct Ring;
}

namespace millrace::exec {

// The bytes after each block of the ring; 0 where it has none: in a release build, on a device, for rows that lie side
// by side, and for blocks that copies move together.
uint64_t guard_bytes_of(const plan::Ring& ring, bool in_host_memory);
// Writes the guards of a ring that has some.
void lay_guards(memory::Ring& ring);
// True if nobody wrote past the block's end. Else its guard is laid anew, so that the next call is looked at alone.
bool guard_is_whole(const memory::Block& block);

} // namespace millrace::exec
