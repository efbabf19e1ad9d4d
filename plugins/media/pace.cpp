// Keeps the last pauses of a source; see pace.h.
#include "plugins/media/pace.h"

#include <algorithm>
#include <iterator>

namespace millrace::media {

int64_t step_ns(int64_t before_ns, int64_t time_ns, int64_t most_ns) {
  if (before_ns == INT64_MIN || time_ns <= before_ns) return 0;
  const uint64_t step = static_cast<uint64_t>(time_ns) - static_cast<uint64_t>(before_ns);
  return static_cast<int64_t>(std::min(step, static_cast<uint64_t>(most_ns)));
}

void Pace::came(int64_t waited_ns, int64_t time_ns) {
  // A reader that is slower than the source does not wait, but the packets' times still tell the pause.
  const int64_t told_ns = step_ns(last_time_ns_, time_ns, kLearnedMaxNs);
  if (time_ns != INT64_MIN) last_time_ns_ = time_ns;
  pauses_ns_[count_++ % kPauses] = std::max(waited_ns, told_ns);
}

int64_t Pace::limit_ns(int64_t timeout_ns) const {
  if (count_ < 2) return std::max(timeout_ns, kFirstWaitNs);
  const int64_t longest_ns = *std::max_element(std::begin(pauses_ns_), std::end(pauses_ns_));
  return std::max(timeout_ns, kPatience * std::min(longest_ns, kLearnedMaxNs / kPatience));
}

} // namespace millrace::media
