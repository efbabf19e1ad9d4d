// Calls that do not return: who is told of them, what is interrupted, and what a run does without them (semantics.md
// 8.7, 4.9). Handlers here wait until the test lets them go.
#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <condition_variable>
#include <mutex>
#include <optional>

#include "device/device.h"
#include "exec/run.h"
#include "harness.h"
#include "plugin/call_watch.h"
#include "tests/ending.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// A place where handlers wait, and the lines that a run said.
struct Place {
  std::mutex mutex;
  std::condition_variable changed;
  bool open = false;
  std::string said;
  int entered = 0, interrupts = 0;
  std::optional<uint64_t> found; // the tick that process had in hand, as it is after the wait

  void wait_here() {
    std::unique_lock lock(mutex);
    ++entered;
    changed.notify_all();
    changed.wait(lock, [&] { return open; });
  }
  void let_go() {
    const std::lock_guard lock(mutex);
    open = true;
    changed.notify_all();
  }
  void await_entered() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return entered > 0; });
  }
  void find(uint64_t tick) {
    const std::lock_guard lock(mutex);
    found = tick;
    changed.notify_all();
  }
  uint64_t await_found() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return found.has_value(); });
    return *found;
  }
  // Lets handlers go once these words were said.
  std::function<void(const std::string&)> until(const std::string& words) {
    return [this, words](const std::string& line) {
      const std::lock_guard lock(mutex);
      said += line + "\n";
      if (line.find(words) == std::string::npos) return;
      open = true;
      changed.notify_all();
    };
  }
};
std::unique_ptr<Place> meeting_place;

// Waits in the function `in`, at tick 2 where that is process.
struct WaitsInCall final : Handler {
  Place& place = *meeting_place;
  Input<Tensor> in_port{*this, "in"};
  Output<Tensor> out{*this, "out", like(in_port)};
  Param<std::string> in{*this, "wait_in", "process", "the function"};
  Param<bool> obeys{*this, "obeys", false, "leaves at an interrupt"};
  Param<int> deaf{*this, "deaf", 0, "interrupts that it does not hear"};

  void here(const char* function) {
    if (*in == function) place.wait_here();
  }
  void probe(Facts&) override { here("probe"); }
  void configure(const Formats&) override { here("configure"); }
  void start() override { here("start"); }
  void drain() override { here("drain"); }
  void stop() override { here("stop"); }
  void process(Tick& tick, Cpu&) {
    if (tick.index() == 2) {
      here("process");
      place.find(tick.index());
    }
    const int64_t shape[] = {1};
    out.allocate(tick, dtype_of<int64_t>(), shape).elements<int64_t>()[0] = 1;
  }
  void interrupt() override {
    bool leaves = false;
    {
      const std::lock_guard lock(place.mutex);
      leaves = ++place.interrupts > *deaf && *obeys;
    }
    if (leaves) place.let_go();
  }
};

const mr_plugin& calls_plugin() {
  static const mr_handler_type types[] = {detail::Type<WaitsInCall>::table("calls.waiting", "", "")};
  static const mr_handler_type* const pointers[] = {&types[0]};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "calls", "1", pointers, 1, 0};
  return plugin;
}

Setup calls_setup() {
  meeting_place = std::make_unique<Place>();
  Setup setup;
  setup.workers = 2;
  setup.more = &calls_plugin();
  return setup;
}

Pipeline waiting_in(const std::string& function, const std::map<std::string, std::string>& params = {}) {
  Pipeline p;
  p.add("source", "t.count", {{"count", "5"}});
  std::map<std::string, std::string> all = params;
  all["wait_in"] = function;
  p.add("waits", "calls.waiting", all);
  p.connect("source", "waits");
  return p;
}

std::string message_of(const Result& result, const std::string& handler) {
  for (const HandlerReport& one : result.report.handlers)
    if (one.name == handler && !one.messages.empty()) return one.messages[0].sentence;
  return "";
}

} // namespace

