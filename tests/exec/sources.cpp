// Sources: the times at which they are asked, the value that a tick gets, and the begin and end of clocks (semantics.md
// 1.2 to 1.4, 2.7, 2.8).
#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "device/timeline.h"
#include "exec/run.h"
#include "harness.h"
#include "tests/part.h"

using namespace millrace;
using namespace millrace::test;

namespace {

void give(const Output<Tensor>& out, Tick& tick, int64_t value) {
  const int64_t shape[] = {1};
  out.allocate(tick, dtype_of<int64_t>(), shape).elements<int64_t>()[0] = value;
}

// Its values are their own count, and their time is what the tick says: it stamps nothing itself.
struct Unstamped : Handler {
  Output<Tensor> out{*this, "out"};
  Param<int64_t> count{*this, "count", 0, "values; 0: endless"};
  Param<int64_t> rate{*this, "rate", 0, "values a second; 0: none"};
  Param<bool> is_live{*this, "live", false, "cannot wait"};
  Param<int64_t> pts_always{*this, "pts_always", -1, "every value says this time; -1: none does"};
  Param<int64_t> fail_at{*this, "fail_at", -1, "the value that fails"};
  void probe(Facts& facts) override {
    if (rate > 0) facts.rate(rate);
    if (is_live) facts.live();
  }
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}); }
  void process(Tick& tick, Cpu&) {
    const auto n = static_cast<int64_t>(tick.index());
    if (count > 0 && n >= count) return tick.end();
    if (n == fail_at) throw std::runtime_error("told to fail");
    give(out, tick, n);
    if (pts_always >= 0) out.header(tick).pts_ns = pts_always;
  }
};

struct Blocking final : Unstamped {
  Blocking() { blocking(); }
};

// Takes a block and then has nothing to give.
struct Hesitant final : Handler {
  Output<Tensor> out{*this, "out"};
  Param<int64_t> count{*this, "count", 0, "values"};
  int64_t calls = 0;
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}); }
  void start() override { calls = 0; }
  void process(Tick& tick, Cpu&) {
    const int64_t n = calls++;
    give(out, tick, n / 2);
    if (n / 2 >= count) {
      out.withdraw(tick); // else it were the last value
      return tick.end();
    }
    if (n % 2 == 0) tick.not_yet();
  }
};

// Blocks in its call until it is interrupted, and forgets an interrupt that comes outside of it, as many drivers do.
// Says what was done to it.
struct Stuck final : Handler {
  Output<Tensor> out{*this, "out"};
  Param<int64_t> count{*this, "count", 1, "values that come before it blocks"};
  static std::atomic<bool> drained_inside, waits;
  std::mutex mutex;
  std::condition_variable wake;
  bool inside = false, interrupted = false;
  int64_t given = 0;
  Stuck() { blocking(); }
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}); }
  void start() override {
    given = 0;
    drained_inside = waits = false;
  }
  void process(Tick& tick, Cpu&) {
    if (given < count) return give(out, tick, given++);
    std::unique_lock lock(mutex);
    inside = true;
    interrupted = false;
    waits = true;
    wake.wait(lock, [&] { return interrupted; });
    inside = false;
    tick.end();
  }
  void interrupt() override {
    const std::lock_guard lock(mutex);
    interrupted = inside;
    wake.notify_all();
  }
  void drain() override {
    const std::lock_guard lock(mutex);
    if (inside) drained_inside = true;
  }
};
std::atomic<bool> Stuck::drained_inside{false}, Stuck::waits{false};

