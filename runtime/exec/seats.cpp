// Adds streams to a run and removes them; see seats.h.
#include "exec/seats.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "exec/build.h"
#include "exec/change.h"
#include "exec/failure.h"
#include "exec/handler_run.h"
#include "exec/handler_state.h"
#include "exec/losses.h"
#include "exec/param_values.h"
#include "exec/run_log.h"
#include "exec/run_state.h"
#include "exec/sink_latency.h"
#include "exec/source.h"
#include "exec/window.h"
#include "graph/unfold.h"
#include "observe/error_codes.h"
#include "plan/make_stream.h"
#include "plan/pace.h"
#include "plan/plan.h"
#include "plan/prepare.h"
#include "plan/step.h"

namespace millrace::exec {

namespace {

Error run_is_over() { return {code::no_place, "the run is over", {}, {}, "", ""}; }

const plan::Clock& clock_of(const RunState& run, uint32_t clock) { return run.planned.plan.clocks[clock]; }

// The handlers of the stream, its sources first, as the plan has them. Not those outside that are on its clock.
template <class Function>
void for_each_handler(PaceRun& pace, Function&& function) {
  for (HandlerRun* step : pace.run->planned.handlers)
    if (step->pace->clock == pace.clock && !step->handler->stream.empty()) function(*step);
}

void give_instance(RunState& run, uint32_t handler, std::unique_ptr<plugin::Instance>& given) {
  const std::lock_guard lock(run.instances_mutex);
  HandlerLife& life = *run.lives[handler][0];
  for (const auto& [name, count] : life.instance->counts()) life.counts_before[name] += count;
  std::swap(run.live.instances[handler], given);
  life.instance = run.live.instances[handler].get();
  life.changes_seen = run.changes_admitted.load();
  for (HandlerRun* step : run.planned.handlers)
    if (step->life == &life) take_instance(run, *step);
}

// The counters of the seat so far: those of the stream that comes begin after them. Called by the clock's head, when
// all segments are through with the stream before.
void count_from_here(PaceRun& pace) {
  SeatRun& seat = *pace.clock->seat;
  const Drops lost = lost_by_clock(*pace.run, pace.plan->clock);
  Histogram latencies;
  copy_latencies(pace, latencies);
  const std::lock_guard lock(pace.run->seats_mutex);
  seat.lost_before = lost;
  seat.latencies_before = std::move(latencies);
  seat.ticks_before = pace.admitted.load(std::memory_order_relaxed);
  seat.late_before = pace.clock->late;
  seat.skipped_before = pace.clock->skipped;
  seat.restarts_before = pace.clock->restarts;
}

// Tells whoever asked for the stream; with an error, if it does not come. They hold the rest of it, and destroy it.
void answer(std::unique_ptr<NewStream> stream, const Error* error) {
  if (!stream) return;
  const StreamDone done = std::move(stream->done);
  stream = nullptr;
  if (done) done(error);
}

// True if the stream has a seat, and its handlers are being made. Called under seats_mutex.
bool is_being_made(const SeatRun& seat) {
  return seat.is_there && seat.vacant.load(std::memory_order_acquire) && !seat.coming && !seat.is_awaited;
}

// True if the clock admits no tick any more.
bool has_ended(const RunState& run, uint32_t clock) {
  return run.planned.paces[clock]->ended.load(std::memory_order_acquire); // a clock's own pace has its number
}

// The seat is no more kept for the stream. Called under the lock.
void forget_absent(RunState& run, uint32_t clock) {
  ClockRun& state = *run.clocks[clock];
  state.seat->is_there = state.seat->is_awaited = false;
  {
    const std::lock_guard lock(run.failure_mutex);
    state.failure.reset();
  }
  wake_seats(run, clock_of(run, clock).set);
}

} // namespace

void wake_seats(RunState& run, const std::string& set) {
  for (uint32_t c = 0; c < run.clocks.size(); ++c) {
    if (clock_of(run, c).set != set || !run.clocks[c]->seat->vacant.load()) continue;
    run.clocks[c]->rests.store(false);
    run.notify(*run.planned.paces[c]); // a clock's own pace has its number
  }
}

uint32_t take_seat(RunState& run, const std::string& set, const std::string& name) {
  const std::lock_guard lock(run.seats_mutex);
  if (run.seats_over) throw Failure(run_is_over());
  uint32_t free = plan::kNone, places = 0;
  for (uint32_t c = 0; c < run.clocks.size(); ++c) {
    SeatRun& seat = *run.clocks[c]->seat;
    if (seat.is_there && seat.name == name)
      throw Failure(Error{code::duplicate_name, "there is a stream \"" + name + "\" already", {}, {}, "", ""});
    if (clock_of(run, c).set != set || clock_of(run, c).is_group) continue;
    if (has_ended(run, c) && clock_of(run, c).has_room) throw Failure(run_is_over());
    ++places;
    if (free == plan::kNone && !seat.is_there && seat.vacant.load(std::memory_order_acquire)) free = c;
  }
  if (places == 0) throw Failure(code::unknown_set, "there is no set of streams \"" + set + "\"");
  if (free == plan::kNone)
    throw Failure(Error{code::no_place,
                        "\"" + set + "\" has no room for another stream",
                        {},
                        {"it has " + std::to_string(places) + " places"},
                        "",
                        "max: " + std::to_string(places + 1) + ", in the pipeline"});
  run.clocks[free]->seat->is_there = true;
  run.clocks[free]->seat->name = name;
  return free;
}

void give_up_seat(RunState& run, uint32_t clock) {
  const std::lock_guard lock(run.seats_mutex);
  run.clocks[clock]->seat->is_there = false;
  wake_seats(run, clock_of(run, clock).set);
}

bool is_awaited(const RunState& run, uint32_t clock) {
  const std::lock_guard lock(run.seats_mutex);
  return run.clocks[clock]->seat->is_awaited && !run.seats_over && !has_ended(run, clock);
}

void still_absent(RunState& run, uint32_t clock, const Error& error) {
  if (!is_awaited(run, clock)) return;
  {
    const std::lock_guard lock(run.failure_mutex);
    std::optional<Error>& failure = run.clocks[clock]->failure;
    if (failure && failure->what == error.what) return;
    failure = error;
  }
  log_stream_absent(run, clock, error);
}

void come(RunState& run, uint32_t clock, NewStream stream) {
  SeatRun& seat = *run.clocks[clock]->seat;
  {
    std::unique_lock lock(run.seats_mutex);
    const bool was_removed = stream.was_absent && !seat.is_awaited;
    if (run.seats_over || was_removed || has_ended(run, clock)) {
      lock.unlock();
      const Error error = was_removed ? Error{code::no_place, "it was removed", {}, {}, "", ""} : run_is_over();
      if (stream.done) stream.done(&error);
      return;
    }
    seat.coming = std::make_unique<NewStream>(std::move(stream));
    seat.asked.store(true);
  }
  run.clocks[clock]->rests.store(false);
  run.notify(*run.planned.paces[clock]);
}

void go(RunState& run, const std::string& set, const std::string& name, StreamDone done) {
  std::unique_lock lock(run.seats_mutex);
  if (run.seats_over) throw Failure(run_is_over());
  std::vector<std::string> names;
  for (uint32_t c = 0; c < run.clocks.size(); ++c) {
    ClockRun& clock = *run.clocks[c];
    if (!clock.seat->is_there || clock_of(run, c).set.empty() || (!set.empty() && clock_of(run, c).set != set))
      continue;
    names.push_back(clock.seat->name);
    if (clock.seat->name != name) continue;
    if (!clock_of(run, c).has_room)
      throw Failure(Error{code::no_place,
                          "\"" + name + "\" cannot be removed",
                          {},
                          {"its set has no 'max', so its streams stay until they end"},
                          "",
                          "max: …, in the pipeline"});
    if (clock.seat->coming || is_being_made(*clock.seat))
      throw Failure(Error{
          code::no_place, "\"" + name + "\" is being added", {}, {"it can be removed once it has begun"}, "", ""});
    if (clock.seat->leaving) throw Failure(code::no_place, "\"" + name + "\" is being removed already");
    if (has_ended(run, c)) throw Failure(run_is_over());
    if (clock.seat->is_awaited) {
      forget_absent(run, c);
      lock.unlock();
      if (done) done(nullptr);
      return;
    }
    clock.seat->leaving = std::move(done);
    {
      const std::lock_guard failure_lock(run.failure_mutex);
      clock.removed.store(true);
      clock.halted.store(true);
    }
    clock.rests.store(false); // its head may wait until it begins anew
    run.notify(*run.planned.paces[c]);
    return;
  }
  throw Failure(Error{code::unknown_stream,
                      "there is no stream \"" + name + "\"",
                      {},
                      {"streams: " + listed_from(name, names)},
                      nearest_name(name, names),
                      ""});
}

void end_seat(ClockRun& clock, RunState& run) {
  std::unique_ptr<NewStream> coming;
  StreamDone leaving;
  {
    const std::lock_guard lock(run.seats_mutex);
    coming = std::move(clock.seat->coming);
    leaving = std::exchange(clock.seat->leaving, nullptr);
  }
  const Error error = run_is_over();
  answer(std::move(coming), &error);
  if (leaving) leaving(&error);
}

void end_seats(RunState& run) {
  {
    const std::lock_guard lock(run.seats_mutex);
    run.seats_over = true;
  }
  for (const auto& clock : run.clocks) end_seat(*clock, run);
}

std::string name_now(const RunState& run, const plan::HandlerPlan& handler) {
  return handler.stream.empty() ? handler.name : as_now(run, handler.clock, handler.name);
}

std::string clock_now(const RunState& run, uint32_t clock) {
  if (!clock_of(run, clock).has_room) return clock_of(run, clock).name;
  const std::lock_guard lock(run.seats_mutex);
  const std::string& stream = run.clocks[clock]->seat->name;
  return stream.empty() ? clock_of(run, clock).name : stream;
}

std::string as_now(const RunState& run, uint32_t clock, const std::string& words) {
  const plan::Clock& plan = clock_of(run, clock);
  if (!plan.has_room) return words;
  std::string stream;
  {
    const std::lock_guard lock(run.seats_mutex);
    stream = run.clocks[clock]->seat->name;
  }
  const std::string planned = plan.is_seat ? plan.name.substr(plan.set.size()) : plan.name;
  return stream.empty() || stream == planned ? words : graph::with_stream(words, planned, stream);
}

void vacate(PaceRun& pace, Left left) {
  ClockRun& clock = *pace.clock;
  RunState& run = *pace.run;
  for_each_handler(pace, [&](HandlerRun& step) {
    if (!step.life->is_started) return;
    step.life->is_started = false;
    // A recording that cannot be completed fails its stream, as it does where streams stay to the end of the run.
    if (!step.life->down && stop_handler(step) != MR_OK)
      left == Left::by_itself ? run.fail(step, step.segment->ordinal, step.instance->take_error("stop"))
                              : log_error(step);
    step.life->down = false;
  });
  StreamDone done;
  bool is_awaited = false;
  {
    const std::lock_guard lock(run.seats_mutex);
    is_awaited = clock.seat->is_awaited;
    const std::lock_guard failure_lock(run.failure_mutex);
    if (!clock.failure && !clock.seat->vacant.load()) clock.seat->one_was_well = true;
    if (left == Left::removed && !is_awaited) clock.failure.reset(); // it goes with the stream
    clock.seat->is_there = is_awaited;
    clock.removed.store(false);
    clock.seat->left.store(left);
    done = std::move(clock.seat->leaving);
    clock.seat->leaving = nullptr;
  }
  clock.seat->vacant.store(true, std::memory_order_release);
  give_up_changes(run, pace.plan->clock);
  if (!is_awaited) log_stream_left(pace);
  wake_seats(run, clock.plan->set);
  if (done) done(nullptr);
}

Error start_error(const HandlerRun& step, const std::string& sentence) {
  const std::string name = name_now(*step.run, *step.handler) + " (" + step.handler->type + ")";
  return {code::start_failed, name + " could not start: " + sentence, {}, {}, "", ""};
}

bool has_come(PaceRun& pace) {
  SeatRun& seat = *pace.clock->seat;
  RunState& run = *pace.run;
  if (!seat.asked.exchange(false)) return false;
  if (!seat.coming->was_absent) forget_values(run, pace.plan->clock); // else it is the one of the plan
  {
    const std::lock_guard lock(run.seats_mutex);
    for (auto& [handler, instance] : seat.coming->made->instances) give_instance(run, handler, instance);
    for (SourceState& source : pace.clock->sources)
      for (const auto& [handler, facts] : seat.coming->made->facts)
        if (handler == source.step->plan->handler()) source.take_facts(facts, *pace.clock->plan);
  }
  count_from_here(pace);
  {
    const std::lock_guard lock(run.failure_mutex);
    if (!seat.coming->was_absent) pace.clock->failure.reset(); // that of the stream before
    pace.clock->failed_in_a_row = 0;
  }
  const HandlerRun* failed = nullptr;
  for_each_handler(pace, [&](HandlerRun& step) {
    if (failed || step.plan->is<plan::SourceStep>()) return;
    step.life->is_started = reset_handler(step) == MR_OK && start_handler(step) == MR_OK;
    if (!step.life->is_started) failed = &step;
  });
  if (!failed) return true;
  const Error error = start_error(*failed, failed->instance->error());
  vacate(pace, Left::removed);
  answer_come(pace, &error);
  return false;
}

void answer_come(PaceRun& pace, const Error* error) {
  SeatRun& seat = *pace.clock->seat;
  std::unique_ptr<NewStream> came;
  {
    const std::lock_guard lock(pace.run->seats_mutex);
    came = std::move(seat.coming);
    if (!error) seat.is_awaited = false;
  }
  answer(std::move(came), error);
}

bool is_set_over(const PaceRun& pace) {
  const RunState& run = *pace.run;
  bool by_itself = false;
  const std::lock_guard lock(run.seats_mutex);
  for (uint32_t c = 0; c < run.clocks.size(); ++c) {
    const ClockRun& clock = *run.clocks[c];
    if (clock.plan->set != pace.clock->plan->set || clock.plan->is_group) continue;
    const bool ended = has_ended(run, c);
    if (clock.seat->is_there && !ended) return false;
    by_itself = by_itself || ended || clock.seat->left.load() == Left::by_itself;
  }
  return by_itself;
}

} // namespace millrace::exec
