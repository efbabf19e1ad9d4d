// Loaded before the C library (LD_PRELOAD), it moves all blocks of the heap by SHIFT_HEAP × 16 bytes. What lies on one
// cache line is another then, and nothing else changes.
#include <stdlib.h>

__attribute__((constructor)) static void shift(void) {
  const char* const steps = getenv("SHIFT_HEAP");
  // malloc() rounds up to 16 bytes after its 8 of its own. The block is kept, so that the others lie after it.
  static void* volatile kept;
  if (steps && atoi(steps) > 0) kept = malloc(16 * (size_t)atoi(steps) + 8);
  (void)kept;
}
