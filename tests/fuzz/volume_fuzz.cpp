// libFuzzer: whatever a file of a volume holds, it is refused in words, or is read within the size that it says.
#include "tests/fuzz/volume_fuzz.h"

#include <cstdio>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const char* const rule = millrace::volume::look_at_volume({data, size});
  if (!rule) return 0;
  std::fprintf(stderr, "broken: %s\n", rule);
  std::abort();
}
