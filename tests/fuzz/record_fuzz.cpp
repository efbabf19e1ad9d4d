// libFuzzer: whatever a peer sends as a record, it is refused, or it is written again as the same bytes.
#include "tests/fuzz/record_fuzz.h"

#include <cstdio>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const char* rule = millrace::net::look_at_record(std::as_bytes(std::span(data, size)));
  if (!rule) return 0;
  std::fprintf(stderr, "broken: %s\n", rule);
  std::abort();
}
