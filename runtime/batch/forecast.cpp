// Predicts the ends of firings that share a device, with a margin; see forecast.h.
#include "batch/forecast.h"

#include <algorithm>
#include <cmath>

namespace millrace::batch {

namespace {
int64_t after(int64_t now_ns, double ns) { return now_ns + std::llround(ns); }
} // namespace

// The times until both are over, begun together.
std::array<double, 2> Forecast::together(const Work& first, const Work& second) {
  const double first_alone = first.left_ns / first.speed, second_alone = second.left_ns / second.speed;
  if (first_alone <= second_alone) return {first_alone, first_alone + second.left_ns - first_alone * second.speed};
  return {second_alone + first.left_ns - second_alone * first.speed, second_alone};
}

double Forecast::left_of(const Flight& flight, int64_t now_ns) const {
  const double speed = under_way_ > 1 ? curve_.paired_speed(flight.bucket) : 1;
  return std::max(0.0, flight.left_ns - static_cast<double>(now_ns - flight.since_ns) * speed);
}

Forecast::Ends Forecast::ends_with(int64_t now_ns, size_t bucket) const {
  const auto work_ns = static_cast<double>(curve_.p95_ns(bucket));
  for (const Flight& flight : flights_) {
    if (!flight.active) continue;
    const std::array<double, 2> ends =
        together({left_of(flight, now_ns), curve_.paired_speed(flight.bucket)}, {work_ns, curve_.paired_speed(bucket)});
    return {after(now_ns, ends[1]), after(now_ns, ends[0])};
  }
  return {after(now_ns, work_ns), 0};
}

int64_t Forecast::busy_for_ns(int64_t now_ns) const {
  int64_t last_ns = 0;
  for (const Flight& flight : flights_)
    if (flight.active) last_ns = std::max(last_ns, flight.end_ns - now_ns);
  return last_ns;
}

void Forecast::started(uint32_t slot, size_t bucket, int64_t now_ns) {
  come_to(now_ns);
  flights_[slot] = {true, false, bucket, now_ns, 0, static_cast<double>(curve_.median_ns(bucket)), now_ns};
  if (++under_way_ > 1)
    for (Flight& flight : flights_) flight.shared = true;
  predict_ends(now_ns);
}

void Forecast::ended(uint32_t slot, int64_t now_ns, bool completed) {
  Flight& flight = flights_[slot];
  come_to(now_ns);
  flight.active = false;
  --under_way_;
  if (completed) learn(flight, now_ns);
  predict_ends(now_ns);
}

void Forecast::learn(const Flight& flight, int64_t now_ns) {
  const double predicted_ns = static_cast<double>(flight.end_ns - flight.issued_ns);
  const double ratio = static_cast<double>(now_ns - flight.issued_ns) / std::max(1.0, predicted_ns);
  record_error(now_ns - flight.end_ns);
  if (flight.shared) {
    curve_.observe_paired(flight.bucket, ratio);
  } else if (curve_.observe(flight.bucket, ratio)) {
    errors_filled_ = errors_next_ = 0;
    margin_ns_ = kMarginLeast;
  }
}

void Forecast::come_to(int64_t now_ns) {
  for (Flight& flight : flights_) {
    if (!flight.active) continue;
    flight.left_ns = left_of(flight, now_ns);
    flight.since_ns = now_ns;
  }
}

void Forecast::predict_ends(int64_t now_ns) {
  Flight& first = flights_[0];
  Flight& second = flights_[1];
  if (first.active && second.active) {
    const std::array<double, 2> ends = together({first.left_ns, curve_.paired_speed(first.bucket)},
                                                {second.left_ns, curve_.paired_speed(second.bucket)});
    first.end_ns = after(now_ns, ends[0]);
    second.end_ns = after(now_ns, ends[1]);
    return;
  }
  for (Flight& flight : flights_)
    if (flight.active) flight.end_ns = after(now_ns, flight.left_ns);
}

void Forecast::record_error(int64_t ns) {
  errors_[errors_next_] = ns;
  errors_next_ = (errors_next_ + 1) % kErrors;
  errors_filled_ = std::min(errors_filled_ + 1, kErrors);
  if (ns > margin_ns_ || errors_next_ % kErrorsAnew == 0) {
    std::array<int64_t, kErrors> sorted = errors_;
    const auto p99 = sorted.begin() + static_cast<std::ptrdiff_t>(errors_filled_ * 99 / 100);
    std::nth_element(sorted.begin(), p99, sorted.begin() + static_cast<std::ptrdiff_t>(errors_filled_));
    margin_ns_ = std::max(kMarginLeast, *p99);
  }
}

} // namespace millrace::batch
