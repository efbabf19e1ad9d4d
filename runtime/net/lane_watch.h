// Finds a data connection in which bytes vanish.
//
// A box on the way may acknowledge bytes to TCP and then lose them. The sender's system has nothing more to send, the
// reader waits for the rest, and once the credit is used up nobody writes any more: without a watch both would wait for
// ever, while the control connection works. So each PONG says how many bytes of each data connection have come. The
// sender compares them with its own count:
//
//   written       told           silent since
//   300           300            -              all have come, however slowly the run takes them in
//   500           300            the write      the first of them is on its way
//   500           400            the PONG       a slow line: the count moves
//   500           400, again     as before      after kLaneSilentNs they have vanished
//
// A connection has a number, which its HELLO says: a count of an older connection is never taken for this one's. A peer
// that names another one has let this one go. If that lasts for kLaneGoneNs, the end of the stream has vanished too.
//
// HELLO counts at neither end: the listener reads it, before there is a session. WELCOME counts at both.
#pragma once

#include <algorithm>
#include <cstdint>

#include "net/fault.h"
#include "net/limits.h"
#include "net/record.h"

namespace millrace::net {

class LaneWatch {
 public:
  // A connection begins; 0: there is none, or it is for control.
  void begin(uint64_t connection) {
    *this = {};
    count_.connection = connection;
  }

  // Bytes after HELLO.
  void sent(uint64_t bytes, int64_t now_ns) {
    if (bytes == 0) return;
    if (told_ == written_) silent_since_ns_ = now_ns;
    written_ += bytes;
  }
  void received(uint64_t bytes) { count_.bytes += bytes; }

  uint64_t connection() const { return count_.connection; }
  // For the PONG to the peer.
  const LaneCount& count() const { return count_; }

  // The peer has told that every byte has come.
  bool has_all_come() const { return told_ == written_; }
  // The peer's PONG says this, in answer to a PING that left at `asked_ns`: the count is at least as young. A fault is
  // `vanished`, or that the count cannot be.
  Fault heard(const LaneCount& peer, int64_t asked_ns, int64_t now_ns) {
    const bool is_this = peer.connection == count_.connection;
    if (is_this && peer.bytes > written_) return Fault::received;
    if (is_this && peer.bytes < told_) return Fault::state_falls;
    if (is_this && (peer.bytes > told_ || peer.bytes == written_)) {
      told_ = peer.bytes;
      silent_since_ns_ = told_ < written_ ? now_ns : INT64_MAX;
      return Fault::none;
    }
    if (silent_since_ns_ == INT64_MAX) silent_since_ns_ = now_ns;
    // A PONG may have waited for long, so the time of its PING counts.
    const int64_t limit_ns = is_this ? kLaneSilentNs : kLaneGoneNs;
    const bool is_over = std::min(asked_ns, now_ns) >= silent_since_ns_ + limit_ns;
    return is_over ? Fault::vanished : Fault::none;
  }

 private:
  LaneCount count_;                     // bytes of the peer
  uint64_t written_ = 0, told_ = 0;     // bytes of this side; as many have come, as the peer has told
  int64_t silent_since_ns_ = INT64_MAX; // something has been missing since then, and no count has moved
};

} // namespace millrace::net
