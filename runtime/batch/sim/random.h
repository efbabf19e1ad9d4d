// Random numbers that all come from one seed, and are the same on every machine.
#pragma once

#include <cstdint>

namespace millrace::batch {

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
  // From 0 to count - 1; `count` is at least 1.
  uint64_t below(uint64_t count) { return next() % count; }
  int64_t between(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(below(static_cast<uint64_t>(most - least) + 1));
  }
  // At least 0 and below 1.
  double share() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
};

} // namespace millrace::batch
