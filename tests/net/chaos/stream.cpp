// Keeps the bytes of one direction in a ring, and decides what happens to them and when they leave.
#include "stream.h"

#include <algorithm>
#include <cmath>

namespace millrace::chaos {

void Stream::set(const Conditions& conditions) {
  const bool flips_anew = conditions.flip_one_in != conditions_.flip_one_in;
  if (conditions.limit_bytes && (!conditions_.limit_bytes || conditions.limit_id != conditions_.limit_id))
    limit_left_ = *conditions.limit_bytes;
  conditions_ = conditions;
  if (flips_anew && conditions_.flip_one_in > 0) draw_flip_gap();
}

std::span<std::byte> Stream::room() {
  if (!ring_) ring_.reset(new std::byte[kBufferedMax]); // left as it is: the kernel gives pages as they are written
  if (size_ == 0) first_ = 0;
  if (size_ == kBufferedMax || marks_.size() == kMarksMax) return {};
  const size_t last = (first_ + size_) % kBufferedMax;
  const size_t until = last < first_ ? first_ : kBufferedMax;
  return {ring_.get() + last, std::min(until - last, kTransferMax)};
}

void Stream::received(size_t count, int64_t now_ns) {
  size_t kept = count;
  if (ending_ || conditions_.is_half_open) kept = 0;
  if (conditions_.limit_bytes) kept = std::min(kept, static_cast<size_t>(limit_left_));
  bytes_vanished_ += count - kept;
  if (kept > 0) {
    const size_t last = (first_ + size_) % kBufferedMax;
    if (conditions_.flip_one_in > 0) flip({ring_.get() + last, kept});
    const int64_t due = due_at(now_ns);
    // Bytes that are due already need no mark of their own.
    if (!marks_.empty() && (marks_.back().due_ns == due || due <= now_ns)) {
      marks_.back().count += kept;
    } else {
      marks_.push_back({due, kept});
    }
    if (size_ == 0) free_at_ns_ = std::max(free_at_ns_, due); // bandwidth that was not used is gone
    size_ += kept;
  }
  if (!conditions_.limit_bytes || ending_ || conditions_.is_half_open) return;
  limit_left_ -= static_cast<int64_t>(kept);
  if (limit_left_ == 0) end(Ending::limit, now_ns);
}

int64_t Stream::due_at(int64_t now_ns) {
  int64_t delay = conditions_.latency_ns;
  if (conditions_.jitter_ns > 0) delay += draw_.within(-conditions_.jitter_ns, conditions_.jitter_ns);
  last_due_ns_ = std::max(last_due_ns_, now_ns + std::max<int64_t>(delay, 0));
  return last_due_ns_;
}

void Stream::draw_flip_gap() {
  if (conditions_.flip_one_in == 1) {
    bytes_to_flip_ = 0;
    return;
  }
  // The distance of events that have the same chance at each byte: geometric, by inversion.
  const double each = std::log1p(-1.0 / static_cast<double>(conditions_.flip_one_in));
  bytes_to_flip_ = static_cast<int64_t>(std::min(std::floor(std::log1p(-flips_.unit()) / each), 0x1p60));
}

void Stream::flip(std::span<std::byte> bytes) {
  int64_t at = bytes_to_flip_;
  const auto size = static_cast<int64_t>(bytes.size());
  while (at < size) {
    bytes[static_cast<size_t>(at)] ^= std::byte{1} << flips_.within(0, 7);
    ++bits_flipped_;
    draw_flip_gap();
    at += 1 + bytes_to_flip_;
  }
  bytes_to_flip_ = at - size;
}

void Stream::end(Ending ending, int64_t now_ns) {
  if (ending_) return;
  ending_ = ending;
  ending_due_ns_ = due_at(now_ns);
}

void Stream::cut() {
  if (!ending_) ending_ = Ending::cut;
  is_hurried_ = true;
}

void Stream::discard() {
  bytes_vanished_ += size_;
  size_ = 0;
  marks_.clear();
}

Next Stream::next(int64_t now_ns) {
  if (size_ == 0 && !ending_) return {};
  if (!is_hurried_) {
    if (conditions_.is_stalled || (size_ == 0 && conditions_.is_half_open)) return {};
    const int64_t due = size_ > 0 ? marks_.front().due_ns : ending_due_ns_;
    const bool is_paced = size_ > 0 && conditions_.bytes_per_s > 0;
    const int64_t from = is_paced ? std::max(due, free_at_ns_) : due;
    if (from > now_ns) return {.wait_until_ns = from};
  }
  if (size_ == 0) return {.ending = ending_};

  size_t count = is_hurried_ ? size_ : marks_.front().count;
  count = std::min({count, kBufferedMax - first_, kTransferMax});
  if (!is_hurried_ && conditions_.bytes_per_s > 0) {
    const double step = static_cast<double>(conditions_.bytes_per_s) * static_cast<double>(kBandwidthStepNs) * 1e-9;
    count = std::min(count, static_cast<size_t>(std::max(step, 1.0)));
  }
  if (conditions_.slice_least > 0)
    count = std::min(count, static_cast<size_t>(draw_.within(conditions_.slice_least, conditions_.slice_most)));
  return {.bytes = {ring_.get() + first_, count}};
}

void Stream::sent(size_t count, int64_t now_ns) {
  first_ = (first_ + count) % kBufferedMax;
  size_ -= count;
  if (conditions_.bytes_per_s > 0) {
    const double ns = static_cast<double>(count) * 1e9 / static_cast<double>(conditions_.bytes_per_s);
    free_at_ns_ = std::max(free_at_ns_, now_ns - kBandwidthLagMaxNs) + static_cast<int64_t>(ns);
  }
  while (count > 0) {
    const size_t here = std::min(count, marks_.front().count);
    marks_.front().count -= here;
    count -= here;
    if (marks_.front().count == 0) marks_.pop_front();
  }
}

} // namespace millrace::chaos
