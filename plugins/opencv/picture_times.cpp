// Believing a container's times as long as they make sense; see picture_times.h.
#include "plugins/opencv/picture_times.h"

#include <cmath>
#include <cstdlib>

namespace millrace::opencv {

namespace {

// Matroska and FLV count milliseconds, so that a time is off by half of one; a little more for the rate's own rounding.
constexpr int64_t kRoundingNs = 600'000;
// Longer stills exist in no file that we know of; damaged ones ask for years, which a real-time clock would wait for.
constexpr int64_t kGapMaxNs = 3600 * int64_t{1'000'000'000};
// Beyond this a time is no time, and the nanoseconds would not fit 63 bits: a hundred years.
constexpr double kTimeMaxMs = 100.0 * 366 * 86400 * 1000;

} // namespace

int64_t PictureTimes::period_ns() const { return time_of_picture(rate_, 1); }

int64_t PictureTimes::end_ns() const {
  return constant_ || count_ == 0 ? time_of_picture(rate_, count_) : last_ns_ + period_ns();
}

// The container's time on our base; that of a picture in its turn where the container's makes no sense.
int64_t PictureTimes::from_container(double container_ms) {
  const int64_t expected = end_ns();
  if (!std::isfinite(container_ms) || std::abs(container_ms) > kTimeMaxMs) return expected;
  const auto own_ns = static_cast<int64_t>(std::llround(container_ms * 1e6));
  const int64_t time = own_ns + shift_ns_;
  if (anchored_ && time >= last_ns_ - period_ns() && time <= last_ns_ + kGapMaxNs) return time;
  anchored_ = true; // from here on its times are believed
  shift_ns_ = expected - own_ns;
  return expected;
}

PictureTime PictureTimes::next(double container_ms) {
  const int64_t on_grid = time_of_picture(rate_, count_);
  int64_t time = from_container(container_ms);
  constant_ = constant_ && std::abs(time - on_grid) <= kRoundingNs;
  if (constant_) time = on_grid;
  if (count_ > 0 && time <= last_ns_) time = last_ns_ + 1; // two pictures that a coarse time base shows at once
  ++count_;
  last_ns_ = time;
  return {time, constant_ ? time_of_picture(rate_, count_) - time : 0};
}

} // namespace millrace::opencv
