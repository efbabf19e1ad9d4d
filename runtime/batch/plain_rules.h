// The rules that learn nothing: a fixed size and wait, and `free`, which fires what is there.
#pragma once

#include <algorithm>
#include <cstdint>

#include "batch/rule.h"

namespace millrace::batch {

// Fires when `size` places are taken, when the oldest item has waited for `wait_ns` (kNever: it waits on), or when no
// stream can give another item before that.
class FixedRule final : public Rule {
 public:
  FixedRule(uint32_t size, int64_t wait_ns) : size_(size), wait_ns_(wait_ns) {}
  void set_size(uint32_t size) { size_ = size; }
  void set_wait(int64_t wait_ns) { wait_ns_ = wait_ns; }
  Choice choose(const Waiting& waiting) const override {
    Choice choice;
    const uint32_t rows = std::min(waiting.rows, size_);
    if (waiting.rows >= size_ || (wait_ns_ != kNever && waiting.now_ns - waiting.oldest_ns >= wait_ns_)) {
      choice.fire = rows;
    } else {
      choice.look_again_ns = wait_ns_ == kNever ? kNever : waiting.oldest_ns + wait_ns_;
      choice.fire_if_alone = rows;
    }
    return choice;
  }

 private:
  uint32_t size_;
  int64_t wait_ns_;
};

// Fires all that waits, at most `max` places, whenever there is room for a firing (B12).
class FreeRule final : public Rule {
 public:
  explicit FreeRule(uint32_t max) : max_(max) {}
  Choice choose(const Waiting& waiting) const override {
    Choice choice;
    choice.fire = std::min(waiting.rows, max_);
    return choice;
  }

 private:
  uint32_t max_;
};

// Fires 1, 2, 4, … items in turn, up to `max`, to measure what firings of each size take. Under Order::media_time.
class EachSizeRule final : public Rule {
 public:
  explicit EachSizeRule(uint32_t max) : max_(max) {}
  Choice choose(const Waiting& waiting) const override {
    Choice choice;
    const uint32_t rows = std::min(waiting.rows, size_);
    (waiting.rows >= size_ ? choice.fire : choice.fire_if_alone) = rows;
    return choice;
  }
  void ended(const FiringEnd&, const Forecast&) override { size_ = size_ >= max_ ? 1 : 2 * size_; }

 private:
  uint32_t max_, size_ = 1;
};

} // namespace millrace::batch
