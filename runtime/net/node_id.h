// A node's name for machines: 32 bytes, and the text form that people copy from one screen to another.
//
// The text is "mr:", 52 letters of base32 (RFC 4648) and two check letters. 256 bits fill 51 letters and one bit of the
// 52nd, whose other four bits are zero. Letters are A-Z and 2-7; small letters are the same. 0, 1 and 8 are read as O,
// I and B: RFC 4648 omits them as look-alikes. Hyphens and blanks are ignored.
//
// The check letters are the remainder of the 52 letters, taken as a polynomial over GF(32), by x² + 7x + 2. x has the
// order 1,023 there, the most that two letters give. So the check finds every wrong letter, every two letters that were
// exchanged, wherever they are, and every two wrong letters unless they are exactly 33 places apart. One other mistake
// in 1,024 is not found. A weighted sum modulo a prime finds no more and needs numbers that are no letters.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace millrace::net {

inline constexpr size_t kNodeIdBytes = 32;
inline constexpr size_t kNodeIdDataLetters = 52, kNodeIdCheckLetters = 2;
inline constexpr size_t kNodeIdLetters = kNodeIdDataLetters + kNodeIdCheckLetters;
inline constexpr size_t kNodeIdShownLetters = 20; // 100 bits: nobody makes a second key whose id begins the same

// SHA-256 of the node's public key (system/identity.h computes it).
struct NodeId {
  std::array<std::byte, kNodeIdBytes> bytes{};
  auto operator<=>(const NodeId&) const = default;
};

// Why a text is no node id.
struct NodeIdFault {
  enum class Kind : uint8_t {
    none,
    prefix, // it does not begin with "mr:"
    letter, // `position` holds no letter of an id
    length, // it has more or fewer letters than an id; `position` counts them, to one more than an id has
    check   // a letter is wrong, and nobody knows which
  };
  Kind kind = Kind::none;
  size_t position = 0; // counts letters from 1
};

// False: `fault` says why, and `id` is as it was. Never allocates.
bool parse_node_id(std::string_view text, NodeId& id, NodeIdFault& fault);
// The rest of a sentence that begins with the text: "is damaged at its 31st letter".
std::string describe(const NodeIdFault& fault);

// "mr:" and 54 letters.
std::string to_text(const NodeId& id);
// The form for people, which is not parsed: "mr:4FQK-9TZM-…", 20 letters in groups of four.
std::string short_text(const NodeId& id);

} // namespace millrace::net
