// Rounds media times; see picture_times.h.
#include "plugins/media/picture_times.h"

extern "C" {
#include <libavutil/mathematics.h>
}

#include <algorithm>
#include <cstdlib>

#include "plugins/media/rates.h"

namespace millrace::media {

namespace {
// The most by which a source's time may be off: its container rounds it to 1 ms at the coarsest.
int64_t rounding_ns(AVRational rate) {
  return std::min<int64_t>(1'000'001, av_rescale_q(1, av_inv_q(rate), kNanoseconds) / 4);
}
} // namespace

int64_t EvenRate::place_of(int64_t time_ns) const {
  // Half-way rounds down, so that every other picture of a film at twice the rate is shown at its own time. So does a
  // time that the source's rounding may have put after half-way.
  const AVRational period = av_inv_q(rate_);
  const int64_t half_ns = av_rescale_q(1, period, kNanoseconds) / 2;
  return std::max<int64_t>(
      0, av_rescale_q_rnd(time_ns + half_ns - rounding_ns(rate_), kNanoseconds, period, AV_ROUND_DOWN));
}

EvenRate::Place EvenRate::put(int64_t time_ns, int64_t duration_ns) {
  const int64_t place = place_of(time_ns);
  if (count_ > 0 && place < count_) return {0, false};
  const int64_t place_ns = av_rescale_q(place, av_inv_q(rate_), kNanoseconds);
  const bool is_over = count_ > 0 && duration_ns > 0 && place_ns + rounding_ns(rate_) >= time_ns + duration_ns;
  if (is_over) { // the next picture takes the place, or the film ends before the place
    const int64_t repeats = place - count_;
    count_ = place;
    return {repeats, false};
  }
  const int64_t repeats = count_ > 0 ? place - count_ : 0;
  count_ = place + 1;
  return {repeats, true};
}

int64_t EvenRate::repeats_until(int64_t end_ns) {
  const int64_t repeats = std::max<int64_t>(0, place_of(end_ns) - count_);
  count_ += repeats;
  return repeats;
}

FreeTimes::Time FreeTimes::put(int64_t time_ns, int64_t tolerance_ns) {
  const int64_t nearest = in_units(time_ns, time_base_);
  last_ = std::max(nearest, last_ + 1);
  const int64_t off_ns = std::abs(av_rescale_q(last_, time_base_, kNanoseconds) - time_ns);
  return {last_, off_ns > tolerance_ns, last_ != nearest};
}

} // namespace millrace::media
