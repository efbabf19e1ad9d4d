// The inputs that fuzzers of the link found to reach something of their own, as tests/fuzz/corpus.py packs them.
#include <doctest/doctest.h>

#include <span>
#include <string>

#include "tests/fuzz/hello_fuzz.h"
#include "tests/fuzz/packed.h"
#include "tests/fuzz/record_fuzz.h"
#include "tests/fuzz/session_fuzz.h"
#include "tests/part.h"

namespace millrace::net {
namespace {

void replay(const char* name, size_t least, const char* (*look_at)(Bytes)) {
  const auto inputs = unpacked(MILLRACE_SOURCE_DIR, name);
  CHECK(inputs.size() >= least);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!millrace::test::is_tried(static_cast<int64_t>(i))) continue;
    INFO(name << ", line " << i + 1);
    const char* const broken = look_at(std::as_bytes(std::span(inputs[i])));
    CHECK_MESSAGE(broken == nullptr, broken);
  }
}

} // namespace

TEST_CASE("a fuzzed record is refused, or is written again as the same bytes") {
  replay("record.txt", 100, look_at_record);
}

TEST_CASE("a fuzzed greeting is refused, or both sides agree on what they chose") {
  replay("hello.txt", 60, look_at_greeting);
}

TEST_CASE("after fuzzed cuts, damage and restarts, what arrives is what was given, in order and each once") {
  replay("session.txt", 300, look_at_session_program);
}

} // namespace millrace::net
