// Several runs and other actors on one virtual time: their order, their ends, and a run that stands still beside
// others.
#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <string>
#include <vector>

#include "exec/run.h"
#include "exec/virtual_driver.h"
#include "harness.h"
#include "observe/error_codes.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// A result that a handler of v.owing owes. The oldest of all runs comes first.
struct OwedResult {
  const Output<Tensor>* out;
  Tick tick;
};
std::vector<OwedResult> results_owed;

void answer_oldest() {
  write_one(*results_owed.front().out, results_owed.front().tick, 7);
  results_owed.front().tick.publish();
  results_owed.erase(results_owed.begin());
}

struct OwesResults final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  OwesResults() {
    max_pending(1);
    drains_freely();
    asynchronous();
  }
  void process(Tick& tick, Cpu&) { results_owed.push_back({&out, tick.defer()}); }
};

const mr_plugin& driver_plugin() {
  static const mr_handler_type type = detail::Type<OwesResults>::table("v.owing", "Answers when it is told to", "");
  static const mr_handler_type* const pointers[] = {&type};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "driver", "1", pointers, 1, 0};
  return plugin;
}

// Several runs on one time. Each call of a sink is written down as "NAME TICK @ MILLISECONDS".
struct Stage {
  device::VirtualTime time;
  std::vector<std::string> happened;

  void note(const std::string& what) { happened.push_back(what + " @ " + std::to_string(time.now_ns() / kMs)); }
  Setup setup(const std::string& name, int64_t cost_ns = 0) {
    Setup setup;
    setup.more = &driver_plugin();
    setup.options.virtual_time = &time;
    setup.options.cost_ns = [this, name, cost_ns](const std::string& handler, uint64_t index) {
      if (handler == "sink") note(name + " " + std::to_string(index));
      return handler == "h1" ? cost_ns : 0;
    };
    return setup;
  }
};

Pipeline at_rate(int64_t rate, int64_t count) {
  Pipeline p = line({"t.relay"}, "seen", count);
  p.clock(graph::ClockMode::realtime, rate);
  return p;
}

std::vector<std::string> interleaved(bool actor_first) {
  Stage stage;
  Compiled a(at_rate(20, 3), stage.setup("a")), b(at_rate(25, 4), stage.setup("b"));
  a.live().start();
  b.live().start();
  exec::VirtualDriver driver(stage.time);
  int64_t next_ns = 0; // the actor does something every 60 ms
  const auto actor = [&] {
    if (stage.time.now_ns() < next_ns) return false;
    stage.note("actor");
    next_ns += 60 * kMs;
    stage.time.schedule(next_ns, [] {});
    return true;
  };
  if (actor_first) driver.add(actor);
  driver.add(b.live());
  driver.add(a.live());
  if (!actor_first) driver.add(actor);
  driver.drive();
  CHECK(stage.time.now_ns() == 160 * kMs); // the end of b; the actor would go on for ever
  const Ran of_a = a.wait(), of_b = b.wait();
  CHECK(stage.time.now_ns() == 160 * kMs);
  CHECK(of_a.ok);
  CHECK(of_b.ok);
  CHECK(of_a.report.duration_s == doctest::Approx(0.15));
  CHECK(of_b.report.duration_s == doctest::Approx(0.16));
  return stage.happened;
}

} // namespace

TEST_CASE("1.2: two runs and an actor on one virtual time move in the order in which they were added") {
  using Happened = std::vector<std::string>;
  const Happened actor_last = {"b 0 @ 0",    "a 0 @ 0",  "actor @ 0", "b 1 @ 40",  "a 1 @ 50",
                               "actor @ 60", "b 2 @ 80", "a 2 @ 100", "b 3 @ 120", "actor @ 120"};
  CHECK(interleaved(false) == actor_last);
  const Happened actor_first = {"actor @ 0",  "b 0 @ 0",  "a 0 @ 0",   "b 1 @ 40",    "a 1 @ 50",
                                "actor @ 60", "b 2 @ 80", "a 2 @ 100", "actor @ 120", "b 3 @ 120"};
  CHECK(interleaved(true) == actor_first);
  CHECK(interleaved(true) == actor_first);
}

TEST_CASE("1.2: what an actor moves at an instant lets runs that were added before it go on at that instant") {
  Stage stage;
  Pipeline p = line({"v.owing"}, "seen", 3);
  p.clock(graph::ClockMode::realtime, 10);
  Compiled owing(p, stage.setup("owing"));
  owing.live().start();
  exec::VirtualDriver driver(stage.time);
  driver.add(owing.live());
  int64_t answers_at_ns = 30 * kMs; // and every 100 ms: it answers what is owed
  driver.add([&] {
    if (results_owed.empty() || stage.time.now_ns() < answers_at_ns) return false;
    answer_oldest();
    answers_at_ns += 100 * kMs;
    stage.time.schedule(answers_at_ns, [] {});
    return true;
  });
  stage.time.schedule(answers_at_ns, [] {});
  driver.drive();
  const Ran result = owing.wait();
  REQUIRE(result.ok);
  CHECK(stage.happened == std::vector<std::string>{"owing 0 @ 30", "owing 1 @ 130", "owing 2 @ 230"});
  CHECK(values(result.seen("seen")) == std::vector<int64_t>{7, 7, 7});
}

