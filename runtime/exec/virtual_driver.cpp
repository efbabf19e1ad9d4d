// Carries out runs in virtual time: simulated workers, calls that take what they are said to cost, and a clock that
// jumps from event to event; see virtual_driver.h.
#include "exec/virtual_driver.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "device/device.h"
#include "exec/channel.h"
#include "exec/run.h"
#include "exec/run_options.h"
#include "exec/run_state.h"
#include "exec/segment.h"
#include "exec/threads.h"
#include "observe/error_codes.h"
#include "plan/pace.h"
#include "plan/plan.h"

namespace millrace::exec {

namespace {

struct SimulatedWorker {
  TraceRing* trace;
  int64_t free_at_ns = 0;
};

// A worker that may carry the segment forward now; null if all are in a call.
SimulatedWorker* worker_for(const SegmentRun& segment, std::vector<SimulatedWorker>& workers, const plan::Plan& plan,
                            int64_t now) {
  if (segment.plan->pinned) {
    SimulatedWorker& home = workers[segment.plan->home];
    return home.free_at_ns <= now ? &home : nullptr;
  }
  for (uint32_t w = 0; w < plan.workers; ++w)
    if (workers[w].free_at_ns <= now) return &workers[w];
  return nullptr;
}

// Gives each segment of the run one chance to move at this instant. True if one did.
bool move_segments(RunState& run, std::vector<SimulatedWorker>& workers) {
  bool moved = false;
  const int64_t now = run.now_ns();
  for (auto& segment : run.planned.segments) {
    if (segment->done.load(std::memory_order_relaxed) || segment->busy_until_ns > now) continue;
    SimulatedWorker* worker = worker_for(*segment, workers, run.planned.plan, now);
    if (!worker) continue;
    segment->trace = worker->trace;
    if (!advance(*segment, 1)) continue;
    moved = true;
    if (segment->busy_until_ns > now) worker->free_at_ns = segment->busy_until_ns;
  }
  for (device::Device* device : run.accelerators()) device->kick();
  return moved;
}

// The next time at which the run wants to be looked at; INT64_MAX if there is none.
int64_t next_look_ns(const RunState& run) {
  const PlanRun& planned = run.planned;
  const int64_t now = run.now_ns();
  int64_t next = INT64_MAX;
  for (const auto& segment : planned.segments)
    if (segment->busy_until_ns > now) next = std::min(next, segment->busy_until_ns);
  for (const auto& pace : planned.paces) {
    const int64_t due = pace->due_ns.load(std::memory_order_relaxed);
    if (due > now) next = std::min(next, due);
  }
  for (const ResolveRun* step : planned.timed_steps) {
    const int64_t due = step->decides_at_ns.load(std::memory_order_relaxed);
    if (due > now) next = std::min(next, due);
  }
  return next;
}

// The virtual time at which a run looks again that wants to be looked at at this time of its own. That is a little too
// soon if the run's time goes its own way, but never too late: the run looks once more then.
int64_t look_at_ns(const RunState& run, int64_t own_ns, int64_t virtual_now_ns) {
  if (own_ns == INT64_MAX || !run.options.time) return own_ns;
  constexpr int64_t kFasterMost = 1000; // 1 part in so many, which is more than RunOptions::time says
  const int64_t wait_ns = own_ns - run.now_ns();
  return virtual_now_ns + wait_ns - wait_ns / kFasterMost;
}

} // namespace

// A run or an actor.
struct VirtualDriver::Member {
  explicit Member(RunState& the_run) : run(&the_run), second_cut(std::in_place, the_run, nullptr) {
    for (uint32_t w = 0; w < the_run.planned.plan.threads; ++w) workers.push_back({the_run.traces[w].get()});
  }
  explicit Member(std::function<bool()> the_actor) : actor(std::move(the_actor)) {}

  bool move() { return !run ? actor() : goes_on() && move_segments(*run, workers); }
  bool goes_on() const { return run && run->virtual_end_ns == INT64_MAX; }

  RunState* run = nullptr; // null: an actor
  std::vector<SimulatedWorker> workers;
  std::optional<SecondCut> second_cut;
  std::function<bool()> actor;
};

VirtualDriver::VirtualDriver(device::VirtualTime& time) : time_(time) {}
VirtualDriver::~VirtualDriver() = default;

void VirtualDriver::add(Run& run) {
  RunState& state = *run.state_;
  MR_ASSERT(state.options.virtual_time == &time_, "a run is driven on the virtual time that it was made with");
  members_.push_back(std::make_unique<Member>(state));
}

void VirtualDriver::add(std::function<bool()> actor) { members_.push_back(std::make_unique<Member>(std::move(actor))); }

void VirtualDriver::settle_instant() {
  for (bool moved = true; moved;) {
    moved = false;
    for (auto& member : members_) moved = member->move() || moved;
  }
}

void VirtualDriver::record_ends() {
  for (auto& member : members_)
    if (member->goes_on() && (member->run->finished() || member->run->abort.load()))
      member->run->virtual_end_ns = member->run->now_ns();
}

bool VirtualDriver::all_over() const {
  return std::none_of(members_.begin(), members_.end(), [](const auto& member) { return member->goes_on(); });
}

int64_t VirtualDriver::next_event_ns() const {
  int64_t next = time_.next_ns();
  for (const auto& member : members_)
    if (member->goes_on()) next = std::min(next, look_at_ns(*member->run, next_look_ns(*member->run), time_.now_ns()));
  return next;
}

// Lets each run do what its second cut has to do now. True if the instant must be settled again before time goes on.
bool VirtualDriver::look_at_cuts(bool nothing_comes) {
  bool again = false;
  for (auto& member : members_) {
    if (!member->goes_on()) continue;
    SecondCut& second_cut = *member->second_cut;
    const bool held = second_cut.holds();
    second_cut.look(nothing_comes);
    const bool has_just_begun = nothing_comes && second_cut.holds();
    again = again || (held && !second_cut.holds()) || has_just_begun;
  }
  return again;
}

// All runs fail before any of them tells, so that each has its own lines although they may tell each other.
void VirtualDriver::give_up() {
  std::vector<std::pair<RunState*, FailureRecord>> told;
  for (auto& member : members_) {
    if (!member->goes_on()) continue;
    std::string lines;
    for (const std::string& line : waiting_lines(*member->run)) lines += "; " + line;
    member->run->virtual_end_ns = member->run->now_ns();
    const FailureRecord failure{Error{code::no_progress, "nothing can move any more" + lines, {}, {}, "", ""}, 0,
                                UINT64_MAX};
    if (member->run->record_run_failure(failure) && member->run->options.on_failure)
      told.emplace_back(member->run, failure);
  }
  for (const auto& [run, failure] : told) run->options.on_failure(failure);
}

void VirtualDriver::drive() {
  while (!all_over()) {
    settle_instant();
    record_ends();
    if (all_over()) return;
    const int64_t next = next_event_ns();
    if (look_at_cuts(next == INT64_MAX)) continue;
    if (next == INT64_MAX) return give_up();
    if (next < time_.next_ns()) time_.schedule(next, [] {});
    time_.step();
  }
}

} // namespace millrace::exec
