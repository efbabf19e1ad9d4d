// Finds the place of a whole picture in a patch of another shape: as large as fits, with a border around it.
#pragma once

#include <millrace/payload/patch_transform.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "handlers/gpu/footprint.h"
#include "handlers/gpu/sample_mix.h"

namespace millrace::handlers {

// The part of the patch that the picture fills, in pixels of the patch.
struct Letterbox {
  uint32_t left = 0, top = 0, width = 1, height = 1;
};

struct LetterboxRule {
  bool centred = true;  // else the picture is at the upper left
  bool enlarges = true; // a picture that is smaller than the patch too
};

// The picture keeps its shape but for rounding to whole pixels, and has at least one pixel each way; a picture without
// pixels has none. The patch has at least one.
inline Letterbox letterbox_of(uint32_t picture_width, uint32_t picture_height, uint32_t patch_width,
                              uint32_t patch_height, const LetterboxRule& rule) {
  if (picture_width == 0 || picture_height == 0) return {0, 0, 0, 0};
  double ratio = std::min(double{1} * patch_width / picture_width, double{1} * patch_height / picture_height);
  if (!rule.enlarges) ratio = std::min(ratio, 1.0);
  const auto scaled = [&](uint32_t extent, uint32_t most) {
    return std::clamp(static_cast<uint32_t>(std::lround(extent * ratio)), uint32_t{1}, most);
  };
  Letterbox box{0, 0, scaled(picture_width, patch_width), scaled(picture_height, patch_height)};
  if (rule.centred) {
    box.left = (patch_width - box.width) / 2;
    box.top = (patch_height - box.height) / 2;
  }
  return box;
}

inline PatchTransform transform_of(const Letterbox& box, uint32_t picture_width, uint32_t picture_height) {
  if (box.width == 0) return {};
  return {static_cast<float>(double{1} * box.width / picture_width),
          static_cast<float>(double{1} * box.height / picture_height),
          static_cast<float>(box.left),
          static_cast<float>(box.top),
          picture_width,
          picture_height};
}

// The whole picture, as it is resized to the box.
inline Region whole_region(const SampleSource& source, const Letterbox& box) {
  return region_of(0, 0, static_cast<float>(source.width), static_cast<float>(source.height),
                   static_cast<int32_t>(box.width), static_cast<int32_t>(box.height));
}

} // namespace millrace::handlers
