// Computes the limit of a firing's size by the load, and the time at which waiting ends; see controller.h.
#include "batch/controller.h"

#include <algorithm>

namespace millrace::batch {

// ---- the load ------------------------------------------------------------------------------------------------------

LoadMeter::LoadMeter(double rate, int64_t window_ns)
    : slice_ns_(std::max<int64_t>(1, window_ns / static_cast<int64_t>(kSlices - 1))), rate_(rate) {
  slices_.fill(rate * static_cast<double>(slice_ns_) / 1e9);
  sum_ = slices_[0] * static_cast<double>(kSlices - 1);
  slices_[0] = 0;
}

void LoadMeter::add(int64_t now_ns, uint32_t rows) {
  if (!begun_) {
    current_began_ns_ = now_ns;
    begun_ = true;
  }
  const int64_t passed = (now_ns - current_began_ns_) / slice_ns_;
  if (passed > 0) {
    for (int64_t s = 0; s < std::min<int64_t>(passed, kSlices); ++s) {
      current_ = (current_ + 1) % kSlices;
      slices_[current_] = 0;
    }
    current_began_ns_ += passed * slice_ns_;
    sum_ = 0; // anew, so that no error of rounding grows
    for (const double slice : slices_) sum_ += slice;
  }
  slices_[current_] += rows;
  sum_ += rows;
  const int64_t covered_ns = slice_ns_ * static_cast<int64_t>(kSlices - 1) + (now_ns - current_began_ns_);
  rate_ = sum_ * 1e9 / static_cast<double>(covered_ns);
}

// ---- launches ------------------------------------------------------------------------------------------------------

Launch launch(const ServiceCurve& curve, uint32_t rows, size_t cap) {
  size_t down = 0;
  while (down < cap && curve.items(down + 1) <= rows) ++down;
  const uint32_t filled = std::min(rows, curve.items(down));
  if (down < cap && rows > filled && curve.median_ns(down + 1) * filled <= curve.median_ns(down) * rows)
    return {rows, down + 1};
  return {filled, down};
}

int64_t clear_ns(const ServiceCurve& curve, uint32_t rows, size_t cap) {
  const uint32_t most = curve.items(cap);
  int64_t ns = rows / most * curve.p95_ns(cap);
  for (uint32_t left = rows % most; left > 0;) {
    const Launch next = launch(curve, left, cap);
    ns += curve.p95_ns(next.bucket);
    left -= next.rows;
  }
  return ns;
}

// ---- the rule ------------------------------------------------------------------------------------------------------

Controller::Controller(const Budget& budget, double rate, int64_t period_ns)
    : budget_(budget), load_(rate, std::clamp(4 * period_ns, kWindowLeast, kWindowMost)) {}

int64_t Controller::margin_ns(const Forecast& forecast) const {
  return std::min(forecast.margin_ns(),
                  budget_.budget_ns / 4); // a device that errs more is not served better by waiting
}

size_t Controller::cap(const Forecast& forecast) const {
  const ServiceCurve& curve = forecast.curve();
  const int64_t most_ns = budget_.budget_ns / 2 - margin_ns(forecast);
  size_t cap = 0;
  while (cap + 1 < curve.count() && curve.p95_ns(cap + 1) <= most_ns) ++cap;
  return cap;
}

size_t Controller::limit_for_load(const Forecast& forecast, size_t most) const {
  const ServiceCurve& curve = forecast.curve();
  const auto busy = [&](size_t bucket) {
    return load_.rate() * static_cast<double>(curve.median_ns(bucket)) / 1e9 / curve.items(bucket);
  };
  double least = busy(0);
  for (size_t bucket = 1; bucket <= most; ++bucket) least = std::min(least, busy(bucket));
  const double enough = std::max(budget_.use_max, kNearTheLeast * least);
  size_t limit = 0;
  while (limit < most && busy(limit) > enough) ++limit;
  return limit;
}

void Controller::gave(int64_t now_ns, uint32_t rows, const Forecast& forecast) {
  load_.add(now_ns, rows);
  const size_t wanted = limit_for_load(forecast, cap(forecast));
  if (wanted < limit_ && lower_since_ns_ == kNever) lower_since_ns_ = now_ns;
  if (wanted < limit_ && now_ns - lower_since_ns_ < kLowerAfter) return;
  limit_ = wanted;
  lower_since_ns_ = kNever;
}

Choice Controller::choose(const Waiting& waiting) const {
  const Forecast& forecast = waiting.forecast;
  const ServiceCurve& curve = forecast.curve();
  const int64_t margin = margin_ns(forecast);
  const size_t most = cap(forecast);
  const Launch next = launch(curve, waiting.rows, most);
  const Forecast::Ends ends = forecast.ends_with(waiting.now_ns, next.bucket);
  Choice choice;
  if (waiting.under_way > 0) {
    const bool pays = 2 * curve.paired_speed(next.bucket) >= kPairGain;
    if (!pays || ends.other_ns + margin > waiting.due_ns) return choice;
  }
  if (budget_.drop_late && least_budget_ns(forecast) <= budget_.budget_ns)
    choice.drop_due_before_ns = ends.added_ns + margin;
  const int64_t latest_ns =
      waiting.deadline_ns - clear_ns(curve, waiting.rows, most) - margin - forecast.busy_for_ns(waiting.now_ns);
  const bool enough = waiting.a_stream_is_full || waiting.rows >= curve.items(std::min(limit_, most));
  if (enough || waiting.now_ns >= latest_ns) {
    choice.fire = next.rows;
  } else {
    choice.look_again_ns = latest_ns;
    choice.fire_if_alone = next.rows;
  }
  return choice;
}

} // namespace millrace::batch
