// Decodes UTF-8 (RFC 3629) character by character; see printable.h.
#include "observe/printable.h"

#include <fmt/format.h>

#include "observe/secrets.h"

namespace millrace {

namespace {

constexpr int kLinesMax = 20;

struct Character {
  size_t bytes = 0; // 0: these bytes are no character
  char32_t code = 0;
};

// The character that `text` begins with. Overlong forms, surrogates and codes beyond Unicode are no characters.
Character first_character(std::string_view text) {
  const auto byte = [&](size_t at) { return static_cast<unsigned char>(text[at]); };
  if (byte(0) < 0x80) return {1, byte(0)};
  const size_t bytes = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || text.size() < bytes) return {};
  char32_t code = byte(0) & (0x7fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3fu);
  }
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[bytes] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return {};
  return {bytes, code};
}

// C0 and C1 controls, DEL, and the characters that change the direction of the text after them or end a line.
bool is_control(char32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x200e && code <= 0x200f) ||
         (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

std::string_view without_end(std::string_view text) {
  const size_t last = text.find_last_not_of(" \t\r\n");
  return text.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

std::string bytes_in_all(size_t bytes) { return fmt::format(" … ({} bytes in all)", bytes); }

} // namespace

std::string printable(std::string_view text, size_t bytes_max) {
  if (may_have_secrets(text)) {
    const std::string hidden =
        without_secrets(text); // before it is cut, since a part of an address shows nothing of it
    if (hidden != text) return printable(hidden, bytes_max);
  }
  const std::string_view all = without_end(text);
  std::string out;
  int lines = 1;
  for (size_t at = 0; at < all.size();) {
    const Character character = first_character(all.substr(at));
    const size_t bytes = character.bytes > 0 ? character.bytes : 1;
    if (at + bytes > bytes_max || lines > kLinesMax) return out + bytes_in_all(text.size());
    if (character.bytes > 0 && character.code == '\n') {
      ++lines;
      out += "\n    ";
    } else if (character.bytes > 0 && character.code == '\t') {
      out += ' ';
    } else if (character.bytes > 0 && !is_control(character.code)) {
      out += all.substr(at, bytes);
    } else {
      for (size_t i = 0; i < bytes; ++i) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(all[at + i]));
    }
    at += bytes;
  }
  return out;
}

std::string shortened(std::string_view source, size_t bytes_max) {
  const std::string text = without_secrets(source);
  if (text.size() <= bytes_max) return text;
  size_t end = bytes_max;
  while (end > 0 && bytes_max - end < 3 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + bytes_in_all(text.size());
}

} // namespace millrace
