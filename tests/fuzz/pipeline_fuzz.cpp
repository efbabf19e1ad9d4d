// libFuzzer: whatever bytes a pipeline file holds, it is read or refused with a code of its family and a place; what
// is read comes back from its canonical form.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "graph/graph.h"
#include "observe/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  millrace::graph::Graph graph;
  try {
    graph = millrace::graph::parse_yaml(text, "fuzz.yaml");
  } catch (const millrace::Failure& failure) {
    const int code = failure.error().code;
    if (code / 100 != 2 && code != 315 && code != 318) std::abort();
    if (failure.error().place.line < 1 || failure.error().place.column < 1) std::abort();
    return 0;
  }
  // Outside the try: a canonical form that is refused is a fault too.
  if (!same(graph, millrace::graph::parse_yaml(to_yaml(graph), "again.yaml"))) std::abort();
  return 0;
}
