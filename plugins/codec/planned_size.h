// The largest picture that a decoder's plan has memory for, and the error of a larger one.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace millrace::codec {

// In pixels; the parameters width_max and height_max of the decoders.
struct PlannedSize {
  uint32_t width_max, height_max;
};

// Throws std::runtime_error with the edit that helps.
inline void require_planned(uint64_t width, uint64_t height, PlannedSize planned) {
  if (width <= planned.width_max && height <= planned.height_max) return;
  const bool is_wide = width > planned.width_max;
  throw std::runtime_error("a picture of " + std::to_string(width) + " × " + std::to_string(height) +
                           " pixels came, and the plan has memory for " + std::to_string(planned.width_max) + " × " +
                           std::to_string(planned.height_max) + "\ntry: " +
                           (is_wide ? "width_max=" + std::to_string(width) : "height_max=" + std::to_string(height)));
}

} // namespace millrace::codec
