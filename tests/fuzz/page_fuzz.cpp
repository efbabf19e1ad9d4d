// libFuzzer: whatever a page says, it is answered with JSON, and nobody gets in or changes anything without a token.
#include "page_fuzz.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "handlers/builtin.h"

// The registry asks for it; a page makes no registry.
const mr_plugin* millrace_builtin_plugin() { std::abort(); }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const char* const broken = millrace::serve::look_at_page({reinterpret_cast<const char*>(data), size});
  if (!broken) return 0;
  std::fprintf(stderr, "not so: %s\n", broken);
  std::abort();
}
