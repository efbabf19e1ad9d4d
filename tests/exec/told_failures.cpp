// Failures that a run tells of, and those that it is told of by others (semantics.md 2.6).
#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "exec/run.h"
#include "exec/virtual_driver.h"
#include "harness.h"
#include "observe/error_codes.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// A gate at which f.gate waits.
struct FailureGate {
  std::mutex mutex;
  std::condition_variable changed;
  bool open = false;
  void let_go() {
    const std::lock_guard lock(mutex);
    open = true;
    changed.notify_all();
  }
};
std::unique_ptr<FailureGate> failure_gate;

// Passes numbers on; the third call waits until the test lets it go.
struct WaitsAtGate final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  void process(Tick& tick, Cpu&) {
    if (tick.index() == 2) {
      std::unique_lock lock(failure_gate->mutex);
      failure_gate->changed.wait(lock, [] { return failure_gate->open; });
    }
    write_one(out, tick, read_one(in(tick)));
  }
};

// Passes numbers on; the third call fails with a code of its own.
struct FailsWithCode final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  void process(Tick& tick, Cpu&) {
    if (tick.index() == 2) throw CodedError(MR_FAULT_MODEL_CALL, "no such number");
    write_one(out, tick, read_one(in(tick)));
  }
};

// The same in a thread of the handler's own, which has the functions of the host from `create`.
struct FailsElsewhere final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  void process(Tick& tick, Cpu&) {
    if (tick.index() == 2) std::thread([] { host->fail_as(context, MR_FAULT_MODEL_CALL, "no such number"); }).join();
    write_one(out, tick, read_one(in(tick)));
  }
  static mr_handler_type table() {
    mr_handler_type own = type;
    own.create = [](const mr_host* given, void* instance, void** self, const mr_declaration** declaration) {
      host = given;
      context = instance;
      return type.create(given, instance, self, declaration);
    };
    return own;
  }
  static const mr_handler_type type;
  static inline const mr_host* host = nullptr;
  static inline void* context = nullptr;
};
const mr_handler_type FailsElsewhere::type = detail::Type<FailsElsewhere>::table("f.elsewhere", "Fails elsewhere", "");

const mr_plugin& told_plugin() {
  static const mr_handler_type gate = detail::Type<WaitsAtGate>::table("f.gate", "Waits in its third call", "");
  static const mr_handler_type coded = detail::Type<FailsWithCode>::table("f.coded", "Fails in its third call", "");
  static const mr_handler_type elsewhere = FailsElsewhere::table();
  static const mr_handler_type* const pointers[] = {&gate, &coded, &elsewhere};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "told", "1", pointers, 3, 0};
  return plugin;
}

// The failures that a run told: "MR0601 at tick 7 of clock 0". Any thread.
class Told {
 public:
  void listen(exec::RunOptions& options) {
    options.on_failure = [this](const exec::FailureRecord& failure) {
      add(format_code(failure.error.code) + " at tick " +
          (failure.index == UINT64_MAX ? "none" : std::to_string(failure.index)) + " of clock " +
          std::to_string(failure.clock));
    };
  }
  void add(const std::string& what) {
    const std::lock_guard lock(mutex_);
    all_.push_back(what);
  }
  std::vector<std::string> all() const {
    const std::lock_guard lock(mutex_);
    return all_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> all_;
};

using Lines = std::vector<std::string>;

Setup failing_setup(uint32_t workers, bool virtual_time) {
  Setup setup;
  setup.workers = workers;
  setup.virtual_time = virtual_time;
  setup.more = &told_plugin();
  return setup;
}

Error far_failure() { return {code::handler_failed, "the other run failed", {}, {}, "", ""}; }

// Ticks 0 to `last`, each with its number.
void check_through(const Ran& ran, int64_t last) {
  const std::vector<int64_t> seen = values(ran.seen("seen"));
  REQUIRE(static_cast<int64_t>(seen.size()) == last + 1);
  for (int64_t n = 0; n <= last; ++n) CHECK(seen[static_cast<size_t>(n)] == n);
}

// Ticks wait for h1: the source admits eight of them ahead.
Pipeline ahead(const std::string& type, uint32_t in_flight = 8) {
  Pipeline p = line({type}, "seen", 0);
  p.clock(graph::ClockMode::free, 0, 1, in_flight);
  return p;
}

} // namespace

