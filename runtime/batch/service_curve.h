// The time that a firing takes, by the number of items that it is made for: measured at the start, corrected while it
// runs.
//
// A device that nobody else uses repeats itself to 1 %, so a measured time is a prediction. Firings are made for a few
// sizes alone, the *buckets*; a firing of five items runs in the bucket of eight. Times go from the issue of a firing
// to the moment at which the caller sees its end, so they include what it costs to launch it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace::batch {

// One bucket as it is measured at the start.
struct BucketTime {
  uint32_t items = 1;
  int64_t median_ns = 0, p95_ns = 0;
  // The time from end to end of firings of this bucket while two of them are always under way. 0: not measured, which
  // counts as no gain.
  int64_t paired_ns = 0;
  bool guessed = false; // never measured: its first firings say how long it takes
};

class ServiceCurve {
 public:
  // By rising number of items, at least one; the last is the largest firing. Times that fall with more items are raised
  // to those of fewer.
  explicit ServiceCurve(const std::vector<BucketTime>& measured);

  size_t count() const { return buckets_.size(); }
  uint32_t items(size_t bucket) const { return buckets_[bucket].items; }
  uint32_t items_max() const { return buckets_.back().items; }
  // Neither falls as the bucket rises. A 95th percentile is told as at most 1.5 times the median: a device that is held
  // up for longer on more than one firing in 20 is not served better by firings of fewer items.
  int64_t median_ns(size_t bucket) const { return buckets_[bucket].median_ns; }
  int64_t p95_ns(size_t bucket) const { return buckets_[bucket].p95_ns; }
  // The work that one firing gets done in a nanosecond in which another one is under way too: 0.25 to 1.
  // Above 0.5 two at a time get more done than one after the other.
  double paired_speed(size_t bucket) const { return buckets_[bucket].paired_speed; }
  // The smallest bucket with room for so many items, or the largest bucket.
  size_t bucket_for(uint32_t items) const;

  // True if the times of this bucket are guessed, from those that are known or as they were given.
  bool is_guessed(size_t bucket) const { return buckets_[bucket].guesses_left > 0; }

  // A firing took `ratio` times its predicted time. Its bucket learns that from its last kSamples firings. If the last
  // kRecent firings, in the median, differ by a tenth from the curve as it was measured, the whole device has changed:
  // all buckets become that many times as long, and learn anew from there. Returns true then, since older errors of
  // predictions say nothing any more.
  bool observe(size_t bucket, double ratio);
  // The same of a firing that shared the device: it corrects the paired speed, and no time. A pair that gains nothing
  // is soon not made any more; firings that are alone bring the measured speed back slowly, so that it is tried again.
  void observe_paired(size_t bucket, double ratio);

 private:
  static constexpr size_t kSamples = 64, kMeasured = 24, kRecent = 8; // a measurement counts as 24 samples
  static constexpr uint32_t kFirstFirings = 3; // the first one alone may be slow: pages and caches are cold
  struct Bucket {
    uint32_t items = 1;
    uint32_t guesses_left = 0;         // firings until its time is known
    int64_t median_ns = 0, p95_ns = 0; // as they are told
    double paired_speed = 0.5, measured_paired_speed = 0.5;
    std::array<int64_t, kSamples> samples = {};
    size_t filled = 0, next = 0;
    int64_t own_median_ns = 0, own_p95_ns = 0;   // from the samples
    int64_t base_median_ns = 0, base_p95_ns = 0; // as it was measured, or when the device changed
  };
  void add_sample(Bucket& bucket, int64_t ns);
  void begin_anew(Bucket& bucket, int64_t median_ns, int64_t p95_ns);
  void learn_first(Bucket& bucket, int64_t took_ns);
  void guess();
  void rise();

  std::vector<Bucket> buckets_;
  std::array<double, kRecent> ratios_ = {};
  size_t ratios_filled_ = 0;
};

} // namespace millrace::batch
