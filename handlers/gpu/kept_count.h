// The host's side of a count that kernels add to; see kept_count.cuh.
#pragma once

#include <cstdint>

namespace millrace::handlers::gpu {

struct KeptCount {
  // Sets the count, the first eight bytes of the handler's scratch memory, to 0. For start().
  const char* (*begin)(void* stream, void* scratch);
  // Reads the count, once the stream has nothing more to do. False if that is not so within a second, or if the device
  // has failed. For stop().
  bool (*read)(void* stream, const void* scratch, uint64_t& count);
};

} // namespace millrace::handlers::gpu
