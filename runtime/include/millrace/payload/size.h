// Numbers of bytes and elements that cannot wrap round: what does not fit into 64 bits saturates.
#pragma once

#include <cstdint>
#include <span>

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {

// More bytes than any block has. It stands for a size that does not fit into 64 bits, or a row that fits no stride.
constexpr uint64_t kTooManyBytes = UINT64_MAX;

// Bytes of `count` elements of `bits` each; saturates.
constexpr uint64_t bytes_of(uint64_t count, uint64_t bits) {
  uint64_t all_bits = 0;
  if (__builtin_mul_overflow(count, bits, &all_bits) || all_bits > kTooManyBytes - 7) return kTooManyBytes;
  return (all_bits + 7) / 8;
}
// Elements of a shape; saturates, and counts a negative dimension as too many.
inline uint64_t elements_of(std::span<const int64_t> shape) {
  uint64_t count = 1;
  for (const int64_t extent : shape) {
    if (extent == 0) return 0;
    if (extent < 0 || __builtin_mul_overflow(count, static_cast<uint64_t>(extent), &count)) count = kTooManyBytes;
  }
  return count;
}

} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
