// Reads and writes names, durations and rates in whole numbers: 29.97 is 2997/100, never a float.
#include "graph/quantity.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "graph/limits.h"
#include "millrace/read_number.h"
#include "observe/secrets.h"

namespace millrace::graph {

namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_part(char c) { return is_letter(c) || is_digit(c) || c == '-'; }

struct Unit {
  const char* name;
  int64_t ns;
};
constexpr std::array<Unit, 5> kUnits = {
    {{"m", 60 * kSecond}, {"s", kSecond}, {"ms", kMillisecond}, {"us", kMicrosecond}, {"ns", 1}}};

// With 15 digits the numerator and denominator of a decimal fraction stay far within 64 bits.
constexpr size_t kDecimalDigitsMax = 15;

// Reads "1.5" as 3/2; none if it is no plain decimal number.
std::optional<Rational> read_decimal(const std::string& text) {
  Rational value;
  size_t digits = 0;
  bool fraction = false;
  for (char c : text) {
    if (c == '.' && !fraction && digits > 0) {
      fraction = true;
      continue;
    }
    if (!is_digit(c) || ++digits > kDecimalDigitsMax) return {};
    value.numerator = value.numerator * 10 + (c - '0');
    if (fraction) value.denominator *= 10;
  }
  if (digits == 0 || text.back() == '.') return {};
  const int64_t common = std::gcd(value.numerator, value.denominator);
  return Rational{value.numerator / common, value.denominator / common};
}

} // namespace

bool is_name(const std::string& text) {
  return !text.empty() && text.size() <= kNameLengthMax && is_letter(text[0]) &&
         std::all_of(text.begin(), text.end(), is_name_part);
}

bool is_stream_name(const std::string& text) {
  return !text.empty() && text.size() <= kNameLengthMax && std::all_of(text.begin(), text.end(), is_name_part);
}

bool is_type(const std::string& text) {
  for (size_t start = 0;;) {
    const size_t dot = text.find('.', start);
    if (!is_name(text.substr(start, dot - start))) return false;
    if (dot == std::string::npos) return true;
    start = dot + 1;
  }
}

std::string as_name(const std::string& given) {
  const std::string text = without_secrets(given); // a name shows its letters, and nothing of an address
  std::string name;
  for (char c : text.substr(0, kNameLengthMax - 1)) {
    const bool letter = is_name_part(c);
    if (letter || (!name.empty() && name.back() != '_')) name += letter ? c : '_';
  }
  while (!name.empty() && name.back() == '_') name.pop_back();
  if (!name.empty() && !is_letter(name[0])) name.insert(name.begin(), '_');
  return name;
}

std::optional<int64_t> read_whole(const std::string& text) {
  int64_t value = 0;
  if (text.starts_with('+') || v1::detail::read_whole_number(text, value) != v1::detail::WholeProblem::none) return {};
  return value;
}

std::optional<int64_t> read_duration(const std::string& text) {
  const size_t unit_at = text.find_first_not_of("0123456789.");
  if (unit_at == std::string::npos) return {};
  const auto unit =
      std::find_if(kUnits.begin(), kUnits.end(), [&](const Unit& u) { return text.substr(unit_at) == u.name; });
  const auto number = read_decimal(text.substr(0, unit_at));
  if (unit == kUnits.end() || !number || unit->ns % number->denominator != 0) return {};
  const int64_t scale = unit->ns / number->denominator;
  if (number->numerator > INT64_MAX / scale) return {};
  return number->numerator * scale;
}

std::string write_duration(int64_t ns) {
  for (const Unit& unit : kUnits)
    if (ns % unit.ns == 0) return std::to_string(ns / unit.ns) + unit.name;
  return std::to_string(ns) + "ns";
}

std::optional<Rational> read_rate(const std::string& text) {
  const size_t slash = text.find('/');
  const auto top = read_decimal(text.substr(0, slash));
  if (!top) return {};
  Rational rate = *top;
  if (slash != std::string::npos) {
    const auto bottom = read_decimal(text.substr(slash + 1));
    if (!bottom || bottom->numerator == 0 || bottom->denominator != 1 || rate.denominator != 1) return {};
    const int64_t common = std::gcd(rate.numerator, bottom->numerator);
    rate = {rate.numerator / common, bottom->numerator / common};
  }
  if (rate.numerator > kRatePartMax || rate.denominator > kRatePartMax) return {};
  return rate;
}

std::string write_rate(const Rational& rate) {
  if (rate.denominator == 1) return std::to_string(rate.numerator);
  return std::to_string(rate.numerator) + "/" + std::to_string(rate.denominator);
}

} // namespace millrace::graph
