// Bytes that the tests send through the proxy: all values, and always the same.
#pragma once

#include <string>

#include "draw.h"

namespace millrace::chaos {

inline std::string sample(size_t size) {
  std::string text(size, ' ');
  Draw draw(3);
  for (char& c : text) c = static_cast<char>(draw.next());
  return text;
}

} // namespace millrace::chaos