TEST_CASE("1.2: a run that stands still fails once nothing can move, and says what waits; the others end as they do") {
  Stage stage;
  Setup of_owing = stage.setup("still");
  std::vector<exec::FailureRecord> told;
  of_owing.options.on_failure = [&](const exec::FailureRecord& failure) { told.push_back(failure); };
  Compiled still(line({"v.owing"}, "seen", 3), of_owing);
  Compiled other(at_rate(10, 5), stage.setup("other", 5 * kMs));
  still.live().start();
  other.live().start();
  exec::VirtualDriver driver(stage.time);
  driver.add(still.live());
  driver.add(other.live());
  driver.drive();
  const Ran of_still = still.wait(), of_other = other.wait();
  results_owed.clear();
  CHECK(of_other.ok);
  CHECK(of_other.seen("seen").size() == 5);
  CHECK(of_other.report.duration_s == doctest::Approx(0.5));
  CHECK_FALSE(of_still.ok);
  CHECK(of_still.error.code == 603);
  CHECK(of_still.error.what.starts_with("nothing can move any more; "));
  CHECK(of_still.error.what.find("h1 has not published what it owes (tick 0)") != std::string::npos);
  CHECK(of_still.seen_if_any("seen").empty());
  REQUIRE(told.size() == 1);
  CHECK(told[0].index == exec::kWholeRun);
}

TEST_CASE("1.2: runs that stand still together fail each by itself, though they tell each other") {
  Stage stage;
  std::vector<exec::Run*> runs;
  size_t told = 0;
  const auto tells = [&](const std::string& name, size_t other) {
    Setup setup = stage.setup(name);
    setup.options.on_failure = [&, other](const exec::FailureRecord&) {
      ++told;
      runs[other]->fail(Error{code::handler_failed, "the other run failed", {}, {}, "", ""}, 0, exec::kWholeRun);
    };
    return setup;
  };
  Compiled a(line({"v.owing"}, "seen", 3), tells("a", 1)), b(line({"v.owing"}, "seen", 3), tells("b", 0));
  runs = {&a.live(), &b.live()};
  exec::VirtualDriver driver(stage.time);
  for (exec::Run* each : runs) {
    each->start();
    driver.add(*each);
  }
  driver.drive();
  CHECK(a.wait().error.code == 603);
  CHECK(b.wait().error.code == 603);
  results_owed.clear();
  CHECK(told == 2);
}

TEST_CASE("1.2: a run that is interrupted or stopped at an instant ends, and the others go on") {
  Stage stage;
  Compiled cut(at_rate(10, 0), stage.setup("cut")), stopped(at_rate(10, 0), stage.setup("stopped"));
  Compiled other(at_rate(10, 5), stage.setup("other"));
  exec::VirtualDriver driver(stage.time);
  for (Compiled* run : {&cut, &stopped, &other}) {
    run->live().start();
    driver.add(run->live());
  }
  stage.time.schedule(150 * kMs, [&] { cut.live().interrupt(); });
  stage.time.schedule(250 * kMs, [&] { stopped.live().stop(); });
  driver.drive();
  CHECK(cut.wait().report.duration_s == doctest::Approx(0.15));
  CHECK(stopped.wait().report.duration_s == doctest::Approx(0.25));
  CHECK(other.wait().report.duration_s == doctest::Approx(0.5));
  CHECK(cut.seen("seen").size() == 2);
  CHECK(stopped.seen("seen").size() == 3);
  CHECK(other.seen("seen").size() == 5);
}

TEST_CASE("5.2: runs on one virtual time are cut once more each for itself") {
  Stage stage;
  const auto guessed = [&](const std::string& name) {
    Setup setup = stage.setup(name, 30 * kMs);
    setup.workers = 2;
    return setup;
  };
  Compiled a(line({"t.relay", "t.relay"}, "seen", 40), guessed("a"));
  Compiled b(line({"t.relay", "t.relay"}, "seen", 40), guessed("b"));
  exec::VirtualDriver driver(stage.time);
  for (Compiled* run : {&a, &b}) {
    run->live().start();
    driver.add(run->live());
  }
  driver.drive();
  for (Compiled* run : {&a, &b}) {
    const Ran result = run->wait();
    CHECK(result.ok);
    CHECK(result.report.cut_again);
    CHECK(result.seen("seen").size() == 40);
  }
}
