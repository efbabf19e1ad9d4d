// Decides from the time since the last record if the peer is there, and takes the clocks' offset from the shortest
// round trip.
#include "net/heartbeat.h"

#include <algorithm>

namespace millrace::net {

void Heartbeat::begin(int64_t now_ns) {
  heard_ns_ = now_ns;
  next_ping_ns_ = now_ns;
}

Presence Heartbeat::presence(int64_t now_ns) const {
  const int64_t silent_ns = now_ns - heard_ns_;
  return silent_ns >= kAwayAfterNs      ? Presence::away
         : silent_ns >= kSuspectAfterNs ? Presence::suspect
                                        : Presence::there;
}

int64_t Heartbeat::next_presence_ns(int64_t now_ns) const {
  for (const int64_t limit : {heard_ns_ + kSuspectAfterNs, heard_ns_ + kAwayAfterNs})
    if (limit > now_ns) return limit;
  return INT64_MAX;
}

void Heartbeat::answered(const Times& times, int64_t t4) {
  // The peer chose t2 and t3: unsigned arithmetic wraps where they are absurd, and such a sample is let go.
  const auto difference = [](int64_t later, int64_t earlier) {
    return static_cast<int64_t>(static_cast<uint64_t>(later) - static_cast<uint64_t>(earlier));
  };
  const int64_t there = difference(times.t3, times.t2), whole = difference(t4, times.t1);
  // A peer that took longer was away.
  if (there < 0 || whole < 0 || there > whole || whole > kAwayAfterNs) return;
  const int64_t there_ns = difference(times.t2, times.t1), back_ns = difference(times.t3, t4);
  // Half of each, so that the sum of two large numbers stays one.
  // The clocks drift apart from t1 on: an answer may have waited long at the peer.
  samples_[count_++ % kRoundTripsKept] = {there_ns / 2 + back_ns / 2, whole - there, times.t1};
}

Heartbeat::Offset Heartbeat::offset(int64_t now_ns) const {
  const auto kept = static_cast<std::ptrdiff_t>(std::min<uint64_t>(count_, kRoundTripsKept));
  if (kept == 0) return {};
  const auto error_of = [&](const Sample& sample) {
    return sample.round_trip_ns / 2 + std::max<int64_t>(0, now_ns - sample.at_ns) * kDriftPpmMax / 1'000'000 + 1;
  };
  // A clock drifts, so an old sample is worth less than its round trip says.
  const auto best = std::min_element(samples_.begin(), samples_.begin() + kept,
                                     [&](const Sample& a, const Sample& b) { return error_of(a) < error_of(b); });
  return {best->offset_ns, error_of(*best), best->round_trip_ns, true};
}

} // namespace millrace::net