TEST_CASE("2.6: a failure is told once, with its clock and its tick") {
  for (const uint32_t workers : {1u, 3u}) {
    for (const bool virtual_time : {true, false}) {
      CAPTURE(workers);
      CAPTURE(virtual_time);
      Pipeline p;
      for (const char* name : {"fine", "bad"}) {
        graph::Clock clock;
        clock.name = name;
        clock.mode = graph::ClockMode::free;
        p.graph.clocks.push_back(clock);
      }
      p.add("a", "t.count", {{"count", "50"}}).clock = "fine";
      p.add("end", "t.sink", {{"log", "fine"}});
      p.connect("a", "end");
      p.add("b", "t.count", {{"count", "50"}}).clock = "bad";
      p.add("fails", "t.relay", {{"fail_at", "7"}});
      p.add("sink", "t.sink", {{"log", "seen"}});
      p.connect("b", "fails");
      p.connect("fails", "sink");
      Setup setup = failing_setup(workers, virtual_time);
      Told told;
      told.listen(setup.options);
      const Ran result = run(p, setup);
      CHECK_FALSE(result.ok);
      CHECK(told.all() == Lines{"MR0601 at tick 7 of clock 1"});
    }
  }
}

TEST_CASE("2.6: a failure has the code that its handler gave") {
  Setup setup = failing_setup(1, true);
  Told told;
  told.listen(setup.options);
  const Ran result = run(line({"f.coded"}, "seen", 20), setup);
  CHECK(result.error.what == "h1 (f.coded) failed at tick 2: no such number");
  CHECK(told.all() == Lines{"MR0908 at tick 2 of clock 0"});
}

TEST_CASE("2.6: a failure in a thread of the handler's own has the code that it gave") {
  Setup setup = failing_setup(1, true);
  Told told;
  told.listen(setup.options);
  const Ran result = run(line({"f.elsewhere"}, "seen", 20), setup);
  CHECK(result.error.what.starts_with("h1 (f.elsewhere) failed at tick "));
  CHECK(result.error.code == 908);
  REQUIRE(told.all().size() == 1);
  CHECK(told.all()[0].starts_with("MR0908 at tick "));
}

TEST_CASE("2.6: a failure that on_error passes over is not told") {
  Pipeline p = line({"t.relay"}, "seen", 20);
  p.graph.handlers[1].params.push_back({"fail_at", "7", {}, {}});
  p.graph.handlers[1].on_error = graph::OnError::skip;
  Setup setup = failing_setup(1, true);
  Told told;
  told.listen(setup.options);
  CHECK(run(p, setup).ok);
  CHECK(told.all().empty());
}

TEST_CASE("2.6: a failure at an earlier tick is told as well") {
  Pipeline p("t.count name=source ! t.relay name=quick fail_at=3 ! t.sink name=one log=one");
  p.add("slow", "t.relay", {{"fail_at", "1"}});
  p.add("two", "t.sink", {{"log", "two"}});
  p.connect("source", "slow");
  p.connect("slow", "two");
  p.clock(graph::ClockMode::free, 0, 1, 8);
  Setup setup = failing_setup(3, true);
  setup.costs_ns = {{"source", 1}, {"quick", kMs}, {"slow", 10 * kMs}};
  Told told;
  told.listen(setup.options);
  const Ran result = run(p, setup);
  CHECK(result.error.what == "slow (t.relay) failed at tick 1: told to fail");
  CHECK(told.all() == Lines{"MR0601 at tick 3 of clock 0", "MR0601 at tick 1 of clock 0"});
}

TEST_CASE("2.6: a run that fails from outside completes the ticks before and voids those after, and tells nobody") {
  Setup setup = failing_setup(2, true);
  setup.costs_ns = {{"source", 1}, {"h1", 10 * kMs}, {"sink", 1}};
  Told told;
  told.listen(setup.options);
  Compiled compiled(ahead("t.relay"), setup);
  compiled.time().schedule(25 * kMs, [&] {
    REQUIRE(compiled.live().ticks() > 6);
    compiled.live().fail(far_failure(), 0, 5);
  });
  const Ran result = compiled.run();
  CHECK_FALSE(result.ok);
  CHECK(result.error.what == "the other run failed");
  check_through(result, 5);
  CHECK(result.report.ticks_run > 6);
  CHECK(result.report.ticks_run < 12); // no tick is admitted afterwards
  CHECK(told.all().empty());
}

