// Keeps the last pauses of a source; see pace.h.
#include "plugins/media/pace.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace millrace::media {

namespace {

// Damaged times may be farther apart than a signed number can tell.
int64_t step_of(int64_t before_ns, int64_t time_ns) {
  const uint64_t step_ns = static_cast<uint64_t>(time_ns) - static_cast<uint64_t>(before_ns);
  return static_cast<int64_t>(std::min<uint64_t>(step_ns, Pace::kLearnedMaxNs));
}

} // namespace

void Pace::came(int64_t waited_ns, int64_t time_ns) {
  // A reader that is slower than the source does not wait, but the packets' times still tell the pause.
  int64_t step_ns = 0;
  if (time_ns != INT64_MIN) {
    const int64_t before_ns = std::exchange(last_time_ns_, time_ns);
    if (before_ns != INT64_MIN && time_ns > before_ns) step_ns = step_of(before_ns, time_ns);
  }
  pauses_ns_[count_++ % kPauses] = std::max(waited_ns, step_ns);
}

int64_t Pace::limit_ns(int64_t timeout_ns) const {
  if (count_ < 2) return std::max(timeout_ns, kFirstWaitNs);
  const int64_t longest_ns = *std::max_element(std::begin(pauses_ns_), std::end(pauses_ns_));
  return std::max(timeout_ns, kPatience * std::min(longest_ns, kLearnedMaxNs / kPatience));
}

} // namespace millrace::media
