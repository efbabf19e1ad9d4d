// Every error code with a title and an explanation: what `millrace explain` and the reference page are made from.
#pragma once

#include <string>
#include <vector>

namespace millrace {

struct CodeInfo {
  int code;
  std::string title;       // a few words, as a heading
  std::string explanation; // whole sentences: what happened, why it is refused, what to do
};

// By rising code, each once. A code that was ever released keeps its meaning for good.
const std::vector<CodeInfo>& error_codes();
// Null where there is no such code.
const CodeInfo* find_code(int code);
// Reads "MR0304", "mr304" or "304"; 0 where the text is no code.
int parse_code(const std::string& text);

} // namespace millrace
