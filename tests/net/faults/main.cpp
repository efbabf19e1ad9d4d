// The tests of faults, and the peer's process that they start.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "tests/net/faults/peer.h"

int main(int count, char** words) {
  if (count > 1 && std::string(words[1]) == "--peer") return millrace::net::test::run_peer(count - 2, words + 2);
  return doctest::Context(count, words).run();
}
