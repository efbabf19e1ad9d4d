// Parcels of one crossing, and the two ends by which a run is joined to a link.
//
// A parcel is one tick of a crossing with its values. A run gives parcels through a Departure and takes them through an
// Arrival. A session calls them on the link's thread, or on the thread that rings for it, one at a time. Neither may
// block.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "millrace/abi.h"
#include "net/limits.h"

namespace millrace::net {

// The number of a cause for which an edge has no value on a tick. The run names all of them; a link needs these.
using Cause = uint8_t;
inline constexpr Cause kCauseError = 2;
inline constexpr Cause kCauseLink = 13; // the sender had no room while the link was slow or cut
inline constexpr Cause kCauseAway = 14; // the peer was away
inline constexpr Cause kCauseLost = 15; // it went with a process of the peer

enum class Delivery : uint8_t { live = 0, reliable = 1 };
inline constexpr uint8_t kDeliveryCount = 2;

// One value on its way. `data` holds header.extent_bytes bytes in host memory.
struct Value {
  const mr_value* value = nullptr; // null: empty
  const uint8_t* data = nullptr;
  Cause cause = 0; // why it is empty
};

// Ticks between two parcels that were left out, by cause.
struct Gap {
  Cause cause = 0;
  uint64_t ticks = 0;
};

constexpr uint64_t kNoIndex = ~uint64_t{0};

// A live change (7.15): it takes effect on the tick of that index, and comes before the first parcel from there on.
struct Change {
  uint32_t epoch = 0;             // the clock's when the change was given its tick
  uint64_t index = 0, number = 0; // `number` counts the changes of the clock in that epoch
  std::string handler, param, text;
};

struct Parcel {
  mr_tick_info tick{};          // deadline_ns on the run's time
  int64_t begun_ns = 0;         // when the tick began at its home, on the run's time; INT64_MIN: not measured
  uint32_t begun_error_us = 0;  // by so much the home's time may have been wrong then; the most there is: or more
  uint64_t previous = kNoIndex; // index of the parcel before; kNoIndex: none, or an epoch whose indices begin again
  bool end = false;             // no parcel follows; it has no values
  uint64_t lost = 0;            // ticks before it that went with an earlier process of the peer; set where it arrives
  uint8_t gap_count = 0;
  uint8_t value_count = 0;
  std::array<Gap, kGapCausesMax> gaps{}; // their ticks add up to tick.index - previous - 1
  std::array<Value, kValuesMax> values{};
  uint64_t token = 0;          // for whoever gave it
  std::vector<Change> changes; // that take effect on this tick, or did before; by number

  // As a new one, but for values and gaps beyond the counts.
  void clear() {
    tick = {};
    begun_ns = 0;
    begun_error_us = 0;
    previous = kNoIndex;
    end = false;
    lost = 0;
    gap_count = value_count = 0;
    token = 0;
    changes.clear();
  }
};

// Gives the parcels of one crossing.
class Departure {
 public:
  virtual ~Departure() = default;
  // The oldest parcel that was not taken yet; false if there is none. Its values stay valid until let_go. What waits
  // here may still be replaced by newer ticks (`live`) or be left out; what was taken is sent.
  virtual bool next(Parcel& parcel) = 0;
  // The parcel's blocks are free. `acknowledged`: the peer's process has it; else it is lost with that process. An end
  // has no blocks, and is not let go.
  virtual void let_go(const Parcel& parcel, bool acknowledged) = 0;
  // Every parcel that was not taken yet has a later media time than this. It never falls.
  virtual int64_t passed_ns() const = 0;
  // Another process is the peer, or the first: it has none of the changes that came with earlier parcels.
  virtual void peer_begins() {}
  // All parcels so far were taken, and none comes before a third node that is away is back.
  virtual bool is_stranded() const { return false; }
};

// The block that one value's bytes go into.
struct Room {
  mr_value* value = nullptr;
  uint8_t* data = nullptr;
  uint64_t capacity = 0; // bytes at data
};

// Takes the parcels of one crossing.
class Arrival {
 public:
  virtual ~Arrival() = default;
  // The block for a value of the next parcel. It never fails within the credit, and is the same until arrive().
  virtual Room room(uint32_t value) = 0;
  // Parcels come in the order of their numbers, each once. Their values lie in the blocks of room().
  virtual void arrive(const Parcel& parcel) = 0;
  // How many parcels may have arrived by now, since the Arrival was made: taken in + depth. It never falls.
  virtual uint64_t credit() const = 0;
  // The peer's clock has passed this media time: no parcel at or before it comes any more.
  virtual void passed(int64_t media_ns) = 0;
  // The peer has no parcel to send before a third node that is away is back; false: it may have one again.
  virtual void stranded(bool) {}
};

// A crossing as the plan of both nodes has it.
struct CrossingPlan {
  std::string name; // at most kCrossingNameBytesMax bytes
  uint16_t number = 0;
  uint32_t lane = 1; // a data lane
  uint32_t depth = 2;
  Delivery delivery = Delivery::reliable;
  bool leaves_out = true;           // some ticks may be left out; else its clock waits for every tick
  bool begins_anew = true;          // its clock is a stream's, whose epochs rise
  std::vector<mr_format> formats;   // one a value
  std::vector<uint64_t> capacities; // bytes of the reader's block of each value
};

} // namespace millrace::net
