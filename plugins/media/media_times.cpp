// Corrects the times of containers; see media_times.h.
#include "plugins/media/media_times.h"

#include <algorithm>
#include <cmath>

namespace millrace::media {

namespace {

constexpr int64_t kJumpNs = 1'000'000'000;       // decoders misorder pictures by less, joined files jump by more
constexpr int64_t kGapMaxNs = 3'600'000'000'000; // a longer one may be damage or a join, unless its file confirms it
constexpr int64_t kEndSlackNs = 1'000'001;       // containers round times to 1 ms at the coarsest
constexpr int64_t kLastNs = INT64_MAX / 4;       // times saturate here, so that sums of two never wrap

int64_t bounded(int64_t ns) { return std::clamp(ns, -kLastNs, kLastNs); }

} // namespace

int64_t MediaTimes::scaled(int64_t ns) const {
  if (speed_ == 1) return ns;
  const double wanted = static_cast<double>(ns) / speed_;
  return std::llround(std::clamp(wanted, -static_cast<double>(kLastNs), static_cast<double>(kLastNs)));
}

int64_t MediaTimes::shown_for(int64_t container_ns) const {
  return scaled(std::clamp<int64_t>(container_ns, 0, kLastNs));
}

int64_t MediaTimes::in_file(int64_t container_ns) const {
  if (container_ns == kNoTime) return kNoTime;
  return origin_ns_ == kNoTime ? 0 : bounded(bounded(container_ns) - origin_ns_);
}

MediaTimes::Time MediaTimes::next(int64_t container_ns) {
  const int64_t step = std::max<int64_t>(shown_for(last_duration_ns_ > 0 ? last_duration_ns_ : period_ns_), 1);
  Time time;
  if (container_ns == kNoTime) {
    time = {last_ns_ == kNoTime ? base_ns_ : last_ns_ + step, last_ns_ == kNoTime ? Found::good : Found::missing};
  } else {
    container_ns = bounded(container_ns);
    if (origin_ns_ == kNoTime) origin_ns_ = container_ns;
    time.ns = bounded(base_ns_ + scaled(bounded(container_ns - origin_ns_)));
    const bool is_far = time.ns > last_ns_ + kGapMaxNs && container_ns > trusted_until_ns_;
    if (last_ns_ != kNoTime && (time.ns < last_ns_ - kJumpNs || is_far)) {
      base_ns_ = last_ns_ + step;
      origin_ns_ = container_ns;
      time = {base_ns_, Found::jumped};
    } else if (last_ns_ != kNoTime && time.ns <= last_ns_) {
      time = {last_ns_ + 1, Found::stuck};
    }
  }
  last_ns_ = time.ns;
  last_duration_ns_ = 0;
  return time;
}

void MediaTimes::begin_again() { begin_again_after(0); }

void MediaTimes::begin_again_after_end(int64_t container_ns) {
  if (last_ns_ == kNoTime) return;
  const bool is_stated = container_ns != kNoTime && origin_ns_ != kNoTime;
  const int64_t end_ns = is_stated ? bounded(base_ns_ + scaled(in_file(container_ns))) : kNoTime;
  // Some programs state the time of the last picture instead of its end.
  if (end_ns <= last_ns_ + kEndSlackNs) return begin_again();
  base_ns_ = end_ns;
  origin_ns_ = kNoTime;
}

void MediaTimes::begin_again_after(int64_t lost_ns) {
  if (last_ns_ == kNoTime) return;
  const int64_t step = shown_for(last_duration_ns_ > 0 ? last_duration_ns_ : period_ns_);
  base_ns_ = bounded(last_ns_ + std::max({step, lost_ns, int64_t{1}}));
  origin_ns_ = kNoTime;
}

} // namespace millrace::media
