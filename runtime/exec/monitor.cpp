// Watches a run from outside: budgets, movement, devices, progress. Costs the workers nothing but two relaxed stores a
// call. See threads.h.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "exec/channel.h"
#include "exec/group.h"
#include "exec/group_waits.h"
#include "exec/losses.h"
#include "exec/report.h"
#include "exec/run_options.h"
#include "exec/seats.h"
#include "exec/source.h"
#include "exec/threads.h"
#include "exec/under_way.h"
#include "exec/window.h"
#include "observe/error_codes.h"
#include "observe/start_thread.h"
#include "plan/group_plan.h"
#include "plan/memory.h"
#include "plan/pace.h"
#include "plan/plan.h"
#include "plan/prepare.h"
#include "plan/step.h"

namespace millrace::exec {

namespace {

constexpr std::chrono::microseconds kLookEvery{100'000};
// For a second cut: the interval while handlers are measured, and while the clocks are held.
constexpr std::chrono::microseconds kLookWhileMeasuring{10'000}, kLookWhileHolding{100};

std::string seconds(int64_t ns) {
  return fmt::format("{:.{}f} s", static_cast<double>(ns) / 1e9, ns % 1'000'000'000 == 0 ? 0 : 1);
}

std::string handler_words(const HandlerRun& step) {
  return name_now(*step.run, *step.handler) + " (" + step.handler->type + ")";
}

// The producer of the first input of a step that is not settled yet, as "video"; "" if there is none.
std::string missing_input(const StepRun& step, uint64_t ordinal) {
  for (const InputRun& input : step.inputs) {
    // After a gate, only the pace's own threads know which ordinal an earlier tick had.
    const bool known = input.delay == 0 || step.pace->is_clock;
    if (!input.output || !known || ordinal < input.delay) continue;
    const uint64_t at = ordinal - input.delay;
    const StepRun* producer = step.run->planned.step_runs[input.output->plan->step];
    const bool unstamped = input.producer && !input.producer->settled(at);
    if (unstamped) return name_with_stream(*producer);
  }
  return "";
}

// The feeds from which a far pace still needs a tick: "main/1>2 from gpu and stage 0". A single one is from the node
// that its step is named after.
std::string missing_feeds(const RunState& run, const PaceRun& pace) {
  std::string words;
  for (const FeedRun& feed : pace.feeds) {
    const std::lock_guard lock(feed.channel->mutex);
    if (feed.channel->count > 0 || feed.channel->closed) continue;
    words += words.empty() ? "" : " and ";
    if (feed.channel->from) words += "stage " + std::to_string(feed.channel->from->pace->plan->stage);
    for (const plan::CrossingPlan& crossing : run.planned.plan.crossings)
      if (run.planned.channels[crossing.channel].get() == feed.channel)
        words += crossing.name + (pace.feeds.size() > 1 ? " from " + crossing.node : "");
  }
  return words;
}

// True if no tick is admitted until one that is in flight is done.
bool has_full_window(PaceRun& pace) {
  const uint64_t admitted = pace.admitted.load(std::memory_order_acquire);
  return admitted >= pace.window && completed(pace) <= admitted - pace.window;
}

// True if the clock has a beat to come and room for it, which counts as movement. A beat in the past does not count,
// because nothing answered it; nor a source that is only asked again and again; nor beats that find the window full,
// because they are late one after another.
bool awaits_beat(PaceRun& pace, int64_t now) {
  const int64_t due = pace.due_ns.load(std::memory_order_relaxed);
  return due > now + kAskAgainNs && due != INT64_MAX && !has_full_window(pace);
}

// The step of this segment that owes the oldest firing, and that ordinal; null if none owes one.
std::pair<const StepRun*, uint64_t> owes(const SegmentRun& segment) {
  std::pair<const StepRun*, uint64_t> oldest{nullptr, UINT64_MAX};
  for (const PendingStep& pending : segment.pending_steps) {
    const uint64_t owed = pending.oldest_owed->load(std::memory_order_acquire);
    if (owed < oldest.second) oldest = {pending.step, owed};
  }
  return oldest;
}

// True if the segment waits for a stream to come, which may be never.
bool awaits_stream(const SegmentRun& segment) {
  return segment.head && segment.pace->is_clock && segment.pace->clock->seat->vacant.load();
}

// True if nothing is in flight here, and all that is missing is ticks from other nodes.
bool waits_for_links_alone(const RunState& run) {
  return std::all_of(run.planned.segments.begin(), run.planned.segments.end(), [&](const auto& segment) {
    if (segment->done.load() || awaits_stream(*segment)) return true;
    if (owes(*segment).first || segment->waiting_at.load()) return false;
    return !segment->head || (!has_full_window(*segment->pace) && !missing_feeds(run, *segment->pace).empty());
  });
}

} // namespace

std::vector<std::string> waiting_lines(const RunState& run) {
  std::vector<std::string> lines;
  for (const HandlerRun* step : run.planned.called_outside) { // listed first: the others wait for these calls
    const uint64_t tick = step->tick_outside.load(std::memory_order_relaxed);
    if (tick != HandlerRun::kNoCall)
      lines.push_back(name_with_stream(*step) + " is in " + function_of(*step) + " (tick " + std::to_string(tick) +
                      ")");
  }
  for (const auto& segment : run.planned.segments) {
    if (segment->done.load()) continue;
    PaceRun& pace = *segment->pace;
    const std::string tick = words_of_ordinal(pace, segment->progress.load());
    if (const auto [owing, ordinal] = owes(*segment); owing)
      lines.push_back(name_with_stream(*owing) +
                      (owing->plan->is<plan::GiveStep>() ? " waits for its item" : " has not published what it owes") +
                      words_of_ordinal(pace, ordinal));
    if (const StepRun* step = segment->waiting_at.load()) {
      const std::string missing = missing_input(*step, segment->progress.load());
      lines.push_back(name_with_stream(*step) + " waits for " +
                      (missing.empty() ? "room, a device or another clock" : missing) + tick);
    } else if (segment->head && pace.group) {
      const bool is_full = has_full_window(pace);
      lines.push_back(pace.group->plan->name + " waits for " +
                      (is_full ? "room: as many firings as may be are under way" : missing_items(*pace.group)) + tick);
    } else if (segment->head && !awaits_stream(*segment)) {
      const std::string missing = missing_feeds(run, *segment->pace);
      const std::string what = has_full_window(*segment->pace) ? "room: as many ticks as may be are in flight"
                               : missing.empty()               ? "a source or a beat"
                                                               : missing;
      lines.push_back(name_with_stream(*segment->steps[0]) + " waits for " + what + tick);
    }
  }
  return lines;
}

Monitor::Monitor(RunState& run, Workers& workers) : run_(run), second_cut_(run, &workers), loss_watch_(run) {}

Monitor::~Monitor() { stop(); }

void Monitor::start() {
  begin_ns_ = moved_at_ns_ = progressed_at_ns_ = run_.now_ns();
  thread_ = start_thread("the thread that watches the run", [this] { loop(); });
}

void Monitor::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  loss_watch_.end();
}

void Monitor::loop() {
  std::unique_lock lock(mutex_);
  int64_t looked_ns = run_.now_ns();
  const auto interval = [&] {
    return second_cut_.holds() ? kLookWhileHolding : second_cut_.measures() ? kLookWhileMeasuring : kLookEvery;
  };
  while (!wake_.wait_for(lock, interval(), [&] { return stopping_; })) {
    lock.unlock();
    second_cut_.look();
    lock.lock();
    const int64_t now = run_.now_ns();
    if (now - looked_ns < std::chrono::nanoseconds(kLookEvery).count()) continue;
    looked_ns = now;
    lock.unlock();
    watch_calls(now);
    watch_progress(now);
    watch_movement(now);
    watch_stopping(now);
    report_waiting(now);
    run_.watch_devices();
    loss_watch_.look();
    report_progress(now);
    lock.lock();
  }
}

void Monitor::watch_calls(int64_t now) {
  const size_t segments = run_.planned.segments.size();
  watches_.resize(segments + run_.planned.called_outside.size());
  for (size_t s = 0; s < segments; ++s) {
    const SegmentRun& segment = *run_.planned.segments[s];
    watch_call(watches_[s], segment.inside.load(std::memory_order_relaxed),
               segment.progress.load(std::memory_order_relaxed), now);
  }
  for (size_t a = 0; a < run_.planned.called_outside.size(); ++a) {
    const HandlerRun& step = *run_.planned.called_outside[a];
    const uint64_t tick = step.tick_outside.load(std::memory_order_relaxed);
    watch_call(watches_[segments + a], tick == HandlerRun::kNoCall ? nullptr : &step, tick, now);
    if (step.on.device) watches_[segments + a].moves = false; // a device has a patience of its own, device_patience_ns
  }
}

// `progress` is that of the segment, reader or device that calls; it may call the same step again and again.
void Monitor::watch_call(Watch& watch, const HandlerRun* inside, uint64_t progress, int64_t now) {
  if (!inside) {
    watch.calls = UINT64_MAX; // the next one is another call
    watch.moves = false;
    return;
  }
  const uint64_t calls = inside->life->calls();
  const bool same_tick = inside == watch.inside && progress == watch.progress;
  if (same_tick && calls == watch.calls) {
    watch.moves = true;
    watch_budget(watch, now);
  } else {
    watch = {inside, progress, calls, now, !same_tick};
  }
}

// Names a call once its budget is over, and interrupts it a grace period later, or at once if the run is to end. After
// another grace period the call is given up as hung (semantics.md 2.6, 8.7).
void Monitor::watch_budget(Watch& watch, int64_t now) {
  const HandlerRun& inside = *watch.inside;
  if (inside.instance->is_watched()) return; // its restart or its drain in a gap, which CallWatch watches
  // A blocking handler waits for the world, so it has a budget only if the pipeline gives it one.
  const bool unbounded = inside.handler->waits && inside.handler->budget_ns == 0;
  const int64_t budget = inside.handler->budget_ns > 0 ? inside.handler->budget_ns : run_.options.budget_ns;
  const int64_t over = now - watch.since_ns - budget;
  if (unbounded || over < 0) return;
  const int64_t grace = run_.stopping.load(std::memory_order_relaxed) ? 0 : run_.options.grace_ns;
  if (watch.stage == Stage::fine) {
    watch.stage = Stage::named;
    const std::string words =
        std::string("is in ") + function_of(inside) + " for longer than its budget of " + seconds(budget);
    inside.instance->note(words);
    tell("warning MR0602: " + handler_words(inside) + " " + words + " (tick " + std::to_string(tick_of(watch)) + ")" +
         what_follows(inside));
  }
  if (watch.stage == Stage::named && over >= grace) {
    watch.stage = Stage::interrupted;
    watch.interrupted_ns = now;
    inside.instance->interrupt();
  } else if (watch.stage == Stage::interrupted && now - watch.interrupted_ns >= run_.options.grace_ns) {
    watch.stage = Stage::given_up;
    give_up(watch, now);
  }
}

// A call that cannot be left still owns its bytes, so the library cannot go on without it. Only the owner of the
// process may end the process.
void Monitor::give_up(const Watch& watch, int64_t now) {
  if (watch.inside->on.device) return; // its device is declared lost before, or something else still moves
  Error error{code::over_budget,
              handler_words(*watch.inside) + " did not return from " + function_of(*watch.inside) + " of tick " +
                  std::to_string(tick_of(watch)) + " for " + seconds(now - watch.since_ns) + ", even when interrupted",
              {},
              {},
              "",
              ""};
  // First, because on_hang may end the process.
  if (run_.options.on_failure) run_.options.on_failure({error, watch.inside->pace->plan->clock, tick_of(watch)});
  if (run_.options.on_hang) return run_.options.on_hang(error);
  tell(format_error(error));
}

std::string Monitor::what_follows(const HandlerRun& inside) const {
  if (inside.on.device) return "";
  const std::string grace = seconds(run_.options.grace_ns);
  return "; a call over its budget is named, interrupted " + grace + " later and given up after another " + grace +
         "; the command then ends with exit code 1";
}

uint64_t Monitor::tick_of(const Watch& watch) const {
  const HandlerRun& step = *watch.inside;
  const uint64_t outside = step.tick_outside.load(std::memory_order_relaxed);
  return outside == HandlerRun::kNoCall ? step.pace->tick_at(watch.progress) : outside;
}

void Monitor::tell(const std::string& line) const {
  if (run_.options.on_message) run_.options.on_message(line);
}

// Notes when a segment last went on, whatever is called.
void Monitor::watch_progress(int64_t now) {
  uint64_t progressed = 0;
  for (const auto& segment : run_.planned.segments) {
    const uint64_t progress = segment->progress.load(std::memory_order_relaxed);
    progressed += progress == UINT64_MAX ? 1'000'003 : progress;
  }
  if (progressed != progressed_) progressed_at_ns_ = now;
  progressed_ = progressed;
}

// A run that is to end does not wait longer for the world than for anything else: calls are interrupted after
// standstill_ns without progress (semantics.md 8.7).
void Monitor::watch_stopping(int64_t now) {
  if (!run_.stopping.load(std::memory_order_relaxed)) return;
  if (stopping_since_ns_ == 0) stopping_since_ns_ = now;
  const int64_t still_since = std::max({stopping_since_ns_, progressed_at_ns_, interrupted_all_ns_});
  if (now - still_since < run_.options.standstill_ns) return;
  interrupted_all_ns_ = now; // an interrupt that comes just before a call blocks is lost, so it is repeated
  for (const Watch& watch : watches_)
    if (watch.calls != UINT64_MAX && watch.inside) watch.inside->instance->interrupt();
  if (run_.live.watch) run_.live.watch->interrupt_all();
}

void Monitor::watch_movement(int64_t now) {
  bool inside = false, beat = false;
  for (const Watch& watch : watches_) inside = inside || watch.moves;
  {
    const std::lock_guard lock(run_.instances_mutex);
    for (const auto& handler : run_.live.instances) inside = inside || (handler && handler->is_watched());
  }
  for (const auto& pace : run_.planned.paces) beat = beat || awaits_beat(*pace, now);
  if (progressed_at_ns_ == now || inside || beat) {
    moved_at_ns_ = now;
    idle_reported_ = false;
    elsewhere_told_.clear();
    return;
  }
  if (now - moved_at_ns_ >= run_.options.device_patience_ns) give_up_hung_device(now);
  if (idle_reported_) return report_waiting_elsewhere();
  if (now - moved_at_ns_ < run_.options.idle_report_ns) return;
  if (awaits_home() || waiting_lines(run_).empty()) {
    moved_at_ns_ = now; // it is looked at again after a while, and not in the moment in which a tick comes
    return;
  }
  idle_reported_ = true;
  if (!run_.options.on_message) return;
  tell("warning MR0603: nothing has moved for " + seconds(now - moved_at_ns_));
  for (const std::string& line : waiting_lines(run_)) tell("  " + line);
  report_waiting_elsewhere();
}

// Ticks that come from another node may be due much later. It says so if it waits for something itself.
bool Monitor::awaits_home() const {
  return run_.options.waiting_elsewhere && waits_for_links_alone(run_) && run_.options.waiting_elsewhere().empty();
}

// Each line once. They may come later than the report, because other nodes have their own time to see it.
void Monitor::report_waiting_elsewhere() {
  if (!run_.options.waiting_elsewhere) return;
  for (const std::string& line : run_.options.waiting_elsewhere()) {
    if (std::find(elsewhere_told_.begin(), elsewhere_told_.end(), line) != elsewhere_told_.end()) continue;
    elsewhere_told_.push_back(line);
    tell("  " + line);
  }
}

// Another node cannot see that a call lasts long, nor what stands still here. A line does not change while it holds.
void Monitor::report_waiting(int64_t now) {
  if (!run_.options.on_waiting) return;
  std::vector<std::string> lines;
  for (const Watch& watch : watches_)
    if (watch.moves && now - watch.since_ns >= run_.options.idle_report_ns)
      lines.push_back(handler_words(*watch.inside) + " has been in " + function_of(*watch.inside) +
                      " for longer than " + seconds(run_.options.idle_report_ns) + " (tick " +
                      std::to_string(tick_of(watch)) + ")");
  if (idle_reported_)
    for (const std::string& line : waiting_lines(run_)) lines.push_back(line);
  if (lines == waiting_told_) return;
  waiting_told_ = lines;
  run_.options.on_waiting(lines);
}

// Declares a device lost that finishes nothing while nothing else moves (semantics.md 4.9). Only the first such device,
// because another may wait for it.
void Monitor::give_up_hung_device(int64_t now) {
  for (const auto& segment : run_.planned.segments) {
    if (!waits_for_device(*segment)) continue;
    const uint32_t domain = segment->plan->domain;
    run_.devices[domain]->declare_lost("it has finished nothing for " + seconds(now - moved_at_ns_));
    run_.notify_all();
    return;
  }
}

void Monitor::report_progress(int64_t now) {
  if (!run_.options.on_progress) return;
  Progress progress;
  for (const auto& pace : run_.planned.paces) {
    if (!pace->is_clock) continue;
    progress.ticks = std::max(progress.ticks, ticks_here(run_.planned, pace->plan->clock));
    progress.late += pace->clock->late;
    progress.skipped += pace->clock->skipped;
    if (pace->clock->plan->rate.numerator > 0)
      progress.clock_hz = static_cast<double>(pace->clock->plan->rate.numerator) /
                          static_cast<double>(pace->clock->plan->rate.denominator);
  }
  for (const plan::HandlerPlan& handler : run_.planned.plan.handlers)
    progress.ticks_expected = std::max(progress.ticks_expected, handler.facts.tick_count);
  if (run_.options.ticks_max) progress.ticks_expected = static_cast<int64_t>(run_.options.ticks_max);
  add_drops(all_drops(run_), progress.dropped);
  const int64_t since_ns = std::max(begin_ns_, run_.options.begin_ns);
  progress.elapsed_s = static_cast<double>(std::max<int64_t>(now - since_ns, 0)) / 1e9;
  run_.options.on_progress(progress);
}

} // namespace millrace::exec
