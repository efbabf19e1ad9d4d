// libFuzzer: whatever happens between two sessions, what arrives is what was given, in order and each once.
#include "tests/fuzz/session_fuzz.h"

#include <cstdio>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const char* rule = millrace::net::look_at_session_program(std::as_bytes(std::span(data, size)));
  if (!rule) return 0;
  std::fprintf(stderr, "broken: %s\n", rule);
  std::abort();
}
