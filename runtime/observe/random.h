// Random numbers that all come from one seed, and are the same on every machine.
#pragma once

#include <cstdint>

namespace millrace {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  // splitmix64
  uint64_t next() {
    uint64_t bits = state_ += 0x9E3779B97F4A7C15u;
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9u;
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBu;
    return bits ^ (bits >> 31);
  }
  // From 0 to count - 1; 0 if count is 0.
  uint64_t below(uint64_t count) { return count == 0 ? 0 : next() % count; }
  int64_t between(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(below(static_cast<uint64_t>(most - least) + 1));
  }
  // Each doubling is as likely as any other, so that short times are as frequent as long ones.
  int64_t spread(int64_t least, int64_t most) {
    int64_t octaves = 0;
    while (octaves < 62 && least << (octaves + 1) <= most) ++octaves;
    const int64_t low = least << between(0, octaves);
    return between(low, low * 2 < most ? low * 2 : most);
  }
  // At least 0 and below 1.
  double share() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  // Draws of its own, so that one part of a simulation that draws more does not change another.
  Random fork() { return Random(next()); }

 private:
  uint64_t state_;
};

} // namespace millrace
