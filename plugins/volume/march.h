// The colour that a ray through a volume shows. For host and device: both take the same samples.
#pragma once

#include <cmath>
#include <cstdint>

#include "plugins/volume/camera.h"
#include "plugins/volume/voxels.h"

namespace millrace::volume {

enum class Mode : uint32_t { maximum, translucent, average, iso };

// How values become colours.
struct Shading {
  Mode mode;
  float low, per_value; // a value's level is (value − low) · per_value, from 0 to 1, to the power of gamma
  float gamma, opacity;
  float iso;                // the level of the surface
  float step;               // voxels from sample to sample
  uint8_t colours[3 * 256]; // red, green and blue of 256 levels

  MR_HOST_DEVICE float level(float value) const {
    const float line = fminf(fmaxf((value - low) * per_value, 0.0F), 1.0F);
    return gamma == 1 ? line : powf(line, gamma);
  }
};

struct Colour {
  float red = 0, green = 0, blue = 0; // 0 to 255
};
MR_HOST_DEVICE inline Colour colour_of(const Shading& shading, float level) {
  const uint8_t* const at = shading.colours + 3 * static_cast<int32_t>(rintf(level * 255));
  return {static_cast<float>(at[0]), static_cast<float>(at[1]), static_cast<float>(at[2])};
}

// The greatest value that a sample in each brick can have: of its voxels and those around it. Rays pass over bricks
// that cannot change what they show.
struct Bricks {
  static constexpr int32_t kEdge = 16; // voxels
  const float* greatest;               // [z, y, x]
  int32_t across, down, deep;
};

// Calls take(distance, value) for the samples of a ray, until it returns false. `skips(greatest)`: no sample in such a
// brick counts. Returns how many samples the whole ray has.
template <class Source, class Skips, class Take>
MR_HOST_DEVICE int32_t walk(const Source& voxels, const Bricks& bricks, float step, const Ray& ray, Span span,
                            Skips&& skips, Take&& take) {
  constexpr auto kEdge = static_cast<float>(Bricks::kEdge);
  const Vector inverse = {1 / ray.direction.x, 1 / ray.direction.y, 1 / ray.direction.z};
  const float steps = 1 / step; // in a voxel
  const auto at = [&](int32_t k) { return span.begin + (static_cast<float>(k) + 0.5F) * step; };
  const auto count = static_cast<int32_t>(ceilf((span.end - span.begin) / step - 0.5F));
  int32_t brick_end = 0; // the first sample that is not in the present brick
  for (int32_t k = 0; k < count; ++k) {
    const Vector p = ray.origin + ray.direction * at(k);
    if (k >= brick_end) {
      const auto index = [](float place, int32_t most) {
        const auto i = static_cast<int32_t>(place * (1 / kEdge));
        return i < 0 ? 0 : i < most ? i : most - 1;
      };
      const int32_t x = index(p.x, bricks.across), y = index(p.y, bricks.down), z = index(p.z, bricks.deep);
      // A brick knows a voxel more on each side, so its end may be rounded.
      const auto leaves = [](int32_t brick, float origin, float per_voxel) {
        const float low = static_cast<float>(brick) * kEdge - origin;
        return fmaxf(low * per_voxel, (low + kEdge) * per_voxel);
      };
      const float end = fminf(fminf(leaves(x, ray.origin.x, inverse.x), leaves(y, ray.origin.y, inverse.y)),
                              fminf(leaves(z, ray.origin.z, inverse.z), span.end));
      const auto next = static_cast<int32_t>(ceilf((end - span.begin) * steps - 0.5F));
      brick_end = next > k ? next : k + 1;
      if (skips(bricks.greatest[(z * bricks.down + y) * bricks.across + x])) {
        k = brick_end - 1;
        continue;
      }
    }
    if (!take(at(k), voxels.value(p))) break;
  }
  return count;
}

// The brightness of a surface that is lit from the eye.
template <class Source>
MR_HOST_DEVICE float light_at(const Source& voxels, const Ray& ray, float distance) {
  constexpr float kFromAll = 0.2F;
  const Vector p = ray.origin + ray.direction * distance;
  const auto slope = [&](Vector along) { return voxels.value(p + along) - voxels.value(p - along); };
  const Vector gradient = {slope({1, 0, 0}), slope({0, 1, 0}), slope({0, 0, 1})};
  const float square = product(gradient, gradient);
  if (square <= 0) return 1;
  return kFromAll + (1 - kFromAll) * fabsf(product(gradient, ray.direction)) / sqrtf(square);
}

// The place where the level reaches that of the surface, between a sample below it and the one after.
template <class Source>
MR_HOST_DEVICE float crossing(const Source& voxels, const Shading& shading, const Ray& ray, float below, float above) {
  constexpr int kHalvings = 6;
  for (int n = 0; n < kHalvings; ++n) {
    const float middle = (below + above) / 2;
    const bool is_above = shading.level(voxels.value(ray.origin + ray.direction * middle)) >= shading.iso;
    (is_above ? above : below) = middle;
  }
  return above;
}

// No value above the contrast shows more than its upper end, and none below it less than its lower end.
template <class Source>
MR_HOST_DEVICE Colour maximum_of(const Source& voxels, const Bricks& bricks, const Shading& shading, const Ray& ray,
                                 Span span) {
  float most = shading.low;
  const int32_t count = walk(
      voxels, bricks, shading.step, ray, span, [&](float greatest) { return greatest <= most; },
      [&](float, float value) {
        most = fmaxf(most, value);
        return !((value - shading.low) * shading.per_value >= 1);
      });
  return count <= 0 ? Colour() : colour_of(shading, shading.level(most));
}

// A brick whose voxels are all the least number there is, which is 0, adds nothing.
template <class Source>
MR_HOST_DEVICE Colour average_of(const Source& voxels, const Bricks& bricks, const Shading& shading, const Ray& ray,
                                 Span span) {
  float sum = 0;
  const int32_t count = walk(
      voxels, bricks, shading.step, ray, span,
      [&](float greatest) { return voxels.has_no_negatives() && greatest == 0; },
      [&](float, float value) {
        sum += value;
        return true;
      });
  return count <= 0 ? Colour() : colour_of(shading, shading.level(sum / static_cast<float>(count)));
}

template <class Source>
MR_HOST_DEVICE Colour translucent_of(const Source& voxels, const Bricks& bricks, const Shading& shading, const Ray& ray,
                                     Span span) {
  constexpr float kNothingLeft = 1.0F / 256;
  Colour sum;
  float left = 1; // the part that is seen from farther away
  walk(
      voxels, bricks, shading.step, ray, span, [&](float greatest) { return shading.level(greatest) == 0; },
      [&](float, float value) {
        const float level = shading.level(value);
        const float through_one = 1 - shading.opacity * level;
        const float through = shading.step == 1 ? through_one : powf(through_one, shading.step);
        const Colour colour = colour_of(shading, level);
        const float part = left * (1 - through);
        sum = {sum.red + part * colour.red, sum.green + part * colour.green, sum.blue + part * colour.blue};
        left *= through;
        return left >= kNothingLeft;
      });
  return sum;
}

template <class Source>
MR_HOST_DEVICE Colour surface_of(const Source& voxels, const Bricks& bricks, const Shading& shading, const Ray& ray,
                                 Span span) {
  Colour shown;
  walk(
      voxels, bricks, shading.step, ray, span, [&](float greatest) { return shading.level(greatest) < shading.iso; },
      [&](float distance, float value) {
        if (shading.level(value) < shading.iso) return true;
        const float at = crossing(voxels, shading, ray, fmaxf(span.begin, distance - shading.step), distance);
        const float light = light_at(voxels, ray, at);
        shown = colour_of(shading, 1);
        shown = {shown.red * light, shown.green * light, shown.blue * light};
        return false;
      });
  return shown;
}

// The part of the volume that is shown, in voxels.
struct Crop {
  Vector low, high;
};

template <class Source>
MR_HOST_DEVICE Colour shown_by(const Source& voxels, const Bricks& bricks, const Shading& shading, const Ray& ray,
                               Crop crop) {
  const Span span = span_in(ray, crop.low, crop.high);
  if (!(span.begin < span.end)) return {};
  switch (shading.mode) {
    case Mode::maximum: return maximum_of(voxels, bricks, shading, ray, span);
    case Mode::translucent: return translucent_of(voxels, bricks, shading, ray, span);
    case Mode::average: return average_of(voxels, bricks, shading, ray, span);
    case Mode::iso: return surface_of(voxels, bricks, shading, ray, span);
  }
  return {};
}

// All that a picture depends on besides the voxels and their bricks. It has no pointers, so that a device can have it
// in its own memory.
struct Sight {
  Rays rays;
  Crop crop;
  uint32_t width, height; // the picture's
  uint32_t coarse;        // every so many pixels of every so many rows are computed
  Shading shading;
};

// The colour of a block of `coarse` × `coarse` pixels, by the first of them.
template <class Source>
MR_HOST_DEVICE Colour colour_at(const Source& voxels, const Bricks& bricks, const Sight& sight, uint32_t x,
                                uint32_t y) {
  const float half = static_cast<float>(sight.coarse) / 2;
  const Ray ray = sight.rays.through(static_cast<float>(x) + half, static_cast<float>(y) + half);
  return shown_by(voxels, bricks, sight.shading, ray, sight.crop);
}

} // namespace millrace::volume
