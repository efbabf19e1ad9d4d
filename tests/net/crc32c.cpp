// CRC-32C against published values, against a bit at a time, and its ways against each other.
#include "net/crc32c.h"

#include <doctest/doctest.h>

#include <array>
#include <random>
#include <vector>

#include "tests/part.h"
#include "tests/seed.h"

namespace millrace::net {
namespace {

std::vector<std::byte> random_bytes_for_checksums(size_t count) {
  std::mt19937 random(random_seed());
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// The definition: a division of polynomials, a bit at a time.
uint32_t checksum_by_definition(Bytes bytes) {
  uint32_t bits = ~0u;
  for (const std::byte byte : bytes) {
    bits ^= static_cast<uint32_t>(byte);
    for (int i = 0; i < 8; ++i) bits = bits >> 1 ^ (bits & 1 ? 0x82F63B78u : 0u);
  }
  return ~bits;
}

// All ways give this checksum.
void check_checksums(Bytes bytes, uint32_t before, uint32_t expected) {
  REQUIRE(crc32c(bytes, before) == expected);
  REQUIRE(detail::crc32c_portable(bytes, before) == expected);
  if (detail::has_crc32c_instruction()) REQUIRE(detail::crc32c_instruction(bytes, before) == expected);
}

} // namespace

TEST_CASE("the checksum is that of RFC 3720, appendix B.4") {
  std::array<std::byte, 32> bytes{};
  check_checksums(bytes, 0, 0x8A9136AA);
  bytes.fill(std::byte{0xFF});
  check_checksums(bytes, 0, 0x62A8AB43);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
  check_checksums(bytes, 0, 0x46DD794E);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(31 - i);
  check_checksums(bytes, 0, 0x113FDB5C);
  check_checksums(std::as_bytes(std::span("123456789", 9)), 0, 0xE3069283);
}

TEST_CASE("no bytes leave a checksum as it is") {
  check_checksums({}, 0, 0);
  check_checksums({}, 0x12345678, 0x12345678);
}

TEST_CASE("all ways to compute a checksum agree, for every length up to 4096 at every alignment") {
  const std::vector<std::byte> bytes = random_bytes_for_checksums(4096 + 8);
  for (size_t length = 0; length <= 4096; ++length) {
    if (!millrace::test::is_tried(static_cast<int64_t>(length))) continue;
    CAPTURE(length);
    for (size_t start = 0; start < 8; ++start) {
      const Bytes part = Bytes(bytes).subspan(start, length);
      check_checksums(part, 0, checksum_by_definition(part));
    }
  }
}

TEST_CASE("all ways to compute a checksum agree on long bytes, for every kind of rest") {
  const std::vector<std::byte> bytes = random_bytes_for_checksums(128 * 1024 + 7);
  std::mt19937 random(random_seed());
  for (int64_t n = millrace::test::part_of(400); n > 0; --n) {
    const size_t start = random() % 8, length = random() % (bytes.size() - start + 1);
    CAPTURE(start);
    CAPTURE(length);
    const Bytes part = Bytes(bytes).subspan(start, length);
    check_checksums(part, 0, checksum_by_definition(part));
  }
  for (size_t rounds = 1; rounds <= 4; ++rounds) // three streams of 8 KiB each
    for (const size_t more : {size_t{0}, size_t{1}, size_t{7}, size_t{8}, size_t{767}, size_t{768}, size_t{769}}) {
      const Bytes part = Bytes(bytes).first(rounds * 3 * 8192 + more);
      check_checksums(part, 0, checksum_by_definition(part));
    }
}

TEST_CASE("a checksum goes on where the one before ended") {
  const std::vector<std::byte> bytes = random_bytes_for_checksums(40'000);
  const uint32_t whole = crc32c(bytes);
  std::mt19937 random(random_seed());
  for (int64_t n = millrace::test::part_of(400); n > 0; --n) {
    const size_t cut = random() % (bytes.size() + 1);
    CAPTURE(cut);
    check_checksums(Bytes(bytes).subspan(cut), crc32c(Bytes(bytes).first(cut)), whole);
  }
}

TEST_CASE("a checksum tells each flip of one bit, of two bits and of a burst of 32 from the bytes") {
  std::vector<std::byte> bytes = random_bytes_for_checksums(24);
  const uint32_t right = crc32c(bytes);
  const auto flip = [&](size_t bit) { bytes[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8); };
  const size_t bits = bytes.size() * 8;
  for (size_t first = 0; first < bits; ++first) {
    flip(first);
    REQUIRE(crc32c(bytes) != right);
    for (size_t second = first + 1; second < bits; ++second) {
      flip(second);
      REQUIRE(crc32c(bytes) != right);
      flip(second);
    }
    flip(first);
  }
  std::mt19937 random(random_seed());
  for (int64_t n = millrace::test::part_of(20'000); n > 0; --n) {
    const size_t at = random() % (bits - 31);
    const uint32_t burst = static_cast<uint32_t>(random()) | 1u;
    std::vector<std::byte> kept = bytes;
    for (size_t i = 0; i < 32; ++i)
      if (burst >> i & 1) flip(at + i);
    REQUIRE(crc32c(bytes) != right);
    bytes = kept;
  }
}

} // namespace millrace::net
