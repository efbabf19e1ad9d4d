// Advances the work of one or two firings from event to event; see device.h.
#include "batch/sim/device.h"

#include <algorithm>
#include <cmath>

#include "batch/rule.h"

namespace millrace::batch {

std::vector<BucketTime> device_curve() {
  constexpr int64_t kTimesUs[] = {328, 420, 638, 1125, 2047, 3885, 7711};
  constexpr double kPairsFill = 0.86;
  std::vector<BucketTime> curve;
  for (size_t b = 0; b < std::size(kTimesUs); ++b) {
    BucketTime& bucket = curve.emplace_back();
    bucket.items = 1u << b;
    bucket.median_ns = bucket.p95_ns = kTimesUs[b] * 1000;
    const double full_ns = 7'711'000.0 / 64 * bucket.items, alone_ns = static_cast<double>(bucket.median_ns);
    bucket.paired_ns = std::llround(std::max(alone_ns / 2, alone_ns - kPairsFill * (alone_ns - full_ns)));
  }
  return curve;
}

ServiceCurve measured_curve(const std::vector<BucketTime>& device) {
  std::vector<BucketTime> measured = device;
  for (BucketTime& bucket : measured) {
    const auto work_ns = static_cast<double>(bucket.median_ns);
    bucket.median_ns = Device::kLaunchNs + std::llround(work_ns * (1 + Device::kSpread / 2));
    bucket.p95_ns = Device::kLaunchNs + std::llround(work_ns * (1 + Device::kSpread * 0.95));
  }
  return ServiceCurve(measured);
}

double capacity(const std::vector<BucketTime>& device) {
  return device.back().items * 1e9 / static_cast<double>(device.back().median_ns);
}

Device::Device(const std::vector<BucketTime>& device, uint64_t seed, double spread)
    : curve_(device), random_(seed), spread_(spread) {}

double Device::speed(const Flight& flight) const {
  for (const Flight& other : flights_)
    if (&other != &flight && runs(other)) return flight.paired_speed;
  return 1;
}

void Device::start(uint32_t slot, uint32_t bucket_items, int64_t now_ns) {
  const size_t bucket = curve_.bucket_for(bucket_items);
  const double work_ns = static_cast<double>(curve_.median_ns(bucket)) * factor_ * (1 + spread_ * random_.share());
  flights_[slot] = {true, now_ns + kLaunchNs, work_ns, curve_.paired_speed(bucket)};
}

int64_t Device::next_ns() const {
  int64_t next_ns = kNever;
  for (const Flight& flight : flights_) {
    if (!flight.active) continue;
    const int64_t event_ns = runs(flight)
                                 ? now_ns_ + std::llround(std::ceil(std::max(0.0, flight.left_ns) / speed(flight)))
                                 : flight.begins_ns;
    next_ns = std::min(next_ns, event_ns);
  }
  return next_ns;
}

int Device::come_to(int64_t now_ns) {
  std::array<double, kInFlightMost> speeds = {};
  bool busy = false;
  for (size_t f = 0; f < flights_.size(); ++f) {
    if (!runs(flights_[f])) continue;
    speeds[f] = speed(flights_[f]);
    busy = true;
  }
  if (busy) busy_ns_ += now_ns - now_ns_;
  for (size_t f = 0; f < flights_.size(); ++f) flights_[f].left_ns -= static_cast<double>(now_ns - now_ns_) * speeds[f];
  now_ns_ = now_ns;
  for (size_t f = 0; f < flights_.size(); ++f) {
    if (speeds[f] == 0 || flights_[f].left_ns > 0) continue;
    flights_[f].active = false;
    return static_cast<int>(f);
  }
  return -1;
}

} // namespace millrace::batch
