// A check that a text contains another.
#pragma once

#include <string>

namespace millrace {

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

} // namespace millrace
