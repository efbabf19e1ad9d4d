// Bounds the cost of strangers: how many connections may wait to be known, from where, how fast, with how many bytes,
// for how long.
//
// Everybody who reaches the port is a stranger until its key is known. The listener asks the door before it spends
// anything on a connection, and turns it away without a word where the door is shut.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "net/limits.h"

namespace millrace::net {

// An IPv6 address; IPv4 ones are mapped into it. Of IPv6 the first 8 bytes count, since a household has them all.
using IpAddress = std::array<uint8_t, 16>;

class Door {
 public:
  // A connection came. False: close it at once. True: it is one of those that wait, until leave().
  bool enter(const IpAddress& from, int64_t now_ns);
  // It is known by now (`became_known`), was refused, or has gone.
  void leave(const IpAddress& from, bool became_known);

  // A connection that waits must be closed at this time, or at this many bytes.
  static int64_t deadline_ns(int64_t entered_ns) { return entered_ns + kStrangerNs; }
  static bool is_too_much(uint64_t bytes) { return bytes > kStrangerBytesMax; }

  uint32_t waiting() const { return waiting_; }
  uint64_t turned_away() const { return turned_away_; }

 private:
  bool is_known(const IpAddress& from) const;
  bool has_token(int64_t now_ns);
  uint32_t waiting_from(const IpAddress& from) const;

  // Addresses from which a peer was known before do not use up the rate. A table that forgets the oldest.
  static constexpr uint32_t kKnownMax = 256;
  std::array<IpAddress, kKnownMax> known_{};
  uint64_t known_count_ = 0;

  std::array<IpAddress, kStrangersMax> addresses_{}; // one for each that waits
  uint32_t waiting_ = 0;
  uint64_t turned_away_ = 0;
  int64_t tokens_from_ns_ = INT64_MIN; // the bucket holds the tokens of the time since then
};

} // namespace millrace::net
