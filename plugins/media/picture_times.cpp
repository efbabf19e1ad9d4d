// Rounding; see picture_times.h.
#include "plugins/media/picture_times.h"

extern "C" {
#include <libavutil/mathematics.h>
}

#include <algorithm>
#include <cstdlib>

#include "plugins/media/rates.h"

namespace millrace::media {

namespace {
constexpr AVRational kNanoseconds = {1, 1000000000};
}

int64_t EvenRate::place_of(int64_t time_ns) const {
  // Half-way goes down: of a film at twice the rate every other picture is shown at its own time. A nanosecond more or
  // less than half-way is a source's rounding.
  const AVRational period = av_inv_q(rate_);
  const int64_t half_ns = av_rescale_q(1, period, kNanoseconds) / 2;
  return std::max<int64_t>(0, av_rescale_q_rnd(time_ns + half_ns - 2, kNanoseconds, period, AV_ROUND_DOWN));
}

EvenRate::Place EvenRate::put(int64_t time_ns) {
  const int64_t place = place_of(time_ns);
  if (count_ > 0 && place < count_) return {0, false};
  const int64_t repeats = count_ > 0 ? place - count_ : 0;
  count_ = place + 1;
  return {repeats, true};
}

int64_t EvenRate::repeats_until(int64_t end_ns) {
  const int64_t repeats = std::max<int64_t>(0, place_of(end_ns) - count_);
  count_ += repeats;
  return repeats;
}

int64_t FreeTimes::put(int64_t time_ns, int64_t tolerance_ns, bool& moved) {
  const int64_t at = std::max(in_units(time_ns, time_base_), last_ + 1);
  last_ = at;
  moved = std::abs(av_rescale_q(at, time_base_, kNanoseconds) - time_ns) > tolerance_ns;
  return at;
}

} // namespace millrace::media
