// Finds the connected areas of a score map: the pixels of enough score that touch each other, also at a corner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace::handlers {

// An area and the rectangle around it, in pixels of the map; right and bottom are beyond it.
struct ScoredArea {
  uint32_t left, top, right, bottom;
  uint64_t count; // its pixels
  double sum;     // their scores, added up
};

// Owned by one thread. Allocates only if a map needs more room than reserve() has made.
class ConnectedAreas {
 public:
  // The most areas that a map of this size has, in pixels: no two of their first pixels touch.
  static size_t count_max(uint32_t width, uint32_t height) {
    return (size_t{width} + 1) / 2 * ((size_t{height} + 1) / 2);
  }
  // Room for every map of this size.
  void reserve(uint32_t width, uint32_t height);
  void clear();
  // Takes the next row of the map, from the top: `width` scores. NaN is no score.
  void add_row(const float* scores, uint32_t width, float score_min);
  // The areas of all rows since clear(), in the order of their first pixels, row by row.
  const std::vector<ScoredArea>& finish();

 private:
  // Neighbouring pixels of a row. Its area is that of the last of its chain of owners.
  struct Run {
    uint32_t from, to;
    uint32_t owner;
  };
  uint32_t owner_of(uint32_t area);
  void join(uint32_t a, uint32_t b);

  std::vector<Run> above_, here_;
  std::vector<ScoredArea> areas_;
  std::vector<uint32_t> owners_; // the area that each was joined to, itself if none
  uint32_t row_ = 0;
};

} // namespace millrace::handlers
