// Times in buckets of equal ratio: no allocation, one increment a sample, percentiles within 3 %.
//
// One thread adds. To read the histogram meanwhile, another thread merges it into one of its own and asks that one.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "observe/single_writer.h"

namespace millrace {

class Histogram {
 public:
  void add(int64_t ns) {
    const uint64_t value = ns < 1 ? 1 : static_cast<uint64_t>(ns);
    if (ns > max_) max_.set(ns); // before the sample is counted, so that no quantile lies above the maximum
    sum_ += static_cast<int64_t>(value);
    const size_t at = bucket(value);
    if (!(used_ >> (at >> kSubBits) & 1)) used_.set(used_ | uint64_t{1} << (at >> kSubBits));
    ++counts_[at];
    ++total_;
  }
  void clear() {
    each_used(used_, [&](size_t i) { counts_[i].set(0); });
    used_.set(0);
    total_.set(0);
    sum_.set(0);
    max_.set(0);
  }
  // Makes this a copy of another one, in the memory that it has.
  void copy(const Histogram& other) {
    const uint64_t used = other.used_;
    const SingleWriter<uint32_t>* const from = other.counts_.data();
    SingleWriter<uint32_t>* const to = counts_.data();
    uint64_t total = 0;
    each_used(used_ | used, [from, to, &total](size_t i) {
      const uint32_t count = from[i];
      to[i].set(count);
      total += count; // as in merge()
    });
    used_.set(used);
    total_.set(total);
    sum_.set(other.sum_);
    max_.set(other.max_);
  }
  void merge(const Histogram& other) {
    const uint64_t used = other.used_;
    uint64_t added = 0;
    each_used(used, [&](size_t i) {
      const uint32_t count = other.counts_[i];
      counts_[i] += count;
      added += count;
    });
    used_.set(used_ | used);
    total_ += added; // the sum of the counts read here: the other's total may have grown since
    sum_ += other.sum_;
    if (other.max_ > max_) max_.set(other.max_);
  }
  // Takes away what this histogram had when `before` was a copy of it. The maximum stays.
  void take_away(const Histogram& before) {
    each_used(before.used_, [&](size_t i) { counts_[i] += 0u - before.counts_[i]; });
    total_ += uint64_t{0} - before.total_;
    sum_ += -before.sum_;
  }
  uint64_t count() const { return total_; }
  // Numbers that a sum with this histogram reads: the buckets near its samples, and four more.
  size_t numbers() const { return (static_cast<size_t>(std::popcount(used_.get())) << kSubBits) + 4; }
  int64_t sum_ns() const { return sum_; }
  int64_t max_ns() const { return max_; }
  // The upper end of the bucket that holds the quantile (0…1); 0 if nothing was added.
  int64_t quantile_ns(double quantile) const {
    const auto rank = static_cast<uint64_t>(quantile * static_cast<double>(total_));
    uint64_t seen = 0;
    for (size_t i = 0; i < counts_.size(); ++i) {
      if (!(used_ >> (i >> kSubBits) & 1)) {
        i |= (size_t{1} << kSubBits) - 1; // to the end of this power of two
        continue;
      }
      seen += counts_[i];
      if (seen > rank || (seen == total_ && total_ > 0))
        return static_cast<int64_t>(upper(i)) < max_ ? static_cast<int64_t>(upper(i)) : max_.get();
    }
    return 0;
  }

 private:
  static constexpr uint32_t kSubBits = 5; // 32 buckets a power of two
  static size_t bucket(uint64_t value) {
    const auto exponent = static_cast<uint32_t>(std::bit_width(value) - 1);
    if (exponent < kSubBits) return value;
    const uint64_t sub = (value >> (exponent - kSubBits)) & ((1u << kSubBits) - 1);
    return ((exponent - kSubBits + 1) << kSubBits) + sub;
  }
  static uint64_t upper(size_t index) {
    const uint64_t exponent = index >> kSubBits, sub = index & ((1u << kSubBits) - 1);
    if (exponent == 0) return sub;
    return ((1ull << kSubBits) + sub + 1) << (exponent - 1);
  }

  // Calls use(i) for the buckets of these powers of two.
  template <class Use>
  static void each_used(uint64_t used, const Use& use) {
    for (; used != 0; used &= used - 1) {
      const size_t begin = static_cast<size_t>(std::countr_zero(used)) << kSubBits;
      for (size_t i = begin; i < begin + (size_t{1} << kSubBits); ++i) use(i);
    }
  }

  static constexpr size_t kBuckets = (64 - kSubBits + 1) << kSubBits;
  static_assert(kBuckets >> kSubBits <= 64); // bits of used_

  // On the heap: the buckets take 7.5 KiB, and objects that contain a histogram are touched on each tick.
  std::vector<SingleWriter<uint32_t>> counts_ = std::vector<SingleWriter<uint32_t>>(kBuckets);
  SingleWriter<uint64_t> used_; // a bit for each power of two that has had a sample, so that the others cost nothing
  SingleWriter<uint64_t> total_;
  SingleWriter<int64_t> sum_, max_;
};

} // namespace millrace
