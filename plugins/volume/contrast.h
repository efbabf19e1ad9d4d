// The contrast that a volume is first shown with.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "plugins/volume/voxels.h"

namespace millrace::volume {

// The values between which the first picture's contrast lies: 0.5 and 99.5 of a hundred of the middle plane's voxels.
struct Contrast {
  float low = 0, high = 1;
};

// The numbers of the middle plane, at most about a million of them: every second one of a larger plane, or every third.
template <class Number>
std::vector<float> samples_of_middle_plane(const Voxels<Number>& voxels) {
  constexpr size_t kSamplesMax = size_t{1} << 20;
  const auto count = static_cast<size_t>(voxels.width) * static_cast<size_t>(voxels.height);
  const Number* const plane = voxels.data + static_cast<size_t>(voxels.depth / 2) * count;
  std::vector<float> samples;
  for (size_t i = 0; i < count; i += count / kSamplesMax + 1)
    if (const auto value = static_cast<float>(plane[i]); std::isfinite(value)) samples.push_back(value);
  return samples;
}

// Changes the order of the samples. Without any it is 0 to 1.
inline Contrast first_contrast(std::vector<float>& samples) {
  constexpr double kPartBelow = 0.005, kPartAbove = 0.995;
  if (samples.empty()) return {};
  const auto at = [&](double part) {
    const auto place = samples.begin() + static_cast<std::ptrdiff_t>(part * static_cast<double>(samples.size() - 1));
    std::nth_element(samples.begin(), place, samples.end());
    return *place;
  };
  Contrast contrast = {at(kPartBelow), at(kPartAbove)};
  if (contrast.high <= contrast.low) contrast.high = contrast.low + 1;
  return contrast;
}

} // namespace millrace::volume
