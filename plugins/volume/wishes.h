// A viewer's records, read by handlers that follow them: names, and numbers that make sense.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <vector>

#include "millrace/nearest.h"
#include "millrace/payload/view.h"

namespace millrace::volume {

// Throws std::invalid_argument for a number that is not in its range, or none.
inline void require_within(const char* what, float number, float least, float most) {
  if (number >= least && number <= most) return;
  throw std::invalid_argument(std::string(what) + " is " + std::to_string(number) + ", and may be " +
                              std::to_string(least) + " to " + std::to_string(most));
}

// The name in a field that ends with a zero.
template <size_t kBytes>
std::string text_of(const uint8_t (&field)[kBytes]) {
  return {field, std::find(field, field + kBytes, uint8_t{0})};
}
template <size_t kBytes>
void write_text(const std::string& text, uint8_t (&field)[kBytes]) {
  std::copy_n(text.begin(), std::min(text.size(), kBytes - 1), field);
}

// The name that a record gives, or the handler's parameter where it gives none. Throws std::invalid_argument for one
// that is not among the choices. `what`: "the look's map".
inline std::string chosen(const char* what, const std::string& given, const std::string& parameter,
                          std::initializer_list<const char*> choices) {
  if (given.empty()) return parameter;
  if (std::find(choices.begin(), choices.end(), given) != choices.end()) return given;
  const std::vector<std::string> names(choices.begin(), choices.end());
  const std::string nearest = nearest_name(given, names);
  throw std::invalid_argument(std::string(what) + " is \"" + given + "\", and may be " + listed_from(given, names) +
                              (nearest.empty() ? "" : "\ntry: " + nearest));
}

// Only the numbers that a slice reads: no angles but the roll.
inline void require_sound(const ViewCamera& camera) {
  constexpr float kFarthest = 1e6F; // beyond it a picture's pixels are no longer apart
  for (const int axis : {0, 1}) require_within("the camera's center", camera.center[axis], -kFarthest, kFarthest);
  require_within("the camera's roll", camera.angles[2], -kFarthest, kFarthest);
  require_within("the camera's zoom", camera.zoom, 1e-4F, 1e4F);
}
inline void require_sound(const ViewLook& look) {
  constexpr float kMost = 1e6F;
  require_within("the look's low", look.low, -kMost, kMost);
  require_within("the look's high", look.high, -kMost, kMost);
  require_within("the look's gamma", look.gamma, 0.01F, 100);
}

} // namespace millrace::volume
