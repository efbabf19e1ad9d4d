// Lines that come in pieces, and lines that are too long.
#include "serve/lines.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace millrace::serve;

namespace {

// The lines of `bytes`, which come in pieces of `size`; "!" for one that is too long.
std::vector<std::string> lines_of(const std::string& bytes, size_t size, size_t line_bytes_max) {
  Lines lines(line_bytes_max);
  std::vector<std::string> found;
  for (size_t at = 0; at < bytes.size(); at += size) {
    lines.add(std::string_view(bytes).substr(at, size));
    while (const auto line = lines.next()) found.push_back(line->too_long ? "!" : line->text);
  }
  if (lines.end()) found.emplace_back("…");
  return found;
}

} // namespace

TEST_CASE("Lines are the same in whatever pieces their bytes come") {
  const std::string bytes = "one\n\ntwo\r\nfour5\nfive56\nlonger than that\nend\nhalf";
  const std::vector<std::string> expected = {"one", "", "two\r", "four5", "!", "!", "end", "…"};
  for (size_t size = 1; size <= bytes.size(); ++size) CHECK(lines_of(bytes, size, 5) == expected);
}

TEST_CASE("A line that is too long is told once, before its end has come, and its bytes are not kept") {
  Lines lines(4);
  lines.add("12345");
  REQUIRE(lines.next());
  for (int i = 0; i < 1000; ++i) {
    lines.add("more of it");
    CHECK_FALSE(lines.next());
  }
  lines.add("\nnext\n");
  const auto next = lines.next();
  REQUIRE(next);
  CHECK(next->text == "next");
  CHECK_FALSE(lines.end());
}
