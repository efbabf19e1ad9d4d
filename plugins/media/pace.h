// Learns from a live source how long it may be silent before it counts as lost.
#pragma once

#include <cstdint>

namespace millrace::media {

// The time from one packet to the next, at most `most_ns`; 0 if it does not rise or one of them is not known
// (INT64_MIN). Damaged times may be farther apart than a signed number can tell.
int64_t step_ns(int64_t before_ns, int64_t time_ns, int64_t most_ns);

// A camera of one picture in 10 s is silent for longer than the usual limit, and nothing in its description says so.
// Before its second packet a source may be silent for kFirstWaitNs; then for three times the longest of its recent
// pauses, and never for less than the user's limit. Not thread safe.
class Pace {
 public:
  static constexpr int64_t kFirstWaitNs = 30'000'000'000;
  static constexpr int64_t kLearnedMaxNs = 180'000'000'000; // a damaged time can be hours away

  // A packet came after a wait of `waited_ns`. `time_ns` is its time in the stream; INT64_MIN: not known.
  void came(int64_t waited_ns, int64_t time_ns);
  // The limit where the user's is `timeout_ns`.
  int64_t limit_ns(int64_t timeout_ns) const;

 private:
  static constexpr int kPauses = 8;   // after as many shorter ones a long pause is forgotten
  static constexpr int kPatience = 3; // one picture may be left out and the next one be late

  int64_t pauses_ns_[kPauses] = {};
  int64_t count_ = 0;
  int64_t last_time_ns_ = INT64_MIN;
};

} // namespace millrace::media
