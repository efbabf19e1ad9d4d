// Draws arrivals by four patterns; see arrivals.h.
#include "batch/sim/arrivals.h"

#include <algorithm>
#include <cmath>

namespace millrace::batch {

namespace {
constexpr double kBusyNs = 200e6, kQuietNs = 200e6, kBusyRate = 1.6, kQuietRate = 0.4;
} // namespace

const char* name_of(Pattern pattern) {
  constexpr const char* kNames[] = {"periodic", "in phase", "Poisson", "bursts"};
  return kNames[static_cast<size_t>(pattern)];
}

Arrivals::Arrivals(Pattern pattern, uint32_t streams, double rate, uint64_t seed)
    : pattern_(pattern), streams_(streams), period_ns_(std::llround(streams * 1e9 / rate)), random_(seed) {
  if (pattern != Pattern::any_phase && pattern != Pattern::in_phase) return;
  for (uint32_t s = 0; s < streams; ++s)
    cycle_.push_back({pattern == Pattern::in_phase ? 0 : random_.between(0, period_ns_ - 1), s});
  std::sort(cycle_.begin(), cycle_.end(), [](const Arrival& left, const Arrival& right) {
    return left.at_ns != right.at_ns ? left.at_ns < right.at_ns : left.stream < right.stream;
  });
}

Arrival Arrivals::next() {
  if (!cycle_.empty()) {
    const Arrival& first = cycle_[count_ % streams_];
    const auto round = static_cast<int64_t>(count_++ / streams_);
    return {first.at_ns + round * period_ns_, first.stream};
  }
  items_due_ -= std::log(1 - random_.share()) * static_cast<double>(period_ns_) / streams_;
  const auto stream = static_cast<uint32_t>(random_.below(streams_));
  if (pattern_ == Pattern::poisson) return {std::llround(items_due_), stream};
  // Over a cycle the mean rate is 1, so both clocks agree where one begins.
  const double cycle_ns = kBusyNs + kQuietNs, begin_ns = std::floor(items_due_ / cycle_ns) * cycle_ns;
  const double within = items_due_ - begin_ns, busy = kBusyNs * kBusyRate;
  const double at_ns = within < busy ? within / kBusyRate : kBusyNs + (within - busy) / kQuietRate;
  return {std::llround(begin_ns + at_ns), stream};
}

} // namespace millrace::batch
