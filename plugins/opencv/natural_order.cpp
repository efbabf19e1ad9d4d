// Compares numbers inside names without converting them; see natural_order.h.
#include "plugins/opencv/natural_order.h"

#include <algorithm>

namespace millrace::opencv {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Removes the run of digits at the front of `rest` and returns it without leading zeros.
std::string_view take_number(std::string_view& rest) {
  size_t length = 0;
  while (length < rest.size() && is_digit(rest[length])) ++length;
  std::string_view number = rest.substr(0, length);
  rest.remove_prefix(length);
  number.remove_prefix(std::min(number.find_first_not_of('0'), number.size()));
  return number;
}

} // namespace

bool natural_less(std::string_view a, std::string_view b) {
  std::string_view rest_a = a, rest_b = b;
  while (!rest_a.empty() && !rest_b.empty()) {
    if (is_digit(rest_a[0]) && is_digit(rest_b[0])) {
      const std::string_view number_a = take_number(rest_a), number_b = take_number(rest_b);
      if (number_a.size() != number_b.size()) return number_a.size() < number_b.size();
      if (number_a != number_b) return number_a < number_b;
      continue;
    }
    if (rest_a[0] != rest_b[0]) return static_cast<unsigned char>(rest_a[0]) < static_cast<unsigned char>(rest_b[0]);
    rest_a.remove_prefix(1);
    rest_b.remove_prefix(1);
  }
  if (rest_a.empty() != rest_b.empty()) return rest_a.empty();
  // The names differ only in leading zeros.
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

} // namespace millrace::opencv
