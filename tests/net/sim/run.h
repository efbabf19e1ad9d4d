// A small run at each end of a simulated link: makers give ticks to crossings, takers take them in.
//
// A maker makes a tick each period until its end. Some ticks make no parcel, some parcels are empty, some values are
// large, and epochs rise. It keeps its ticks as a run does: `depth` blocks, sent and unsent. When they are full, a
// waiting clock waits, a `live` crossing leaves out the oldest tick that is not begun, and a `reliable` one the new
// tick. A `live` crossing leaves out all ticks while the peer is away.
//
// A taker takes parcels in one after another, each after a time that is drawn.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "net/crossing.h"
#include "observe/random.h"
#include "tests/net/sim/history.h"

namespace millrace::net::sim {

inline constexpr Cause kCauseNotDue = 1;   // the crossing's handlers do not fire on this tick
inline constexpr Cause kCauseNotThere = 2; // the process began later than its clock
inline constexpr Cause kCauseNothing = 3;  // an empty value

// One crossing of a simulation, the same at both ends.
struct CrossingSetup {
  CrossingPlan plan;
  bool from_dialler = true;
  bool clock_waits = false;
  int64_t period_ns = 10 * kMillisecond;
  uint64_t ticks = 100;
  uint32_t every = 1; // ticks whose index is no multiple make no parcel
  uint32_t empty_per_mille = 0, large_per_mille = 0, epoch_per_mille = 0;
  uint32_t value_bytes_most = 1000;
  // Time that the reader takes for a parcel.
  int64_t taking_least_ns = 0, taking_most_ns = kMillisecond;
  uint32_t slow_per_mille = 0; // parcels that take a hundred times as long
};
// A crossing with packets as values.
CrossingPlan make_plan(uint16_t number, uint32_t lane, uint32_t depth, Delivery delivery, uint32_t values,
                       uint64_t capacity);

class Maker final : public Departure {
 public:
  // Its first tick has this index; the ticks before are told as not there.
  Maker(const CrossingSetup& setup, History& history, Random random, uint32_t epoch, uint64_t first);

  // Makes the next tick; false if the clock has to wait, or has ended.
  bool tick(int64_t now_ns);
  // Another process is the peer: an end that was taken is sent to it too.
  void pair(uint64_t pairing);
  void peer_away(bool away);
  bool has_ended() const { return made_end_; }

  bool next(Parcel& parcel) override;
  void let_go(const Parcel& parcel, bool acknowledged) override;
  int64_t passed_ns() const override;

  uint64_t held_max() const { return held_max_; } // parcels, the one that is made among them
  uint64_t index() const { return index_; }       // of the next tick
  // Ticks that were left out, by cause: all of them, and those that no parcel will tell, because an epoch ended.
  const std::array<uint64_t, kCausesMax>& left_out() const { return left_out_; }
  const std::array<uint64_t, kCausesMax>& untold() const { return untold_; }
  const std::array<uint64_t, kCausesMax>& pending() const { return pending_; }
  uint64_t lost() const { return lost_; } // parcels that were let go so
  bool is_empty() const { return waiting_.empty(); }

 private:
  using Counts = std::array<uint64_t, kCausesMax>;
  struct Tick {
    Parcel parcel;
    Counts gaps{}; // between this parcel and the one before it in the queue
    std::vector<mr_value> values;
    std::vector<std::vector<uint8_t>> bytes;
  };
  void make(int64_t now_ns);
  void make_values(Tick& tick);
  void make_end();
  void leave_out_oldest(Cause cause);
  void leave_out(Cause cause) { ++pending_[cause], ++left_out_[cause]; }
  void raise_epoch();

  const CrossingSetup& setup_;
  History& history_;
  Random random_;
  uint64_t pairing_ = 0;
  uint32_t epoch_;
  uint64_t index_;
  uint64_t made_ = 0;
  bool made_end_ = false, away_ = false;
  int64_t media_ns_ = 0; // the last tick's
  std::deque<std::unique_ptr<Tick>> waiting_;
  std::map<uint64_t, std::unique_ptr<Tick>> taken_; // by token
  Parcel end_;                                      // once it was taken
  bool has_end_ = false;
  Counts pending_{}, left_out_{}, untold_{};
  bool has_last_ = false; // a parcel was taken
  uint32_t last_epoch_ = 0;
  uint64_t last_index_ = 0;
  uint64_t held_max_ = 0, lost_ = 0;
};

class Taker final : public Arrival {
 public:
  // `later` calls back after a time.
  using Later = std::function<void(int64_t after_ns, std::function<void()>)>;
  Taker(const CrossingSetup& setup, History& history, Random random, Later later);

  // Another process is the peer.
  void pair(uint64_t pairing);

  Room room(uint32_t value) override;
  void arrive(const Parcel& parcel) override;
  uint64_t credit() const override { return taken_in_ + setup_.plan.depth; }
  void passed(int64_t media_ns) override;

  bool has_ended() const { return ended_; }
  uint64_t arrived() const { return arrived_; }
  // Ticks between the parcels of one process, and of those before it in the same epoch.
  uint64_t ticks_between() const { return between_; }
  uint64_t value_bytes() const { return value_bytes_; }
  std::function<void()> on_credit; // credit has grown
  std::function<void(const Parcel&)> on_parcel;

 private:
  struct Slot {
    std::vector<mr_value> values;
    std::vector<std::unique_ptr<uint8_t[]>> bytes;
    Parcel parcel;
    uint64_t hash = 0;
    bool is_used = false;
  };
  void take_in();
  void count_ticks(const Parcel& parcel);

  const CrossingSetup& setup_;
  History& history_;
  Random random_;
  Later later_;
  std::vector<Slot> slots_;
  uint64_t pairing_ = 0;
  uint64_t arrived_ = 0, taken_in_ = 0, arrived_before_ = 0;
  bool is_taking_ = false, ended_ = false;
  bool has_last_ = false;
  uint32_t last_epoch_ = 0;
  uint64_t last_index_ = 0, between_ = 0;
  uint64_t value_bytes_ = 0;
};

} // namespace millrace::net::sim
