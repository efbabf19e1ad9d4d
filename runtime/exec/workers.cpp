// Runs the worker threads: they look for segments to carry forward, spin and sleep; see threads.h.
#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <sstream>
#include <string>

#include "device/device.h"
#include "exec/channel.h"
#include "exec/region.h"
#include "exec/run_options.h"
#include "exec/run_state.h"
#include "exec/segment.h"
#include "exec/stream_life.h"
#include "exec/threads.h"
#include "exec/under_way.h"
#include "observe/signal_stack.h"
#include "observe/start_thread.h"
#include "plan/pace.h"
#include "plan/plan.h"

namespace millrace::exec {

namespace {

// One look in 16 goes beyond the worker's own segments: help comes within a microsecond.
constexpr uint32_t kOthersMask = 15;
// A clock read costs more than a try of a segment, so there is one read after this many tries.
constexpr size_t kTriesAClock = 64;
// A sleeper looks around at least this often, so a lost wake costs no more than this.
constexpr int64_t kSleepMaxNs = 100'000'000;
// The same for one that may help where beats come. Nobody rings for it when a call takes longer than its like did
// before, and a beat of another clock with the same home comes meanwhile: that beat is late by no more than this.
constexpr int64_t kHelperSleepMaxNs = 20'000'000;
// A sleeper wakes this long before a beat and spins for the rest, because the kernel is late by tens of microseconds.
constexpr int64_t kWakeEarlyNs = 50'000;
// A worker waits for a device in slices of sleep (docs/decisions/0019). On a virtual machine with an H200, sleeps of up
// to 100 µs are late by 5 µs (p99 12) and cost 4.5 µs of a processor; sleeps of 200 µs are late by 6 µs (19), of 400 by
// 12 (66), of 800 by 14 (152), of 1600 by 25 (170). Within kNearNs of the expected end, slices last kNearSliceNs.
// Before that a slice is half of what remains, and at least kFarSliceLeastNs: it may be late without harm, and work
// that ends early by x is found within x / 2, or within the least such slice.
constexpr int64_t kNearNs = 80'000, kNearSliceNs = 20'000, kFarSliceLeastNs = 250'000;
// After the expected end a worker goes on with slices of kNearSliceNs for 1 / kLookOutShare of the expected time,
// because the time of a device varies in proportion, and for at least kLookOutLeastNs, by which the threads of a
// machine delay each other. Then slices last kLateSliceNs until twice the expected time has passed: a wake by the
// driver would be later than that.
constexpr int64_t kLookOutLeastNs = 160'000, kLookOutShare = 8, kLateSliceNs = 50'000;
// A wait that is expected to be shorter than kExpectLeastNs is not worth a sleep, and one longer than kExpectMostNs is
// not foreseen. A worker that expects to sleep spins no longer than kSpinBeforeSleepNs.
constexpr int64_t kExpectLeastNs = 250'000, kExpectMostNs = 50'000'000;
constexpr int64_t kSpinBeforeSleepNs = 10'000;
// Replaces kExpectLeastNs if there is a device whose bodies enqueue, and a core for each thread: a large frame takes
// more than a millisecond up and down, and a worker that sleeps meanwhile looks too late to keep the copy engines busy.
constexpr int64_t kExpectLeastByDeviceNs = 1'500'000;
// A turn of a segment that takes longer than this is worth waking a helper for what is due meanwhile: twice what a wake
// costs. The longest turn is forgotten by 1 / kTimesForgotten a turn.
constexpr int64_t kWorthHelpNs = 100'000, kTimesForgotten = 8;
// When all workers are to rest, a call that takes longer than this is not waited for.
constexpr std::chrono::milliseconds kRestWithin{100};

// Saturates: nothing may be due (INT64_MAX), and a time that is given may be negative.
int64_t time_until(int64_t due_ns, int64_t now_ns) {
  return now_ns < 0 && due_ns > INT64_MAX + now_ns ? INT64_MAX : due_ns - now_ns;
}

// True if the head's time has come, or if it has to end an epoch, or to begin one.
bool is_due(const PaceRun& pace, int64_t now_ns) {
  const ClockRun& clock = *pace.clock;
  return pace.idle_until_ns.load(std::memory_order_relaxed) <= now_ns ||
         (clock.halted.load(std::memory_order_relaxed) && !clock.rests.load(std::memory_order_relaxed));
}

// Looks at a segment without writing anything: between two ticks a segment waits for its pace to admit the next one,
// and the head, which admits it, for its time, or for its feed. `early`: heads have something to do before their time.
bool may_move(const SegmentRun& segment, int64_t now_ns, bool early) {
  const uint64_t next = segment.progress.load(std::memory_order_relaxed);
  if (segment.in_tick.load(std::memory_order_relaxed)) {
    const StepStamps* const awaits = segment.awaits.load(std::memory_order_relaxed);
    return !awaits || awaits->settled(next);
  }
  const ChannelRun* const feed = segment.pace->feed;
  if (segment.head && (feed ? !feed->dry.load(std::memory_order_relaxed) : early || is_due(*segment.pace, now_ns)))
    return true;
  if (segment.first && segment.first->settled(next)) return true;
  return segment.pace->admitted.load(std::memory_order_relaxed) > next ||
         segment.pace->ended.load(std::memory_order_relaxed) || must_end_epoch(segment);
}

// Keeps this thread on the processors of the list, "0-15,32"; on any if it may use none of the list.
void stay_near(const std::string& list) {
  cpu_set_t processors;
  CPU_ZERO(&processors);
  cpu_set_t allowed; // a process that is restricted to some processors stays there
  CPU_ZERO(&allowed);
  pthread_getaffinity_np(pthread_self(), sizeof allowed, &allowed);
  std::istringstream text(list);
  for (std::string range; std::getline(text, range, ',');) {
    const size_t dash = range.find('-');
    const unsigned long first = std::strtoul(range.c_str(), nullptr, 10);
    const unsigned long last = dash == std::string::npos ? first : std::strtoul(range.c_str() + dash + 1, nullptr, 10);
    for (unsigned long cpu = first; cpu <= last && cpu < CPU_SETSIZE; ++cpu) CPU_SET(cpu, &processors);
  }
  CPU_AND(&processors, &processors, &allowed);
  if (CPU_COUNT(&processors) > 0) pthread_setaffinity_np(pthread_self(), sizeof processors, &processors);
}

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

} // namespace

Workers::Workers(RunState& run)
    : run_(run),
      crowded_(std::thread::hardware_concurrency() < run.planned.plan.workers),
      expect_least_ns_(kExpectLeastNs) {
  const bool has_cores = std::thread::hardware_concurrency() > run_.planned.plan.threads;
  for (const device::Enqueuing* device : run_.enqueuing)
    if (device && has_cores) expect_least_ns_ = kExpectLeastByDeviceNs;
  for (uint32_t w = 0; w < run.planned.plan.threads; ++w) {
    workers_.push_back(std::make_unique<Worker>());
    workers_[w]->index = w;
    workers_[w]->trace = run.traces[w].get();
  }
  share_out();
}

Workers::~Workers() { join(); }

void Workers::start() {
  const std::lock_guard lock(rest_mutex_); // none begins before all are there
  try {
    for (size_t w = 0; w < workers_.size(); ++w) {
      const std::string name = "worker " + std::to_string(w + 1) + " of " + std::to_string(workers_.size());
      workers_[w]->thread = start_thread(name, [this, w] { loop(*workers_[w]); });
    }
  } catch (const Failure&) {
    run_.abort.store(true);
    throw;
  }
  running_ = workers_.size();
}

void Workers::join() {
  for (auto& worker : workers_)
    if (worker->thread.joinable()) worker->thread.join();
}

bool Workers::try_segment(Worker& worker, SegmentRun& segment) {
  if (segment.done.load(std::memory_order_relaxed) || segment.claimed.load(std::memory_order_relaxed)) return false;
  if (!may_move(segment, worker.now_ns, worker.early) || segment.claimed.exchange(true, std::memory_order_acquire))
    return false;
  std::atomic<const SegmentRun*>& busy = run_.wakeup.busy(worker.index);
  busy.store(&segment, std::memory_order_relaxed);
  segment.trace = worker.trace;
  const plugin::UnderWayScope here({&name_call_in, &segment});
  if (worker.was_idle || (worker.has_beats && segment.took_ns > kWorthHelpNs)) call_help(worker, segment);
  const bool moved = run_turn(segment);
  if (moved && worker.has_beats) {
    const int64_t now = run_.now_ns();
    segment.took_ns = std::max(now - worker.now_ns, segment.took_ns - segment.took_ns / kTimesForgotten);
    worker.now_ns = now;
  }
  if (moved) worker.was_idle = false;
  busy.store(nullptr, std::memory_order_relaxed);
  segment.claimed.store(false, std::memory_order_release);
  // Its home may have found it claimed, or looked at words that were just changing, and gone to sleep.
  const uint32_t home = segment.plan->home;
  if (home != worker.index && run_.wakeup.bells->any_waits()) run_.wakeup.bells->ring(home);
  return moved;
}

// Called when a worker has begun a turn of a segment, perhaps a long one: wakes a helper if another of its segments may
// move now, or will before the turn is over.
void Workers::call_help(const Worker& worker, const SegmentRun& begun) {
  if (!run_.several_threads || worker.own.size() < 2 || !run_.wakeup.bells->any_waits()) return;
  const int64_t until = worker.now_ns == INT64_MAX ? INT64_MAX : worker.now_ns + begun.took_ns;
  for (const SegmentRun* segment : worker.own) {
    if (segment == &begun || segment->plan->pinned || segment->done.load(std::memory_order_relaxed)) continue;
    if (may_move(*segment, until, worker.early)) return run_.wakeup.ring_helper_of(worker.index);
  }
}

void Workers::read_clock(Worker& worker) const {
  if (!worker.has_beats) return;
  worker.now_ns = run_.now_ns();
  const int64_t begun = run_.begun_ns(), duration = run_.options.duration_ns;
  worker.early = run_.stopping.load(std::memory_order_relaxed) || run_.failing.load(std::memory_order_relaxed) ||
                 run_.changes_waiting.load(std::memory_order_relaxed) ||
                 (duration && begun != kAtFirstLook && worker.now_ns - begun >= duration);
}

bool Workers::look(Worker& worker) {
  read_clock(worker);
  bool moved = false;
  for (SegmentRun* segment : worker.own) moved = try_segment(worker, *segment) || moved;
  if (moved) return true;
  worker.was_idle = true;
  // Looking at other workers' segments takes cache lines away from those workers, so now and then is enough.
  if ((++worker.looks & kOthersMask) != 0) return false;
  for (SegmentRun* segment : worker.others) {
    if (needs_help(*segment) && try_segment(worker, *segment)) return true;
  }
  return false;
}

bool Workers::force_devices() {
  if (!run_.has_devices) return false;
  bool moved = false;
  for (device::Device* device : run_.accelerators()) moved = device->force_any() || moved;
  return moved;
}

// True if the home of another worker's segment is busy with another one. Else it will come to it.
bool Workers::needs_help(const SegmentRun& segment) {
  const SegmentRun* with = run_.wakeup.busy(segment.plan->home).load(std::memory_order_relaxed);
  return with && with != &segment;
}

// When a beat concerns this worker: one of its own, or one whose worker may be too busy for it.
int64_t Workers::next_due_ns(const Worker& worker) {
  int64_t due = INT64_MAX;
  for (const PaceRun* pace : worker.paces) due = std::min(due, pace->due_ns.load(std::memory_order_relaxed));
  for (const ResolveRun* step : worker.aligns) due = std::min(due, step->decides_at_ns.load(std::memory_order_relaxed));
  for (const SegmentRun* segment : worker.others)
    if (segment->head && needs_help(*segment))
      due = std::min(due, segment->pace->due_ns.load(std::memory_order_relaxed));
  return due;
}

bool Workers::expects(const Worker& worker) const {
  return run_.has_devices && !worker.own.empty() && worker.idle_ns > expect_least_ns_ && worker.idle_ns < kExpectMostNs;
}

// Called between a sleep and the beat that ended it: warms up the regions that the beat's clock will launch soon. Once
// for each tick, however often its clock wants to be looked at before.
void Workers::warm_up(Worker& worker, int64_t due_ns) {
  for (SegmentRun* segment : worker.own) {
    const bool is_next = segment->pace->due_ns.load(std::memory_order_relaxed) == due_ns;
    if (!segment->device || !is_next || segment->done.load(std::memory_order_relaxed)) continue;
    if (segment->claimed.exchange(true, std::memory_order_acquire)) continue;
    const uint64_t next = segment->progress.load(std::memory_order_relaxed);
    for (const StepRun* step : segment->steps)
      if (next >= segment->warmed_up && step->on.region && step->on.region->steps[0] == step)
        exec::warm_up(*step->on.region, next);
    segment->warmed_up = next + 1;
    segment->claimed.store(false, std::memory_order_release);
  }
}

// The next slice of sleep; 0 if nothing is expected, or not any longer.
int64_t Workers::slice_ns(const Worker& worker, int64_t now) const {
  if (!expects(worker)) return 0;
  const int64_t expected = worker.idle_since_ns + worker.idle_ns;
  const int64_t far = expected - kNearNs - now;
  if (far > 0) return std::min(far, std::max(kFarSliceLeastNs, far / 2));
  const int64_t look_out = std::max(kLookOutLeastNs, worker.idle_ns / kLookOutShare);
  if (now < expected + look_out) return kNearSliceNs;
  return now < expected + worker.idle_ns ? kLateSliceNs : 0;
}

// Looks at everything once more, then sleeps. True after a slice of a sleep: the next one follows.
bool Workers::sleep_once(Worker& worker) {
  device::Bells& bells = *run_.wakeup.bells;
  const uint32_t heard = bells.epoch(worker.index);
  worker.looked_ns = run_.now_ns();
  const int64_t slice = slice_ns(worker, worker.looked_ns);
  if (slice == 0 && !worker.own.empty()) // else it looks in time itself, or has nothing to wait for
    for (device::Device* device : run_.accelerators()) device->watch();
  worker.looks = kOthersMask;
  if (look(worker)) {
    note_idle(worker);
    return false;
  }
  if (force_devices() || run_.finished() || run_.abort.load() || resting_.load(std::memory_order_relaxed)) return false;
  const int64_t early = std::min(kWakeEarlyNs, run_.options.spin_ns);
  const int64_t due = next_due_ns(worker), until_beat = time_until(due - early, run_.now_ns());
  if (until_beat <= 0) {
    warm_up(worker, due);
    return false;
  }
  const int64_t most = worker.has_beats && !worker.others.empty() ? kHelperSleepMaxNs : kSleepMaxNs;
  bells.wait(worker.index, heard, std::min(slice > 0 ? slice : most, until_beat));
  worker.looked_ns = run_.now_ns();
  return slice > 0;
}

// Work that is found after a slice is done after cancel_wait(): before that, every thread that moves something rings
// for this worker.
void Workers::sleep(Worker& worker) {
  for (bool sleeps_on = true; sleeps_on;) {
    run_.wakeup.bells->prepare_wait(worker.index);
    sleeps_on = sleep_once(worker);
    run_.wakeup.bells->cancel_wait(worker.index);
    worker.looks = kOthersMask;
    if (!sleeps_on || !look(worker)) continue;
    note_idle(worker);
    return;
  }
}

bool Workers::rest() {
  {
    const std::lock_guard lock(rest_mutex_);
    resting_.store(true);
  }
  rest_changed_.notify_all();
  run_.notify_all();
  std::unique_lock lock(rest_mutex_);
  return rest_changed_.wait_for(lock, kRestWithin, [&] { return at_rest_ == running_; });
}

void Workers::go_on() {
  {
    const std::lock_guard lock(rest_mutex_);
    resting_.store(false);
  }
  rest_changed_.notify_all();
}

void Workers::rest_here() {
  std::unique_lock lock(rest_mutex_);
  ++at_rest_;
  rest_changed_.notify_all();
  rest_changed_.wait(lock, [&] { return !resting_.load(); });
  --at_rest_;
}

// Expects the median of the latest waits. One wait that other threads cut short or drew out says nothing of the next:
// it may have been for a thread on another processor, or a sleep from which the worker was woken late.
void Workers::expect(Worker& worker, int64_t idle_ns) {
  worker.lately_ns[worker.idles++ % worker.lately_ns.size()] = idle_ns;
  std::array<int64_t, 8> sorted = worker.lately_ns;
  const size_t count = std::min(worker.idles, sorted.size());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>((count - 1) / 2);
  std::nth_element(sorted.begin(), middle, sorted.begin() + static_cast<std::ptrdiff_t>(count));
  worker.idle_ns = *middle;
}

void Workers::note_idle(Worker& worker) const {
  if (run_.has_devices) {
    const int64_t idle = worker.looked_ns - worker.idle_since_ns; // work that was found is not part of the wait
    if (idle > run_.options.spin_ns) expect(worker, idle);        // shorter waits are spun for in any case
  }
  worker.idle_since_ns = 0;
}

int64_t Workers::spins_for_ns(const Worker& worker) const {
  const int64_t spin = run_.options.spin_ns;
  if (!run_.has_devices || worker.own.empty() || worker.idle_ns >= kExpectMostNs) return spin;
  if (expects(worker)) return std::min(spin, kSpinBeforeSleepNs);
  return std::max(spin, 2 * worker.idle_ns);
}

// Waits until the segments are shared out anew: this worker has nothing to do before, so no thread rings for it.
void Workers::stand_by() {
  std::unique_lock lock(rest_mutex_);
  rest_changed_.wait(lock, [&] { return resting_.load() || run_.finished() || run_.abort.load(); });
}

void Workers::loop(Worker& worker) {
  { const std::lock_guard all_are_there(rest_mutex_); }
  const SignalStack stack(run_.options.explain_crashes);
  prctl(PR_SET_TIMERSLACK, 1); // 1 ns, for this thread: by default a sleep may be 50 µs longer than was asked for
  for (const SegmentRun* segment : worker.own)
    if (segment->device) stay_near(run_.devices[segment->plan->domain]->local_cpus());
  size_t tries = 0; // tries of segments since the last look at the clock
  while (!run_.finished() && !run_.abort.load(std::memory_order_relaxed)) {
    if (resting_.load(std::memory_order_relaxed)) [[unlikely]]
      rest_here();
    if (worker.own.empty() && worker.others.empty()) [[unlikely]] {
      stand_by();
      continue;
    }
    if (look(worker)) {
      if (worker.idle_since_ns != 0) note_idle(worker);
      tries = 0;
      continue;
    }
    if (force_devices()) continue;
    pause();
    tries += std::max<size_t>(worker.own.size(), 1);
    if (tries < kTriesAClock) continue;
    tries = 0;
    worker.looked_ns = run_.now_ns();
    if (crowded_ && time_until(next_due_ns(worker), worker.looked_ns) > kWakeEarlyNs) sched_yield();
    if (worker.idle_since_ns == 0) worker.idle_since_ns = worker.looked_ns;
    if (worker.looked_ns - worker.idle_since_ns >= spins_for_ns(worker)) sleep(worker);
  }
  const std::lock_guard lock(rest_mutex_);
  --running_; // no thread waits for it to rest
  rest_changed_.notify_all();
}

} // namespace millrace::exec
