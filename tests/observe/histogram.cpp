// Percentiles of histograms beside those of the sorted samples, and histograms that are added and taken away.
#include "observe/histogram.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "observe/random.h"

using namespace millrace;

namespace {

// Times of all sizes.
int64_t any_time(Random& random) { return random.spread(1, int64_t{1} << 50); }

std::vector<int64_t> add_some(Random& random, Histogram& histogram, size_t count) {
  std::vector<int64_t> samples;
  for (size_t n = 0; n < count; ++n) {
    samples.push_back(any_time(random));
    histogram.add(samples.back());
  }
  return samples;
}

void check_quantiles(const Histogram& histogram, std::vector<int64_t> samples, int64_t max) {
  REQUIRE(histogram.count() == samples.size());
  if (samples.empty()) CHECK(histogram.quantile_ns(0.5) == 0);
  if (samples.empty()) return;
  std::sort(samples.begin(), samples.end());
  for (const double quantile : {0.0, 0.25, 0.5, 0.9, 0.99, 1.0}) {
    CAPTURE(quantile);
    const auto rank = static_cast<size_t>(quantile * static_cast<double>(samples.size()));
    const int64_t exact = std::max<int64_t>(samples[std::min(rank, samples.size() - 1)], 1);
    CHECK(histogram.quantile_ns(quantile) >= std::min(exact, max));
    CHECK(static_cast<double>(histogram.quantile_ns(quantile)) <= static_cast<double>(exact) * 1.04 + 1);
  }
}

} // namespace

TEST_CASE("percentiles are those of the sorted samples, within a bucket") {
  Random random(1);
  for (const size_t count : {0u, 1u, 2u, 100u, 5'000u}) {
    CAPTURE(count);
    Histogram histogram;
    const std::vector<int64_t> samples = add_some(random, histogram, count);
    check_quantiles(histogram, samples, histogram.max_ns());
    if (count > 0) CHECK(histogram.max_ns() == std::max<int64_t>(*std::max_element(samples.begin(), samples.end()), 1));
  }
}

TEST_CASE("a sum of histograms has the samples of both, and less one of them those of the other") {
  Random random(2);
  for (int n = 0; n < 50; ++n) {
    CAPTURE(n);
    Histogram one, other;
    const std::vector<int64_t> of_one = add_some(random, one, random.next() % 200);
    std::vector<int64_t> both = add_some(random, other, random.next() % 200);
    const std::vector<int64_t> of_other = both;
    both.insert(both.end(), of_one.begin(), of_one.end());
    Histogram sum = one;
    sum.merge(other);
    check_quantiles(sum, both, sum.max_ns());
    CHECK(sum.sum_ns() == one.sum_ns() + other.sum_ns());
    sum.take_away(one);
    check_quantiles(sum, of_other, sum.max_ns());
    CHECK(sum.sum_ns() == other.sum_ns());
  }
}

TEST_CASE("a copy has the samples of the other histogram alone") {
  Random random(4);
  Histogram histogram;
  for (int n = 0; n < 20; ++n) {
    CAPTURE(n);
    Histogram other;
    const std::vector<int64_t> samples = add_some(random, other, random.next() % 20);
    histogram.copy(other);
    check_quantiles(histogram, samples, histogram.max_ns());
    CHECK(histogram.sum_ns() == other.sum_ns());
  }
}

TEST_CASE("a cleared histogram is like a new one") {
  Random random(3);
  Histogram histogram;
  add_some(random, histogram, 300);
  histogram.clear();
  CHECK(histogram.count() == 0);
  CHECK(histogram.sum_ns() == 0);
  CHECK(histogram.max_ns() == 0);
  CHECK(histogram.quantile_ns(0.99) == 0);
  const std::vector<int64_t> samples = add_some(random, histogram, 300);
  check_quantiles(histogram, samples, histogram.max_ns());
}
