// Numbers as text that is read back to the same double, with a point under every locale. (param_text.h writes 0.1f as
// 0.1, which is another double.)
#pragma once

#include <charconv>
#include <string>

namespace millrace::codebook {

inline std::string number_text(double number) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, number).ptr);
}

} // namespace millrace::codebook