TEST_CASE("2.6: with threads a run that fails from outside does the same") {
  for (const uint32_t workers : {2u, 3u}) {
    failure_gate = std::make_unique<FailureGate>();
    Setup setup = failing_setup(workers, false);
    setup.costs_ns = {{"source", 1000}, {"h1", 10 * kMs}, {"sink", 1000}};
    Told told;
    told.listen(setup.options);
    Compiled compiled(ahead("f.gate"), setup);
    compiled.live().start();
    while (compiled.live().ticks() < 8) std::this_thread::yield();
    compiled.live().fail(far_failure(), 0, 5);
    failure_gate->let_go();
    const Ran result = compiled.wait();
    CHECK_FALSE(result.ok);
    check_through(result, 5);
    CHECK(told.all().empty());
  }
}

TEST_CASE("2.6: a run that fails before its start has no tick") {
  Setup setup = failing_setup(1, true);
  setup.options.begin_ns = 100 * kMs;
  Compiled compiled(ahead("t.relay"), setup);
  compiled.time().schedule(50 * kMs, [&] { compiled.live().fail(far_failure(), 0, 0); });
  const Ran result = compiled.run();
  CHECK_FALSE(result.ok);
  CHECK(result.report.ticks_run == 0);
  CHECK(compiled.time().now_ns() == 50 * kMs);
}

TEST_CASE("2.6: runs that tell each other of their failures end, and each says the first one") {
  device::VirtualTime time;
  const auto setup = [&](Told& told, exec::Run** other) {
    Setup made = failing_setup(2, false);
    made.options.virtual_time = &time;
    made.costs_ns = {{"source", 1}, {"h1", 10 * kMs}, {"sink", 1}};
    made.options.cost_ns = [](const std::string& handler, uint64_t) { return handler == "h1" ? 10 * kMs : 1; };
    made.options.on_failure = [&told, other](const exec::FailureRecord& failure) {
      told.add(std::to_string(failure.index));
      (*other)->fail(failure.error, failure.clock, failure.index);
    };
    return made;
  };
  Told told_a, told_b;
  exec::Run *run_a = nullptr, *run_b = nullptr;
  Pipeline failing = ahead("t.relay");
  failing.graph.handlers[1].params.push_back({"fail_at", "3", {}, {}});
  Compiled a(failing, setup(told_a, &run_b)), b(ahead("t.relay"), setup(told_b, &run_a));
  run_a = &a.live();
  run_b = &b.live();
  exec::VirtualDriver driver(time);
  for (Compiled* each : {&b, &a}) {
    each->live().start();
    driver.add(each->live());
  }
  driver.drive();
  const Ran of_a = a.wait(), of_b = b.wait();
  CHECK(told_a.all() == Lines{"3"});
  CHECK(told_b.all().empty());
  CHECK(of_a.error.what == "h1 (t.relay) failed at tick 3: told to fail");
  CHECK(of_b.error.what == of_a.error.what);
  check_through(of_b, 3);
}

TEST_CASE("4.9: a lost device is told as a failure that belongs to no tick") {
  Pipeline p = line({"t.relay"}, "seen", 100);
  p.graph.handlers[1].device = "sim:0";
  Setup setup = failing_setup(1, false);
  setup.domains = {"cpu", "sim:0"};
  setup.faults.fail_run = 5;
  Told told;
  told.listen(setup.options);
  CHECK(run(p, setup).error.code == 703);
  const Lines all = told.all();
  CHECK(std::count(all.begin(), all.end(), "MR0703 at tick none of clock 0") == 1);
}

TEST_CASE("2.6: a call that does not come back is told as a failure before it is the host program's to judge") {
  failure_gate = std::make_unique<FailureGate>();
  Setup setup = failing_setup(2, false);
  Told told;
  told.listen(setup.options);
  setup.options.budget_ns = 10 * kMs;
  setup.options.grace_ns = 10 * kMs;
  setup.options.on_hang = [&](const Error&) {
    told.add("hangs");
    failure_gate->let_go();
  };
  Compiled compiled(line({"f.gate"}, "seen", 5), setup);
  CHECK(compiled.run().ok);
  CHECK(told.all() == Lines{"MR0602 at tick 2 of clock 0", "hangs"});
}
