// One connection of a link, as its session sees it, and whose turn it is to write on it.
//
//   down ──dial──▶ dialling ──connected──▶ greeting ──WELCOME──▶ up ──fault, leave──▶ closing ──▶ down
//    └──────────────── accepted (its HELLO was read by the listener) ────▶ up
//   a cut leads from each of them to down
#pragma once

#include <cstdint>
#include <vector>

#include "net/inbox.h"
#include "net/incoming.h"
#include "net/lane_watch.h"
#include "net/outbox.h"
#include "net/outgoing.h"
#include "net/redial.h"

namespace millrace::net {

struct Lane {
  enum class State : uint8_t { down, dialling, greeting, up, closing };

  State state = State::down;
  Inbox inbox;
  Outbox outbox;
  Redial redial;
  LaneWatch watch;
  int64_t dial_at_ns = INT64_MAX;
  int64_t give_up_at_ns = INT64_MAX; // ends a greeting, or a refusal that is being written

  // The crossings of a data connection.
  std::vector<Outgoing*> outgoing;
  std::vector<Incoming*> incoming;
  size_t opens_written = 0;    // as many of `incoming` have theirs
  size_t turn = 0;             // the next of `outgoing`
  Incoming* reading = nullptr; // the crossing whose DATA is coming in

  bool has_connection() const { return state == State::greeting || state == State::up || state == State::closing; }

  // Adds OPENs, then records of the crossings in turn, one each, until enough waits to be written.
  void write_crossings(bool takes_new, size_t chunk_bytes_most);
  // Something of a parcel, or of what was added, is still to be written.
  bool is_in_the_middle() const;
};

} // namespace millrace::net
