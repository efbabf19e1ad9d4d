// The presence of a peer, and the offset between the two clocks. Asked on the control connection alone, so that a busy
// link is never taken for a dead one.
//
// The offset is NTP's: from four times of a ping, ((t2 - t1) + (t3 - t4)) / 2, right to half of the round trip. The
// sample with the least round trip of the last 16 counts, since what a ping waits for in queues only makes it longer.
#pragma once

#include <array>
#include <cstdint>

#include "net/limits.h"
#include "net/record.h"

namespace millrace::net {

enum class Presence : uint8_t { there, suspect, away };

class Heartbeat {
 public:
  // A connection begins, or the peer gave a sign of life. `heard` brings a peer back that was suspect or away.
  void begin(int64_t now_ns);
  void heard(int64_t now_ns) { heard_ns_ = now_ns; }

  bool ping_due(int64_t now_ns) const { return now_ns >= next_ping_ns_; }
  void pinged(int64_t now_ns) { next_ping_ns_ = now_ns + kPingEveryNs; }
  Presence presence(int64_t now_ns) const;
  int64_t next_ping_ns() const { return next_ping_ns_; }
  int64_t next_presence_ns(int64_t now_ns) const; // when presence() changes next

  // An answer came at t4. Times that cannot be (a round trip below 0) are let go.
  void answered(const Times& times, int64_t t4);
  // The samples belong to one peer's process.
  void forget() { count_ = 0; }

  struct Offset {
    int64_t offset_ns = 0; // the peer's clock minus ours
    int64_t error_ns = 0;  // it is at most this far off
    int64_t round_trip_ns = 0;
    bool known = false;
  };
  Offset offset(int64_t now_ns) const;

 private:
  struct Sample {
    int64_t offset_ns, round_trip_ns, at_ns;
  };
  std::array<Sample, kRoundTripsKept> samples_{};
  uint64_t count_ = 0;
  int64_t heard_ns_ = 0, next_ping_ns_ = 0;
};

} // namespace millrace::net