// Has nothing yet until it is told to end.
struct Waiting final : Handler {
  Output<Tensor> out{*this, "out"};
  Param<int64_t> asks_ms{*this, "asks_ms", 0, "how long a call takes, unless it is told to end meanwhile"};
  static std::mutex mutex;
  static std::condition_variable told_to_end;
  static bool over;
  static void end() {
    const std::lock_guard lock(mutex);
    over = true;
    told_to_end.notify_all();
  }
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}); }
  void start() override {
    const std::lock_guard lock(mutex);
    over = false;
  }
  void process(Tick& tick, Cpu&) {
    std::unique_lock lock(mutex);
    told_to_end.wait_for(lock, std::chrono::milliseconds(asks_ms), [] { return over; });
    over ? tick.end() : tick.not_yet();
  }
};
std::mutex Waiting::mutex;
std::condition_variable Waiting::told_to_end;
bool Waiting::over = false;

// A source whose offset may be changed while it runs.
struct Adjustable final : Handler {
  Output<Tensor> out{*this, "out"};
  Param<int64_t> count{*this, "count", 0, "values"};
  Param<int64_t> rate{*this, "rate", 0, "values a second; 0: none"};
  Param<int64_t> add{*this, "add", 0, "added to each value", live};
  static std::function<void(int64_t)> meanwhile; // what another thread does while it is asked for that value
  int64_t next = 0;
  void probe(Facts& facts) override {
    if (rate > 0) facts.rate(rate);
  }
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}); }
  void start() override { next = 0; }
  void process(Tick& tick, Cpu&) {
    if (next >= count) return tick.end();
    if (meanwhile) meanwhile(next);
    give(out, tick, next++ + add);
  }
};
std::function<void(int64_t)> Adjustable::meanwhile;

const mr_plugin& source_plugin() {
  static const mr_handler_type types[] = {
      detail::Type<Unstamped>::table("s.unstamped", "Counts, stamps nothing", ""),
      detail::Type<Blocking>::table("s.blocking", "Counts on a thread of its own", ""),
      detail::Type<Hesitant>::table("s.hesitant", "Every other call gives nothing", ""),
      detail::Type<Stuck>::table("s.stuck", "Blocks until interrupted", ""),
      detail::Type<Adjustable>::table("s.adjustable", "Counts from an offset", ""),
      detail::Type<Waiting>::table("s.waiting", "Has nothing yet", ""),
  };
  static const mr_handler_type* const pointers[] = {&types[0], &types[1], &types[2], &types[3], &types[4], &types[5]};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "sources", "1", pointers, 6, 0};
  return plugin;
}

Pipeline source_to_sink(const std::string& type, const Params& params, const std::string& log) {
  Pipeline p;
  p.add("source", type, params);
  p.add("sink", "t.sink", {{"log", log}});
  p.connect("source", "sink");
  return p;
}

Setup virtual_setup() {
  Setup setup;
  setup.virtual_time = true;
  setup.options.keep_changes = true;
  setup.more = &source_plugin();
  return setup;
}

Setup threaded_setup(uint32_t workers = 2) {
  Setup setup;
  setup.workers = workers;
  setup.more = &source_plugin();
  return setup;
}

const EdgeReport& edge_from(const Result& result, const std::string& from) {
  for (const EdgeReport& edge : result.report.edges)
    if (edge.from == from) return edge;
  throw std::invalid_argument("no edge from " + from);
}

} // namespace

