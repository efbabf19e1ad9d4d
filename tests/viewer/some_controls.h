// Controls as a handler offers them.
#pragma once

#include <algorithm>
#include <numeric>
#include <string_view>
#include <vector>

#include "millrace/payload/view.h"

namespace millrace::test {

inline ViewControl control(ViewControlKind kind, std::string_view key, std::string_view label) {
  ViewControl made;
  made.kind = static_cast<int32_t>(kind);
  std::copy(key.begin(), key.end(), made.key);
  std::copy(label.begin(), label.end(), made.label);
  return made;
}

inline ViewControl number(std::string_view key, std::string_view label, float low, float high, float value) {
  ViewControl made = control(ViewControlKind::number, key, label);
  made.low = low;
  made.high = high;
  made.value[0] = value;
  return made;
}

// `names`: each ends with a zero, but for the last one.
inline ViewControl choice(std::string_view key, std::string_view label, std::string_view names, float value) {
  ViewControl made = control(ViewControlKind::choice, key, label);
  std::copy(names.begin(), names.end(), made.choices);
  made.value[0] = value;
  return made;
}

// A mode, a gamma, a contrast with a histogram, and a slice.
inline std::vector<ViewControl> some_controls() {
  using namespace std::string_view_literals;
  ViewControl contrast = control(ViewControlKind::range, "look.contrast", "Contrast");
  contrast.low = -0.5F;
  contrast.high = 1.5F;
  contrast.value[1] = 1;
  std::iota(std::begin(contrast.histogram), std::end(contrast.histogram), 0U);
  return {choice("look.mode", "Mode", "fog\0surface"sv, 0), number("look.gamma", "Gamma", 0.1F, 4, 0.3F), contrast,
          number("dims.step", "Slice", 0, 10, 3)};
}

} // namespace millrace::test
