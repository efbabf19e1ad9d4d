// The main function of every test program, compiled once. With MILLRACE_TEST_COMMA in the environment the tests run
// under a locale with a decimal comma, as in a host that has set one.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <optional>

#include "tests/comma_locale.h"

int main(int argc, char** argv) {
  std::optional<millrace::test::CommaLocale> comma;
  if (std::getenv("MILLRACE_TEST_COMMA")) comma.emplace();
  if (comma && !comma->is_set()) std::puts("Not tested: this system has locales of another form");
  return doctest::Context(argc, argv).run();
}
