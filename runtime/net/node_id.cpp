// Text forms of node ids: base32, its check letters, and what a person may write instead.
#include "net/node_id.h"

namespace millrace::net {

namespace {

constexpr std::string_view kPrefix = "mr:";
constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
constexpr unsigned kNoLetter = 32;
constexpr size_t kGroupLetters = 4;

using Letters = std::array<uint8_t, kNodeIdLetters>;

// Product in GF(32), whose elements are polynomials over GF(2) modulo x⁵ + x² + 1.
constexpr unsigned multiply(unsigned a, unsigned b) {
  unsigned product = 0;
  for (unsigned bit = 0; bit < 5; ++bit)
    if (b >> bit & 1) product ^= a << bit;
  for (unsigned bit = 9; bit >= 5; --bit)
    if (product >> bit & 1) product ^= 0b100101u << (bit - 5);
  return product;
}

// The remainder of a polynomial over GF(32) by x² + 7x + 2; it takes the coefficients from the highest on.
class Remainder {
 public:
  constexpr void take(unsigned letter) {
    const unsigned top = high_;
    high_ = low_ ^ multiply(top, 7);
    low_ = letter ^ multiply(top, 2);
  }
  constexpr unsigned high() const { return high_; }
  constexpr unsigned low() const { return low_; }

 private:
  unsigned high_ = 0, low_ = 1; // not zero: an id of nothing but A is refused
};

Remainder remainder_of_data(const Letters& letters) {
  Remainder remainder;
  for (size_t i = 0; i < kNodeIdDataLetters; ++i) remainder.take(letters[i]);
  for (size_t i = 0; i < kNodeIdCheckLetters; ++i) remainder.take(0);
  return remainder;
}

Letters letters_of(const NodeId& id) {
  Letters letters{};
  unsigned bits = 0, bit_count = 0;
  size_t at = 0;
  for (const std::byte byte : id.bytes) {
    bits = (bits << 8 | std::to_integer<unsigned>(byte)) & 0xFFF; // at most 4 + 8 are open
    for (bit_count += 8; bit_count >= 5; bit_count -= 5)
      letters[at++] = static_cast<uint8_t>(bits >> (bit_count - 5) & 31);
  }
  letters[at++] = static_cast<uint8_t>(bits << (5 - bit_count) & 31);
  const Remainder remainder = remainder_of_data(letters);
  letters[at++] = static_cast<uint8_t>(remainder.high());
  letters[at] = static_cast<uint8_t>(remainder.low());
  return letters;
}

NodeId id_of(const Letters& letters) {
  NodeId id;
  unsigned bits = 0, bit_count = 0;
  size_t at = 0;
  for (size_t i = 0; i < kNodeIdDataLetters; ++i) {
    bits = (bits << 5 | letters[i]) & 0xFFF;
    bit_count += 5;
    if (bit_count < 8 || at == kNodeIdBytes) continue;
    bit_count -= 8;
    id.bytes[at++] = static_cast<std::byte>(bits >> bit_count & 0xFF);
  }
  return id;
}

constexpr bool is_separator(char c) { return c == '-' || c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

// kNoLetter where `c` stands for none.
constexpr unsigned value_of(char c) {
  if (c >= 'A' && c <= 'Z') return static_cast<unsigned>(c - 'A');
  if (c >= 'a' && c <= 'z') return static_cast<unsigned>(c - 'a');
  if (c >= '2' && c <= '7') return static_cast<unsigned>(c - '2' + 26);
  if (c == '0') return 'O' - 'A';
  if (c == '1') return 'I' - 'A';
  if (c == '8') return 'B' - 'A';
  return kNoLetter;
}

// Removes blanks and the prefix from the front; false if the prefix is not there.
bool remove_prefix(std::string_view& text) {
  while (!text.empty() && is_separator(text.front())) text.remove_prefix(1);
  for (const char expected : kPrefix) {
    if (text.empty() || (text.front() != expected && text.front() != expected - 'a' + 'A')) return false;
    text.remove_prefix(1);
  }
  return true;
}

const char* ordinal_ending(size_t number) {
  if (number % 100 >= 11 && number % 100 <= 13) return "th";
  return number % 10 == 1 ? "st" : number % 10 == 2 ? "nd" : number % 10 == 3 ? "rd" : "th";
}

} // namespace

bool parse_node_id(std::string_view text, NodeId& id, NodeIdFault& fault) {
  using Kind = NodeIdFault::Kind;
  const auto refuse = [&fault](Kind kind, size_t position) {
    fault = {kind, position};
    return false;
  };
  if (!remove_prefix(text)) return refuse(Kind::prefix, 0);
  Letters letters{};
  size_t count = 0;
  for (const char c : text) {
    if (is_separator(c)) continue;
    const unsigned value = value_of(c);
    if (value == kNoLetter) return refuse(Kind::letter, count + 1);
    if (count == kNodeIdLetters) return refuse(Kind::length, count + 1);
    letters[count++] = static_cast<uint8_t>(value);
  }
  if (count != kNodeIdLetters) return refuse(Kind::length, count);
  const Remainder remainder = remainder_of_data(letters);
  if (remainder.high() != letters[kNodeIdDataLetters] || remainder.low() != letters[kNodeIdDataLetters + 1])
    return refuse(Kind::check, 0);
  const NodeId parsed = id_of(letters);
  if (letters_of(parsed) != letters) return refuse(Kind::check, 0); // the four bits after the 256th are zero
  id = parsed;
  fault = {};
  return true;
}

std::string describe(const NodeIdFault& fault) {
  switch (fault.kind) {
    case NodeIdFault::Kind::none: return "is a node id";
    case NodeIdFault::Kind::prefix: return "does not begin with mr:";
    case NodeIdFault::Kind::letter:
      return "is damaged at its " + std::to_string(fault.position) + ordinal_ending(fault.position) + " letter";
    case NodeIdFault::Kind::length:
      return (fault.position > kNodeIdLetters ? "has more than " : "has " + std::to_string(fault.position) + " of ") +
             std::to_string(kNodeIdLetters) + " letters";
    case NodeIdFault::Kind::check: return "has a wrong letter, or two that were exchanged";
  }
  return "";
}

std::string to_text(const NodeId& id) {
  std::string text(kPrefix);
  for (const uint8_t letter : letters_of(id)) text += kAlphabet[letter];
  return text;
}

std::string short_text(const NodeId& id) {
  const Letters letters = letters_of(id);
  std::string text(kPrefix);
  for (size_t i = 0; i < kNodeIdShownLetters; ++i) {
    if (i > 0 && i % kGroupLetters == 0) text += '-';
    text += kAlphabet[letters[i]];
  }
  return text;
}

} // namespace millrace::net
