// One crossing at its reader: the parcel that is coming in, and what was promised to the sender.
//
// All parcels below `expected` have arrived, each once and in order. A parcel that a cut has interrupted begins anew,
// in the same blocks. Credit is told as a number below which parcels may be sent, so a state that is lost or comes late
// does no harm.
#pragma once

#include <span>

#include "net/crossing.h"
#include "net/record.h"

namespace millrace::net {

class Incoming {
 public:
  Incoming(const CrossingPlan& plan, Arrival& arrival) : plan_(plan), arrival_(arrival) {}

  const CrossingPlan& plan() const { return plan_; }

  // Another process is the peer: its numbers begin at 0.
  void begin_pairing();
  // The connection is gone, and with it the part of a parcel that has come.
  void close();
  // The record with which the connection begins; parcels may come after it.
  Open open();
  bool is_open() const { return is_open_; }

  // CHANGE, TICK or END. A fault ends the connection.
  Fault read_change(const Head& head, Bytes body);
  Fault read_tick(const Head& head, Bytes body);
  // The place of DATA's body.
  Fault begin_data(const Head& head, std::span<std::byte>& target);
  // That body is there.
  void end_data();

  // True if the sender should learn at once what has arrived or may be sent: it may be waiting for it. `due` alone: it
  // is enough to tell within kStateEveryNs.
  bool is_urgent() const;
  bool is_due() const;
  ReaderState write_state();
  // The connection that states go over is another: what it told may be lost.
  void retell() { retells_ = true; }
  Fault read_state(const SenderState& state);

  struct Counts {
    uint64_t arrived = 0; // parcels, ends among them
    uint64_t lost = 0;    // ticks that a process took with it
    std::array<uint64_t, kCausesMax> left_out{};
  };
  const Counts& counts() const { return counts_; }
  bool has_ended() const { return ended_; }

 private:
  uint64_t credit() const { return arrival_.credit() - arrived_before_; }
  Fault check_next(const Head& head) const;
  Fault check_changes();
  Fault read_values(ByteReader& reader);
  Fault check_order();
  void finish_values();
  void count_gaps();
  void record_stranded(bool is_stranded);

  CrossingPlan plan_;
  Arrival& arrival_;
  uint64_t expected_ = 0;
  uint64_t arrived_before_ = 0; // in earlier pairings
  ReaderState told_;
  bool retells_ = false;
  bool is_open_ = false;
  bool ended_ = false;
  bool in_parcel_ = false;
  uint32_t value_ = 0; // index within the parcel that is coming in
  uint64_t at_ = 0;
  uint64_t chunk_ = 0;
  Parcel parcel_;
  std::vector<Change> changes_; // that came before it
  // The tick before, of this pairing or of an earlier one.
  bool has_last_ = false, last_is_of_pairing_ = false;
  uint32_t last_epoch_ = 0;
  uint64_t last_index_ = 0;
  // A passed time counts once all parcels before it have arrived.
  SenderState passed_;
  int64_t passed_told_ns_ = INT64_MIN;
  bool is_stranded_ = false;
  Counts counts_;
};

} // namespace millrace::net
