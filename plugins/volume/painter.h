// Pictures of a volume on the host.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "millrace/payload/view.h"
#include "plugins/crew/crew.h"
#include "plugins/volume/contrast.h"
#include "plugins/volume/march.h"
#include "plugins/volume/sight.h"
#include "plugins/volume/voxels.h"

namespace millrace::volume {

struct Settings {
  uint32_t width, height; // the picture's
  Mode mode;
  std::string colour_map;
  float iso; // a level
  float step;
};

// Facts about a volume that are found once.
template <class Number>
class Survey {
 public:
  Survey(const Voxels<Number>& voxels, Crew& crew);

  const Contrast& contrast() const { return contrast_; }
  Bricks bricks() const { return {greatest_.data(), across_, down_, deep_}; }

 private:
  void find_bricks(const Voxels<Number>& voxels, Crew& crew);

  Contrast contrast_;
  std::vector<float> greatest_;
  int32_t across_ = 0, down_ = 0, deep_ = 0;
};

// How many of the middle plane's voxels lie in each equal part of a range from `low` to `high`, which are parts of the
// contrast.
template <class Number>
void count_levels(const Voxels<Number>& voxels, const Contrast& contrast, float low, float high,
                  std::span<uint32_t> counts);

Wanted wanted_of(const Settings& settings);
// As set_sight(), with the colours.
Sight sight_of(const Settings& settings, const Contrast& contrast, Vector size, const ViewCamera& camera,
               const ViewLook& look);

// Writes red, green and blue of each pixel to rows that lie `stride` bytes apart.
template <class Number>
void paint(const Voxels<Number>& voxels, const Bricks& bricks, const Sight& sight, uint8_t* picture, size_t stride,
           Crew& crew);

} // namespace millrace::volume
