// Text without the spaces around it.
#pragma once

#include <string_view>

namespace millrace::handlers {

// A line may end as on Windows, so that a carriage return is a space too.
inline constexpr std::string_view kSpaces = " \t\r";

inline std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kSpaces);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpaces) - first + 1);
}

} // namespace millrace::handlers
