// libFuzzer: whatever a one-line pipeline holds, it is read or refused with a code and a place; what is read comes back
// from its canonical form.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "graph/graph.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const millrace::graph::Graph graph = millrace::graph::parse_line(text);
    if (!same(graph, millrace::graph::parse_yaml(to_yaml(graph), "again.yaml"))) std::abort();
  } catch (const millrace::Failure& failure) {
    const int code = failure.error().code;
    if (code / 100 != 2 && code != 303 && code != 315) std::abort();
  }
  return 0;
}
