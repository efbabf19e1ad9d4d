// The collector of a group: items of many streams wait here, and a rule says which of them fire together.
//
// A pure state machine. It knows no thread, no memory of values and no clock: times are arguments in ns, a stream is an
// index, an item is (stream, ordinal). The caller holds one lock around all calls and gives times that never fall.
// Nothing is allocated after the constructor.
//
//   give ──► waiting, by deadline ──► next(): a firing of 1 to max places ──► firing_ended(): its items are settled
//                     └─────────────► next(): dropped, too late (B9) or of a failed stream
//
// After each call that may change what can fire (give, firing_ended, the calls on streams) and at the time that it
// asked for, the caller calls next() until no firing comes:
//
//   for (;;) {
//     const Step& step = collector.next(now_ns);
//     for (const Dropped& dropped : step.dropped) settle it empty, with its cause;
//     if (step.firing == nullptr) { look again at step.look_again_ns; break; }
//     issue step.firing; once it is done, read its items, then collector.firing_ended(step.firing->slot, now_ns);
//   }
//
// Two firings under way may end in either order. The items of a stream leave in their order; that they also settle in
// it is the caller's matter, as is what a failed firing means for its items (B10).
//
// Order (B7): an item's place in the line is its deadline less `priority` per cent of the budget, ties by stream. So
// old items of any stream go before new ones of a preferred one. The items of one stream leave in the order in which
// they came. Under Order::media_time the line is (media time, stream), without deadlines.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "batch/forecast.h"
#include "batch/rule.h"

namespace millrace::batch {

// The most items that one stream may have inside a group, waiting or under way (B6).
inline constexpr uint32_t kAllowanceMost = 8, kAllowanceFree = 2;
// B6: ⌈rate · budget⌉ + 1, at most kAllowanceMost.
uint32_t allowance_of(int64_t period_ns, int64_t budget_ns);

enum class Order { deadline, media_time };

struct Group {
  uint32_t streams_max = 1; // streams have the indices 0 to streams_max - 1
  uint32_t in_flight = 1;   // firings under way at a time, at most kInFlightMost
  int64_t budget_ns = 0;    // from the time at which an item is given to its deadline; unused under media_time
  Order order = Order::deadline;
};

struct StreamTerms {
  int64_t period_ns = 0;  // between two items; 0: not known, and the stream may give at any time
  uint32_t priority = 0;  // per cent of the budget, 0 to 100
  uint32_t allowance = 2; // 1 to kAllowanceMost
};

struct Item {
  uint32_t stream = 0;
  uint64_t ordinal = 0;
  uint32_t rows = 1; // places that it takes in a firing, at most the largest bucket; it is never split (B14)
  int64_t given_ns = 0;
  int64_t deadline_ns = 0; // its place in the line
  int64_t due_ns = 0;      // when it must be done, without its priority; kNever under media_time
};

struct Firing {
  uint32_t slot = 0;         // below in_flight; free again after firing_ended
  uint64_t ordinal = 0;      // counts the firings of this collector, from 0
  uint32_t rows = 0;         // places that are filled
  uint32_t bucket_items = 0; // places that the firing is made for
  std::vector<Item> items;   // in the line's order; it stands until firing_ended
};

enum class DropCause { late, failed };
struct Dropped {
  Item item;
  DropCause cause = DropCause::late;
};

struct Step {
  std::span<const Dropped> dropped; // stand until the next call of next()
  const Firing* firing = nullptr;   // to be issued now
  int64_t look_again_ns = kNever;   // if there is no firing
};

class Collector {
 public:
  // `rule` outlives the collector. `curve`: the times of a firing, whose largest bucket is the most places of a firing.
  Collector(const Group& group, ServiceCurve curve, Rule& rule);

  // A stream comes into a place that has none. Nobody has to say that it stalls: the collector does not wait for a
  // stream whose next item is overdue by twice its period, until it gives again (B8).
  void stream_added(uint32_t stream, const StreamTerms& terms, int64_t now_ns);
  // No more items come from the stream. Those that wait fire as ever.
  void stream_ended(uint32_t stream);
  // As stream_ended, but items that wait are dropped by the next next(). Items under way end with their firing.
  void stream_failed(uint32_t stream);
  // Frees the stream's place. It has ended or failed, and no item of it waits or is under way.
  void stream_removed(uint32_t stream);

  // False where the stream has used its allowance: nothing was taken, and the caller tries again after a firing_ended
  // or a drop. `media_ns`: the item's media time, which only Order::media_time reads.
  [[nodiscard]] bool give(uint32_t stream, uint64_t ordinal, int64_t now_ns, uint32_t rows = 1, int64_t media_ns = 0);
  const Step& next(int64_t now_ns);
  // `completed`: false if its call failed, so that its time says nothing of other firings.
  void firing_ended(uint32_t slot, int64_t now_ns, bool completed = true);

  // For items that are given from now on (B16); a Controller is told too.
  void set_budget(int64_t budget_ns) { group_.budget_ns = budget_ns; }

  uint32_t inside(uint32_t stream) const { return streams_[stream].count + streams_[stream].under_way; }
  uint32_t rows_waiting() const { return rows_waiting_; }
  const Forecast& forecast() const { return forecast_; }

 private:
  enum class State { none, live, ended, failed };
  struct Stream {
    State state = State::none;
    StreamTerms terms;
    std::array<Item, kAllowanceMost> items; // a ring of those that wait
    uint32_t first = 0, count = 0;
    uint32_t under_way = 0;
    int64_t last_ns = 0;     // when it gave its last item, or came
    uint32_t line_place = 0; // in line_, while count > 0
  };

  bool is_full(const Stream& stream) const { return stream.count + stream.under_way >= stream.terms.allowance; }
  bool goes_before(uint32_t stream, uint32_t other) const;
  void put_in_line(uint32_t stream);
  void leave_line(uint32_t place);
  void sift_up(uint32_t place);
  void sift_down(uint32_t place);
  Item take_first();
  void drop_failed();
  void drop_first(DropCause cause);
  void form(const Choice& choice, int64_t now_ns);
  int64_t alone_from_ns(int64_t now_ns, int64_t until_ns) const;
  uint32_t free_slot() const;

  Group group_;
  Forecast forecast_;
  Rule& rule_;
  std::vector<Stream> streams_;
  std::vector<uint32_t> line_; // streams with waiting items: a heap by their first items
  uint32_t rows_waiting_ = 0;
  uint32_t failed_waiting_ = 0; // items of failed streams that wait
  uint32_t full_ = 0;           // streams that are full
  std::array<Firing, kInFlightMost> firings_;
  std::array<bool, kInFlightMost> slot_used_ = {};
  std::array<int64_t, kInFlightMost> slot_due_ns_ = {};
  uint64_t firings_formed_ = 0;
  std::vector<Dropped> dropped_;
  Step step_;
};

} // namespace millrace::batch
