// Reads numbers from text by the same rules under every locale. strtod(), stod() and streams expect the decimal mark
// of the locale that a host or a plugin has set, which is a comma in half of Europe; no text of millrace is written so.
#pragma once

#include <charconv>
#include <cstdint>
#include <limits>
#include <string_view>
#include <system_error>

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {
namespace detail {

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
// ASCII alone has letters here.
inline bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Reads the decimal number at the beginning of `text`, as strtod() does in the C locale: -1, +2.5, .5, 1e3. Sets
// `length` to the bytes that it has, 0 if there is none; "inf", "nan" and hexadecimal digits are no numbers. Numbers
// that a double cannot hold are infinite, or 0.
inline double leading_number(std::string_view text, size_t& length) {
  length = 0;
  const size_t sign = !text.empty() && (text[0] == '+' || text[0] == '-') ? 1 : 0;
  const std::string_view rest = text.substr(sign);
  if (rest.empty() || !(is_digit(rest[0]) || (rest[0] == '.' && rest.size() > 1 && is_digit(rest[1])))) return 0;
  double size = 0;
  const auto [end, problem] = std::from_chars(rest.data(), rest.data() + rest.size(), size);
  length = sign + static_cast<size_t>(end - rest.data());
  if (problem == std::errc::result_out_of_range) {
    const std::string_view number = rest.substr(0, length - sign);
    const size_t exponent = number.find_first_of("eE");
    const bool is_tiny = exponent != number.npos ? number[exponent + 1] == '-' : number[0] == '0' || number[0] == '.';
    size = is_tiny ? 0 : std::numeric_limits<double>::infinity();
  }
  return text[0] == '-' ? -size : size;
}

enum class WholeProblem { none, no_number, not_whole, out_of_range };

// Reads a decimal number whose value is whole, however it is written: 12, +12, 12.0, 1.2e1, 120e-1. Exact, because no
// double is between.
inline WholeProblem read_whole_number(std::string_view text, int64_t& result) {
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  const std::string_view digits = text.substr(0, text.find_first_of("eE"));
  int64_t exponent = 0;
  if (digits.size() < text.size()) {
    std::string_view power = text.substr(digits.size() + 1);
    const bool is_small = power.starts_with('-');
    if (is_small || power.starts_with('+')) power.remove_prefix(1);
    if (power.empty()) return WholeProblem::no_number;
    constexpr int64_t kExponentMax = int64_t{1} << 40; // more than any text has digits
    for (const char c : power) {
      if (!is_digit(c)) return WholeProblem::no_number;
      if (exponent < kExponentMax) exponent = exponent * 10 + (c - '0');
    }
    if (is_small) exponent = -exponent;
  }
  // The value is `number` × 10^(`exponent` + `zeros`): zeros at the end are only counted, as another digit may follow.
  uint64_t number = 0;
  int64_t zeros = 0;
  bool has_digit = false, has_point = false, is_too_long = false;
  const auto append = [&number](uint64_t digit) {
    constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
    if (number > (kMost - digit) / 10) return false;
    number = number * 10 + digit;
    return true;
  };
  for (const char c : digits) {
    if (c == '.' && !has_point) {
      has_point = true;
      continue;
    }
    if (!is_digit(c)) return WholeProblem::no_number;
    has_digit = true;
    if (has_point) --exponent;
    if (c == '0') {
      if (number > 0 || is_too_long) ++zeros; // those in front say nothing
      continue;
    }
    for (; zeros > 0 && !is_too_long; --zeros) is_too_long = !append(0);
    if (!is_too_long) is_too_long = !append(static_cast<uint64_t>(c - '0'));
    zeros = 0;
  }
  if (!has_digit) return WholeProblem::no_number;
  if (number == 0 && !is_too_long) return result = 0, WholeProblem::none;
  exponent += zeros;
  if (exponent < 0) return WholeProblem::not_whole;
  for (; exponent > 0 && !is_too_long; --exponent) is_too_long = !append(0);
  const uint64_t most = uint64_t{1} << 63; // the size of the least number; the largest one is smaller by 1
  if (is_too_long || number > (is_negative ? most : most - 1)) return WholeProblem::out_of_range;
  result = static_cast<int64_t>(is_negative ? 0 - number : number);
  return WholeProblem::none;
}

} // namespace detail
} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