TEST_CASE("1.4: under realtime a source of the clock's rate gives one value a beat, at the time of that beat") {
  Pipeline p = source_to_sink("s.unstamped", {{"count", "10"}, {"rate", "30"}}, "same_rate");
  p.clock(graph::ClockMode::realtime, 30);
  const Ran ran = run(p, virtual_setup());
  REQUIRE(ran.ok);
  const std::vector<Seen> log = ran.seen("same_rate");
  REQUIRE(log.size() == 10);
  for (size_t i = 0; i < log.size(); ++i) {
    CHECK(log[i].values[0] == static_cast<int64_t>(i));
    CHECK(log[i].media_time_ns == static_cast<int64_t>(i) * 1'000'000'000 / 30);
  }
}

TEST_CASE("1.4: a source that is faster than the clock gives its newest due value, and those passed over are counted") {
  for (const std::string type : {"s.unstamped", "s.adjustable"}) {
    Pipeline p = source_to_sink(type, {{"count", "40"}, {"rate", "120"}}, "fast");
    p.clock(graph::ClockMode::realtime, 30);
    const Ran result = run(p, virtual_setup());
    REQUIRE(result.ok);
    CHECK(values(result.seen("fast")) == std::vector<int64_t>{0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 39});
    CHECK(dropped(edge_from(result, "source.out"), "rate") == 29);
  }
}

TEST_CASE("1.4: a source that is slower than the clock leaves the beats between its values empty") {
  Pipeline p = source_to_sink("s.unstamped", {{"count", "4"}, {"rate", "10"}}, "slow");
  p.clock(graph::ClockMode::realtime, 20);
  const Ran ran = run(p, virtual_setup());
  REQUIRE(ran.ok);
  CHECK(values(ran.seen("slow")) == std::vector<int64_t>{0, kEmpty, 1, kEmpty, 2, kEmpty, 3});
}

TEST_CASE(
    "1.4: under free, with a rate that is not its own, a file keeps its speed: a tick has what is due, or nothing") {
  for (const char* type : {"s.unstamped", "s.blocking"}) {
    for (const uint32_t workers : {1u, 2u, 4u}) {
      INFO(type, ", ", workers, " workers");
      Pipeline slow = source_to_sink(type, {{"count", "4"}, {"rate", "10"}}, "free_slow");
      slow.clock(graph::ClockMode::free, 20);
      const Ran ran = run(slow, threaded_setup(workers));
      REQUIRE(ran.ok);
      const std::vector<Seen> log = ran.seen("free_slow");
      CHECK(values(log) == std::vector<int64_t>{0, kEmpty, 1, kEmpty, 2, kEmpty, 3});
      for (const Seen& seen : log) CHECK(seen.media_time_ns == static_cast<int64_t>(seen.index) * 50'000'000);
      Pipeline fast = source_to_sink(type, {{"count", "40"}, {"rate", "120"}}, "free_fast");
      fast.clock(graph::ClockMode::free, 30);
      const Ran result = run(fast, threaded_setup(workers));
      REQUIRE(result.ok);
      CHECK(values(result.seen("free_fast")) == std::vector<int64_t>{0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 39});
      CHECK(dropped(edge_from(result, "source.out"), "rate") == 29);
      CHECK(result.report.pools.at("cpu").held_blocks == 0);
    }
  }
}

TEST_CASE("1.4: two files of other rates on one free clock with a rate meet by their times") {
  for (const uint32_t workers : {1u, 4u}) {
    Pipeline p(
        "s.unstamped name=ten count=10 rate=10 ! t.sink name=sink log=two_rates ; "
        "s.unstamped name=four count=4 rate=4 ! sink.");
    p.clock(graph::ClockMode::free, 20);
    const Ran ran = run(p, threaded_setup(workers));
    REQUIRE(ran.ok);
    const std::vector<Seen> log = ran.seen("two_rates");
    REQUIRE(log.size() == 19); // to the last value of the longer one, at 0.9 s
    for (const Seen& seen : log) {
      const int64_t ms = static_cast<int64_t>(seen.index) * 50;
      CHECK(seen.values[0] == (ms % 100 == 0 ? ms / 100 : kEmpty));
      CHECK(seen.values[1] == (ms % 250 == 0 && ms < 1000 ? ms / 250 : kEmpty));
    }
  }
}

TEST_CASE("1.4: values whose time does not rise come one period after another") {
  Pipeline p = source_to_sink("s.unstamped", {{"count", "8"}, {"rate", "20"}, {"pts_always", "0"}}, "flat_pts");
  p.clock(graph::ClockMode::realtime, 10);
  const Ran result = run(p, virtual_setup());
  REQUIRE(result.ok);
  CHECK(values(result.seen("flat_pts")) == std::vector<int64_t>{0, 2, 4, 6, 7});
}

TEST_CASE("1.4: a source that fails under realtime ends the run after the ticks that were admitted before") {
  Pipeline p = source_to_sink("s.unstamped", {{"rate", "10"}, {"fail_at", "3"}}, "fails");
  p.clock(graph::ClockMode::realtime, 20);
  const Ran result = run(p, virtual_setup());
  CHECK_FALSE(result.ok);
  CHECK(result.error.code == 601);
  const std::vector<int64_t> seen = values(result.seen("fails"));
  REQUIRE(seen.size() >= 5);
  CHECK(std::vector<int64_t>(seen.begin(), seen.begin() + 5) == std::vector<int64_t>{0, kEmpty, 1, kEmpty, 2});
}

TEST_CASE("1.4: a blocking file of another rate keeps its speed under realtime") {
  for (const int64_t rate : {100, 1000, 4000}) {
    Pipeline p = source_to_sink("s.blocking", {{"rate", std::to_string(rate)}}, "blocking_rate");
    p.clock(graph::ClockMode::realtime, 200);
    Setup setup = threaded_setup();
    setup.options.ticks_max = 40;
    const Ran ran = run(p, setup);
    REQUIRE(ran.ok);
    int64_t given = 0;
    Seen last{0, 0, {0}};
    for (const Seen& seen : ran.seen("blocking_rate")) {
      if (seen.values[0] == kEmpty) continue;
      ++given;
      CHECK(seen.values[0] * 1'000'000'000 / rate <= seen.media_time_ns); // never before its time
      last = seen;
    }
    CHECK(given > 0);
    // Nor ever slower: a machine under load may be behind, but not by three quarters.
    CHECK(last.values[0] * 4'000'000'000 / rate + 10'000'000 >= last.media_time_ns);
  }
}

TEST_CASE("1.4: what a blocking source does not stamp has the time of its count") {
  Pipeline p = source_to_sink("s.blocking", {{"rate", "100"}, {"count", "5"}}, "blocking_pts");
  const Ran ran = run(p, threaded_setup());
  REQUIRE(ran.ok);
  const std::vector<Seen> log = ran.seen("blocking_pts");
  REQUIRE(log.size() == 5);
  for (size_t i = 0; i < log.size(); ++i) CHECK(log[i].media_time_ns == static_cast<int64_t>(i) * 10'000'000);
}

TEST_CASE("1.4: a source that takes memory and then says not yet or end gives it back") {
  Pipeline p;
  p.add("source", "s.hesitant", {{"count", "200"}});
  p.add("both", "t.paced");
  p.add("sink", "t.sink", {{"log", "hesitant"}});
  p.connect("source", "both.in");
  p.connect("source", "both.extra", graph::Policy::latest); // so that blocks are counted
  p.connect("both", "sink");
  const Ran ran = run(p, virtual_setup());
  REQUIRE(ran.ok);
  const std::vector<int64_t> seen = values(ran.seen("hesitant"));
  REQUIRE(seen.size() == 200);
  for (int64_t i = 0; i < 200; ++i) CHECK(seen[static_cast<size_t>(i)] == i * 1001);
}

TEST_CASE("1.2: a live source is not made to wait: what a slow handler cannot take is late, and time goes on") {
  Pipeline p("s.unstamped name=source count=20 rate=100 live=true ! t.relay name=slow ! t.sink name=sink log=live");
  for (const uint32_t workers : {1u, 2u}) {
    Setup setup = virtual_setup();
    setup.workers = workers;
    setup.costs_ns = {{"slow", 50'000'000}};
    Compiled compiled(p, setup);
    const Ran result = compiled.run();
    REQUIRE(result.ok);
    const std::vector<Seen> log = result.seen("live");
    CHECK(result.report.ticks_late + log.size() == 20);
    CHECK(result.report.ticks_late >= 10);
    CHECK(compiled.time().now_ns() < 400'000'000); // 200 ms of frames, and what was in work at their end
    for (const Seen& seen : log) CHECK(seen.media_time_ns == seen.values[0] * 10'000'000);
  }
}

TEST_CASE("1.2: a live source that nothing holds up loses no frame and comes at its own rate") {
  Pipeline p = source_to_sink("s.unstamped", {{"count", "20"}, {"rate", "100"}, {"live", "true"}}, "live_fast");
  Compiled compiled(p, virtual_setup());
  const Ran result = compiled.run();
  REQUIRE(result.ok);
  CHECK(result.report.ticks_late == 0);
  CHECK(result.seen("live_fast").size() == 20);
  CHECK(compiled.time().now_ns() == 200'000'000);
}

TEST_CASE(
    "1.2: of a live source that is read on a thread of its own the newest frame counts, and none is lost uncounted") {
  Pipeline p = source_to_sink("s.blocking", {{"count", "2000"}, {"rate", "1000"}, {"live", "true"}}, "live_read");
  const Ran result = run(p, threaded_setup());
  REQUIRE(result.ok);
  const std::vector<Seen> log = result.seen("live_read");
  CHECK(log.size() + result.report.ticks_late == 2000);
  for (size_t i = 0; i < log.size(); ++i) {
    CHECK(log[i].media_time_ns == log[i].values[0] * 1'000'000);
    if (i > 0) CHECK(log[i].values[0] > log[i - 1].values[0]);
  }
}

TEST_CASE("1.4: on a live source's clock another source that has nothing yet delays nobody") {
  Pipeline p(
      "s.unstamped name=camera count=10 rate=100 live=true ; s.stuck name=other count=2 ; camera. ! t.sink "
      "name=sink log=other ; other. ! sink.");
  p.clock(graph::ClockMode::source);
  Setup setup = threaded_setup();
  setup.options.duration_ns = 20'000'000'000; // where it waits for what never comes
  const Ran result = run(p, setup);
  REQUIRE(result.ok);
  const std::vector<Seen> log = result.seen("other");
  CHECK(log.size() + result.report.ticks_late == 10);
  REQUIRE_FALSE(log.empty());
  std::vector<int64_t> others; // each once, in whatever ticks its reader came to
  for (const Seen& seen : log)
    if (seen.values[1] != kEmpty) others.push_back(seen.values[1]);
  CHECK(others.size() <= 2);
  for (size_t i = 0; i < others.size(); ++i) CHECK(others[i] == static_cast<int64_t>(i));
}

TEST_CASE("1.3: clocks begin together, however late the second is looked at") {
  Pipeline p;
  graph::Clock a, b;
  a.name = "a";
  b.name = "b";
  a.mode = b.mode = graph::ClockMode::realtime;
  a.rate = b.rate = {10, 1};
  p.graph.clocks = {a, b};
  p.add("first", "s.unstamped", {{"count", "5"}}).clock = "a";
  p.add("slow", "t.relay");
  p.add("second", "s.unstamped", {{"count", "5"}}).clock = "b";
  p.add("first_sink", "t.sink", {{"log", "begin_a"}});
  p.add("second_sink", "t.sink", {{"log", "begin_b"}});
  p.connect("first", "slow");
  p.connect("slow", "first_sink");
  p.connect("second", "second_sink");
  Setup setup = virtual_setup();
  setup.workers = 1;
  setup.costs_ns = {{"slow", 30'000'000}}; // the only worker comes to the second clock after this
  Compiled compiled(p, setup);
  REQUIRE(compiled.run().ok);
  CHECK(compiled.seen("begin_a").size() == 5);
  CHECK(compiled.seen("begin_b").size() == 5);
  // Beat 5, at which both find their sources ended, and not 30 ms after it.
  CHECK(compiled.time().now_ns() == 500'000'000);
}

TEST_CASE("2.8: a clock without sources ends when the clocks that feed it have ended and it has read what they left") {
  Pipeline p;
  graph::Clock file, show;
  file.name = "file";
  file.mode = graph::ClockMode::free;
  show.name = "show";
  show.mode = graph::ClockMode::realtime;
  show.rate = {100, 1};
  p.graph.clocks = {file, show};
  p.add("source", "s.unstamped", {{"count", "5"}}).clock = "file";
  p.add("sink", "t.sink", {{"log", "show"}}).clock = "show";
  SUBCASE("by latest") {
    p.connect("source", "sink", graph::Policy::latest);
    Setup setup = virtual_setup();
    setup.options.ticks_max = 1000; // where it does not end, this does
    const Ran ran = run(p, setup);
    REQUIRE(ran.ok);
    const std::vector<int64_t> seen = values(ran.seen("show"));
    REQUIRE_FALSE(seen.empty());
    CHECK(seen.size() < 20);
    CHECK(seen.back() == 4);
  }
  SUBCASE("by a queue") {
    p.connect("source", "sink", graph::Policy::queue).depth = 2;
    Setup setup = virtual_setup();
    setup.options.ticks_max = 1000;
    const Ran ran = run(p, setup);
    REQUIRE(ran.ok);
    std::vector<int64_t> seen = values(ran.seen("show"));
    CHECK(seen.size() < 20);
    seen.erase(std::remove(seen.begin(), seen.end(), kEmpty), seen.end());
    CHECK(seen == std::vector<int64_t>{0, 1, 2, 3, 4});
  }
}

TEST_CASE("2.8: a source that has nothing yet is not movement: the run says that it waits for it") {
  for (const char* asks_ms : {"0", "3"}) { // or is in its call nearly always, never for long
    CAPTURE(std::string(asks_ms));
    Setup setup = threaded_setup();
    setup.options.idle_report_ns = 100'000'000;
    setup.options.duration_ns = 10'000'000'000; // where nothing is said
    std::atomic<bool> told{false};
    setup.options.on_message = [&](const std::string& line) {
      if (line.find("MR0603") != std::string::npos) told = true;
      if (line.find("source waits") != std::string::npos) Waiting::end();
    };
    const Ran ran = run(source_to_sink("s.waiting", {{"asks_ms", asks_ms}}, "waiting"), setup);
    REQUIRE(ran.ok);
    CHECK(told);
    CHECK(Waiting::over);
  }
}

TEST_CASE("2.8: a source that blocks is out of its call before it drains, and no interrupt is lost on the way") {
  const int64_t rounds = part_of(200);
  for (int round = 0; round < rounds; ++round) {
    Setup setup = threaded_setup();
    setup.options.ticks_max = 3;
    const Ran ran = run(source_to_sink("s.stuck", {{"count", "3"}}, "ticks_end"), setup);
    REQUIRE(ran.ok);
    CHECK_FALSE(Stuck::drained_inside);
    CHECK(values(ran.seen("ticks_end")) == std::vector<int64_t>{0, 1, 2});
  }
  for (int round = 0; round < rounds; ++round) {
    Compiled compiled(source_to_sink("s.stuck", {{"count", "3"}}, "stopped"), threaded_setup());
    compiled.live().start();
    while (round % 2 == 0 && !Stuck::waits) std::this_thread::yield();
    compiled.live().stop();
    REQUIRE(compiled.live().wait().ok);
    CHECK_FALSE(Stuck::drained_inside);
  }
}

TEST_CASE("2.7: changes of one request reach a source and a handler on the same tick") {
  for (const std::string rate : {"0", "30"}) {
    Pipeline p;
    if (rate != "0") p.clock(graph::ClockMode::realtime, 30);
    p.add("source", "s.adjustable", {{"count", "12"}, {"rate", rate}});
    p.add("relay", "t.relay");
    p.add("sink", "t.sink", {{"log", "same_tick"}});
    p.connect("source", "relay");
    p.connect("relay", "sink");
    Setup setup = virtual_setup();
    if (rate == "0") setup.options.script = {{5, {"source", "add", "1000"}}, {5, {"relay", "add", "100000"}}};
    // A value that is due at tick 5 of a rated source was asked for at tick 4: it is read ahead.
    if (rate != "0") setup.options.script = {{4, {"source", "add", "1000"}}, {5, {"relay", "add", "100000"}}};
    Compiled compiled(p, setup);
    REQUIRE(compiled.run().ok);
    const std::vector<int64_t> seen = values(compiled.seen("same_tick"));
    REQUIRE(seen.size() == 12);
    for (int64_t i = 0; i < 12; ++i) CHECK(seen[static_cast<size_t>(i)] == i + (i < 5 ? 0 : 101000));
    CHECK(compiled.live().changes().size() == 2);
  }
}

TEST_CASE(
    "2.7: what is changed before a source has its value counts for that value, and a request for both as a whole") {
  for (const bool at_beats : {false, true}) {
    Pipeline p;
    if (at_beats) p.clock(graph::ClockMode::realtime, 30);
    p.add("source", "s.adjustable", {{"count", "12"}});
    p.add("relay", "t.relay");
    p.add("sink", "t.sink", {{"log", "meanwhile"}});
    p.connect("source", "relay");
    p.connect("relay", "sink");
    Compiled compiled(p, virtual_setup());
    Adjustable::meanwhile = [&](int64_t value) {
      if (value == 3) compiled.live().set({{"relay", "add", "100"}});
      if (value == 6) compiled.live().set({{"relay", "add", "200"}, {"source", "add", "1000"}});
      if (value == 6) compiled.live().set({{"relay", "add", "300"}});
    };
    REQUIRE(compiled.run().ok);
    Adjustable::meanwhile = nullptr;
    const std::vector<int64_t> seen = values(compiled.seen("meanwhile"));
    REQUIRE(seen.size() == 12);
    for (int64_t i = 0; i < 12; ++i) CHECK(seen[static_cast<size_t>(i)] == i + (i < 3 ? 0 : i < 7 ? 100 : 1300));
    const std::vector<exec::AppliedChange> record = compiled.live().changes();
    REQUIRE(record.size() == 4);
    CHECK(record[0].tick == 3);
    for (size_t c = 1; c < record.size(); ++c) CHECK(record[c].tick == 7);
  }
}

TEST_CASE("2.7: the tick of a change is one of its handler's own clock, whatever other clocks have done") {
  Pipeline p;
  graph::Clock a, b;
  a.name = "a";
  b.name = "b";
  a.mode = b.mode = graph::ClockMode::free;
  p.graph.clocks = {a, b};
  p.add("short", "s.unstamped", {{"count", "5"}}).clock = "a";
  p.add("long", "s.unstamped", {{"count", "50"}}).clock = "b";
  p.add("short_relay", "t.relay");
  p.add("long_relay", "t.relay");
  p.add("short_sink", "t.sink", {{"log", "clock_a"}});
  p.add("long_sink", "t.sink", {{"log", "clock_b"}});
  p.connect("short", "short_relay");
  p.connect("short_relay", "short_sink");
  p.connect("long", "long_relay");
  p.connect("long_relay", "long_sink");
  Setup setup = virtual_setup();
  // The first clock never comes to its change; the second is not to wait for it.
  setup.options.script = {{40, {"short_relay", "add", "1"}}, {30, {"long_relay", "add", "1000"}}};
  Compiled compiled(p, setup);
  REQUIRE(compiled.run().ok);
  CHECK(values(compiled.seen("clock_a")) == std::vector<int64_t>{0, 1, 2, 3, 4});
  const std::vector<int64_t> seen = values(compiled.seen("clock_b"));
  REQUIRE(seen.size() == 50);
  for (int64_t i = 0; i < 50; ++i) CHECK(seen[static_cast<size_t>(i)] == i + (i < 30 ? 0 : 1000));
  REQUIRE(compiled.live().changes().size() == 1);
  CHECK(compiled.live().changes()[0].tick == 30);
}
