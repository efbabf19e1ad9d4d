// Forecasts when a firing will be over, from the service curve, the firings under way, and the errors of earlier
// forecasts.
//
// Up to two firings are under way. Two share the device, each at the speed that the curve has for it (paired_speed), so
// a second one delays the first.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "batch/service_curve.h"

namespace millrace::batch {

inline constexpr uint32_t kInFlightMost = 2;

class Forecast {
 public:
  explicit Forecast(ServiceCurve curve) : curve_(std::move(curve)) {}

  const ServiceCurve& curve() const { return curve_; }
  // How much later than predicted a firing may end: p99 of the last kErrors firings, at least kMarginLeast.
  int64_t margin_ns() const { return margin_ns_; }
  uint32_t under_way() const { return under_way_; }

  struct Ends {
    int64_t added_ns = 0; // the end of the firing that is added
    int64_t other_ns = 0; // the end of the one under way, if there is one
  };
  // The ends if a firing of this bucket were issued now and took its 95th percentile.
  Ends ends_with(int64_t now_ns, size_t bucket) const;
  // The work that is left of what is under way: the time after which the device is free if nothing is added.
  int64_t busy_for_ns(int64_t now_ns) const;

  // `slot`: below kInFlightMost, free.
  void started(uint32_t slot, size_t bucket, int64_t now_ns);
  // `completed`: false where nothing is learnt from it.
  void ended(uint32_t slot, int64_t now_ns, bool completed = true);

 private:
  static constexpr size_t kErrors = 256, kErrorsAnew = 16;
  static constexpr int64_t kMarginLeast = 200'000;
  struct Flight {
    bool active = false, shared = false; // shared: another one was under way at some time
    size_t bucket = 0;
    int64_t issued_ns = 0, end_ns = 0; // as predicted
    double left_ns = 0;                // the work that was left at since_ns, in ns alone
    int64_t since_ns = 0;
  };
  struct Work {
    double left_ns, speed;
  };
  static std::array<double, 2> together(const Work& first, const Work& second);
  double left_of(const Flight& flight, int64_t now_ns) const;
  void come_to(int64_t now_ns);
  void predict_ends(int64_t now_ns);
  void learn(const Flight& flight, int64_t now_ns);
  void record_error(int64_t ns);

  ServiceCurve curve_;
  std::array<Flight, kInFlightMost> flights_;
  uint32_t under_way_ = 0;
  int64_t margin_ns_ = kMarginLeast;
  std::array<int64_t, kErrors> errors_ = {};
  size_t errors_filled_ = 0, errors_next_ = 0;
};

} // namespace millrace::batch