TEST_CASE("8.7: every function that belongs to no tick is named once it takes too long, also in the report") {
  for (const char* function : {"probe", "configure", "start", "drain", "stop"}) {
    CAPTURE(function);
    Setup setup = calls_setup();
    const std::string words = std::string("is in ") + function + " for longer than 0.0 s";
    plugin::CallWatch watch({.patience_ns = 20 * kMs, .on_message = meeting_place->until(words)});
    setup.watch = &watch;
    const Ran result = run(waiting_in(function), setup); // it goes on because it was named
    CHECK(result.ok);
    CHECK(meeting_place->said == "warning MR0607: waits (calls.waiting) " + words + "\n");
    CHECK(meeting_place->interrupts == 0); // being named is not being ended
    CHECK(message_of(result, "waits") == words);
  }
}

TEST_CASE("8.7: a call's own patience counts before the default") {
  Setup setup = calls_setup();
  plugin::CallWatch watch({.patience_ns = 3'600'000 * kMs, .on_message = meeting_place->until("MR0607")});
  setup.watch = &watch;
  Pipeline p = waiting_in("start");
  p.graph.handlers[1].patience_ns = 20 * kMs;
  CHECK(run(p, setup).ok);
  CHECK(meeting_place->said.find("is in start for longer than 0.0 s") != std::string::npos);
}

TEST_CASE("8.7: what opens is interrupted once the run is to end, again where an interrupt was lost") {
  for (const char* function : {"probe", "configure", "start"}) {
    CAPTURE(function);
    Setup setup = calls_setup();
    plugin::CallWatch watch({});
    setup.watch = &watch;
    std::thread first_signal([&] {
      meeting_place->await_entered();
      watch.stop();
    });
    CHECK(run(waiting_in(function, {{"obeys", "true"}, {"deaf", "2"}}), setup).ok);
    first_signal.join();
    CHECK(meeting_place->interrupts >= 3);
  }
}

TEST_CASE("8.7: drain and stop are interrupted when they are past their time, and not before") {
  for (const char* function : {"drain", "stop"}) {
    CAPTURE(function);
    Setup setup = calls_setup();
    plugin::CallWatch watch({.patience_ns = 200 * kMs, .on_message = {}});
    setup.watch = &watch;
    std::atomic<int> before{-1};
    std::thread first_signal([&] {
      meeting_place->await_entered();
      watch.stop();
      const std::lock_guard lock(meeting_place->mutex);
      before = meeting_place->interrupts;
    });
    CHECK(run(waiting_in(function, {{"obeys", "true"}}), setup).ok);
    first_signal.join();
    CHECK(before == 0);
    CHECK(meeting_place->interrupts >= 1);
  }
}

TEST_CASE("8.7: a run that is to end interrupts what is called once nothing has moved for its time") {
  Setup setup = calls_setup();
  setup.options.standstill_ns = 50 * kMs; // its budget is 10 s
  Compiled compiled(waiting_in("process", {{"obeys", "true"}}), setup);
  compiled.live().start();
  meeting_place->await_entered();
  compiled.live().stop();
  CHECK(compiled.live().wait().ok);
  CHECK(meeting_place->interrupts >= 1);
}

TEST_CASE("2.6: a call that does not come back is the host program's to judge: the library prints and ends nothing") {
  Setup setup = calls_setup();
  Error told{};
  setup.options.budget_ns = 10 * kMs;
  setup.options.grace_ns = 10 * kMs;
  setup.options.on_message = meeting_place->until("never said");
  setup.options.on_hang = [&](const Error& error) {
    told = error;
    meeting_place->let_go(); // or the run would wait for ever
  };
  const Ran result = run(waiting_in("process"), setup);
  CHECK(result.ok);
  CHECK(told.code == 602);
  CHECK(told.what.find("waits (calls.waiting) did not return from process of tick 2 for ") == 0);
  CHECK(meeting_place->interrupts == 1);
  CHECK(message_of(result, "waits") == "is in process for longer than its budget of 0.0 s");
}

TEST_CASE("8.7: what a run is in can be asked from outside") {
  Setup setup = calls_setup();
  Compiled compiled(waiting_in("process"), setup);
  compiled.live().start();
  meeting_place->await_entered();
  bool found = false;
  for (const exec::CallUnderWay& call : compiled.live().calls_under_way())
    found = found || words_of(call) == "waits (calls.waiting) in process of tick 2";
  CHECK(found);
  meeting_place->let_go();
  CHECK(compiled.live().wait().ok);
}

