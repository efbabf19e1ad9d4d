// One crossing at its sender: parcels that were sent and not acknowledged, and the one that is being written.
//
// Parcels have numbers without gaps, from 0 in each pairing of two processes:
//
//   acknowledged        next                taken
//   |  sent, held        |  held, to be sent  |  still with the run
//
// `taken - acknowledged` is at most the depth, and `taken` at most the credit. After a cut the peer's OPEN says which
// number it expects, `next` goes back to it, and the rest is sent again. When the peer's process is another, all that
// is held is lost with it, and the numbers begin anew.
#pragma once

#include <memory>

#include "net/crossing.h"
#include "net/outbox.h"

namespace millrace::net {

class Outgoing {
 public:
  Outgoing(const CrossingPlan& plan, Departure& departure);

  const CrossingPlan& plan() const { return plan_; }

  // Another process is the peer. Parcels that are held count as lost.
  void begin_pairing();
  // The connection is gone; nothing is sent until the next OPEN.
  void close();
  // The reader's OPEN came.
  Fault open(const Open& open);

  enum class Wrote : uint8_t { nothing, record, no_room };
  // Adds the next record, if there is one and it may be sent. `takes_new`: parcels may be taken from the run. A larger
  // part of a value than `chunk_bytes_most` finds no room.
  Wrote write_next(Outbox& outbox, bool takes_new, size_t chunk_bytes_most = kChunkBytesMax);
  // A parcel's head was added, and not yet all of its values.
  bool is_in_parcel() const { return in_parcel_; }
  // All bytes of this parcel were given to the connection.
  void gave(uint64_t number) { gave_ = number + 1; }

  Fault read_state(const ReaderState& state);
  // All bytes of the connection have come, says the answer to a PING that left at that time. A reader acknowledges what
  // has come.
  Fault all_has_come(int64_t asked_ns);
  // The clock has passed a time that the reader was not told yet, or was stranded or is so no more.
  bool has_passed() const;
  // The reader understands that a sender is stranded.
  void set_tells_stranded(bool tells) { tells_stranded_ = tells; }
  SenderState write_state();
  // The connection that states go over is another: what it told may be lost.
  void retell() { has_told_ = false; }

  // Everything that was taken has been acknowledged.
  bool is_drained() const { return acknowledged_ == taken_; }
  bool is_open() const { return is_open_; }
  bool has_taken_end() const { return ended_; }
  // A parcel could be sent if the run had one.
  bool has_credit() const { return taken_ < credit_ && taken_ - acknowledged_ < plan_.depth && !ended_; }
  // The reader has all that was sent, or most of it, and no room for more. Else it is the line that is slow, if
  // anything.
  bool waits_for_reader() const { return !in_parcel_ && taken_ == credit_ && taken_ - acknowledged_ < plan_.depth; }

  struct Counts {
    uint64_t sent = 0; // parcels whose numbers were given out, ends among them
    uint64_t acknowledged = 0;
    uint64_t lost = 0;
    uint64_t unsound = 0;                        // values that are not what was planned; they are sent as empty
    std::array<uint64_t, kCausesMax> left_out{}; // ticks, as parcels told
  };
  const Counts& counts() const { return counts_; }

 private:
  bool is_stranded() const { return tells_stranded_ && departure_.is_stranded(); }
  Parcel& held(uint64_t number) { return held_[number % plan_.depth]; }
  bool take();
  void release(uint64_t before, bool acknowledged);
  void write_change_record(Outbox& outbox);
  void write_tick_record(Outbox& outbox);
  Bytes next_chunk();
  void write_chunk(Outbox& outbox, Bytes chunk);
  void skip_empty_values(const Parcel& parcel);
  void finish_parcel(Outbox& outbox);

  CrossingPlan plan_;
  Departure& departure_;
  std::unique_ptr<Parcel[]> held_;
  uint64_t acknowledged_ = 0, next_ = 0, taken_ = 0, credit_ = 0, gave_ = 0;
  bool is_open_ = false;
  bool ended_ = false;
  Parcel end_; // kept, so that another process of the peer learns of it too
  // The parcel `next_` while it is being written.
  uint32_t change_ = 0; // those before it were written
  bool in_parcel_ = false;
  uint32_t value_ = 0;
  uint64_t at_ = 0;
  // The oldest parcel that has come and was not acknowledged then, and since when; kNoIndex: there is none.
  uint64_t silent_at_ = kNoIndex;
  int64_t silent_since_ns_ = 0;
  SenderState told_; // the last that was written to this connection
  bool has_told_ = false;
  bool tells_stranded_ = false;
  Counts counts_;
};

} // namespace millrace::net
