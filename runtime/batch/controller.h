// The rule that learns: it fires as few items at a time as the load allows, and never so late that one misses its
// deadline.
//
// Larger firings cost less device time an item, and more waiting. The service curve says how much less, so the size to
// wait for, the *limit*, is calculated from the load instead of searched (docs/decisions/0071):
//
//   cap    the largest bucket that takes at most half the budget less the margin: an item that just missed a firing
//          waits for that one and then has one of its own
//   limit  the smallest bucket up to the cap with which the load keeps the device busy for at most `use_max` of the
//          time, or for 1.15 times the least that any bucket can; raised at once, lowered after kLowerAfter
//   fire   limit items; or the time at which the line must begin in order to keep the oldest deadline; or no stream can
//          give another item before that time; or a stream has used its allowance
//   pair   a second firing goes beside one that is under way if two at a time get more done and none under way becomes
//          late by it
//   drop   an item whose firing would end after its deadline
#pragma once

#include <array>
#include <cstdint>

#include "batch/rule.h"

namespace millrace::batch {

struct Budget {
  int64_t budget_ns = 0;
  double use_max = 0.8; // part of the device; less where others have a part of it
  bool drop_late = true;
};

// Items per second over a sliding window.
class LoadMeter {
 public:
  // `rate`: what is expected, and said until something was counted.
  LoadMeter(double rate, int64_t window_ns);
  void add(int64_t now_ns, uint32_t rows);
  double rate() const { return rate_; }

 private:
  static constexpr size_t kSlices = 16;
  int64_t slice_ns_;
  std::array<double, kSlices> slices_; // a ring; the current one is still being filled
  size_t current_ = 0;
  int64_t current_began_ns_ = 0;
  bool begun_ = false;
  double sum_ = 0, rate_;
};

class Controller final : public Rule {
 public:
  // `rate`: items per second of all streams, as the plan expects it. `period_ns`: of the fastest stream.
  Controller(const Budget& budget, double rate, int64_t period_ns);

  Choice choose(const Waiting& waiting) const override;
  void gave(int64_t now_ns, uint32_t rows, const Forecast& forecast) override;

  void set(const Budget& budget) { budget_ = budget; }
  // A budget below this cannot be kept even by one item that waits for nothing. Then late items are not dropped, since
  // that would be all of them: the caller warns, with both numbers.
  int64_t least_budget_ns(const Forecast& forecast) const { return forecast.curve().p95_ns(0) + margin_ns(forecast); }
  // The places that are waited for, and items per second (B17).
  uint32_t limit_items(const Forecast& forecast) const { return forecast.curve().items(limit_); }
  double rate() const { return load_.rate(); }
  // True if the load asks for larger firings than the budget allows; else the load has set the limit.
  bool budget_sets_limit(const Forecast& forecast) const {
    return limit_for_load(forecast, forecast.curve().count() - 1) > cap(forecast);
  }

 private:
  static constexpr int64_t kLowerAfter = 500'000'000, kWindowLeast = 1'000'000'000, kWindowMost = 4'000'000'000;
  static constexpr double kNearTheLeast = 1.15, kPairGain = 1.02;
  int64_t margin_ns(const Forecast& forecast) const;
  size_t cap(const Forecast& forecast) const;
  size_t limit_for_load(const Forecast& forecast, size_t most) const;

  Budget budget_;
  LoadMeter load_;
  size_t limit_ = 0;                // a bucket
  int64_t lower_since_ns_ = kNever; // since when a smaller one would do
};

// The firing with which a rule begins to clear so many rows: `rows` of them, in a bucket up to `cap`. That is the
// largest bucket that is filled, or the next one up where it costs less for each item even with places left empty.
struct Launch {
  uint32_t rows;
  size_t bucket;
};
Launch launch(const ServiceCurve& curve, uint32_t rows, size_t cap);
// The time that the firings take by which a line of so many rows is cleared, one after the other.
int64_t clear_ns(const ServiceCurve& curve, uint32_t rows, size_t cap);

} // namespace millrace::batch