TEST_CASE("2.8: a body that blocks on a simulated device is among those that are waited for") {
  Setup setup = calls_setup();
  setup.domains = {"cpu", "sim:0"};
  setup.options.idle_report_ns = 20 * kMs;
  setup.options.on_message = meeting_place->until("waits is in process (tick 2)");
  Pipeline p = waiting_in("process");
  p.graph.handlers[1].device = "sim:0";
  CHECK(run(p, setup).ok); // it goes on because it was named
}

// A device that is lost to a body is left behind with its thread, so each of these runs in a process of its own.
TEST_CASE("4.9: a body that never ends loses its device, and the run ends without waiting for it") {
  const Ending ending = end_of([] {
    Setup setup = calls_setup();
    setup.domains = {"cpu", "sim:0"};
    setup.options.device_patience_ns = 100 * kMs;
    Pipeline p = waiting_in("process");
    p.graph.handlers[1].device = "sim:0";
    Compiled& lost = *std::make_unique<Compiled>(p, setup).release(); // never destroyed (run.h, is_stuck)
    const Result result = lost.run();
    const bool named = result.error.what.find("; under way was waits (calls.waiting) (tick 2)") != std::string::npos;
    _exit(!result.ok && result.error.code == 703 && named && lost.live().is_stuck() ? 42 : 1);
  });
  CHECK(ending.code == 42);
}

TEST_CASE("4.9: a body that does not return keeps the tick that it was given, though its device is lost") {
  for (const uint32_t in_flight : {1u, 2u, 4u}) {
    CAPTURE(in_flight);
    const Ending ending = end_of([&] {
      Setup setup = calls_setup();
      setup.domains = {"cpu", "sim:0"};
      Pipeline p;
      p.clock(graph::ClockMode::free, 0, 1, in_flight);
      p.add("source", "t.count", {{"count", "1000"}});
      p.add("waits", "calls.waiting", {{"wait_in", "process"}}).device = "sim:0";
      p.connect("source", "waits");
      Compiled& lost = *std::make_unique<Compiled>(p, setup).release();
      lost.live().start();
      meeting_place->await_entered();
      lost.device("sim:0").declare_lost("told to be lost");
      const bool told = lost.wait().error.code == 703;
      meeting_place->let_go();
      _exit(told && meeting_place->await_found() == 2 ? 42 : 1);
    });
    CHECK(ending.code == 42);
  }
}

TEST_CASE("4.9: what was under way when a device failed is named, and one by one it is the one that failed") {
  for (const bool one_by_one : {false, true}) {
    CAPTURE(one_by_one);
    Setup setup;
    setup.workers = 2;
    setup.domains = {"cpu", "sim:0"};
    setup.faults.fail_run = 8; // the bodies of tick 3 are the seventh and the eighth
    setup.options.sync_devices = one_by_one;
    Pipeline p = line({"t.relay", "t.relay"}, "faults", 20);
    for (const size_t h : {1, 2}) p.graph.handlers[h].device = "sim:0";
    const Ran result = run(p, setup);
    CHECK_FALSE(result.ok);
    CHECK(result.error.code == 703);
    CHECK(result.error.what.find("injected fault") != std::string::npos);
    CHECK(result.error.what.find("; under way was h") != std::string::npos);
  }
}

TEST_CASE("4.9: devices that are synchronised give the same values, also where regions would be captured") {
  std::vector<std::vector<Seen>> logs;
  for (const bool one_by_one : {false, true}) {
    Setup setup;
    setup.workers = 2;
    setup.domains = {"cpu", "sim:0"};
    setup.options.sync_devices = one_by_one;
    Pipeline p = line({"t.capturable", "t.capturable", "t.relay"}, "synchronised", 50);
    for (const size_t h : {1, 2, 3}) p.graph.handlers[h].device = "sim:0";
    const Ran result = run(p, setup);
    REQUIRE(result.ok);
    CHECK(result.report.regions.empty() == one_by_one);
    logs.push_back(result.seen("synchronised"));
  }
  CHECK(logs[0].size() == 50);
  CHECK(logs[0] == logs[1]);
}
