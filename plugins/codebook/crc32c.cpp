// CRC-32C by eight tables, eight bytes a step.
#include "plugins/codebook/crc32c.h"

#include <array>
#include <cstring>

namespace millrace::codebook {

namespace {

constexpr uint32_t kPolynomial = 0x82f63b78u; // reflected
constexpr size_t kStep = 8;

using Tables = std::array<std::array<uint32_t, 256>, kStep>;
// tables[k][b]: the checksum of byte b followed by k zeros.
constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = rest >> 1 ^ (rest & 1 ? kPolynomial : 0);
    tables[0][byte] = rest;
  }
  for (size_t k = 1; k < kStep; ++k)
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[k - 1][byte];
      tables[k][byte] = before >> 8 ^ tables[0][before & 0xff];
    }
  return tables;
}
constexpr Tables kTables = make_tables();

} // namespace

uint32_t crc32c(std::span<const std::byte> bytes) {
  uint32_t sum = 0xffffffffu;
  size_t at = 0;
  for (; at + kStep <= bytes.size(); at += kStep) {
    uint64_t eight;
    std::memcpy(&eight, bytes.data() + at, kStep);
    eight ^= sum;
    sum = 0;
    for (size_t k = 0; k < kStep; ++k) sum ^= kTables[kStep - 1 - k][eight >> 8 * k & 0xff];
  }
  for (; at < bytes.size(); ++at) sum = sum >> 8 ^ kTables[0][(sum ^ static_cast<uint32_t>(bytes[at])) & 0xff];
  return ~sum;
}

} // namespace millrace::codebook
