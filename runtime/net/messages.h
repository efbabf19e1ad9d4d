// The messages of a control connection, one queue each way: documents of `fleet`, which are opaque bytes here.
//
// A message goes in chunks, so that pings and states never wait for a whole one:
//
//   MESSAGE 0, at 0, full │ PING │ MESSAGE 0, at 16384, full │ MESSAGE 0, at 32768, last │ MESSAGE 1, at 0, last
//
// Numbers count the messages of one connection from 0. All chunks of a message but the last are full, so a message has
// one spelling. It arrives whole and in order, or not at all: nothing is acknowledged or sent again, and what was not
// whole at a cut is gone at both ends. The owner then says again what still holds.
//
// Bytes are taken in as they come: a number that the peer says sizes nothing. Messages allocate, unlike parcels.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>

#include "net/fault.h"
#include "net/limits.h"
#include "net/outbox.h"
#include "net/record.h"

namespace millrace::net {

// Bytes of MESSAGE records a minute. A minute's bytes may go at once; after that they are free again one by one.
class MessageRate {
 public:
  explicit MessageRate(uint64_t bytes_per_minute) : bytes_per_minute_(bytes_per_minute) {}

  // A chunk of this many bytes is within the rate from this time on.
  int64_t free_at_ns(size_t bytes) const { return used_until_ns_ + cost_ns(bytes) - kMinuteNs; }
  void take(size_t bytes, int64_t now_ns) { used_until_ns_ = std::max(used_until_ns_, now_ns) + cost_ns(bytes); }

 private:
  static constexpr int64_t kMinuteNs = 60 * kSecond;
  int64_t cost_ns(size_t bytes) const {
    return static_cast<int64_t>((kHeadBytes + bytes) * uint64_t{kMinuteNs} / bytes_per_minute_);
  }

  uint64_t bytes_per_minute_;
  int64_t used_until_ns_ = INT64_MIN / 2; // all bytes are free again then; no clock has been so early
};

// Messages that wait to be written.
class OutgoingMessages {
 public:
  // False if it is empty, too long, or would be too many.
  bool add(std::string text);
  // The connection is gone, and all that waits with it.
  void clear();
  // Adds the next chunk, if there is one and the rate allows it.
  void write_next(Outbox& outbox, int64_t now_ns);
  // The next chunk may go from this time on; INT64_MAX: there is none.
  int64_t next_ns() const { return waiting_.empty() ? INT64_MAX : rate_.free_at_ns(chunk_bytes()); }

 private:
  size_t chunk_bytes() const { return std::min<size_t>(kMessageChunkBytes, waiting_.front().size() - at_); }

  std::deque<std::string> waiting_;
  uint64_t waiting_bytes_ = 0; // whole messages
  uint64_t number_ = 0;        // the oldest has it
  size_t at_ = 0;              // as much of the oldest was written
  MessageRate rate_{kMessageBytesPerMinuteSaid};
};

// Messages that have come.
class IncomingMessages {
 public:
  // Another connection is up: what came over the one before and was not taken is gone.
  void begin();
  // The connection is gone, and with it the part of a message that has come. Whole ones may still be taken.
  void cut();
  // MESSAGE. A fault ends the connection.
  Fault read(const Head& head, Bytes body, int64_t now_ns);
  // The oldest one that is whole; false if there is none.
  bool take(std::string& text);
  bool has_whole() const { return !whole_.empty(); }

 private:
  std::deque<std::string> whole_;
  uint64_t waiting_bytes_ = 0; // whole messages
  uint64_t number_ = 0;        // the one that is coming in has it
  std::string coming_;
  MessageRate rate_{kMessageBytesPerMinute};
};

} // namespace millrace::net
