// Learns the times of firings from samples: bucket by bucket, and for all buckets at once after a jump; see
// service_curve.h.
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
    bucket.guesses_left = time.guessed ? kFirstFirings : 0;
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
  if (fired.guesses_left > 0) {
    learn_first(fired, std::llround(took_ns));
    return true;
  }
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

// The least of its first firings is its time.
void ServiceCurve::learn_first(Bucket& bucket, int64_t took_ns) {
  const bool is_first = bucket.guesses_left-- == kFirstFirings;
  const int64_t least_ns = is_first ? took_ns : std::min(took_ns, bucket.base_median_ns);
  begin_anew(bucket, least_ns, least_ns);
  guess();
  rise();
}

// Buckets that were never fired are on the straight line through their neighbours that were. With one neighbour alone,
// larger ones gain nothing, and smaller ones half of what they could.
void ServiceCurve::guess() {
  const auto is_known = [](const Bucket& bucket) { return bucket.guesses_left < kFirstFirings; };
  for (Bucket& bucket : buckets_) {
    if (is_known(bucket)) continue;
    const Bucket *below = nullptr, *before = nullptr, *above = nullptr;
    for (const Bucket& other : buckets_) {
      if (!is_known(other)) continue;
      if (other.items > bucket.items) {
        if (!above) above = &other;
        continue;
      }
      before = below;
      below = &other;
    }
    const auto line = [&](const Bucket& one, const Bucket& two) {
      const double slope = static_cast<double>(two.base_median_ns - one.base_median_ns) / (two.items - one.items);
      return static_cast<double>(one.base_median_ns) + std::max(0.0, slope) * (bucket.items - one.items);
    };
    double ns = static_cast<double>(bucket.base_median_ns);
    if (below && above)
      ns = line(*below, *above);
    else if (below && before)
      ns = line(*before, *below);
    else if (below)
      ns = static_cast<double>(below->base_median_ns) * bucket.items / below->items;
    else if (above)
      ns = static_cast<double>(above->base_median_ns) * (1 + static_cast<double>(bucket.items) / above->items) / 2;
    begin_anew(bucket, std::llround(ns), std::llround(ns));
  }
}

void ServiceCurve::observe_paired(size_t bucket, double ratio) {
  if (buckets_[bucket].guesses_left > 0) return;
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
