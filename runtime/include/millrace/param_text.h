// Reads a parameter's text by its declaration. The runtime, the tests of handlers and the command line share it, so
// that "0.5", "yes" or "fast" means the same everywhere.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

#include "millrace/abi.h"
#include "millrace/read_number.h"

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {

enum class ParamProblem { none, wrong_type, out_of_range, no_such_choice };

// A value, or the problem with the text. A string value points into the text.
struct ParamReading {
  mr_param_value value{};
  ParamProblem problem = ParamProblem::none;
  std::string expected; // if there is a problem: the values that are allowed, in words: "a number from 0 to 1 px"
};

namespace detail {
// The shortest text that reads back as the same number: 3, 0.1 (also for 0.1f), 1e+30.
inline std::string number_text(double number) {
  char buffer[32]; // the longest double takes 24
  const auto single = static_cast<float>(number);
  const bool is_single = static_cast<double>(single) == number;
  char* end = buffer + sizeof buffer;
  // People write 100000, which is longer than 1e+05.
  const double size = std::abs(number);
  const auto form = size == 0 || (size >= 1e-4 && size < 1e15) ? std::chars_format::fixed : std::chars_format::general;
  end = is_single ? std::to_chars(buffer, end, single, form).ptr : std::to_chars(buffer, end, number, form).ptr;
  return std::string(buffer, end);
}

inline bool read_bool(std::string_view text, int64_t& result) {
  for (std::string_view yes : {"true", "yes", "on", "1"})
    if (text == yes) return result = 1, true;
  for (std::string_view no : {"false", "no", "off", "0"})
    if (text == no) return result = 0, true;
  return false;
}

// Reads a decimal number whose value is whole (5, 5.0, 1e3), or hexadecimal digits after 0x. There is no octal, because
// people write 007 and mean seven.
inline ParamProblem read_int(const std::string& text, int64_t& result) {
  const size_t sign = text.starts_with('-') || text.starts_with('+') ? 1 : 0;
  if (text.size() > sign + 2 && text[sign] == '0' && (text[sign + 1] | 0x20) == 'x') {
    uint64_t size = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, problem] = std::from_chars(text.data() + sign + 2, end, size, 16);
    if (stop != end || problem == std::errc::invalid_argument) return ParamProblem::wrong_type;
    const uint64_t most = uint64_t{1} << 63; // the size of the least number; the largest one is smaller by 1
    const bool is_negative = text[0] == '-';
    if (problem != std::errc() || size > (is_negative ? most : most - 1)) return ParamProblem::out_of_range;
    result = static_cast<int64_t>(is_negative ? 0 - size : size);
    return ParamProblem::none;
  }
  switch (read_whole_number(text, result)) {
    case WholeProblem::none: return ParamProblem::none;
    case WholeProblem::out_of_range: return ParamProblem::out_of_range;
    default: return ParamProblem::wrong_type;
  }
}

// Reads a finite number; no parameter can be "nan" or "inf".
inline ParamProblem read_float(const std::string& text, double& result) {
  size_t length = 0;
  result = leading_number(text, length);
  if (text.empty() || length < text.size()) return ParamProblem::wrong_type;
  return std::isfinite(result) ? ParamProblem::none : ParamProblem::out_of_range;
}

// Reads a number of seconds, or a number with a unit: 500ms, 5s, 10min, 2h.
inline ParamProblem read_seconds(const std::string& text, double& result) {
  struct Known {
    std::string_view unit;
    double seconds;
  };
  for (const Known& known : {Known{"ms", 1e-3}, Known{"min", 60}, Known{"s", 1}, Known{"h", 3600}}) {
    if (!text.ends_with(known.unit)) continue;
    std::string number = text.substr(0, text.size() - known.unit.size());
    while (number.ends_with(' ')) number.pop_back();
    const ParamProblem problem = read_float(number, result);
    result *= known.seconds;
    return problem;
  }
  return read_float(text, result);
}

inline std::string expected_text(const mr_param& param) {
  if (param.choices) {
    std::string list = "one of";
    for (const char* const* choice = param.choices; *choice; ++choice)
      list += (choice == param.choices ? " " : ", ") + std::string(*choice);
    return list;
  }
  std::string sentence;
  switch (param.type) {
    case MR_PARAM_BOOL: return "true or false (yes, no, on, off)";
    case MR_PARAM_INT: sentence = "a whole number"; break;
    case MR_PARAM_FLOAT: sentence = param.flags & MR_PARAM_DURATION ? "a duration" : "a number"; break;
    case MR_PARAM_JSON: return "JSON";
    default: return "a text";
  }
  if (param.flags & MR_PARAM_HAS_RANGE) {
    if (std::isinf(param.max))
      sentence += " of at least " + number_text(param.min);
    else
      sentence += " from " + number_text(param.min) + " to " + number_text(param.max);
  }
  if (param.unit && *param.unit) sentence += " " + std::string(param.unit);
  if (param.flags & MR_PARAM_DURATION) sentence += ", or with its unit: 500ms, 5s, 10min, 2h";
  return sentence;
}
} // namespace detail

// If the parameter is a string, `text` must outlive the result.
inline ParamReading read_param(const mr_param& param, const std::string& text) {
  ParamReading reading;
  reading.value.type = param.type;
  double number = 0;
  switch (param.type) {
    case MR_PARAM_BOOL:
      if (!detail::read_bool(text, reading.value.as.boolean)) reading.problem = ParamProblem::wrong_type;
      break;
    case MR_PARAM_INT:
      reading.problem = detail::read_int(text, reading.value.as.integer);
      number = static_cast<double>(reading.value.as.integer);
      break;
    case MR_PARAM_FLOAT:
      reading.problem =
          param.flags & MR_PARAM_DURATION ? detail::read_seconds(text, number) : detail::read_float(text, number);
      reading.value.as.real = number;
      break;
    default: reading.value.as.text = text.c_str();
  }
  const bool ranged =
      (param.flags & MR_PARAM_HAS_RANGE) && (param.type == MR_PARAM_INT || param.type == MR_PARAM_FLOAT);
  if (reading.problem == ParamProblem::none && ranged && (number < param.min || number > param.max))
    reading.problem = ParamProblem::out_of_range;
  if (reading.problem == ParamProblem::none && param.choices) {
    reading.problem = ParamProblem::no_such_choice;
    for (const char* const* choice = param.choices; *choice; ++choice)
      if (text == *choice) reading.problem = ParamProblem::none;
  }
  if (reading.problem != ParamProblem::none) reading.expected = detail::expected_text(param);
  return reading;
}

} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
