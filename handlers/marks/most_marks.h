// The limit of marks in a list, which all makers of marks keep.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "handlers/gpu/mark_shapes.h"

namespace millrace::handlers {

// Computes the most marks of a list, at least one, since memory of no size cannot be planned. Throws
// std::invalid_argument if they could be more than draw.marks takes.
inline uint64_t checked_most_marks(uint64_t records, uint64_t marks_of_each) {
  const uint64_t most = records * marks_of_each;
  if (most > draw::kMarksMax)
    throw std::invalid_argument("up to " + std::to_string(records) + " records, each of " +
                                std::to_string(marks_of_each) + " marks, are more than the " +
                                std::to_string(draw::kMarksMax) +
                                " of a list; let the handler before give fewer records");
  return std::max<uint64_t>(most, 1);
}

} // namespace millrace::handlers
