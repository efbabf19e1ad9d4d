// Resizes pictures, plane by plane. Pixel centres are at halves: target x lies over source
// (x + 0.5) · source_width / target_width − 0.5, as in OpenCV. Chroma of half the size lies in the middle of its 2 × 2
// pixels, and goes by the same rule at its own place.
//
// Rules. `nearest` takes the source pixel that the target's centre lies in. `bilinear` weighs the two nearest in each
// direction, the edge pixel repeated outside. `area` is the mean of the source pixels that the target pixel covers,
// partly covered ones counting in part. It also works upwards, and gives sharp-edged blocks there. Sums are rounded
// half up; they are single precision, or for `bilinear` fixed point of 16 bits, which is at most a fiftieth off (of ten
// bits at most a twentieth). So a result is at most 1 away from the rounded real value, and equal to it except at
// near-ties. An area of one colour keeps that colour.
#pragma once

#include <millrace/payload.h>

#include <cstdint>
#include <vector>

#include "handlers/gpu/resample_math.h"
#include "handlers/image/planes.h"

namespace millrace::handlers {

enum class ResizeMethod { nearest, bilinear, area };

// The source samples and weights of each target sample, in one direction.
struct ResampleAxis {
  uint32_t source = 0, target = 0; // samples
  uint32_t from = 0, to = 0;       // the lengths that are scaled
  uint32_t tap_count = 0;          // taps of every target sample; spare ones weigh 0
  std::vector<uint32_t> first;     // [target]; first + tap_count <= source
  std::vector<float> weights;      // [target][tap_count]; each row's sum is 1
};
ResampleAxis resample_axis(const gpu::ResizeAxis& sides, ResizeMethod method);

// Resizes planes of one size to another. Owned by one thread; allocates only if a size or the method changes.
class PlaneResampler {
 public:
  void prepare(const gpu::ResizeAxis& across, const gpu::ResizeAxis& down, ResizeMethod method);
  // The planes have the same samples and the prepared sizes, and do not overlap.
  void run(const Plane<const uint8_t>& source, const Plane<uint8_t>& target);

 private:
  void run_nearest(const Plane<const uint8_t>& source, const Plane<uint8_t>& target) const;
  template <class Number>
  void run_bilinear(const Plane<const uint8_t>& source, const Plane<uint8_t>& target);
  template <class Number>
  void run_sums(const Plane<const uint8_t>& source, const Plane<uint8_t>& target);

  ResizeMethod method_ = ResizeMethod::bilinear;
  ResampleAxis x_, y_;
  std::vector<float> row_; // one row after the vertical pass: source width times at most 4 channels
  // For `bilinear` if both directions have two taps: the same row in 1/256 (of ten bits in 1/64), and the second tap's
  // weight for every number of a target row, which the first picture fills in.
  std::vector<uint16_t> mixed_, x_weights_;
};

// The same for pictures.
class Resampler {
 public:
  // Sizes are at least 1 x 1.
  void prepare(uint32_t source_width, uint32_t source_height, uint32_t target_width, uint32_t target_height,
               ResizeMethod method);
  // The pictures have the same format and the prepared sizes, and do not overlap.
  void run(const ImageView& source, const ImageSpan& target);

 private:
  PlaneResampler first_, chroma_; // the latter for planes of half the size
};

} // namespace millrace::handlers
