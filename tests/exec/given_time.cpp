// Runs whose time or start is given from outside: no clock ticks before the start, and media time 0 is then.
#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "device/timeline.h"
#include "exec/run.h"
#include "harness.h"
#include "observe/log.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// Goes on as the machine's time does, from 1 s before 0, and stops 30 ms before it until it is let go; then it is 0.
class HeldTime final : public device::Timeline {
 public:
  int64_t now_ns() const override {
    const int64_t zero = zero_ns_.load();
    const int64_t now = monotonic_.now_ns();
    return zero == kHeld ? std::min(-30 * kMs, now - made_ns_ - 1000 * kMs) : now - zero;
  }
  void go() { zero_ns_.store(monotonic_.now_ns()); }

 private:
  static constexpr int64_t kHeld = INT64_MIN;
  device::MonotonicTime monotonic_;
  const int64_t made_ns_ = monotonic_.now_ns();
  std::atomic<int64_t> zero_ns_{kHeld};
};

// The calls of g.watch, and when they were in the run's time.
struct WatchedCall {
  mr_tick_info info;
  int64_t at_ns, own_ns; // own: by what the run tells the handler
};
std::vector<WatchedCall> watched_calls;
const device::Timeline* watched_time = nullptr;

struct WatchesTime final : Handler {
  Input<Tensor> in{*this, "in"};
  void process(Tick& tick, Cpu&) { watched_calls.push_back({*tick.raw().info, watched_time->now_ns(), now_ns()}); }
};

std::atomic<bool> early_all_read{false}, early_let_go{false};

// A live source with a thread of its own: it gives five values at once, and a sixth one when it is let go.
struct ReadEarly final : Handler {
  Output<Tensor> out{*this, "out"};
  int64_t next = 0;
  ReadEarly() { blocking(); }
  void probe(Facts& facts) override { facts.live(); }
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}); }
  void process(Tick& tick, Cpu&) {
    if (next == 6) return tick.end();
    if (next == 5) {
      early_all_read.store(true);
      while (!early_let_go.load()) std::this_thread::yield();
    }
    write_one(out, tick, next++);
  }
};

const mr_plugin& given_plugin() {
  static const mr_handler_type types[] = {detail::Type<WatchesTime>::table("g.watch", "Notes its calls", ""),
                                          detail::Type<ReadEarly>::table("g.early", "Gives five at once", "")};
  static const mr_handler_type* const pointers[] = {&types[0], &types[1]};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "given", "1", pointers, 2, 0};
  return plugin;
}

Setup begins_at(int64_t begin_ns) {
  watched_calls.clear();
  Setup setup;
  setup.virtual_time = true;
  setup.more = &given_plugin();
  setup.options.begin_ns = begin_ns;
  return setup;
}

Pipeline watched(graph::ClockMode mode, int64_t rate, const Params& source) {
  Pipeline p;
  p.clock(mode, rate);
  p.add("source", "t.count", source);
  p.add("watch", "g.watch");
  p.connect("source", "watch");
  return p;
}

// The milliseconds at which ticks came in virtual time.
std::vector<int64_t> came_at_ms(Compiled& compiled) {
  watched_time = &compiled.time();
  const Ran result = compiled.run();
  CHECK(result.ok);
  std::vector<int64_t> came;
  for (const WatchedCall& call : watched_calls) came.push_back(call.at_ns / kMs);
  return came;
}

std::vector<int64_t> media_ms() {
  std::vector<int64_t> times;
  for (const WatchedCall& call : watched_calls) times.push_back(call.info.media_time_ns / kMs);
  return times;
}

using Times = std::vector<int64_t>;

} // namespace

TEST_CASE("1.3: beats count from a start that was given, and media time 0 is then") {
  Compiled compiled(watched(graph::ClockMode::realtime, 10, {{"count", "3"}}), begins_at(250 * kMs));
  CHECK(came_at_ms(compiled) == Times{250, 350, 450});
  CHECK(media_ms() == Times{0, 100, 200});
  CHECK(watched_calls[0].info.deadline_ns == 350 * kMs);
}

