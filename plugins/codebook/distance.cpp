// Computes distances eight elements at a time, and those to four anchors side by side, so that additions which wait for
// one another lie apart.
#include "plugins/codebook/distance.h"

#include <limits>

#include "plugins/codebook/vectorize.h"

namespace millrace::codebook {

namespace {

constexpr uint32_t kSideBySide = 4;

[[gnu::always_inline]] inline Lanes load(const float* from) { return *reinterpret_cast<const Lanes*>(from); }

// ((0+1)+(2+3))+((4+5)+(6+7))
[[gnu::always_inline]] inline float sum_of(Lanes lanes) {
  const float low = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
  const float high = (lanes[4] + lanes[5]) + (lanes[6] + lanes[7]);
  return low + high;
}

[[gnu::always_inline]] inline void take(float distance, uint32_t label, Nearest& best) {
  if (distance < best.distance) {
    best.next = best.distance;
    best.distance = distance;
    best.label = label;
  } else if (distance < best.next) {
    best.next = distance;
  }
}

} // namespace

CODEBOOK_VECTORIZE float distance(const float* x, const float* a, size_t stride) {
  Lanes sum{};
  for (size_t j = 0; j < stride; j += kLanes) {
    const Lanes difference = load(x + j) - load(a + j);
    sum += difference * difference;
  }
  return sum_of(sum);
}

CODEBOOK_VECTORIZE Nearest nearest(const float* x, const Rows& anchors) {
  constexpr float kFar = std::numeric_limits<float>::infinity();
  Nearest best{0, kFar, kFar};
  const size_t stride = anchors.stride(), count = anchors.count();
  const float* a = anchors.row(0);
  uint32_t label = 0;
  for (; label + kSideBySide <= count; label += kSideBySide, a += kSideBySide * stride) {
    Lanes sums[kSideBySide] = {};
    for (size_t j = 0; j < stride; j += kLanes) {
      const Lanes at = load(x + j);
#pragma GCC unroll 4
      for (uint32_t k = 0; k < kSideBySide; ++k) {
        const Lanes difference = at - load(a + k * stride + j);
        sums[k] += difference * difference;
      }
    }
#pragma GCC unroll 4
    for (uint32_t k = 0; k < kSideBySide; ++k) take(sum_of(sums[k]), label + k, best);
  }
  for (; label < count; ++label, a += stride) {
    Lanes sum{};
    for (size_t j = 0; j < stride; j += kLanes) {
      const Lanes difference = load(x + j) - load(a + j);
      sum += difference * difference;
    }
    take(sum_of(sum), label, best);
  }
  return best;
}

double error_of_distance(size_t stride) {
  const double roundings = 2 + 1 + static_cast<double>(stride / kLanes) + 3;
  return roundings * static_cast<double>(std::numeric_limits<float>::epsilon()) / 2 * (1 + 1e-3);
}

} // namespace millrace::codebook
