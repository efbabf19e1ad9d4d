// The share of their samples that long loops try. The sanitizers' runs, which take many times as long, and the quick
// tests set MILLRACE_PART to a percentage; all else tries all.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace millrace::test {

inline int64_t percent_tried() {
  const char* asked = std::getenv("MILLRACE_PART");
  return asked ? std::clamp<int64_t>(std::atoll(asked), 1, 100) : 100;
}

// How many of `all` samples are tried: one at least.
inline int64_t part_of(int64_t all) { return std::max<int64_t>(1, all * percent_tried() / 100); }

// True if the n-th of many cases, counted from 0, is tried: evenly spread, the last of each hundred among them.
inline bool is_tried(int64_t n) { return n * percent_tried() / 100 != (n + 1) * percent_tried() / 100; }

} // namespace millrace::test
