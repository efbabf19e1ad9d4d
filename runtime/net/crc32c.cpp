// Computes CRC-32C with the processor's instruction, or with tables; see crc32c.h.
//
// The register holds the remainder with its bits reflected: bit 31 is the coefficient of x^0. A step of the instruction
// waits for the one before, three cycles on x86, though the processor could begin one each cycle. So a long run of
// bytes is cut into three streams side by side. A stream's remainder is then moved over the bytes of the streams after
// it: that is the same as reading as many zero bytes, a linear map of 32 bits, which four tables hold.
#include "net/crc32c.h"

#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#define MILLRACE_CRC_TARGET __attribute__((target("sse4.2")))
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#define MILLRACE_CRC_TARGET
#endif

namespace millrace::net {
namespace {

using ByteTable = std::array<uint32_t, 256>;

constexpr uint32_t kPolynomial = 0x82F63B78; // reflected

constexpr ByteTable table_of_one_byte() {
  ByteTable table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t bits = byte;
    for (int i = 0; i < 8; ++i) bits = bits >> 1 ^ (bits & 1 ? kPolynomial : 0);
    table[byte] = bits;
  }
  return table;
}

// kSlices[n][b] is what byte b adds to the remainder when n more bytes were read after it.
constexpr std::array<ByteTable, 8> tables_of_eight_bytes() {
  std::array<ByteTable, 8> tables{};
  tables[0] = table_of_one_byte();
  for (size_t n = 1; n < tables.size(); ++n)
    for (size_t byte = 0; byte < 256; ++byte)
      tables[n][byte] = tables[n - 1][byte] >> 8 ^ tables[0][tables[n - 1][byte] & 0xFF];
  return tables;
}
constexpr std::array<ByteTable, 8> kSlices = tables_of_eight_bytes();

uint64_t load_eight(const std::byte* at) {
  uint64_t word;
  std::memcpy(&word, at, sizeof word);
  if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
  return word;
}

#ifdef MILLRACE_CRC_TARGET

// A linear map of the register: image i is that of bit i.
using LinearMap = std::array<uint32_t, 32>;

constexpr uint32_t applied(const LinearMap& map, uint32_t bits) {
  uint32_t sum = 0;
  for (size_t i = 0; i < 32; ++i)
    if (bits >> i & 1) sum ^= map[i];
  return sum;
}

// A shift over `count` zero bytes, one table for each byte of the register.
struct ShiftOverZeros {
  std::array<ByteTable, 4> tables{};

  constexpr explicit ShiftOverZeros(size_t count) {
    LinearMap map{}, power{};
    for (size_t i = 0; i < 32; ++i) {
      map[i] = 1u << i;
      power[i] = map[i] >> 8 ^ kSlices[0][map[i] & 0xFF]; // over one byte
    }
    for (; count > 0; count >>= 1) {
      LinearMap twice{};
      for (size_t i = 0; i < 32; ++i) {
        if (count & 1) map[i] = applied(power, map[i]);
        twice[i] = applied(power, power[i]);
      }
      power = twice;
    }
    for (size_t n = 0; n < 4; ++n)
      for (uint32_t byte = 0; byte < 256; ++byte) tables[n][byte] = applied(map, byte << (8 * n));
  }

  uint32_t operator()(uint32_t bits) const {
    return tables[0][bits & 0xFF] ^ tables[1][bits >> 8 & 0xFF] ^ tables[2][bits >> 16 & 0xFF] ^ tables[3][bits >> 24];
  }
};

// Bytes of one of three streams. Long ones make the shifts cheap: two of them in 24 KiB, which the first cache holds.
// Short ones serve what is left, and records of 1 KiB.
constexpr size_t kLongStream = 8192, kShortStream = 256;
constexpr ShiftOverZeros kOverLong(kLongStream), kOverShort(kShortStream);

#if defined(__x86_64__)
MILLRACE_CRC_TARGET inline uint32_t step_eight(uint32_t bits, const std::byte* at) {
  return static_cast<uint32_t>(_mm_crc32_u64(bits, load_eight(at)));
}
MILLRACE_CRC_TARGET inline uint32_t step_one(uint32_t bits, std::byte byte) {
  return _mm_crc32_u8(bits, static_cast<uint8_t>(byte));
}
#else
inline uint32_t step_eight(uint32_t bits, const std::byte* at) { return __crc32cd(bits, load_eight(at)); }
inline uint32_t step_one(uint32_t bits, std::byte byte) { return __crc32cb(bits, static_cast<uint8_t>(byte)); }
#endif

// Reads as many whole rounds of three streams as there are, and moves `at` past them.
template <size_t kStream>
MILLRACE_CRC_TARGET uint32_t read_in_streams(uint32_t first, const std::byte*& at, size_t& left,
                                             const ShiftOverZeros& over) {
  static_assert(kStream % 8 == 0);
  for (; left >= 3 * kStream; left -= 3 * kStream, at += 3 * kStream) {
    uint32_t second = 0, third = 0;
    for (size_t i = 0; i < kStream; i += 8) {
      first = step_eight(first, at + i);
      second = step_eight(second, at + kStream + i);
      third = step_eight(third, at + 2 * kStream + i);
    }
    first = over(over(first) ^ second) ^ third;
  }
  return first;
}

#endif

} // namespace

namespace detail {

uint32_t crc32c_portable(Bytes bytes, uint32_t before) {
  uint32_t bits = ~before;
  const std::byte* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) {
    const uint64_t word = load_eight(at) ^ bits;
    bits = 0;
    for (unsigned i = 0; i < 8; ++i) bits ^= kSlices[7 - i][word >> (8 * i) & 0xFF];
  }
  for (; left > 0; --left, ++at) bits = bits >> 8 ^ kSlices[0][(bits ^ static_cast<uint32_t>(*at)) & 0xFF];
  return ~bits;
}

#ifdef MILLRACE_CRC_TARGET

bool has_crc32c_instruction() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("sse4.2");
#else
  return true;
#endif
}

MILLRACE_CRC_TARGET uint32_t crc32c_instruction(Bytes bytes, uint32_t before) {
  uint32_t bits = ~before;
  const std::byte* at = bytes.data();
  size_t left = bytes.size();
  bits = read_in_streams<kLongStream>(bits, at, left, kOverLong);
  bits = read_in_streams<kShortStream>(bits, at, left, kOverShort);
  for (; left >= 8; left -= 8, at += 8) bits = step_eight(bits, at);
  for (; left > 0; --left, ++at) bits = step_one(bits, *at);
  return ~bits;
}

#else

bool has_crc32c_instruction() { return false; }
uint32_t crc32c_instruction(Bytes bytes, uint32_t before) { return crc32c_portable(bytes, before); }

#endif

} // namespace detail

uint32_t crc32c(Bytes bytes, uint32_t before) {
  return detail::has_crc32c_instruction() ? detail::crc32c_instruction(bytes, before)
                                          : detail::crc32c_portable(bytes, before);
}

} // namespace millrace::net

#undef MILLRACE_CRC_TARGET
