// Learning: samples by bucket, and the jump of all buckets.
#include "batch/service_curve.h"

#include <algorithm>
#include <cmath>

#include "observe/error.h"

namespace millrace::batch {

ServiceCurve::ServiceCurve(const std::vector<BucketTime>& measured) {
  MR_ASSERT(!measured.empty(), "a curve has a bucket");
  buckets_.reserve(measured.size());
  for (const BucketTime& time : measured) {
    Bucket& bucket = buckets_.emplace_back();
    bucket.items = time.items;
    if (time.paired_ns > 0)
      bucket.measured_paired_speed =
          std::clamp(static_cast<double>(time.median_ns) / (2 * static_cast<double>(time.paired_ns)), 0.5, 1.0);
    bucket.paired_speed = bucket.measured_paired_speed;
    begin_anew(bucket, time.median_ns, time.p95_ns);
  }
  rise();
}

size_t ServiceCurve::bucket_for(uint32_t items) const {
  size_t bucket = 0;
  while (bucket + 1 < buckets_.size() && buckets_[bucket].items < items) ++bucket;
  return bucket;
}

bool ServiceCurve::observe(size_t bucket, double ratio) {
  constexpr double kComesBack = 1.0 / 256;
  Bucket& fired = buckets_[bucket];
  fired.paired_speed += (fired.measured_paired_speed - fired.paired_speed) * kComesBack;
  const double took_ns = static_cast<double>(fired.median_ns) * ratio;
  add_sample(fired, std::llround(took_ns));
  std::rotate(ratios_.begin(), ratios_.begin() + 1, ratios_.end());
  ratios_.back() = took_ns / static_cast<double>(fired.base_median_ns);
  bool jumped = false;
  if (++ratios_filled_ >= kRecent) {
    std::array<double, kRecent> sorted = ratios_;
    std::sort(sorted.begin(), sorted.end());
    const double median = sorted[kRecent / 2];
    constexpr double kJump = 0.1; // ten times what repeated firings differ by
    jumped = median > 1 + kJump || median < 1 / (1 + kJump);
    if (jumped) {
      for (Bucket& each : buckets_) {
        begin_anew(each, std::llround(static_cast<double>(each.base_median_ns) * median),
                   std::llround(static_cast<double>(each.base_p95_ns) * median));
        each.paired_speed = each.measured_paired_speed;
      }
      ratios_filled_ = 0;
    }
  }
  rise();
  return jumped;
}

void ServiceCurve::observe_paired(size_t bucket, double ratio) {
  constexpr double kMostAtOnce = 1.25, kLearns = 1.0 / 8; // one firing that was held up changes the speed by 2.5 %
  const double faster = 1 / std::clamp(ratio, 1 / kMostAtOnce, kMostAtOnce);
  double& speed = buckets_[bucket].paired_speed;
  speed = std::clamp(speed * (1 + (faster - 1) * kLearns), 0.25, 1.0);
}

void ServiceCurve::add_sample(Bucket& bucket, int64_t ns) {
  bucket.samples[bucket.next] = ns;
  bucket.next = (bucket.next + 1) % kSamples;
  bucket.filled = std::min(bucket.filled + 1, kSamples);
  std::array<int64_t, kSamples> sorted = bucket.samples;
  const auto at = [&](size_t place) { return sorted.begin() + static_cast<std::ptrdiff_t>(place); };
  const size_t p95 = bucket.filled * 95 / 100, median = bucket.filled / 2;
  std::nth_element(sorted.begin(), at(p95), at(bucket.filled));
  std::nth_element(sorted.begin(), at(median), at(p95 + 1));
  bucket.own_median_ns = sorted[median];
  bucket.own_p95_ns = *std::max_element(at(median), at(p95 + 1));
}

void ServiceCurve::begin_anew(Bucket& bucket, int64_t median_ns, int64_t p95_ns) {
  std::fill_n(bucket.samples.begin(), kMeasured, median_ns);
  std::fill_n(bucket.samples.begin(), kMeasured / 8, p95_ns);
  bucket.filled = bucket.next = kMeasured;
  bucket.own_median_ns = bucket.base_median_ns = std::max<int64_t>(1, median_ns);
  bucket.own_p95_ns = bucket.base_p95_ns = std::max(median_ns, p95_ns);
}

void ServiceCurve::rise() {
  int64_t median_ns = 1, p95_ns = 1;
  for (Bucket& bucket : buckets_) {
    median_ns = bucket.median_ns = std::max(median_ns, bucket.own_median_ns);
    p95_ns = bucket.p95_ns = std::max({p95_ns, median_ns, std::min(bucket.own_p95_ns, median_ns + median_ns / 2)});
  }
}

} // namespace millrace::batch
