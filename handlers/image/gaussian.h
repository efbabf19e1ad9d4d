// Gaussian blur of planes of 8 or 10 bits: separable, fixed point, borders reflected without repeating the edge
// (dcb|abcd|cba).
//
// Rules. The kernel has radius ceil(3 sigma) and the samples of exp(-x²/2σ²) as weights, in 15 bits, whose sum is
// exact: a flat picture stays flat. Rows keep 7 fractional bits between the two passes, of ten bits 5; the result is
// rounded half up. It differs from the real-valued convolution by at most 1, of ten bits by at most 4 of 1024 steps:
// the weights have the same 15 bits.
#pragma once

#include <millrace/payload.h>

#include <cstdint>
#include <vector>

#include "handlers/gpu/both.h"
#include "handlers/image/planes.h"

namespace millrace::handlers {

// A wider kernel should be applied to a smaller picture; the bound also limits the scratch row.
inline constexpr double kSigmaMax = 50;

// The right half of a kernel: weights[0] is the centre's. weights[0] + 2 · (sum of the others) = 32768.
struct GaussianKernel {
  double sigma = 0;
  std::vector<uint16_t> weights = {32768};
  uint32_t radius() const { return static_cast<uint32_t>(weights.size() - 1); }
};
// Makes a kernel; sigma is in pixels, 0 … kSigmaMax, and 0 does not change the picture.
GaussianKernel gaussian_kernel(double sigma);

// The index that stands for index `i` of a row of `size` samples with reflected borders; any i, also far outside.
MR_BOTH constexpr uint32_t reflect101(int64_t i, uint32_t size) {
  if (size == 1) return 0;
  const int64_t period = 2 * (int64_t{size} - 1);
  const int64_t phase = ((i % period) + period) % period;
  return static_cast<uint32_t>(phase < period - phase ? phase : period - phase);
}

// Blurs one picture after another. Owned by one thread. Allocates nothing once it has seen a picture of this width with
// a kernel of this radius.
class GaussianBlur {
 public:
  void set_sigma(double sigma);
  double sigma() const { return kernel_.sigma; }
  const GaussianKernel& kernel() const { return kernel_; }
  const GaussianKernel& chroma_kernel() const { return chroma_kernel_; }
  // Reserves memory for pictures with rows of up to `row_numbers`, at any sigma.
  void reserve(size_t row_numbers);

  // Both pictures have the same size and format and do not overlap. Takes interleaved 8-bit formats (alpha is blurred
  // like a colour), and nv12, i420 and p010, whose chroma is blurred with half the sigma.
  void run(const ImageView& source, const ImageSpan& target);

 private:
  template <class Number>
  void run_plane(const GaussianKernel& kernel, const Plane<const uint8_t>& source, const Plane<uint8_t>& target,
                 uint32_t width, uint32_t height);

  GaussianKernel kernel_, chroma_kernel_;
  std::vector<uint16_t> row_;           // one row between the passes, with its borders; fixed point
  std::vector<const uint8_t*> sources_; // the rows that one target row is made of
};

} // namespace millrace::handlers
