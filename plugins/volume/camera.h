// The rays of a picture: where each begins and leads, in voxels. For host and device.
//
// A volume [z, y, x] is a box whose corner is at (0, 0, 0) and whose voxels have the edge 1. The axes of a camera
// without angles are those of the picture: x to the right, y down, z away from the eye.
#pragma once

#include <cmath>
#include <cstdint>

#include "millrace/payload/half_floats.h"
#include "millrace/payload/view.h"

namespace millrace::volume {

struct Vector {
  float x = 0, y = 0, z = 0;
};
MR_HOST_DEVICE inline Vector operator+(Vector a, Vector b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
MR_HOST_DEVICE inline Vector operator-(Vector a, Vector b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
MR_HOST_DEVICE inline Vector operator*(Vector a, float by) { return {a.x * by, a.y * by, a.z * by}; }
MR_HOST_DEVICE inline float product(Vector a, Vector b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
MR_HOST_DEVICE inline Vector unit_of(Vector a) { return a * (1 / sqrtf(product(a, a))); }

struct Ray {
  Vector origin, direction; // the latter has the length 1
};

class Rays {
 public:
  Rays() = default;
  // `size`: of the volume. At zoom 1 the ball around it has the picture's smaller side, so that it fits however it is
  // turned: the camera's pixels of the scene are as large as that makes them.
  MR_HOST_DEVICE Rays(const ViewCamera& camera, uint32_t width, uint32_t height, Vector size)
      : middle_x_(static_cast<float>(width) / 2), middle_y_(static_cast<float>(height) / 2) {
    constexpr double kDegree = 3.14159265358979323846 / 180;
    const ViewAxes axes = axes_of(camera);
    const float side = static_cast<float>(width < height ? width : height);
    const float voxels = sqrtf(product(size, size)) / side; // along a pixel of the scene
    const auto vector_of = [](const float(&axis)[3], float length) {
      return Vector{axis[0], axis[1], axis[2]} * length;
    };
    right_ = vector_of(axes.right, voxels / camera.zoom);
    down_ = vector_of(axes.down, voxels / camera.zoom);
    forward_ = vector_of(axes.forward, 1);
    middle_ = size * 0.5F + vector_of(camera.center, voxels);
    const double half = camera.field_of_view * kDegree / 2;
    // Parallel rays begin before the ball, wherever the middle is.
    const Vector away = middle_ - size * 0.5F;
    distance_ = camera.field_of_view > 0 ? static_cast<float>(middle_y_ * voxels / camera.zoom / std::tan(half))
                                         : sqrtf(product(size, size)) + sqrtf(product(away, away));
    is_parallel_ = camera.field_of_view <= 0 ? 1 : 0;
  }

  // Through a point of the picture, in pixels from its corner.
  MR_HOST_DEVICE Ray through(float x, float y) const {
    const Vector point = middle_ + right_ * (x - middle_x_) + down_ * (y - middle_y_);
    if (is_parallel_ != 0) return {point - forward_ * distance_, forward_};
    const Vector eye = middle_ - forward_ * distance_;
    return {eye, unit_of(point - eye)};
  }

 private:
  float middle_x_ = 0, middle_y_ = 0;
  Vector middle_{}, right_{}, down_{}; // the point in the picture's middle; a pixel to the right, and one down
  Vector forward_{};
  float distance_ = 0;       // from the eye to the middle
  uint32_t is_parallel_ = 0; // a word, as all else: kernels copy it by words
};

// The part of a ray that is in the box, as distances from its origin; none: begin is not below end.
struct Span {
  float begin, end;
};
MR_HOST_DEVICE inline Span span_in(const Ray& ray, Vector low, Vector high) {
  Span span = {0, 3e38F};
  const auto cut = [&span](float origin, float direction, float from, float to) {
    if (direction == 0) {
      if (origin < from || origin > to) span.end = -1;
      return;
    }
    const float one = (from - origin) / direction, other = (to - origin) / direction;
    span.begin = fmaxf(span.begin, fminf(one, other));
    span.end = fminf(span.end, fmaxf(one, other));
  };
  cut(ray.origin.x, ray.direction.x, low.x, high.x);
  cut(ray.origin.y, ray.direction.y, low.y, high.y);
  cut(ray.origin.z, ray.direction.z, low.z, high.z);
  return span;
}

} // namespace millrace::volume
