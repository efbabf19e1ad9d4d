// Keeps times in a ring and forgets the oldest ones.
#include "handlers/stats/rate_meter.h"

namespace millrace::handlers {

void RateMeter::add(int64_t time_ns, int64_t window_ns) {
  if (count_ > 0 && time_ns < newest()) clear();
  times_[end_] = time_ns;
  end_ = (end_ + 1) % kTimesMax;
  if (count_ < kTimesMax) ++count_;
  while (count_ > 2 && time_ns - oldest() > window_ns) --count_;
}

Rate RateMeter::rate() const {
  if (count_ < 2 || newest() == oldest()) return {};
  const int64_t span = newest() - oldest(), intervals = count_ - 1;
  return {static_cast<double>(intervals) * 1e9 / static_cast<double>(span), span, intervals};
}

} // namespace millrace::handlers
