// Node ids: their text comes back, whatever form a person gave it, and every likely mistake is found.
#include "net/node_id.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "tests/contains.h"
#include "tests/fuzz/packed.h"
#include "tests/part.h"
#include "tests/seed.h"

using namespace millrace;
using namespace millrace::net;

namespace {

using Kind = NodeIdFault::Kind;

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
constexpr size_t kPrefix = 3;

// The two extremes, one bit, and random ones.
std::vector<NodeId> ids() {
  std::vector<NodeId> made(8);
  made[1].bytes.fill(std::byte{0xFF});
  made[2].bytes.back() = std::byte{1};
  std::mt19937 random(random_seed());
  for (size_t i = 3; i < made.size(); ++i)
    for (std::byte& byte : made[i].bytes) byte = static_cast<std::byte>(random());
  return made;
}

NodeIdFault fault_of(const std::string& text) {
  NodeId id;
  NodeIdFault fault;
  const bool good = parse_node_id(text, id, fault);
  CHECK(good == (fault.kind == Kind::none));
  return fault;
}

bool is_read_as(const std::string& text, const NodeId& expected) {
  NodeId id;
  NodeIdFault fault;
  return parse_node_id(text, id, fault) && id == expected;
}

} // namespace

TEST_CASE("an id comes back from its text, which has 57 bytes") {
  std::set<std::string> texts;
  for (const NodeId& id : ids()) {
    const std::string text = to_text(id);
    CHECK(text.size() == kPrefix + kNodeIdLetters);
    CHECK(is_read_as(text, id));
    texts.insert(text);
  }
  CHECK(texts.size() == ids().size());
}

TEST_CASE("an id's letters are those of RFC 4648") {
  NodeId id;
  for (size_t i = 0; i < 6; ++i) id.bytes[i] = static_cast<std::byte>("foobar"[i]);
  CHECK(to_text(id).substr(kPrefix, 9) == "MZXW6YTBO"); // "foobar" is MZXW6YTBOI; its last letter goes on here
  CHECK(short_text(id) == "mr:MZXW-6YTB-OIAA-AAAA-AAAA");
}

TEST_CASE("small letters, hyphens, blanks and line breaks make no difference") {
  for (const NodeId& id : ids()) {
    std::string text = to_text(id), grouped = " \tm", small = text;
    std::transform(small.begin(), small.end(), small.begin(), [](unsigned char c) { return std::tolower(c); });
    CHECK(is_read_as(small, id));
    CHECK(is_read_as("MR:" + text.substr(kPrefix), id));
    grouped += "r:";
    for (size_t i = kPrefix; i < text.size(); ++i)
      grouped += std::string(1, text[i]) + (i % 4 == 0 ? "-" : i % 7 ? "" : " ");
    CHECK(is_read_as(grouped + "\r\n", id));
  }
}

TEST_CASE("the digits 0, 1 and 8 are the letters O, I and B that they look like") {
  for (const NodeId& id : ids()) {
    std::string text = to_text(id);
    for (size_t i = kPrefix; i < text.size(); ++i)
      text[i] = text[i] == 'O' ? '0' : text[i] == 'I' ? '1' : text[i] == 'B' ? '8' : text[i];
    CHECK(is_read_as(text, id));
  }
}

TEST_CASE("every single wrong letter is found") {
  for (const NodeId& id : ids()) {
    const std::string text = to_text(id);
    int missed = 0;
    for (size_t at = kPrefix; at < text.size(); ++at)
      for (const char letter : kAlphabet) {
        std::string wrong = text;
        wrong[at] = letter;
        missed += letter != text[at] && fault_of(wrong).kind != Kind::check;
      }
    CHECK(missed == 0);
  }
}

TEST_CASE("every two letters that were exchanged are found, neighbours or not") {
  for (const NodeId& id : ids()) {
    const std::string text = to_text(id);
    int missed = 0;
    for (size_t left = kPrefix; left < text.size(); ++left)
      for (size_t right = left + 1; right < text.size(); ++right) {
        std::string wrong = text;
        std::swap(wrong[left], wrong[right]);
        missed += wrong != text && fault_of(wrong).kind != Kind::check;
      }
    CHECK(missed == 0);
  }
}

