// The rectangles of a canvas: those that layers cover, and those that are left.
#pragma once

#include <millrace/payload.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "handlers/image/layer_places.h"
#include "handlers/image/picture.h"

namespace millrace::handlers {

struct Area {
  uint32_t left, top, right, bottom;
};

// The part of a layer that lies on the canvas; empty if left >= right or top >= bottom.
inline Area visible_area(const FittedLayer& fitted, const ImageSpan& canvas) {
  const auto clamped = [](int64_t at, uint32_t side) {
    return static_cast<uint32_t>(std::clamp<int64_t>(at, 0, side));
  };
  return {clamped(fitted.x, canvas.width()), clamped(fitted.y, canvas.height()),
          clamped(fitted.x + fitted.size.width, canvas.width()),
          clamped(fitted.y + fitted.size.height, canvas.height())};
}

// The part of the canvas that will not be covered, as rectangles. Each cover cuts a rectangle into at most four. Once
// there are too many rectangles, further covers are ignored, and more background is painted than needed.
class Uncovered {
 public:
  explicit Uncovered(const ImageSpan& canvas) : count_(1) { areas_[0] = {0, 0, canvas.width(), canvas.height()}; }

  void cover(const Area& cover) {
    if (cover.left >= cover.right || cover.top >= cover.bottom) return;
    const uint32_t before = count_;
    if (before * 4 > areas_.size()) return; // ignores this cover
    std::array<Area, kAreasMax> old = areas_;
    count_ = 0;
    for (uint32_t i = 0; i < before; ++i) {
      const Area& area = old[i];
      const uint32_t top = std::clamp(cover.top, area.top, area.bottom);
      const uint32_t bottom = std::clamp(cover.bottom, area.top, area.bottom);
      add({area.left, area.top, area.right, top});
      add({area.left, top, std::clamp(cover.left, area.left, area.right), bottom});
      add({std::clamp(cover.right, area.left, area.right), top, area.right, bottom});
      add({area.left, bottom, area.right, area.bottom});
    }
  }
  std::span<const Area> areas() const { return {areas_.data(), count_}; }

 private:
  static constexpr uint32_t kAreasMax = 256;

  void add(const Area& area) {
    if (area.left < area.right && area.top < area.bottom) areas_[count_++] = area;
  }

  std::array<Area, kAreasMax> areas_;
  uint32_t count_;
};

// Gives `picture` this format and size. Its bytes are kept only if it has them already.
inline void reshape(Picture& picture, Pixel pixel, uint32_t width, uint32_t height) {
  if (picture.empty() || picture.view().pixel() != pixel || picture.view().width() != width ||
      picture.view().height() != height)
    picture = Picture(pixel, width, height);
}

} // namespace millrace::handlers
