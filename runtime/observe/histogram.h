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
    ++counts_[bucket(value)];
    ++total_;
  }
  void merge(const Histogram& other) {
    for (size_t i = 0; i < counts_.size(); ++i) {
      const uint32_t count = other.counts_[i];
      counts_[i] += count;
      total_ += count; // the sum of the counts read here: the other's total may have grown since
    }
    sum_ += other.sum_;
    if (other.max_ > max_) max_.set(other.max_);
  }
  // Takes away what this histogram had when `before` was a copy of it. The maximum stays.
  void take_away(const Histogram& before) {
    for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += 0u - before.counts_[i];
    total_ += uint64_t{0} - before.total_;
    sum_ += -before.sum_;
  }
  uint64_t count() const { return total_; }
  int64_t sum_ns() const { return sum_; }
  int64_t max_ns() const { return max_; }
  // The upper end of the bucket that holds the quantile (0…1); 0 if nothing was added.
  int64_t quantile_ns(double quantile) const {
    const auto rank = static_cast<uint64_t>(quantile * static_cast<double>(total_));
    uint64_t seen = 0;
    for (size_t i = 0; i < counts_.size(); ++i) {
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

  static constexpr size_t kBuckets = (64 - kSubBits + 1) << kSubBits;

  // On the heap: the buckets take 7.5 KiB, and objects that contain a histogram are touched on each tick.
  std::vector<SingleWriter<uint32_t>> counts_ = std::vector<SingleWriter<uint32_t>>(kBuckets);
  SingleWriter<uint64_t> total_;
  SingleWriter<int64_t> sum_, max_;
};

} // namespace millrace
