// Every reason for which a peer is refused: a number that travels in REFUSE, and a sentence for people.
#pragma once

#include <cstdint>

namespace millrace::net {

// The numbers are part of the wire: new ones go to the end.
enum class Fault : uint16_t {
  none = 0,
  // The head.
  head_checksum = 1,
  type = 2,
  length = 3,
  flags = 4,
  field = 5, // a field that this type does not have is not 0
  // Any body.
  body_checksum = 6,
  body_short = 7,
  body_long = 8,
  text = 9,
  // HELLO.
  magic = 10,
  version = 11,
  feature = 12,
  session = 13,
  lane = 14,
  node = 15,
  plan = 16, // another run or brief
  running_already = 17,
  stale = 18, // a data connection of a pairing that is over
  // Order.
  unexpected = 19, // the type may not come now, or not on this connection
  crossing = 20,
  number = 21,
  credit = 22,
  // OPEN.
  open_name = 23,
  open_depth = 24,
  open_delivery = 25,
  open_values = 26,
  open_format = 27,
  open_expected = 28,
  // TICK, DATA.
  index = 29, // an index that does not rise, or a previous one that was not the last
  gap = 30,
  cause = 31,
  value = 32, // a value's record was refused
  which_value = 33,
  place = 34, // DATA that does not go on where the one before ended
  too_many_bytes = 35,
  after_end = 36,
  // STATE.
  acknowledged = 37,
  state_falls = 38,
  // Strangers, time and rate.
  slow_greeting = 39,
  // 40 and 41 are free: a stranger who costs too much is told nothing.
  // GOAWAY.
  leaving = 42,
  delivery = 43,
  drained = 44, // GOAWAY: all that the node had to send has arrived
  // PONG.
  received = 45, // more bytes of a data connection than were written
  vanished = 46, // not told to the peer: the connection brings it nothing
  // MESSAGE.
  message = 47, // longer than kMessageBytesMax
  message_rate = 48,
  message_waiting = 49, // the owner did not take those before
  // A peer that keeps to the records, and not to what they are for.
  leaves_out = 50, // a gap on a clock that waits for every tick
  epoch = 51,
  no_credit = 52,
  no_state = 53,
  no_pong = 54,
  count,
};

const char* sentence_of(Fault fault);

// True if no program that keeps to the protocol does this, and no line either: its process will do so again.
bool is_contradiction(Fault fault);

} // namespace millrace::net
