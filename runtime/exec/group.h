// Groups of handlers that work item by item, for all streams of a set (give.cpp, fire.cpp, deal.cpp).
//
//   GiveRun    in a stream's pace: puts the tick's inputs into the collector as an item
//   the head   of the group's pace: asks the collector for a firing, and lays its items out as ordinals of the pace
//   handlers   run on each of these ordinals as on a tick
//   DealRun    settles the outputs of the tick that each item is of, in the stream's pace
//
// The collector (batch/collector.h) decides which items fire together. Its lock guards all of a group that several
// threads touch. Nothing is allocated once the run has begun.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "batch/collector.h"
#include "batch/controller.h"
#include "batch/plain_rules.h"
#include "exec/group_counts.h"
#include "exec/step.h"

namespace millrace::plan {
struct Clock;
struct GiveStep;
struct GroupPlan;
struct HandlerPlan;
} // namespace millrace::plan

namespace millrace::exec {

struct ParamChange;
struct GroupRun;
struct HandlerLife;

// How a stream stands to its group's collector.
enum class Membership : uint8_t {
  outside, // it has given nothing yet
  inside,
  leaving, // it has ended: the collector forgets it when its next epoch gives an item
  over     // it gives nothing any more
};

struct GiveRun : StepRun {
  StepResult advance(uint64_t ordinal) override;

  // built
  GroupRun* group = nullptr;
  const plan::GiveStep* give = nullptr;
  LineVector<InputTotals> totals; // by input
  uint32_t priority = 0;          // per cent of the budget (B7)

  // claimer
  uint64_t waiting_for = UINT64_MAX; // the ordinal whose inputs were taken, and for which there was no room yet

  // any, under the group's mutex
  std::vector<std::vector<Slot>> items; // [ordinal & mask] the inputs of items that are inside; held
  std::vector<uint64_t> owed;           // ordinals of items that are inside, in their order; at most the allowance
  Membership membership = Membership::outside;
  // The first ordinal whose outputs are not settled; UINT64_MAX: none.
  std::atomic<uint64_t> oldest_owed{UINT64_MAX};
};

struct DealRun : StepRun {
  StepResult advance(uint64_t ordinal) override; // `first`: a firing's first item; it deals with all

  GroupRun* group = nullptr; // built
};

struct GroupRun {
  // The tick that an ordinal of the group's pace is of.
  struct ItemTick {
    GiveRun* give = nullptr;
    uint64_t ordinal = 0;
  };
  // [first ordinal & mask] of the pace
  struct FiringState {
    uint32_t count = 0;  // items
    uint32_t slot = 0;   // the collector's
    uint64_t errors = 0; // errors() before it
  };

  // built
  const plan::GroupPlan* plan = nullptr;
  PaceRun* pace = nullptr;
  std::vector<const HandlerLife*> lives; // its handlers, by lane
  std::vector<GiveRun*> gives;           // those that there are
  std::vector<GiveRun*> by_stream;       // by the stream's number in its set; null: it gives nothing

  // head; read by the claimers of the group's segments once the firing is admitted
  std::vector<ItemTick> items;
  std::vector<FiringState> firings;

  // any, under the mutex
  std::mutex mutex;
  std::unique_ptr<batch::Rule> rule;
  batch::Controller* controller = nullptr; // the rule, if it learns
  batch::FixedRule* fixed = nullptr;       // the rule, if it is of a size and a wait
  batch::Budget budget;                    // the controller's
  bool has_warned = false;                 // that the budget is less than one item takes
  size_t changes_seen = 0;                 // up to this number of RunState::changes
  std::unique_ptr<batch::Collector> collector;
  uint32_t gives_open = 0; // streams that may still give
  int64_t looked_ns = 0;   // when the clock was last read
  GroupCounts counts;

  ItemTick& item(uint64_t ordinal);
  FiringState& firing(uint64_t first);
  uint64_t errors() const; // so far, by all its handlers
};

// The time between two items of a stream; 0: not known, or as fast as it goes.
int64_t item_period_ns(const plan::Clock& clock);
// Makes the groups of a run, once its steps and paces are there.
void make_groups(RunState& run);
// The head of a group's pace: admits the next firing. False if there is none now.
bool admit_firing(PaceRun& pace);
// Refuses a change of a value of `batch:` that the handler's group does not have. Throws Failure MR0208-MR0213, MR0310,
// MR0316.
void check_batch_change(const RunState& run, const plan::HandlerPlan& handler, const ParamChange& change);
// Takes in the changes that were admitted for the next firing (B16).
void take_batch_changes(GroupRun& group);
// The item's outputs are settled: it is no longer inside. Called under the group's mutex.
void settle_item(GiveRun& give, uint64_t ordinal);
// The stream gives no more, for good or until its next epoch.
void leave_group(GiveRun& give, bool for_good);

} // namespace millrace::exec
