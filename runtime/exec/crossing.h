// The ends at which ticks leave a run for another node, and come in from one. Whoever composes a run joins them to
// links; the run knows of no network.
//
// A parcel is one tick of a crossing with its values. Each tick of the pace that it comes from makes one. Each end
// belongs to one thread, which may be any: the run's threads work at the other side of the channel. Once a first parcel
// has passed, nothing is allocated.
//
// Run::wait() releases all blocks in the end. After it a departure gives no parcels, the values of those that were
// taken are not valid any more, and an arrival drops what arrives.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "memory/ring.h"
#include "millrace/abi.h"

namespace millrace::plan {
struct CrossingPlan;
}

namespace millrace::exec {

struct ChannelRun;
class Run;
class RunState;

// One value on its way: `data` holds value->header.extent_bytes bytes in host memory.
struct ParcelValue {
  const mr_value* value = nullptr; // null: empty
  const uint8_t* data = nullptr;
  uint8_t cause = 0; // why it is empty
};

// A live change on its way to the nodes of its clock (7.15): it takes effect on the tick of that index. `epoch` is the
// clock's when it was given that tick, and `number` counts the changes of the clock in that epoch.
struct LiveChange {
  uint32_t epoch = 0;
  uint64_t index = 0, number = 0;
  std::string handler, param, text;
};

// As many different parameters of a clock may be changed on other nodes, and as many changes come before one tick.
inline constexpr size_t kLiveChangesMax = 1024;
// A longer value is not changed on another node; neither are longer names.
inline constexpr size_t kLiveTextBytesMax = 4096, kLiveNameBytesMax = 255;

struct Parcel {
  mr_tick_info tick{};
  int64_t begun_ns = INT64_MIN; // when its tick began at the clock's home, in the run's time; INT64_MIN: not measured
  int64_t begun_error_ns = 0;   // by so much the home's time may have been wrong then
  uint8_t gap = 0;              // why ticks directly before it are missing, if any are
  bool end = false;             // no parcel follows; it has no values, and of `tick` the last epoch that has begun
  uint64_t lost = 0;            // ticks before it that went with an earlier process of its node; known where it arrives
  std::vector<ParcelValue> values;
  std::vector<LiveChange> changes; // up to this tick, which came with none before, by number
};

// Gives the ticks of one crossing, on the sending side. The run outlives it.
class Departure {
 public:
  Departure(Run& run, const plan::CrossingPlan& crossing);

  // The oldest parcel that was not taken yet; false if there is none now. Its values stay valid until let_go().
  bool next(Parcel& parcel);
  // The oldest parcel that was taken has arrived, or is lost with the process that it was for: its blocks and its place
  // are free. The end is not let go.
  void let_go(bool lost = false);
  // The parcels so far, the end among them: once it has grown, next() may have another one.
  uint64_t made() const;
  // True if a tick waits here for the link, or there is no room for another one.
  bool is_held_up() const;
  // While the other node is away, ticks of a clock with realtime rules are left out (7.9). Others wait.
  void peer_away(bool away);
  // Every parcel that was not taken yet has a later media time than this (8.1). It never falls.
  int64_t passed_ns() const;
  // The other node is another process, which knows of no changes: it is told those that hold before its first tick.
  void send_changes_again();
  // All parcels so far were taken, and none comes before another node that is away is back (7.9).
  bool is_stranded() const;

 private:
  RunState& run_;
  ChannelRun& channel_;
  bool gave_end_ = false;
};

// The block that one value's bytes go into.
struct ParcelRoom {
  mr_value* value = nullptr;
  uint8_t* data = nullptr;
  uint64_t capacity = 0; // bytes at data
};

// Takes the ticks of one crossing, on the receiving side. The run outlives it.
class Arrival {
 public:
  Arrival(Run& run, const plan::CrossingPlan& crossing);
  ~Arrival();
  Arrival(const Arrival&) = delete;
  Arrival& operator=(const Arrival&) = delete;

  // The block for a value of the next parcel, the same until arrive(). It never fails within the credit.
  ParcelRoom room(uint32_t value);
  // Parcels come in their order, each once. Values that are there lie in the blocks of room().
  void arrive(const Parcel& parcel);
  // While the other node is away, a pace with realtime rules does not wait for this crossing (7.9). Ticks that come
  // after a later one was begun without them are dropped, cause `late`.
  void away(bool away);
  // The sender has no tick to send before a third node that is away is back. A pace with realtime rules does not wait
  // for this crossing meanwhile, as if the sender were away (7.9).
  void stranded(bool is_stranded);
  // The sender's clock has passed this media time: no parcel at or before it comes any more (8.1).
  void passed(int64_t media_ns);
  // The number of parcels that may have arrived by now: those that the run has taken in, and the crossing's depth.
  uint64_t credit() const;

 private:
  RunState& run_;
  ChannelRun& channel_;
  std::vector<memory::Ring*> rings_;   // by value
  std::vector<memory::Block*> blocks_; // by value: of the next parcel; null: none was asked for
};

} // namespace millrace::exec
