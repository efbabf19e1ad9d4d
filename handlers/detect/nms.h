// Non-maximum suppression: of boxes that overlap, the best one stays.
#pragma once

#include <millrace/payload.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace millrace::handlers {

struct NmsRule {
  double iou_max = 0.45;   // a box that overlaps a better one by more is dropped; from 1 on there is none
  float score_min = 0.25f; // boxes below are left out first
  bool by_class = true;    // only boxes of one label drop each other
};

// True if the box has an area, only finite numbers, and a score of at least `score_min`.
bool is_candidate(const Box& box, float score_min);

// Intersection over union of two boxes that have an area: 0 to 1.
double overlap(const Box& a, const Box& b);

// Suppresses greedily: the best box stays and drops those that overlap it, then the best one of the rest stays, and so
// on. Of equal scores the earlier box counts as the better one, so that the result depends on no sorting algorithm.
// Takes time in proportion to candidates × boxes kept. run() allocates nothing for as many boxes as reserve() was told.
class Nms {
 public:
  void reserve(size_t boxes) { order_.reserve(boxes); }
  // Writes the boxes that stay, best first, until `kept` is full. Returns how many it wrote.
  size_t run(std::span<const Box> boxes, const NmsRule& rule, std::span<Box> kept);

 private:
  struct Ranked {
    float score;
    uint32_t index;
  };
  std::vector<Ranked> order_; // candidates of one run
};

} // namespace millrace::handlers
