// Finds the samples of a row or column that make up one sample of a resized region, with the same arithmetic on CPU and
// GPU.
//
// Rules. Pixel centres are at halves: sample i of a region that begins at `begin` lies at begin + (i + 0.5) · scale −
// 0.5, as in OpenCV. Up to a scale of 2 it is mixed from its two neighbours (bilinear). Beyond, it is the mean of the
// samples that it covers (area), partly covered ones counting in part, so that nothing aliases. At 2 both are the same.
// A place outside the picture takes the sample at the picture's edge. Places and weights are single precision, computed
// by individually rounded operations and one explicit fused multiply-add, so CPU and GPU get the same bits; at column
// 4000 a place is at most 1/4096 pixel off.
#pragma once

#include <cmath>
#include <cstdint>

#include "handlers/gpu/both.h"

namespace millrace::handlers {

// The samples first … last. The weights add up to 1; if there is only one sample, `first_weight` is 1.
struct Footprint {
  int32_t first, last;
  float first_weight, inner_weight, last_weight;
};

// Beyond this scale a sample is a mean.
inline constexpr float kBilinearScaleMax = 2;

MR_BOTH inline int32_t clamped_place(float place, int32_t extent) {
  return static_cast<int32_t>(fminf(fmaxf(place, 0.0f), static_cast<float>(extent - 1)));
}

MR_BOTH inline Footprint bilinear_footprint(float begin, float scale, int32_t index, int32_t extent) {
  const float centre = fmaf(static_cast<float>(index) + 0.5f, scale, begin - 0.5f);
  const float place = fminf(fmaxf(centre, 0.0f), static_cast<float>(extent - 1));
  const int32_t first = static_cast<int32_t>(place);
  const float second = place - static_cast<float>(first);
  return {first, first + 1 < extent ? first + 1 : first, 1 - second, 0, second};
}

MR_BOTH inline Footprint area_footprint(float begin, float scale, int32_t index, int32_t extent) {
  const float from = fmaf(static_cast<float>(index), scale, begin);
  const float to = fmaf(static_cast<float>(index + 1), scale, begin);
  const int32_t first = clamped_place(floorf(from), extent), last = clamped_place(ceilf(to) - 1, extent);
  if (first == last) return {first, last, 1, 0, 0};
  const float share = 1 / (to - from);
  return {first, last, (static_cast<float>(first + 1) - from) * share, share, (to - static_cast<float>(last)) * share};
}

// Sample `index` of a region that begins at `begin` and has `scale` of the picture's samples for each of its own, in a
// row or column of `extent` samples. All numbers must be finite, the scale positive, and places within ±2²² of the row.
MR_BOTH inline Footprint footprint(float begin, float scale, int32_t index, int32_t extent) {
  return scale <= kBilinearScaleMax ? bilinear_footprint(begin, scale, index, extent)
                                    : area_footprint(begin, scale, index, extent);
}

// A region of a picture, as it is resized. `valid` is false if it has no area, lies absurdly far outside or contains
// NaN: then there is nothing to show.
struct Region {
  float left, top, scale_x, scale_y;
  bool valid;
};
inline constexpr float kRegionPlaceMax = 1e6f; // pixels; beyond any picture

MR_BOTH inline Region region_of(float left, float top, float width, float height, int32_t target_width,
                                int32_t target_height) {
  // Comparisons with NaN are false.
  const bool near = fabsf(left) <= kRegionPlaceMax && fabsf(top) <= kRegionPlaceMax;
  const bool sized = width > 0 && height > 0 && width <= kRegionPlaceMax && height <= kRegionPlaceMax;
  return {left, top, width / static_cast<float>(target_width), height / static_cast<float>(target_height),
          near && sized};
}

} // namespace millrace::handlers
