// Pictures of a volume; see painter.h.
#include "plugins/volume/painter.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "plugins/volume/colour_maps.h"

namespace millrace::volume {

namespace {

constexpr size_t kRowsOfPart = 4;

uint8_t byte_of(float channel) { return static_cast<uint8_t>(std::lround(std::clamp(channel, 0.0F, 255.0F))); }

int32_t bricks_along(int32_t voxels) { return (voxels + Bricks::kEdge - 1) / Bricks::kEdge; }

} // namespace

template <class Number>
Survey<Number>::Survey(const Voxels<Number>& voxels, Crew& crew) {
  std::vector<float> samples = samples_of_middle_plane(voxels);
  contrast_ = first_contrast(samples);
  find_bricks(voxels, crew);
}

// A sample in a brick lies between the middles of voxels that may be one outside of it.
template <class Number>
void Survey<Number>::find_bricks(const Voxels<Number>& voxels, Crew& crew) {
  across_ = bricks_along(voxels.width), down_ = bricks_along(voxels.height), deep_ = bricks_along(voxels.depth);
  greatest_.resize(static_cast<size_t>(across_) * static_cast<size_t>(down_) * static_cast<size_t>(deep_));
  const auto greatest_of = [&](int32_t x, int32_t y, int32_t z) {
    const auto from = [](int32_t brick) { return std::max(brick * Bricks::kEdge - 1, 0); };
    const auto to = [](int32_t brick, int32_t size) { return std::min((brick + 1) * Bricks::kEdge + 1, size); };
    float greatest = -3e38F;
    for (int32_t k = from(z); k < to(z, voxels.depth); ++k)
      for (int32_t j = from(y); j < to(y, voxels.height); ++j)
        for (int32_t i = from(x); i < to(x, voxels.width); ++i) greatest = std::max(greatest, voxels.at(i, j, k));
    return greatest;
  };
  crew.each(greatest_.size(), 1, [&](size_t begin, size_t end) {
    for (size_t at = begin; at < end; ++at) {
      const auto brick = static_cast<int32_t>(at);
      greatest_[at] = greatest_of(brick % across_, brick / across_ % down_, brick / across_ / down_);
    }
  });
}

template <class Number>
void count_levels(const Voxels<Number>& voxels, const Contrast& contrast, float low, float high,
                  std::span<uint32_t> counts) {
  std::ranges::fill(counts, 0U);
  for (const float value : samples_of_middle_plane(voxels)) {
    const float part = (value - contrast.low) / (contrast.high - contrast.low), at = (part - low) / (high - low);
    if (!(at >= 0 && at <= 1)) continue;
    ++counts[std::min(static_cast<size_t>(at * static_cast<float>(counts.size())), counts.size() - 1)];
  }
}

Wanted wanted_of(const Settings& settings) {
  return {settings.width, settings.height, settings.mode, settings.iso, settings.step};
}

Sight sight_of(const Settings& settings, const Contrast& contrast, Vector size, const ViewCamera& camera,
               const ViewLook& look) {
  Sight sight = {};
  set_sight(sight, wanted_of(settings), contrast, size, camera, look);
  std::ranges::copy(colour_map(settings.colour_map), sight.shading.colours);
  return sight;
}

template <class Number>
void paint(const Voxels<Number>& voxels, const Bricks& bricks, const Sight& sight, uint8_t* picture, size_t stride,
           Crew& crew) {
  const uint32_t coarse = sight.coarse;
  const uint32_t rows = (sight.height + coarse - 1) / coarse;
  const auto paint_row = [&](uint32_t y) {
    uint8_t* const row = picture + size_t{y} * stride;
    for (uint32_t x = 0; x < sight.width; x += coarse) {
      const Colour colour = colour_at(voxels, bricks, sight, x, y);
      for (uint32_t beside = x; beside < std::min(x + coarse, sight.width); ++beside) {
        row[3 * size_t{beside}] = byte_of(colour.red);
        row[3 * size_t{beside} + 1] = byte_of(colour.green);
        row[3 * size_t{beside} + 2] = byte_of(colour.blue);
      }
    }
    for (uint32_t below = y + 1; below < std::min(y + coarse, sight.height); ++below)
      std::memcpy(picture + size_t{below} * stride, row, size_t{sight.width} * 3);
  };
  crew.each(rows, kRowsOfPart, [&](size_t begin, size_t end) {
    for (size_t n = begin; n < end; ++n) paint_row(static_cast<uint32_t>(n) * coarse);
  });
}

template class Survey<uint8_t>;
template class Survey<uint16_t>;
template class Survey<float>;
template void count_levels(const Voxels<uint8_t>&, const Contrast&, float, float, std::span<uint32_t>);
template void count_levels(const Voxels<uint16_t>&, const Contrast&, float, float, std::span<uint32_t>);
template void count_levels(const Voxels<float>&, const Contrast&, float, float, std::span<uint32_t>);
template void paint(const Voxels<uint8_t>&, const Bricks&, const Sight&, uint8_t*, size_t, Crew&);
template void paint(const Voxels<uint16_t>&, const Bricks&, const Sight&, uint8_t*, size_t, Crew&);
template void paint(const Voxels<float>&, const Bricks&, const Sight&, uint8_t*, size_t, Crew&);

} // namespace millrace::volume
