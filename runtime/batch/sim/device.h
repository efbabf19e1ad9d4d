// A device in virtual time, on which up to two firings are under way.
//
// A firing takes kLaunchNs until the device begins it. Then it has an amount of work: the time that the curve has for
// its bucket, drawn evenly from kSpread above it, as a measured device varies (p50 1131, p99 1140, most 1144 µs at 8
// items, of 1125). Alone it does 1 ns of work in a ns. Two firings that run at the same time each go at the paired
// speed of their bucket, the same that the curve tells the controller.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "batch/forecast.h"
#include "batch/service_curve.h"
#include "observe/random.h"

namespace millrace::batch {

// An H200 that runs a detector of 27 GFLOP an item, captured: the time of a firing by its bucket, 1 to 64 items. In
// pairs it was measured at 8 items alone (8,109 items/s of two streams, 7,097 of one); the other buckets are calculated
// from that. A firing is thought of as the device's work at its best rate, that of 64 items, and of time in which the
// device is not full. Pairs fill 86 % of that time.
std::vector<BucketTime> device_curve();
// The same as the runtime would measure it at the start, with the launch and the spread.
ServiceCurve measured_curve(const std::vector<BucketTime>& device);
// Items per second at the largest bucket.
double capacity(const std::vector<BucketTime>& device);

class Device {
 public:
  static constexpr int64_t kLaunchNs = 15'000; // from one thread to another over the device: 12 to 15 µs measured
  static constexpr double kSpread = 0.012;

  Device(const std::vector<BucketTime>& device, uint64_t seed, double spread = kSpread);

  // From now on all firings that begin take so many times as long.
  void slow_down(double factor) { factor_ = factor; }
  void start(uint32_t slot, uint32_t bucket_items, int64_t now_ns);
  // The next time at which a firing begins to run or ends; kNever without one.
  int64_t next_ns() const;
  // Comes to that time, at most next_ns(). Returns the slot of a firing that has ended, or -1: none, ask once more only
  // for another time.
  int come_to(int64_t now_ns);
  int64_t busy_ns() const { return busy_ns_; }

 private:
  struct Flight {
    bool active = false;
    int64_t begins_ns = 0; // when it runs
    double left_ns = 0, paired_speed = 0.5;
  };
  bool runs(const Flight& flight) const { return flight.active && flight.begins_ns <= now_ns_; }
  double speed(const Flight& flight) const;

  ServiceCurve curve_;
  Random random_;
  double spread_, factor_ = 1;
  std::array<Flight, kInFlightMost> flights_;
  int64_t now_ns_ = 0, busy_ns_ = 0;
};

} // namespace millrace::batch
