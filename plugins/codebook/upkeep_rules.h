// Numbers of the rules by which cells are merged and split; see upkeep.h.
#pragma once

#include <cstdint>

namespace millrace::codebook {

// The published rule.
inline constexpr uint32_t kPairsMax = 100;  // anchors whose distances are averaged
inline constexpr double kMergeBelow = 0.1f; // times that average
inline constexpr uint32_t kLargeFrom = 2;   // times a cell's share
inline constexpr double kWideFrom = 2;      // times T

inline constexpr uint32_t kCorrectedOf = 16; // m / 16 merges in one round at most

} // namespace millrace::codebook
