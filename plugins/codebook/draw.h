// Numbers drawn at random, the same on every machine: SplitMix64 (Steele, Lea and Flood, 2014).
#pragma once

#include <cstdint>

#include "millrace/payload/half_floats.h"

namespace millrace::codebook {

class Draw {
 public:
  MR_HOST_DEVICE explicit Draw(uint64_t seed) : state_(seed) {}

  MR_HOST_DEVICE uint64_t next() {
    state_ += 0x9e3779b97f4a7c15u;
    uint64_t bits = state_;
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111ebu;
    return bits ^ bits >> 31;
  }
  // 0 … below − 1. The upper half of a 128-bit product; its bias is below · 2^-64.
  MR_HOST_DEVICE uint64_t below(uint64_t below) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<uint64_t>(static_cast<Wide>(next()) * below >> 64);
  }
  // 0 ≤ number < 1, in steps of 2^-53.
  MR_HOST_DEVICE double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

  // Draw(state()) goes on where this one is.
  MR_HOST_DEVICE uint64_t state() const { return state_; }

 private:
  uint64_t state_;
};

} // namespace millrace::codebook
