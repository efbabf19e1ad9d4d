// Text from outside the program, made safe for a terminal.
#include "observe/printable.h"

#include <doctest/doctest.h>

#include "observe/error.h"

using namespace millrace;

TEST_CASE("text as people write it stays as it is") {
  for (const char* text : {"", "the disk is full", "Überlänge: 30 µs → 2 × 4 […]", "日本語", "🙂"})
    CHECK(printable(text) == text);
}

TEST_CASE("what moves a cursor, colours or turns text around is shown by its bytes") {
  CHECK(printable("\x1b[31mred\x1b[0m") == "\\x1b[31mred\\x1b[0m");
  CHECK(printable("over\rwritten\b\a\x7f") == "over\\x0dwritten\\x08\\x07\\x7f");
  CHECK(printable("\xc2\x9b"
                  "31m") == "\\xc2\\x9b31m"); // C1: one character that begins a sequence
  CHECK(printable("a\xe2\x80\xae"
                  "b") ==
        "a\\xe2\\x80\\xae"
        "b"); // right to left
  CHECK(printable(std::string_view("a\0b", 3)) == "a\\x00b");
  CHECK(printable("a\tb") == "a b");
}

TEST_CASE("bytes that are no UTF-8 are shown as bytes") {
  for (const auto& [bytes, shown] : {std::pair{"\xff", "\\xff"},
                                     {"\xc3", "\\xc3"},                            // ends too early
                                     {"\xc0\xaf", "\\xc0\\xaf"},                   // longer than need be
                                     {"\xed\xa0\x80", "\\xed\\xa0\\x80"},          // half of a pair
                                     {"\xf5\x80\x80\x80", "\\xf5\\x80\\x80\\x80"}, // beyond Unicode
                                     {"\x80x", "\\x80x"}})
    CHECK(printable(bytes) == shown);
}

TEST_CASE("no line of a handler's looks like one of ours") {
  CHECK(printable("first\nerror MR0000: forged\n\n") == "first\n    error MR0000: forged");
  const std::string told =
      format_error(Error{601, "x\nerror MR0000: forged", {"f\n.yaml", 1, 2}, {"a\nerror"}, "", ""});
  for (size_t at = told.find('\n'); at != std::string::npos; at = told.find('\n', at + 1))
    CHECK(told.substr(at, 3) == "\n  ");
}

TEST_CASE("a long text is cut, and its length told") {
  const std::string many(10'000'000, 'x');
  const std::string told = printable(many);
  CHECK(told.size() < kPrintedBytesMax + 100);
  CHECK(told.ends_with(" … (10000000 bytes in all)"));
  CHECK(format_error(Error{601, many, {}, {}, "", ""}).size() < kPrintedBytesMax + 100);
  std::string lines;
  for (int i = 0; i < 100; ++i) lines += "line\n";
  CHECK(printable(lines).ends_with("line\n     … (500 bytes in all)"));
  CHECK(shortened("abc", 3) == "abc");
  CHECK(shortened("abcd", 3) == "abc … (4 bytes in all)");
  CHECK(shortened("aä", 2) == "a … (3 bytes in all)"); // not half a character
}
