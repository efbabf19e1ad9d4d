// Random numbers that are the same on every machine for the same seed, which the standard's distributions do not
// promise.
#pragma once

#include <bit>
#include <cstdint>

namespace millrace::chaos {

// SplitMix64 (Steele, Lea, Flood 2014): one word of state, and any seed is a good one.
class Draw {
 public:
  explicit Draw(uint64_t seed) : state_(seed) {}
  // A generator for one part (a line, a connection), so that one part's draws do not shift another's.
  Draw(uint64_t seed, uint64_t part) : state_(seed) { state_ = next() ^ (part * 0xd1342543de82ef95); }

  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  // From `least` to `most`, both included. The remainder's bias is below 1 in 2^20 for the ranges of this folder.
  int64_t within(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(next() % (static_cast<uint64_t>(most - least) + 1));
  }

  // From `least` ≥ 1 to `most`, each doubling as likely as the next one: small values come up as often as large ones.
  int64_t scaled(int64_t least, int64_t most) {
    const auto doublings = std::bit_width(static_cast<uint64_t>(most / least)) - 1;
    const int64_t from = least << within(0, doublings);
    return within(from, from > most / 2 ? most : 2 * from);
  }

  // From 0 up to, not including, 1.
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
};

} // namespace millrace::chaos
