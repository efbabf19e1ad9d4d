// libFuzzer: whatever bytes a pipeline file holds, it is read or refused with a code of its family and a place; what
// is read comes back from its canonical form.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "graph/graph.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const millrace::graph::Graph graph = millrace::graph::parse_yaml(text, "fuzz.yaml");
    if (!same(graph, millrace::graph::parse_yaml(to_yaml(graph), "again.yaml"))) std::abort();
  } catch (const millrace::Failure& failure) {
    if (failure.error().code / 100 != 2 && failure.error().code != 315) std::abort();
  }
  return 0;
}
