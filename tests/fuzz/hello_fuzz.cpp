// libFuzzer: whatever a stranger says as its greeting, it is refused with a reason, or both sides agree on what they
// chose.
#include "tests/fuzz/hello_fuzz.h"

#include <cstdio>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const char* rule = millrace::net::look_at_greeting(std::as_bytes(std::span(data, size)));
  if (!rule) return 0;
  std::fprintf(stderr, "broken: %s\n", rule);
  std::abort();
}