TEST_CASE("1.3: free clocks, and clocks that follow a source, do not tick before a start that was given") {
  Setup setup = begins_at(250 * kMs);
  setup.costs_ns = {{"watch", 20 * kMs}};
  Compiled free(watched(graph::ClockMode::free, 0, {{"count", "3"}}), setup);
  CHECK(came_at_ms(free) == Times{250, 270, 290});

  Compiled file(watched(graph::ClockMode::source, 0, {{"count", "3"}, {"rate", "50"}}), begins_at(250 * kMs));
  CHECK(came_at_ms(file) == Times{250, 250, 250});
  CHECK(media_ms() == Times{0, 20, 40});

  Params live = {{"count", "3"}, {"rate", "50"}, {"live", "true"}};
  Compiled camera(watched(graph::ClockMode::source, 0, live), begins_at(250 * kMs));
  CHECK(came_at_ms(camera) == Times{250, 270, 290});
  CHECK(media_ms() == Times{0, 20, 40});
}

TEST_CASE("1.3: a duration counts from the start that was given") {
  Setup setup = begins_at(250 * kMs);
  setup.options.duration_ns = 250 * kMs;
  Compiled compiled(watched(graph::ClockMode::realtime, 10, {}), setup);
  CHECK(came_at_ms(compiled) == Times{250, 350, 450});
}

TEST_CASE("1.3: beats that are over when the run comes to look are skipped") {
  Compiled compiled(watched(graph::ClockMode::realtime, 10, {}), begins_at(250 * kMs));
  compiled.time().schedule(1000 * kMs, [] {});
  compiled.time().step();
  compiled.time().schedule(1100 * kMs, [&] { compiled.live().stop(); });
  CHECK(came_at_ms(compiled) == Times{1000, 1050});
  CHECK(media_ms() == Times{700, 800});
}

TEST_CASE("2.8: a run that is stopped before its start ends at once and has no tick") {
  Compiled compiled(watched(graph::ClockMode::free, 0, {}), begins_at(250 * kMs));
  compiled.time().schedule(100 * kMs, [&] { compiled.live().stop(); });
  CHECK(came_at_ms(compiled).empty());
  CHECK(compiled.time().now_ns() == 100 * kMs);
}

TEST_CASE("1.3: with threads no clock ticks before the start, and times are those of the time that was given") {
  for (const graph::ClockMode mode : {graph::ClockMode::realtime, graph::ClockMode::free, graph::ClockMode::source}) {
    for (const uint32_t workers : {1u, 2u}) {
      CAPTURE(static_cast<int>(mode));
      CAPTURE(workers);
      HeldTime held;
      watched_time = &held;
      Setup setup = begins_at(0);
      setup.virtual_time = false;
      setup.workers = workers;
      setup.options.time = &held;
      std::atomic<bool> looked{false}; // the monitor, which is much slower than the workers
      setup.options.on_progress = [&](const exec::Progress&) { looked.store(true); };
      Compiled compiled(watched(mode, mode == graph::ClockMode::realtime ? 100 : 0, {{"count", "3"}, {"rate", "100"}}),
                        setup);
      compiled.live().start();
      while (!looked.load()) std::this_thread::yield();
      CHECK(compiled.live().ticks() == 0);
      held.go();
      REQUIRE(compiled.wait().ok);
      REQUIRE(!watched_calls.empty());
      for (const WatchedCall& call : watched_calls) {
        CHECK(call.at_ns >= 0);
        CHECK(call.own_ns >= 0);
        CHECK(call.own_ns < 3600 * 1000 * kMs); // the machine's own time may be anything
        if (mode != graph::ClockMode::realtime) continue;
        CHECK(call.at_ns >= call.info.media_time_ns);
        CHECK(call.info.deadline_ns == call.info.media_time_ns + 10 * kMs);
      }
    }
  }
}

TEST_CASE("1.2: what a live source gave before the start is no tick and not late") {
  early_all_read.store(false);
  early_let_go.store(false);
  HeldTime held;
  watched_time = &held;
  Setup setup = begins_at(0);
  setup.virtual_time = false;
  setup.options.time = &held;
  LogSettings settings;
  settings.record_level = LogLevel::info;
  settings.on_record = [](const LogRecord& record) {
    if (record.text.starts_with("the clock begins")) early_let_go.store(true);
  };
  Log log(settings);
  setup.options.log = &log;
  Pipeline p("g.early name=source ! t.sink name=sink log=seen");
  p.clock(graph::ClockMode::source);
  Compiled compiled(p, setup);
  compiled.live().start();
  while (!early_all_read.load()) std::this_thread::yield();
  held.go();
  const Ran result = compiled.wait();
  REQUIRE(result.ok);
  CHECK(result.seen("seen") == std::vector<Seen>{{0, 0, {5}}});
  CHECK(result.report.ticks_late == 0);
}
