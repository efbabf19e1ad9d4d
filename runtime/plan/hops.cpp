// Interpolation, and shortest ways (Dijkstra); see hops.h.
#include "plan/hops.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace millrace::plan {

double HopPrice::copy_us(double bytes) const {
  if (!copies()) return kInfeasible;
  double size = 0, us = 0; // the largest known size below `bytes`, and its time beyond the latency
  for (size_t i = 0; i < kHopSizes.size(); ++i) {
    const double next_size = static_cast<double>(kHopSizes[i]);
    const double next_us = next_size * us_per_byte[i];
    if (bytes <= next_size) return latency_us + us + (next_us - us) * (bytes - size) / (next_size - size);
    size = next_size;
    us = next_us;
  }
  return latency_us + bytes * us_per_byte.back();
}

// Between two sizes, interpolates how many times slower than the median a slow copy is; beyond them, it is as at the
// nearest.
double HopPrice::late_copy_us(double bytes) const {
  const auto times_slower = [&](size_t i) {
    return std::max(1.0, p99_us[i] / copy_us(static_cast<double>(kHopSizes[i])));
  };
  const auto above = std::find_if(kHopSizes.begin(), kHopSizes.end(),
                                  [&](uint64_t size) { return bytes <= static_cast<double>(size); });
  const auto i = static_cast<size_t>(above - kHopSizes.begin());
  if (!copies()) return kInfeasible;
  if (i == 0) return copy_us(bytes) * times_slower(0);
  if (above == kHopSizes.end()) return copy_us(bytes) * times_slower(i - 1);
  const auto low = static_cast<double>(kHopSizes[i - 1]), high = static_cast<double>(kHopSizes[i]);
  return copy_us(bytes) * std::lerp(times_slower(i - 1), times_slower(i), (bytes - low) / (high - low));
}

CheapestRoutes::CheapestRoutes(uint32_t domains, const std::function<double(uint32_t, uint32_t)>& hop_us)
    : domains_(domains),
      hop_us_(domains * domains),
      us_(domains * domains, HopPrice::kInfeasible),
      before_(domains * domains),
      nearest_(domains * domains) {
  for (uint32_t from = 0; from < domains; ++from)
    for (uint32_t to = 0; to < domains; ++to) hop_us_[from * domains + to] = hop_us(from, to);
  for (uint32_t from = 0; from < domains; ++from) find(from);
}

void CheapestRoutes::find(uint32_t from) {
  double* const us = &us_[from * domains_];
  uint32_t* const nearest = &nearest_[from * domains_];
  std::iota(nearest, nearest + domains_, 0u);
  us[from] = 0;
  std::fill_n(before_.begin() + from * domains_, domains_, from);
  for (uint32_t settled = 0; settled < domains_; ++settled) {
    // The first domain wins a tie, so that equal machines give equal plans.
    uint32_t* const next = std::min_element(nearest + settled, nearest + domains_, [&](uint32_t a, uint32_t b) {
      return us[a] != us[b] ? us[a] < us[b] : a < b;
    });
    std::swap(nearest[settled], *next);
    const uint32_t at = nearest[settled];
    for (uint32_t i = settled + 1; i < domains_; ++i) {
      const uint32_t to = nearest[i];
      const double by_here = us[at] + hop_us_[at * domains_ + to];
      if (by_here >= us[to]) continue;
      us[to] = by_here;
      before_[from * domains_ + to] = at;
    }
  }
}

} // namespace millrace::plan
