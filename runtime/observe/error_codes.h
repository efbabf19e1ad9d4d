// The error codes, by name, and their titles and explanations: `millrace explain` and the reference page print them.
// error_codes.inc is the source of all of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace millrace {

// code::unknown_handler is 301, printed as MR0301. An Error holds the number, so that the enum converts to it.
namespace code {
enum : int {
#define MR_ERROR(number, name, title, explanation) name = number,
#include "observe/error_codes.inc"
#undef MR_ERROR
};
} // namespace code

struct CodeInfo {
  int code;
  std::string name;        // as in the enum
  std::string title;       // a few words, as a heading
  std::string explanation; // whole sentences: what happened, why it is refused, what to do
};

// All codes in rising order, each once.
const std::vector<CodeInfo>& error_codes();
// Null if there is no such code.
const CodeInfo* find_code(int code);
// True for the codes that a handler may give to its failures: those of family 9.
bool is_code_of_handlers(int64_t code);
// Reads "MR0304", "mr304" or "304"; 0 if the text is no code.
int parse_code(const std::string& text);

} // namespace millrace
