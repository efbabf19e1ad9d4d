// Adds streams to a run and removes them; see places.h.
#include "exec/places.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "exec/build.h"
#include "exec/change.h"
#include "exec/failure.h"
#include "exec/handler_run.h"
#include "exec/report_streams.h"
#include "exec/run_state.h"
#include "exec/source.h"
#include "exec/tell.h"
#include "exec/window.h"
#include "graph/unfold.h"

namespace millrace::exec {

namespace {

Error run_is_over() { return {code::no_place, "the run is over", {}, {}, "", ""}; }

const plan::Clock& clock_of(const RunState& run, uint32_t clock) { return run.epoch.plan.clocks[clock]; }

// The handlers of the stream, its sources first, as the plan has them. Not those outside that are on its clock.
template <class Function>
void for_each_handler(PaceRun& pace, Function&& function) {
  for (HandlerRun* step : pace.run->epoch.handlers)
    if (step->pace->clock == pace.clock && !step->handler->stream.empty()) function(*step);
}

void give_instance(RunState& run, uint32_t handler, std::unique_ptr<plugin::Instance>& given) {
  const std::lock_guard lock(run.instances_mutex);
  HandlerLife& life = *run.lives[handler][0];
  for (const auto& [name, count] : life.instance->counts()) life.counts_before[name] += count;
  std::swap(run.live.instances[handler], given);
  life.instance = run.live.instances[handler].get();
  life.changes_seen = run.changes_admitted.load();
  for (HandlerRun* step : run.epoch.handlers)
    if (step->life == &life) take_instance(run, *step);
}

// The counters of the place so far: those of the stream that comes begin after them. Called by the clock's head, when
// all segments are through with the stream before.
void count_from_here(PaceRun& pace) {
  PlaceRun& place = pace.clock->place;
  CountsByCause lost = lost_by_clock(*pace.run, pace.plan->clock);
  Histogram latencies = latencies_of(pace);
  const std::lock_guard lock(pace.run->places_mutex);
  place.lost_before = std::move(lost);
  place.latencies_before = std::move(latencies);
  place.ticks_before = pace.admitted.load(std::memory_order_relaxed);
  place.late_before = pace.clock->late;
  place.skipped_before = pace.clock->skipped;
  place.restarts_before = pace.clock->restarts;
}

// Tells whoever asked for the stream; with an error, if it does not come. They hold the rest of it, and destroy it.
void answer(std::unique_ptr<NewStream> stream, const Error* error) {
  if (!stream) return;
  const StreamDone done = std::move(stream->done);
  stream = nullptr;
  if (done) done(error);
}

// True if the stream has a place, and its handlers are being made. Called under places_mutex.
bool is_being_made(const PlaceRun& place) {
  return place.is_there && place.vacant.load(std::memory_order_acquire) && !place.coming && !place.is_awaited;
}

// True if the clock admits no tick any more.
bool has_ended(const RunState& run, uint32_t clock) {
  return run.epoch.paces[clock]->ended.load(std::memory_order_acquire); // a clock's own pace has its number
}

// The place is no more kept for the stream. Called under the lock.
void forget_absent(RunState& run, uint32_t clock) {
  ClockRun& state = *run.clocks[clock];
  state.place.is_there = state.place.is_awaited = false;
  {
    const std::lock_guard lock(run.failure_mutex);
    state.failure.reset();
  }
  wake_places(run, clock_of(run, clock).set);
}

} // namespace

void wake_places(RunState& run, const std::string& set) {
  for (uint32_t c = 0; c < run.clocks.size(); ++c) {
    if (clock_of(run, c).set != set || !run.clocks[c]->place.vacant.load()) continue;
    run.clocks[c]->rests.store(false);
    run.notify(*run.epoch.paces[c]); // a clock's own pace has its number
  }
}

uint32_t take_place(RunState& run, const std::string& set, const std::string& name) {
  const std::lock_guard lock(run.places_mutex);
  if (run.places_over) throw Failure(run_is_over());
  uint32_t free = plan::kNone, places = 0;
  for (uint32_t c = 0; c < run.clocks.size(); ++c) {
    PlaceRun& place = run.clocks[c]->place;
    if (place.is_there && place.name == name)
      throw Failure(Error{code::duplicate_name, "there is a stream \"" + name + "\" already", {}, {}, "", ""});
    if (clock_of(run, c).set != set || clock_of(run, c).is_group) continue;
    if (has_ended(run, c) && clock_of(run, c).has_room) throw Failure(run_is_over());
    ++places;
    if (free == plan::kNone && !place.is_there && place.vacant.load(std::memory_order_acquire)) free = c;
  }
  if (places == 0) throw Failure(code::unknown_set, "there is no set of streams \"" + set + "\"");
  if (free == plan::kNone)
    throw Failure(Error{code::no_place,
                        "\"" + set + "\" has no room for another stream",
                        {},
                        {"it has " + std::to_string(places) + " places"},
                        "",
                        "max: " + std::to_string(places + 1) + ", in the pipeline"});
  run.clocks[free]->place.is_there = true;
  run.clocks[free]->place.name = name;
  return free;
}

void give_up_place(RunState& run, uint32_t clock) {
  const std::lock_guard lock(run.places_mutex);
  run.clocks[clock]->place.is_there = false;
  wake_places(run, clock_of(run, clock).set);
}

bool is_awaited(const RunState& run, uint32_t clock) {
  const std::lock_guard lock(run.places_mutex);
  return run.clocks[clock]->place.is_awaited && !run.places_over && !has_ended(run, clock);
}

void still_absent(RunState& run, uint32_t clock, const Error& error) {
  if (!is_awaited(run, clock)) return;
  {
    const std::lock_guard lock(run.failure_mutex);
    std::optional<Error>& failure = run.clocks[clock]->failure;
    if (failure && failure->what == error.what) return;
    failure = error;
  }
  tell_stream_absent(run, clock, error);
}

void come(RunState& run, uint32_t clock, NewStream stream) {
  PlaceRun& place = run.clocks[clock]->place;
  {
    std::unique_lock lock(run.places_mutex);
    const bool was_removed = stream.was_absent && !place.is_awaited;
    if (run.places_over || was_removed || has_ended(run, clock)) {
      lock.unlock();
      const Error error = was_removed ? Error{code::no_place, "it was removed", {}, {}, "", ""} : run_is_over();
      if (stream.done) stream.done(&error);
      return;
    }
    place.coming = std::make_unique<NewStream>(std::move(stream));
    place.asked.store(true);
  }
  run.clocks[clock]->rests.store(false);
  run.notify(*run.epoch.paces[clock]);
}

void go(RunState& run, const std::string& set, const std::string& name, StreamDone done) {
  std::unique_lock lock(run.places_mutex);
  if (run.places_over) throw Failure(run_is_over());
  std::vector<std::string> names;
  for (uint32_t c = 0; c < run.clocks.size(); ++c) {
    ClockRun& clock = *run.clocks[c];
    if (!clock.place.is_there || clock_of(run, c).set.empty() || (!set.empty() && clock_of(run, c).set != set))
      continue;
    names.push_back(clock.place.name);
    if (clock.place.name != name) continue;
    if (!clock_of(run, c).has_room)
      throw Failure(Error{code::no_place,
                          "\"" + name + "\" cannot be removed",
                          {},
                          {"its set has no 'max', so its streams stay until they end"},
                          "",
                          "max: …, in the pipeline"});
    if (clock.place.coming || is_being_made(clock.place))
      throw Failure(Error{
          code::no_place, "\"" + name + "\" is being added", {}, {"it can be removed once it has begun"}, "", ""});
    if (clock.place.leaving) throw Failure(code::no_place, "\"" + name + "\" is being removed already");
    if (has_ended(run, c)) throw Failure(run_is_over());
    if (clock.place.is_awaited) {
      forget_absent(run, c);
      lock.unlock();
      if (done) done(nullptr);
      return;
    }
    clock.place.leaving = std::move(done);
    {
      const std::lock_guard failure_lock(run.failure_mutex);
      clock.removed.store(true);
      clock.halted.store(true);
    }
    clock.rests.store(false); // its head may wait until it begins anew
    run.notify(*run.epoch.paces[c]);
    return;
  }
  throw Failure(Error{code::unknown_stream,
                      "there is no stream \"" + name + "\"",
                      {},
                      {"streams: " + listed_from(name, names)},
                      nearest_name(name, names),
                      ""});
}

void end_place(ClockRun& clock, RunState& run) {
  std::unique_ptr<NewStream> coming;
  StreamDone leaving;
  {
    const std::lock_guard lock(run.places_mutex);
    coming = std::move(clock.place.coming);
    leaving = std::exchange(clock.place.leaving, nullptr);
  }
  const Error error = run_is_over();
  answer(std::move(coming), &error);
  if (leaving) leaving(&error);
}

void end_places(RunState& run) {
  {
    const std::lock_guard lock(run.places_mutex);
    run.places_over = true;
  }
  for (const auto& clock : run.clocks) end_place(*clock, run);
}

std::string name_now(const RunState& run, const plan::HandlerPlan& handler) {
  return handler.stream.empty() ? handler.name : as_now(run, handler.clock, handler.name);
}

std::string clock_now(const RunState& run, uint32_t clock) {
  if (!clock_of(run, clock).has_room) return clock_of(run, clock).name;
  const std::lock_guard lock(run.places_mutex);
  const std::string& stream = run.clocks[clock]->place.name;
  return stream.empty() ? clock_of(run, clock).name : stream;
}

std::string as_now(const RunState& run, uint32_t clock, const std::string& words) {
  const plan::Clock& plan = clock_of(run, clock);
  if (!plan.has_room) return words;
  std::string stream;
  {
    const std::lock_guard lock(run.places_mutex);
    stream = run.clocks[clock]->place.name;
  }
  const std::string planned = plan.is_place ? plan.name.substr(plan.set.size()) : plan.name;
  return stream.empty() || stream == planned ? words : graph::with_stream(words, planned, stream);
}

void vacate(PaceRun& pace, Left left) {
  ClockRun& clock = *pace.clock;
  RunState& run = *pace.run;
  for_each_handler(pace, [&](HandlerRun& step) {
    if (!step.life->is_started) return;
    step.life->is_started = false;
    // A recording that cannot be completed fails its stream, as it does where streams stay to the end of the run.
    if (!step.life->down && step.instance->stop() != MR_OK)
      left == Left::by_itself ? run.fail(step, step.segment->ordinal, step.instance->take_error("stop"))
                              : say_error(step);
    step.life->down = false;
  });
  StreamDone done;
  bool is_awaited = false;
  {
    const std::lock_guard lock(run.places_mutex);
    is_awaited = clock.place.is_awaited;
    const std::lock_guard failure_lock(run.failure_mutex);
    if (!clock.failure && !clock.place.vacant.load()) clock.place.one_was_well = true;
    if (left == Left::removed && !is_awaited) clock.failure.reset(); // it goes with the stream
    clock.place.is_there = is_awaited;
    clock.removed.store(false);
    clock.place.left.store(left);
    done = std::move(clock.place.leaving);
    clock.place.leaving = nullptr;
  }
  clock.place.vacant.store(true, std::memory_order_release);
  give_up_changes(run, pace.plan->clock);
  if (!is_awaited) tell_stream_left(pace);
  wake_places(run, clock.plan->set);
  if (done) done(nullptr);
}

Error start_error(const HandlerRun& step, const std::string& sentence) {
  const std::string name = name_now(*step.run, *step.handler) + " (" + step.handler->type + ")";
  return {code::start_failed, name + " could not start: " + sentence, {}, {}, "", ""};
}

bool has_come(PaceRun& pace) {
  PlaceRun& place = pace.clock->place;
  RunState& run = *pace.run;
  if (!place.asked.exchange(false)) return false;
  {
    const std::lock_guard lock(run.places_mutex);
    for (auto& [handler, instance] : place.coming->made->instances) give_instance(run, handler, instance);
    for (SourceState& source : pace.clock->sources)
      for (const auto& [handler, facts] : place.coming->made->facts)
        if (handler == source.step->plan->handler()) source.take_facts(facts, *pace.clock->plan);
  }
  count_from_here(pace);
  {
    const std::lock_guard lock(run.failure_mutex);
    if (!place.coming->was_absent) pace.clock->failure.reset(); // that of the stream before
    pace.clock->failed_in_a_row = 0;
  }
  const HandlerRun* failed = nullptr;
  for_each_handler(pace, [&](HandlerRun& step) {
    if (failed || step.plan->is<plan::SourceStep>()) return;
    step.life->is_started = step.instance->reset() == MR_OK && step.instance->start() == MR_OK;
    if (!step.life->is_started) failed = &step;
  });
  if (!failed) return true;
  const Error error = start_error(*failed, failed->instance->error());
  vacate(pace, Left::removed);
  answer_come(pace, &error);
  return false;
}

void answer_come(PaceRun& pace, const Error* error) {
  PlaceRun& place = pace.clock->place;
  std::unique_ptr<NewStream> came;
  {
    const std::lock_guard lock(pace.run->places_mutex);
    came = std::move(place.coming);
    if (!error) place.is_awaited = false;
  }
  answer(std::move(came), error);
}

bool is_set_over(const PaceRun& pace) {
  const RunState& run = *pace.run;
  bool by_itself = false;
  const std::lock_guard lock(run.places_mutex);
  for (uint32_t c = 0; c < run.clocks.size(); ++c) {
    const ClockRun& clock = *run.clocks[c];
    if (clock.plan->set != pace.clock->plan->set || clock.plan->is_group) continue;
    const bool ended = has_ended(run, c);
    if (clock.place.is_there && !ended) return false;
    by_itself = by_itself || ended || clock.place.left.load() == Left::by_itself;
  }
  return by_itself;
}

} // namespace millrace::exec
