// A node reads what other nodes may say. The inputs are texts that nodes write themselves, and those by which
// tests/fuzz/node_fuzz.cpp reached new code, as tests/fuzz/corpus.py packs them.
#include <doctest/doctest.h>

#include "plan/plan.h"
#include "tests/fuzz/node_fuzz.h"
#include "tests/fuzz/packed.h"

namespace millrace::node {

TEST_CASE("what nodes tell each other is read, and written again as it was") {
  for (const std::string& input : told_by_nodes()) {
    CAPTURE(input);
    const char* const broken = look_at_told(input);
    CHECK_MESSAGE(broken == nullptr, broken);
  }
}

TEST_CASE("a fuzzed statement, offer, brief, question or answer is refused, or the node goes on with it") {
  const auto inputs = unpacked(MILLRACE_SOURCE_DIR, "node.txt");
  CHECK(inputs.size() >= 20);
  for (size_t i = 0; i < inputs.size(); ++i) {
    INFO("node.txt, line " << i + 1);
    const char* const broken = look_at_told(inputs[i]);
    CHECK_MESSAGE(broken == nullptr, broken);
  }
}

} // namespace millrace::node
