// libFuzzer: whatever a peer sends as the record of a value, it is refused, or the value lies within its block and is
// written as the same bytes. The first byte chooses the planned format.
#include "tests/fuzz/value_record_fuzz.h"

#include <cstdio>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const char* rule = millrace::net::look_at_value_record(std::as_bytes(std::span(data, size)));
  if (!rule) return 0;
  std::fprintf(stderr, "broken: %s\n", rule);
  std::abort();
}
