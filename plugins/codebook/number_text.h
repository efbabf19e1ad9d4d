// Numbers as text that is read back to the same number, with a point under every locale.
#pragma once

#include <charconv>
#include <string>

namespace millrace::codebook {

inline std::string number_text(double number) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, number).ptr);
}

} // namespace millrace::codebook
