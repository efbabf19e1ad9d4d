// The parameters of handlers that suppress boxes.
#pragma once

#include <millrace/handler.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "handlers/detect/nms.h"

namespace millrace::handlers {

struct [[gnu::visibility("hidden")]] NmsParams { // hidden like its members
  explicit NmsParams(Handler & owner)
      : iou_max(owner, "iou_max", 0.45, "overlap with a better box at most; 1: any", range(0, 1), live),
        score_min(owner, "score_min", 0.25, "score of a box at least", range(0, 1), live),
        count_max(owner, "count_max", 300, "boxes that are kept at most", range(1, 65536)),
        by_class(owner, "by_class", true, "only boxes of one label drop each other") {}

  NmsRule rule() const { return {*iou_max, static_cast<float>(*score_min), *by_class}; }
  // The most boxes that are kept of so many.
  size_t most_of(uint64_t boxes) const {
    return static_cast<size_t>(std::min(boxes, static_cast<uint64_t>(*count_max)));
  }

  Param<double> iou_max, score_min;
  Param<int64_t> count_max;
  Param<bool> by_class;
};

} // namespace millrace::handlers