TEST_CASE("every two wrong letters are found, unless they are 33 places apart") {
  const NodeId id = ids()[4];
  const std::string text = to_text(id);
  int missed = 0, missed_at_33 = 0;
  int64_t tried = 0;
  for (size_t left = kPrefix; left < text.size(); ++left)
    for (size_t right = left + 1; right < text.size(); ++right)
      for (int pair = 0; pair < 31 * 31; ++pair) {
        if (!millrace::test::is_tried(tried++)) continue;
        const auto other = [&](size_t at, int step) {
          return kAlphabet[(kAlphabet.find(text[at]) + 1 + static_cast<size_t>(step)) % 32];
        };
        std::string wrong = text;
        wrong[left] = other(left, pair / 31);
        wrong[right] = other(right, pair % 31);
        NodeId read;
        NodeIdFault fault;
        (right - left == 33 ? missed_at_33 : missed) += parse_node_id(wrong, read, fault);
      }
  CHECK(missed == 0);
  CHECK(missed_at_33 > 0);
  CHECK(missed_at_33 <= 21 * 31); // for each wrong letter at most one other that hides it
}

TEST_CASE("a letter that is lost, doubled or moved in is found") {
  for (const NodeId& id : ids()) {
    const std::string text = to_text(id);
    for (size_t at = kPrefix; at < text.size(); ++at) {
      std::string shorter = text, longer = text;
      shorter.erase(at, 1);
      longer.insert(at, 1, text[at]);
      CHECK(fault_of(shorter).kind == Kind::length);
      CHECK(fault_of(longer).kind == Kind::length);
    }
  }
}

TEST_CASE("a fault names the place where there is one") {
  const std::string text = to_text(ids()[5]);
  std::string damaged = text;
  damaged[kPrefix + 30] = '?';
  CHECK(describe(fault_of(damaged)) == "is damaged at its 31st letter");
  damaged.insert(kPrefix + 4, " - ");
  CHECK(describe(fault_of(damaged)) == "is damaged at its 31st letter");
  for (const auto& [letter, ending] : {std::pair{1, "1st"},
                                       {2, "2nd"},
                                       {3, "3rd"},
                                       {4, "4th"},
                                       {11, "11th"},
                                       {12, "12th"},
                                       {13, "13th"},
                                       {21, "21st"},
                                       {52, "52nd"}}) {
    damaged = text;
    damaged[kPrefix + static_cast<size_t>(letter) - 1] = '9';
    CHECK(describe(fault_of(damaged)) == "is damaged at its " + std::string(ending) + " letter");
  }
  CHECK(describe(fault_of(text.substr(0, text.size() - 1))) == "has 53 of 54 letters");
  CHECK(describe(fault_of(text + "A")) == "has more than 54 letters");
  CHECK(describe(fault_of("mr:")) == "has 0 of 54 letters");
  CHECK(describe(fault_of(text.substr(kPrefix))) == "does not begin with mr:");
  CHECK(describe(fault_of("")) == "does not begin with mr:");
  damaged = text;
  damaged.back() = damaged.back() == 'A' ? 'B' : 'A';
  CHECK(contains(describe(fault_of(damaged)), "a wrong letter"));
}

TEST_CASE("an id of nothing but A is refused, and bits after the 256th are") {
  CHECK(fault_of("mr:" + std::string(kNodeIdLetters, 'A')).kind == Kind::check);
  // Each last letter with each check: among them are the texts that only the bits make wrong.
  const std::string text = to_text(ids()[6]);
  int read = 0;
  for (const char last : kAlphabet)
    for (const char high : kAlphabet)
      for (const char low : kAlphabet)
        read += fault_of(text.substr(0, kPrefix + 51) + last + high + low).kind == Kind::none;
  CHECK(read == 2); // A and Q hold one bit
}

TEST_CASE("a refused text leaves the id as it was") {
  NodeId id = ids()[7];
  NodeIdFault fault;
  CHECK_FALSE(parse_node_id("mr:AAAA", id, fault));
  CHECK(id == ids()[7]);
}

TEST_CASE("what a fuzzer has found is an id or refused") {
  const std::vector<std::string> texts = unpacked(MILLRACE_SOURCE_DIR, "node_id.txt");
  CHECK(texts.size() > 100);
  int read = 0;
  for (const std::string& text : texts) {
    NodeId id;
    NodeIdFault fault;
    if (parse_node_id(text, id, fault)) {
      ++read;
      CHECK(is_read_as(to_text(id), id));
    } else {
      CHECK_FALSE(describe(fault).empty());
    }
  }
  CHECK(read > 0);
}
