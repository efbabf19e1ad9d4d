// Heads of detectors: the boxes in the tensor that a network gives.
#pragma once

#include <millrace/payload.h>

#include <cstdint>
#include <span>
#include <vector>

namespace millrace::handlers {

// The numbers of a box, in the order in which exports have them. C is the number of classes.
enum class HeadKind {
  anchor_free, // centre x, centre y, width, height, C scores
  anchors,     // the same with the score of the box itself before those of the classes
  end_to_end,  // left, top, right, bottom, score, class
};

// The dimension that holds the numbers of a box.
enum class HeadNumbers { smaller, first, last };

struct HeadLayout {
  int64_t boxes = 0, numbers = 0; // numbers: of one box
  bool numbers_first = false;
};

// The layout of a head of this shape: two dimensions, or three of which the first is 1. Throws std::invalid_argument
// with the shape and the expected one.
HeadLayout head_layout(HeadKind kind, HeadNumbers place, std::span<const int64_t> shape);

// Adds the boxes whose score is at least `score_min`, in the tensor's order and units, to `boxes`. A box that has a
// number that is NaN is left out; so are boxes without area. The tensor holds float32 or float16 and may have strides.
void decode_head(HeadKind kind, const HeadLayout& layout, const TensorView& tensor, float score_min,
                 std::vector<Box>& boxes);

} // namespace millrace::handlers
