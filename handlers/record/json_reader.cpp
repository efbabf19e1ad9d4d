// Reads JSON from front to back; see json_reader.h.
#include "handlers/record/json_reader.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include <millrace/read_number.h>

namespace millrace::handlers {

namespace {

// The largest depth of nested values that are skipped: far beyond any real text, and far below the limit of a stack.
constexpr uint32_t kDepthMax = 64;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

void append_utf8(std::string& text, uint32_t code) {
  const auto add = [&](uint32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) return add(code);
  if (code < 0x800) {
    add(0xC0 | code >> 6);
  } else {
    if (code < 0x10000) {
      add(0xE0 | code >> 12);
    } else {
      add(0xF0 | code >> 18);
      add(0x80 | (code >> 12 & 0x3F));
    }
    add(0x80 | (code >> 6 & 0x3F));
  }
  add(0x80 | (code & 0x3F));
}

// True if a number that is out of a type's range is too small, and not too large. Such numbers have an exponent or
// hundreds of digits.
bool is_tiny(std::string_view number) {
  const size_t e = number.find_first_of("eE");
  if (e != std::string_view::npos) return number[e + 1] == '-';
  return number.substr(number[0] == '-' ? 1 : 0).starts_with("0");
}

} // namespace

int64_t JsonReader::integer(int64_t min) {
  const size_t place = position();
  const std::string_view text = number();
  int64_t value = 0;
  if (v1::detail::read_whole_number(text, value) != v1::detail::WholeProblem::none)
    refuse(place, std::string(text) + " is not a whole number of 64 bits");
  if (value < min) refuse(place, std::string(text) + " is less than " + std::to_string(min));
  return value;
}

template <class T>
T JsonReader::real() {
  const std::string_view text = number();
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc()) return value;
  const T size = is_tiny(text) ? T{0} : std::numeric_limits<T>::infinity();
  return text[0] == '-' ? -size : size;
}
template float JsonReader::real<float>();
template double JsonReader::real<double>();

// Reads the text of a number by JSON's grammar, which from_chars does not check.
std::string_view JsonReader::number() {
  space();
  const size_t begin = position_;
  if (peek() == '-') ++position_;
  if (!is_digit(peek())) refuse(begin, "a number is expected");
  if (peek() == '0')
    ++position_;
  else
    digits();
  if (peek() == '.') {
    ++position_;
    digits();
  }
  if (peek() == 'e' || peek() == 'E') {
    ++position_;
    if (peek() == '+' || peek() == '-') ++position_;
    digits();
  }
  return text_.substr(begin, position_ - begin);
}

void JsonReader::digits() {
  if (!is_digit(peek())) refuse(position_, "a digit is expected");
  while (is_digit(peek())) ++position_;
}

std::string JsonReader::string() {
  space();
  if (peek() != '"') refuse(position_, "a text in quotes is expected");
  const size_t begin = position_++;
  std::string text;
  for (;;) {
    const size_t plain = plain_end();
    text.append(text_, position_, plain - position_);
    position_ = plain;
    if (position_ >= text_.size()) refuse(begin, "a quote is not closed");
    const char c = text_[position_++];
    if (c == '"') return text;
    if (c != '\\') refuse(position_ - 1, "a control character stands in a text");
    escape(text);
  }
}

// The end of the characters that stand for themselves.
size_t JsonReader::plain_end() const {
  size_t end = position_;
  while (end < text_.size() && text_[end] != '"' && text_[end] != '\\' &&
         static_cast<unsigned char>(text_[end]) >= 0x20)
    ++end;
  return end;
}

void JsonReader::escape(std::string& text) {
  const size_t place = position_ - 1;
  const char c = peek();
  ++position_;
  switch (c) {
    case '"':
    case '\\':
    case '/': text += c; return;
    case 'b': text += '\b'; return;
    case 'f': text += '\f'; return;
    case 'n': text += '\n'; return;
    case 'r': text += '\r'; return;
    case 't': text += '\t'; return;
    case 'u': break;
    default: refuse(place, "there is no such escape");
  }
  uint32_t code = four_digits();
  if (code >= 0xDC00 && code < 0xE000) refuse(place, "half a character is escaped");
  if (code >= 0xD800 && code < 0xDC00) {
    if (text_.substr(position_, 2) != "\\u") refuse(place, "half a character is escaped");
    position_ += 2;
    const uint32_t low = four_digits();
    if (low < 0xDC00 || low >= 0xE000) refuse(place, "half a character is escaped");
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  }
  append_utf8(text, code);
}

uint32_t JsonReader::four_digits() {
  uint32_t code = 0;
  const std::string_view text = text_.substr(std::min(position_, text_.size()), 4);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), code, 16);
  if (error != std::errc() || text.size() != 4 || end != text.data() + 4)
    refuse(position_, "four hexadecimal digits are expected");
  position_ += 4;
  return code;
}

void JsonReader::skip() {
  const size_t place = position();
  if (++depth_ > kDepthMax) refuse(place, "this is nested too deep");
  switch (peek()) {
    case '{': object([this](const std::string&) { skip(); }); break;
    case '[': array([this] { skip(); }); break;
    case '"': string(); break;
    default:
      if (!take_word("true") && !take_word("false") && !take_null()) {
        if (peek() != '-' && !is_digit(peek())) refuse(place, "a value is expected");
        number();
      }
  }
  --depth_;
}

void JsonReader::end() {
  space();
  if (position_ < text_.size()) refuse(position_, "nothing is expected after the value");
}

bool JsonReader::take_null() { return take_word("null"); }

size_t JsonReader::position() {
  space();
  return position_;
}

bool JsonReader::take_word(std::string_view word) {
  space();
  if (text_.substr(position_, word.size()) != word) return false;
  position_ += word.size();
  return true;
}

} // namespace millrace::handlers
