// Computes the exact due times of a source's values; see due_times.h.
#include "exec/due_times.h"

#include <algorithm>
#include <cmath>

#include "exec/source.h"

namespace millrace::exec {

namespace {

// 29.97 and 30000/1001 are one rate to people, and 30 and 30000/1001 are not.
constexpr double kAlike = 1.0005;

double per_second(const graph::Rational& rate) {
  return static_cast<double>(rate.numerator) / static_cast<double>(rate.denominator);
}

} // namespace

int64_t DueTimes::nearest_beat(int64_t time_ns) const {
  const double periods = static_cast<double>(later_by(time_ns, -grid_ns_)) * 1e-9 * per_second(rate_);
  return std::abs(periods) < 9e15 ? std::llround(periods) : INT64_MAX; // beyond that a double has no whole numbers
}

DueTimes::Due DueTimes::next(int64_t time_ns) {
  Due due{time_ns, false};
  if (time_ns <= last_time_ns_) {
    due.replaced = true;
    due.at_ns = later_by(last_due_ns_, std::max<int64_t>(rate_.numerator > 0 ? beat_ns(rate_, 1) : 1, 1));
    last_time_ns_ = last_due_ns_ = due.at_ns;
    return due;
  }
  last_time_ns_ = time_ns;
  if (rate_.numerator > 0) {
    const bool begins = grid_ns_ == INT64_MIN;
    const int64_t beat = begins ? 0 : nearest_beat(time_ns);
    const int64_t on_grid = begins ? time_ns : later_by(grid_ns_, beat < 0 ? 0 : beat_ns(rate_, beat));
    const int64_t off_ns = later_by(time_ns, -on_grid);
    if (begins || off_ns > rounding_ns_ || off_ns < -rounding_ns_)
      grid_ns_ = time_ns;
    else
      due.at_ns = on_grid;
  }
  if (due.at_ns <= last_due_ns_) due.at_ns = later_by(last_due_ns_, 1);
  last_due_ns_ = due.at_ns;
  return due;
}

bool has_beat_for_each(const graph::Rational& clock, const graph::Rational& source) {
  if (clock.numerator == 0 || source.numerator == 0) return false;
  return per_second(source) <= per_second(clock) * kAlike;
}

} // namespace millrace::exec
