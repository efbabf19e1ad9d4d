// Looks error codes up. Their table is error_codes.inc.
#include "observe/error_codes.h"

#include <algorithm>

namespace millrace {

const std::vector<CodeInfo>& error_codes() {
  static const std::vector<CodeInfo> codes = {
#define MR_ERROR(number, name, title, explanation) {number, #name, title, explanation},
#include "observe/error_codes.inc"
#undef MR_ERROR
  };
  return codes;
}

const CodeInfo* find_code(int code) {
  const auto& codes = error_codes();
  const auto found = std::find_if(codes.begin(), codes.end(), [&](const CodeInfo& info) { return info.code == code; });
  return found == codes.end() ? nullptr : &*found;
}

bool is_code_of_handlers(int64_t code) { return code / 100 == 9 && find_code(static_cast<int>(code)); }

int parse_code(const std::string& text) {
  const bool prefixed = text.size() > 2 && (text[0] == 'M' || text[0] == 'm') && (text[1] == 'R' || text[1] == 'r');
  const std::string digits = prefixed ? text.substr(2) : text;
  if (digits.empty() || digits.size() > 4) return 0;
  int code = 0;
  for (char c : digits) {
    if (c < '0' || c > '9') return 0;
    code = code * 10 + (c - '0');
  }
  return code;
}

} // namespace millrace
