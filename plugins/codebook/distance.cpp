// Computes distances eight elements at a time, and those to several anchors side by side, so that additions which wait
// for one another lie apart.
#include "plugins/codebook/distance.h"

#include <algorithm>
#include <limits>

#include "plugins/codebook/vectorize.h"

namespace millrace::codebook {

namespace {

constexpr size_t kPairsSideBySide = 4;
constexpr uint32_t kPair = 2 * kLanes; // numbers of two anchors

using PairLanes [[gnu::vector_size(kPair * sizeof(float)), gnu::aligned(alignof(float))]] = float;

[[gnu::always_inline]] inline Lanes load(const float* from) { return *reinterpret_cast<const Lanes*>(from); }

// ((0+1)+(2+3))+((4+5)+(6+7))
[[gnu::always_inline]] inline float sum_of(Lanes lanes) {
  const float low = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
  const float high = (lanes[4] + lanes[5]) + (lanes[6] + lanes[7]);
  return low + high;
}

double sum_of(const double (&lanes)[kLanes]) {
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

// Adds up both halves as sum_of() does; each sum is then in all places of its half.
[[gnu::always_inline]] inline PairLanes sums_of(PairLanes lanes) {
  lanes += __builtin_shufflevector(lanes, lanes, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
  lanes += __builtin_shufflevector(lanes, lanes, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
  return lanes + __builtin_shufflevector(lanes, lanes, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
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

// Computes with as many pairs as the array has, so that each has its registers.
template <size_t kPairs>
[[gnu::always_inline]] inline void take_pairs(const float* x, const float* a, size_t stride, uint32_t label,
                                              uint32_t count, Nearest& best) {
  PairLanes sums[kPairs] = {};
  for (size_t j = 0; j < stride; j += kLanes) {
    const Lanes eight = load(x + j);
    const PairLanes twice = __builtin_shufflevector(eight, eight, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7);
#pragma GCC unroll 4
    for (size_t k = 0; k < kPairs; ++k) {
      const PairLanes difference = twice - *reinterpret_cast<const PairLanes*>(a + k * 2 * stride + 2 * j);
      sums[k] += difference * difference;
    }
  }
#pragma GCC unroll 4
  for (size_t k = 0; k < kPairs; ++k) {
    const PairLanes both = sums_of(sums[k]);
    take(both[0], label, best);
    if (++label < count) take(both[kLanes], label, best);
    ++label;
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

CODEBOOK_VECTORIZE double square_of(const float* x, size_t stride) {
  double lanes[kLanes] = {};
  for (size_t j = 0; j < stride; j += kLanes)
    for (uint32_t lane = 0; lane < kLanes; ++lane) lanes[lane] += double{x[j + lane]} * double{x[j + lane]};
  return sum_of(lanes);
}

CODEBOOK_VECTORIZE double product_of(const float* a, const int64_t* sums, const Whole& values, size_t stride) {
  double lanes[kLanes] = {};
  for (size_t j = 0; j < stride; j += kLanes)
    for (uint32_t lane = 0; lane < kLanes; ++lane) lanes[lane] += double{a[j + lane]} * values.number(sums[j + lane]);
  return sum_of(lanes);
}

AnchorPairs::AnchorPairs(const Rows& anchors)
    : count_(static_cast<uint32_t>(anchors.count())),
      stride_(anchors.stride()),
      values_((anchors.count() + 1) / 2 * 2 * anchors.stride()) {
  for (size_t pair = 0; pair < pairs(); ++pair)
    for (size_t half = 0; half < 2; ++half) {
      const float* const row = anchors.row(std::min(2 * pair + half, anchors.count() - 1));
      for (size_t j = 0; j < stride_; j += kLanes)
        std::copy_n(row + j, kLanes, values_.data() + pair * 2 * stride_ + 2 * j + half * kLanes);
    }
}

// All vectors are compared with a few anchors before the next ones come, so that those stay in the first cache.
CODEBOOK_VECTORIZE void find_nearest(const Rows& rows, std::span<const uint32_t> vectors, const AnchorPairs& anchors,
                                     std::span<Nearest> found) {
  constexpr float kFar = std::numeric_limits<float>::infinity();
  std::fill(found.begin(), found.end(), Nearest{0, kFar, kFar});
  const size_t stride = anchors.stride(), pairs = anchors.pairs();
  size_t pair = 0;
  for (; pair + kPairsSideBySide <= pairs; pair += kPairsSideBySide)
    for (size_t n = 0; n < vectors.size(); ++n)
      take_pairs<kPairsSideBySide>(rows.row(vectors[n]), anchors.pair(pair), stride, static_cast<uint32_t>(2 * pair),
                                   anchors.count(), found[n]);
  for (; pair < pairs; ++pair)
    for (size_t n = 0; n < vectors.size(); ++n)
      take_pairs<1>(rows.row(vectors[n]), anchors.pair(pair), stride, static_cast<uint32_t>(2 * pair), anchors.count(),
                    found[n]);
}

} // namespace millrace::codebook
