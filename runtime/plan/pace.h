// Clocks and paces, which are sets of steps that advance together; the channels between paces; the segments and regions
// that run steps. See plan.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/enums.h"
#include "millrace/abi.h"
#include "plan/none.h"

namespace millrace::plan {

// The most ticks in flight that the plan chooses without lanes and circles of clocks (semantics.md 1.5).
inline constexpr uint32_t kInFlightMax = 4;
// Ticks per second of media time for a clock without any rate.
inline constexpr int64_t kNominalRate = 30;
// The number of values by which a blocking source may be ahead of its clock.
inline constexpr uint32_t kReadAhead = 2;

// far: it runs every tick of its clock, later: its ticks come from paces that run them earlier, on this node or on
// others (stages.h).
// batch: of a group's clock; its ordinals count the rows of firings (group_plan.h).
enum class PaceKind { clock, decoupled, far, batch };

// A way by which the ticks of a far pace come: from one of the paces before it.
struct Feed {
  uint32_t channel = kNone; // index into Plan::channels
  uint32_t first = 0;       // its values are the entry's outputs from this one on
  uint32_t count = 0;       // its values
};

struct Pace {
  PaceKind kind = PaceKind::clock;
  uint32_t node = 0;               // index into Options::nodes; on the others it has no steps
  uint32_t clock = 0;              // index into Plan::clocks
  uint32_t stage = 0;              // that of its handlers (stages.h); 0 also if it only posts values of other nodes
  uint32_t parent = kNone;         // decoupled: the pace of its gate
  uint32_t gate = kNone;           // decoupled: step
  uint32_t entry = kNone;          // decoupled, far: step
  uint32_t level = 0;              // far: ticks that are pending before it begins, on whatever node
  std::vector<Feed> feeds;         // far
  int64_t way_ns = 0;              // far: ticks from another node are so long on their way, as predicted
  std::vector<uint32_t> led_by;    // clocks without sources: paces of this node that know how far its leaders are
  uint32_t rows = 1;               // batch: ordinals of a firing
  uint32_t window = 1;             // ordinals in flight
  uint32_t room = 1;               // the window that memory is laid out for: `window` may grow so far at another cut
  uint32_t gap = 1;                // ticks beyond Step::owes for which a handler may owe a firing before it is drained
  uint32_t slots = 1;              // slots per output, a power of two ≥ room + retain
  std::vector<uint32_t> sources;   // clock: steps, in order
  bool generated = false;          // one of its sources runs on a device, where the clock does not ask it
  uint64_t ticks_max = UINT64_MAX; // ticks that such a source gives: then the clock ends
};

struct Clock {
  std::string name;
  graph::ClockMode mode = graph::ClockMode::free; // never automatic
  graph::Rational rate;                           // 0: none
  bool live = false;                              // a live source paces it: realtime's rules of lateness hold
  uint32_t driver = kNone;                        // mode source: the step that creates the ticks
  uint32_t in_flight = 1;
  uint32_t in_flight_least = 0; // 0: in_flight stays as it is; else it may be lowered so far if memory is short
  uint32_t pending = 0;         // the largest sum of max_pending on a path
  std::string set;              // it paces a stream of this set, or all of them; "": it paces none
  bool fails_alone = false;     // a failure of its stream's handlers ends the stream, and not the run
  bool restarts = false;        // such a stream begins anew
  bool has_room = false;        // another stream may take the seat of one that is over
  bool is_seat = false;         // it has no stream at first
  bool is_group = false;        // its ticks are items of the set's streams
  std::string absent;           // the source that did not answer, and why: its stream begins later; "": all answered
  bool begins_later() const { return is_seat || !absent.empty(); }
  bool comes_again() const { return restarts || has_room; }
  // For clocks that wait for each other in a circle (8.3). held_ns: the media time for which one of its ticks may be
  // held. held_ticks: its ticks in flight, at least, for that. owed_ticks: the most ticks that it may owe to the
  // others. crowd_ticks: the run fails if so many of its ticks come within less than held_ns.
  int64_t held_ns = 0;
  uint32_t held_ticks = 0, owed_ticks = 0, crowd_ticks = 0;
  uint32_t circle = kNone;       // clocks that wait for each other in a circle have one number
  std::vector<uint32_t> leaders; // for a clock without sources: clocks with sources that edges lead from (8.11)
  // The most by which the times of its ticks may differ from exact ones: they are those of a source, as its container
  // rounded them. 0: they are beats, or clocks on a circle compare them as they are.
  int64_t rounding_ns = 0;
  // True under realtime rules: latest is the newest that is done, and drops happen. Else everything is waited for
  // (2.5).
  bool realtime() const { return mode == graph::ClockMode::realtime || live; }
  // True if the clock is `free` with a rate other than the source's own. A file never changes speed (1.4), so a tick
  // waits for the newest value that is due by its media time and takes it, or takes none if none is due.
  bool takes_what_is_due(const mr_facts& source) const {
    const bool rates = mode == graph::ClockMode::free && rate.numerator > 0 && source.rate_num > 0;
    return rates && rate.numerator * source.rate_den != source.rate_num * rate.denominator;
  }
};

enum class ChannelKind { gate, latest, queue, align };

struct Channel {
  ChannelKind kind = ChannelKind::latest;
  uint32_t from = kNone; // post or gate step; kNone: on another node
  uint32_t to = kNone;   // resolve or entry step; kNone: on another node
  uint32_t depth = 1;    // values that may wait
  uint32_t capacity = 1; // entries the ring holds
  graph::Full full = graph::Full::block;
  bool busy = false;       // gate of a decoupled reader without a queue: one tick, drops have the cause `busy`
  bool queued = false;     // gate fed by a queue edge
  bool on_firing = false;  // gate that lets in the ticks that have all its required values, without a limit of its own
  bool every_tick = false; // gate that also lets in ticks without any value: a step after it fires on them
  bool far = false;        // feed of a far pace: each tick takes a place, with or without values
  uint32_t lag = 0;
  int64_t within_ns = 0;
  int64_t rounding_ns = 0; // latest, queue: a value that is so much later than a tick is of the tick's time
  bool same_clock = true;
  bool initial_empty = false;
  std::vector<uint32_t> edges;   // edges whose drops are counted here
  std::vector<uint32_t> entries; // by edge: index of its value in an entry; 0 if this is no gate
};

// True if both ends are on this node.
inline bool is_whole(const Channel& channel) { return channel.from != kNone && channel.to != kNone; }

struct Segment {
  uint32_t pace = 0;
  uint32_t domain = 0;
  uint32_t lane = 0, lanes = 1;
  uint32_t home = 0;   // worker
  bool pinned = false; // only its home runs it: devices, named threads, blocking handlers
  bool blocking = false;
  bool heavy = false;          // a GPU body in it keeps the host busy: a thread of its own submits it
  std::string thread;          // named thread; "" for the workers
  std::vector<uint32_t> steps; // in order
};

// Device handlers that are recorded once per ring slot and replayed as one.
struct Region {
  uint32_t domain = 0;
  uint32_t slots = 1;          // one ring length for all it touches
  std::vector<uint32_t> steps; // handlers; then, on a real device, the small copies down that are recorded with them
};

} // namespace millrace::plan
