// Reads JSON (RFC 8259) from front to back, for callers that know what they expect; nothing is built in memory.
//
// Unexpected text throws JsonError with its place. Values that are skipped are checked as strictly as those that are
// read.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace millrace::handlers {

class JsonError : public std::runtime_error {
 public:
  JsonError(size_t column, const std::string& what) : std::runtime_error(what), column_(column) {}
  size_t column() const { return column_; } // byte position, from 1

 private:
  size_t column_;
};

class JsonReader {
 public:
  // `text` must outlive the reader.
  explicit JsonReader(std::string_view text, size_t position = 0) : text_(text), position_(position) {}

  // Calls `member(key)` at each value of an object; it must read or skip the value.
  template <class F>
  void object(F&& member) {
    expect('{', "an object");
    if (take('}')) return;
    do {
      const std::string key = string();
      expect(':', "a colon after the key");
      member(key);
    } while (take(','));
    expect('}', "a comma or the object's end");
  }
  // Calls `element()` at each value of an array; it must read or skip the value.
  template <class F>
  void array(F&& element) {
    expect('[', "an array");
    if (take(']')) return;
    do element();
    while (take(','));
    expect(']', "a comma or the array's end");
  }

  // null is refused; 1e999 is infinity.
  float f32() { return real<float>(); }
  double f64() { return real<double>(); }
  // Reads a whole number from `min` to the largest int64, however it is written: 5, 5.0, 5e0.
  int64_t integer(int64_t min);
  std::string string();
  // Skips any value.
  void skip();
  // Throws if anything but space follows.
  void end();

  bool take_null();
  // The place where the next value begins.
  size_t position();
  [[noreturn]] void refuse(const std::string& what) { refuse(position(), what); }

 private:
  [[noreturn]] void refuse(size_t place, const std::string& what) const { throw JsonError(place + 1, what); }
  void expect(char c, const char* what) {
    if (!take(c)) refuse(position_, std::string(what) + " is expected");
  }
  bool take(char c) {
    space();
    if (peek() != c || position_ >= text_.size()) return false;
    ++position_;
    return true;
  }
  bool take_word(std::string_view word);
  std::string_view number();
  void digits();
  size_t plain_end() const;
  void escape(std::string& text);
  uint32_t four_digits();
  template <class T>
  T real();
  char peek() const { return position_ < text_.size() ? text_[position_] : '\0'; }
  void space() {
    for (char c = peek(); c == ' ' || c == '\t' || c == '\r' || c == '\n'; c = peek()) ++position_;
  }

  std::string_view text_;
  size_t position_;
  uint32_t depth_ = 0; // depth of the value that is skipped
};

} // namespace millrace::handlers
