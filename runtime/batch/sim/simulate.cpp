// Runs the simulation event by event; see simulate.h.
#include "batch/sim/simulate.h"

#include <algorithm>

namespace millrace::batch {

namespace {

std::vector<BucketTime> without_gain(std::vector<BucketTime> device) {
  for (BucketTime& bucket : device) bucket.paired_ns = 0;
  return device;
}

class Simulation {
 public:
  Simulation(const Scenario& scenario, const std::vector<BucketTime>& device, Rule& rule)
      : scenario_(scenario),
        arrivals_(scenario.pattern, scenario.streams, scenario.rate, scenario.seed),
        device_(scenario.pairs_gain ? device : without_gain(device), scenario.seed + 1, scenario.spread),
        collector_({scenario.streams, scenario.in_flight, scenario.budget_ns, Order::deadline}, measured_curve(device),
                   rule),
        ordinals_(scenario.streams) {
    StreamTerms terms;
    terms.period_ns = arrivals_.period_ns();
    terms.allowance = allowance_of(terms.period_ns, scenario.budget_ns);
    for (uint32_t s = 0; s < scenario.streams; ++s) collector_.stream_added(s, terms, 0);
    const double seconds = static_cast<double>(scenario.duration_ns - scenario.measured_from_ns) / 1e9;
    waits_ns_.reserve(static_cast<size_t>(scenario.rate * seconds * 1.2));
  }

  Outcome run() {
    Arrival coming = arrivals_.next();
    int64_t look_ns = kNever, busy_before_ns = 0;
    bool measures = false;
    while (true) {
      const int64_t now_ns = std::min({coming.at_ns, device_.next_ns(), look_ns});
      if (now_ns > scenario_.duration_ns) break;
      if (now_ns >= scenario_.slower_at_ns) device_.slow_down(scenario_.slower);
      const int ended = device_.come_to(now_ns);
      if (!measures && now_ns >= scenario_.measured_from_ns) {
        measures = true;
        busy_before_ns = device_.busy_ns();
      }
      if (ended >= 0) end_firing(static_cast<uint32_t>(ended), now_ns);
      for (; coming.at_ns == now_ns; coming = arrivals_.next()) give(coming);
      look_ns = fire(now_ns);
    }
    const auto measured_ns = static_cast<double>(scenario_.duration_ns - scenario_.measured_from_ns);
    outcome_.device_use = static_cast<double>(device_.busy_ns() - busy_before_ns) / measured_ns;
    outcome_.p50_ms = quantile_ms(0.5);
    outcome_.p99_ms = quantile_ms(0.99);
    return outcome_;
  }

 private:
  bool counts(int64_t given_ns) const {
    return given_ns >= scenario_.measured_from_ns && given_ns < scenario_.measured_to_ns;
  }

  void give(const Arrival& arrival) {
    const bool taken = collector_.give(arrival.stream, ordinals_[arrival.stream]++, arrival.at_ns);
    if (!counts(arrival.at_ns)) return;
    ++outcome_.came;
    if (!taken) ++outcome_.refused;
  }

  int64_t fire(int64_t now_ns) {
    while (true) {
      const Step& step = collector_.next(now_ns);
      for (const Dropped& dropped : step.dropped)
        if (counts(dropped.item.given_ns)) ++outcome_.dropped;
      if (step.firing == nullptr) return step.look_again_ns;
      under_way_[step.firing->slot] = step.firing;
      device_.start(step.firing->slot, step.firing->bucket_items, now_ns);
      if (counts(now_ns)) ++outcome_.firings;
    }
  }

  void end_firing(uint32_t slot, int64_t now_ns) {
    for (const Item& item : under_way_[slot]->items) {
      if (!counts(item.given_ns)) continue;
      ++outcome_.done;
      if (now_ns <= item.due_ns) ++outcome_.in_time;
      waits_ns_.push_back(now_ns - item.given_ns);
    }
    collector_.firing_ended(slot, now_ns);
  }

  double quantile_ms(double quantile) {
    if (waits_ns_.empty()) return 0;
    const auto place = static_cast<std::ptrdiff_t>(quantile * static_cast<double>(waits_ns_.size() - 1));
    std::nth_element(waits_ns_.begin(), waits_ns_.begin() + place, waits_ns_.end());
    return static_cast<double>(waits_ns_[static_cast<size_t>(place)]) / 1e6;
  }

  Scenario scenario_;
  Arrivals arrivals_;
  Device device_;
  Collector collector_;
  std::vector<uint64_t> ordinals_;
  std::array<const Firing*, kInFlightMost> under_way_ = {};
  std::vector<int64_t> waits_ns_;
  Outcome outcome_;
};

} // namespace

Outcome simulate(const Scenario& scenario, const std::vector<BucketTime>& device, Rule& rule) {
  return Simulation(scenario, device, rule).run();
}

} // namespace millrace::batch
