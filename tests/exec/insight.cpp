// Reports and counters of a run while it goes on: asked by other threads, latencies to each sink as predicted and
// measured, standstills.
#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <thread>

#include "cli/count_allocations.h"
#include "exec/counters.h"
#include "exec/run.h"
#include "harness.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// A sink that answers for each tick when it is given the next one.
struct LateSink final : Handler {
  Input<Tensor> in{*this, "in"};
  std::vector<Tick> owed;
  LateSink() { max_pending(1); }
  void answer() {
    if (owed.empty()) return;
    owed.front().publish();
    owed.erase(owed.begin());
  }
  void process(Tick& tick, Cpu&) {
    answer();
    owed.push_back(tick.defer());
  }
  void drain() override { answer(); }
};

std::mutex told_mutex;
std::condition_variable told_changed;
bool standstill_told = false;

// Owes the ticks 1 and 2 until the test was told that nothing moves.
struct OwesUntilTold final : Handler {
  Input<Tensor> in{*this, "in"};
  std::vector<Tick> owed;
  std::thread answerer;
  OwesUntilTold() {
    max_pending(1);
    asynchronous();
    drains_freely(); // a tick without a firing may come between its two answers
  }
  void process(Tick& tick, Cpu&) {
    if (tick.index() != 1 && tick.index() != 2) return;
    owed.push_back(tick.defer());
    if (tick.index() == 1) return;
    answerer = std::thread([this] {
      std::unique_lock lock(told_mutex);
      told_changed.wait(lock, [] { return standstill_told; });
      for (Tick& late : owed) late.publish();
    });
  }
  void drain() override {
    if (answerer.joinable()) answerer.join();
  }
};

// Its call takes 5 ms, and it says so.
struct SlowSource : Handler {
  Output<Tensor> out{*this, "out"};
  Param<int64_t> count{*this, "count", 10, "values"};
  int64_t given = 0;
  void probe(Facts& facts) override { facts.cost_us(5000); }
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}); }
  void process(Tick& tick, Cpu&) {
    if (given == *count) return tick.end();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const int64_t shape[] = {1};
    out.allocate(tick, dtype_of<int64_t>(), shape).elements<int64_t>()[0] = given++;
  }
};
struct SlowReader final : SlowSource {
  SlowReader() { blocking(); }
};

struct SlowSink final : Handler {
  Input<Tensor> in{*this, "in"};
  void process(Tick&, Cpu&) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }
};

// Fails on every tick but the first, each time with another sentence.
struct Complainer final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  Param<int64_t> times{*this, "times", 0, "sentences; then the same again"};
  void process(Tick& tick, Cpu&) {
    if (tick.index() == 0) return;
    const uint64_t which = std::min(tick.index(), static_cast<uint64_t>(*times));
    throw std::runtime_error("\x1b[2Jthe answer is not " + std::to_string(41 + which) + "\nerror MR0000: forged");
  }
};

std::atomic<bool> is_held{false};

// Does not return from its first call as long as the test holds it.
struct HeldSink final : Handler {
  Input<Tensor> in{*this, "in"};
  void process(Tick&, Cpu&) {
    while (is_held) std::this_thread::yield();
  }
};

const mr_plugin& insight_plugin() {
  static const mr_handler_type types[] = {detail::Type<LateSink>::table("insight.late_sink", "", ""),
                                          detail::Type<OwesUntilTold>::table("insight.stuck", "", ""),
                                          detail::Type<SlowSource>::table("insight.slow_source", "", ""),
                                          detail::Type<SlowReader>::table("insight.slow_reader", "", ""),
                                          detail::Type<SlowSink>::table("insight.slow_sink", "", ""),
                                          detail::Type<Complainer>::table("insight.complainer", "", ""),
                                          detail::Type<HeldSink>::table("insight.held_sink", "", "")};
  static const mr_handler_type* const pointers[] = {&types[0], &types[1], &types[2], &types[3],
                                                    &types[4], &types[5], &types[6]};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "insight", "1", pointers, 7, 0};
  return plugin;
}

Compiled with_a_queue(const std::string& count) {
  Setup setup;
  setup.workers = 3;
  return Compiled(
      Pipeline("t.count name=source count=" + count +
               " ! t.relay name=relay silent_every=3 ! t.sink name=sink log=counted ; t.sink name=other log=other ; "
               "relay. ! other. policy=queue"),
      setup);
}

Setup insight_setup(std::map<std::string, int64_t> costs_ns, std::vector<std::string> domains = {"cpu"}) {
  Setup setup;
  setup.workers = 3;
  setup.virtual_time = true;
  setup.costs_ns = std::move(costs_ns);
  setup.domains = std::move(domains);
  setup.more = &insight_plugin();
  return setup;
}

// One tick is over before the next is due, so that none waits for another.
Pipeline unhurried(int64_t count) {
  Pipeline p;
  p.clock(graph::ClockMode::realtime, 10);
  p.add("source", "t.count", {{"count", std::to_string(count)}});
  return p;
}

const PathReport& path_to(const Report& report, const std::string& sink) {
  for (const PathReport& path : report.paths)
    if (path.sink == sink) return path;
  throw std::invalid_argument("no path to " + sink);
}

// Within a bucket of the histogram.
doctest::Approx about(double us) { return doctest::Approx(us).epsilon(0.04); }

} // namespace

TEST_CASE("a report may be asked for from any thread while the run goes, and its counts only grow") {
  Setup setup;
  setup.workers = 3;
  Pipeline p(
      "t.count name=source count=0 ! t.relay name=relay silent_every=3 ! t.sink name=sink log=asked ; t.sink "
      "name=other log='asked other' ; relay. ! other. policy=queue");
  Compiled compiled(p, setup);
  compiled.live().start();
  Report last;
  int wrong = 0;
  const auto ask = [&] {
    const Report report = compiled.live().report();
    wrong += report.ticks_run < last.ticks_run || report.duration_s < last.duration_s;
    for (size_t h = 0; h < last.handlers.size(); ++h) wrong += report.handlers[h].calls < last.handlers[h].calls;
    for (size_t e = 0; e < last.edges.size(); ++e)
      wrong += report.edges[e].delivered < last.edges[e].delivered || report.edges[e].empty < last.edges[e].empty;
    last = report;
  };
  std::thread asker([&] {
    for (int i = 0; i < 200 || last.ticks_run < 2000; ++i) ask();
    compiled.live().stop();
  });
  const Ran result = compiled.wait();
  asker.join();
  REQUIRE(result.ok);
  ask();
  CHECK(wrong == 0);
  CHECK(last.ticks_run == result.report.ticks_run);
  CHECK(last.duration_s == result.report.duration_s);
  CHECK(last.handlers[0].calls >= last.ticks_run);
  CHECK(last.handlers[2].type == "t.sink");
  CHECK(result.seen("asked").size() == last.handlers[2].calls);
}

TEST_CASE("latency is told for each path, predicted from the costs on it and measured at its sink") {
  Pipeline p = unhurried(300);
  p.add("fast", "t.relay");
  p.add("slow", "t.relay");
  p.add("near", "t.sink", {{"log", "near"}});
  p.add("far", "t.sink", {{"log", "far"}});
  p.connect("source", "fast");
  p.connect("source", "slow");
  p.connect("fast", "near");
  p.connect("slow", "far");
  const Ran result =
      run(p, insight_setup({{"source", 1}, {"fast", kMs}, {"slow", 20 * kMs}, {"near", kMs}, {"far", 2 * kMs}}));
  REQUIRE(result.ok);
  REQUIRE(result.report.paths.size() == 2);
  const PathReport& near = path_to(result.report, "near");
  const PathReport& far = path_to(result.report, "far");
  for (const PathReport* path : {&near, &far}) {
    CHECK(path->sampled == 300); // all of them: they are long enough
    CHECK(path->first_us == about(path->predicted_us));
    CHECK(path->unknown_costs == 0);
    CHECK(path->p50_us == about(path->predicted_us));
    CHECK(path->max_us == about(path->predicted_us));
  }
  // All are one segment, in this order: source, fast, slow, near, far.
  CHECK(near.predicted_us == about(22'000));
  CHECK(far.predicted_us == about(24'000));
  CHECK(result.seen("near").size() + result.seen("far").size() == 600);
}

TEST_CASE("the way to a sink after a queue begins where the tick did, not at the queue") {
  Pipeline p = unhurried(10);
  p.add("relay", "t.relay");
  p.add("sink", "t.sink", {{"log", "queued"}});
  p.connect("source", "relay");
  p.connect("relay", "sink", graph::Policy::queue);
  const Ran result = run(p, insight_setup({{"source", 1}, {"relay", 20 * kMs}, {"sink", 7 * kMs}}));
  REQUIRE(result.ok);
  const PathReport& path = path_to(result.report, "sink");
  CHECK(path.sampled == 10);
  CHECK(path.predicted_us == about(27'000));
  CHECK(path.p99_us == about(27'000));
  CHECK(result.seen("queued").size() == 10);
}

TEST_CASE("a sink that answers later is reached when it has answered") {
  Pipeline p = unhurried(10);
  p.add("sink", "insight.late_sink");
  p.connect("source", "sink");
  const Ran result = run(p, insight_setup({{"source", 1}, {"sink", kMs}}));
  REQUIRE(result.ok);
  CHECK(path_to(result.report, "sink").sampled == 10);
  CHECK(path_to(result.report, "sink").p50_us == about(100'000)); // the next tick's call
}

TEST_CASE("a sink on a device is reached when the device has run it") {
  Pipeline p = unhurried(10);
  p.add("last", "t.capturable").device = "sim:0";
  p.connect("source", "last");
  const Ran result = run(p, insight_setup({{"source", 1}, {"last", 30 * kMs}}, {"cpu", "sim:0"}));
  REQUIRE(result.ok);
  CHECK(path_to(result.report, "last").sampled == 10);
  CHECK(path_to(result.report, "last").max_us == about(30'000));
}

TEST_CASE("a sink that was not called on a tick was not reached by it") {
  Pipeline p = unhurried(10);
  p.add("relay", "t.relay", {{"silent_every", "1"}});
  p.add("needs", "t.relay");
  p.connect("source", "relay");
  p.connect("relay", "needs");
  const Ran result = run(p, insight_setup({{"source", 1}, {"relay", kMs}, {"needs", kMs}}));
  REQUIRE(result.ok);
  CHECK(result.report.handlers[2].calls == 0);
  CHECK(path_to(result.report, "needs").sampled == 0);
}

TEST_CASE("a tick under free begins when its source is asked, as the prediction says") {
  for (const bool waits : {false, true}) {
    CAPTURE(waits);
    Setup setup;
    setup.more = &insight_plugin();
    Pipeline p;
    p.clock(graph::ClockMode::free, 0, 1, 1); // one tick in flight: none waits for another
    p.add("source", waits ? "insight.slow_reader" : "insight.slow_source", {{"count", "20"}});
    p.add("sink", "t.sink", {{"log", "begins"}});
    p.connect("source", "sink");
    const Ran result = run(p, setup);
    REQUIRE(result.ok);
    REQUIRE(path_to(result.report, "sink").sampled == 20);
    // The time of a thread that has read a value before the tick is no part of it.
    const double p50_us = path_to(result.report, "sink").p50_us,
                 predicted_us = path_to(result.report, "sink").predicted_us;
    CHECK((p50_us >= 5000) == !waits);
    CHECK((predicted_us >= 5000) == !waits);
    CHECK(path_to(result.report, "sink").first_us > 0);
  }
}

TEST_CASE("2.8: under realtime a window that stays full is a standstill, though beats go on") {
  standstill_told = false;
  std::string said;
  Setup setup;
  setup.workers = 2;
  setup.more = &insight_plugin();
  setup.options.idle_report_ns = 50 * kMs;
  // stuck answers once both were told, so that what is told second is still so.
  const std::string owed = "stuck has not published what it owes (tick 1)";
  bool told_elsewhere = false;
  const auto hear = [&] {
    standstill_told = told_elsewhere && said.find("waits for room") != std::string::npos;
    told_changed.notify_all();
  };
  setup.options.on_message = [&](const std::string& line) {
    const std::lock_guard lock(told_mutex);
    said += line + "\n";
    hear();
  };
  setup.options.on_waiting = [&](const std::vector<std::string>& lines) {
    const std::lock_guard lock(told_mutex);
    told_elsewhere = told_elsewhere || std::find(lines.begin(), lines.end(), owed) != lines.end();
    hear();
  };
  setup.options.waiting_elsewhere = [] { return std::vector<std::string>{"on gpu: detect is in a call"}; };
  Pipeline p;
  p.clock(graph::ClockMode::realtime, 100);
  p.add("source", "t.count", {{"count", "40"}});
  p.add("stuck", "insight.stuck");
  p.connect("source", "stuck");
  const Ran result = run(p, setup);
  REQUIRE(result.ok);
  CHECK(result.report.ticks_late > 0);
  CHECK(said.find("warning MR0603: nothing has moved for 0.") != std::string::npos);
  CHECK(said.find(owed) != std::string::npos);
  CHECK(said.find("gate of stuck waits for room") != std::string::npos);
  CHECK(said.find("\n  on gpu: detect is in a call\n") != std::string::npos);
  CHECK(told_elsewhere);
}

TEST_CASE("2.8: under realtime to wait for the next beat is no standstill") {
  std::string said;
  Setup setup;
  setup.options.idle_report_ns = 600 * kMs;
  setup.options.on_message = [&](const std::string& line) { said += line + "\n"; };
  Pipeline p;
  p.clock(graph::ClockMode::realtime, 1);
  p.add("source", "t.count", {{"count", "1"}});
  p.add("sink", "t.sink", {{"log", "beats"}});
  p.connect("source", "sink");
  const Ran ran = run(p, setup);
  REQUIRE(ran.ok);
  CHECK(said == "");
}

TEST_CASE("the progress tells what was dropped so far, by cause") {
  std::mutex mutex;
  std::condition_variable changed;
  exec::Progress seen;
  Setup setup;
  setup.workers = 2;
  setup.options.on_progress = [&](const exec::Progress& progress) {
    const std::lock_guard lock(mutex);
    seen = progress;
    changed.notify_all();
  };
  Pipeline p;
  p.clock(graph::ClockMode::realtime, 1000);
  p.add("source", "t.count", {{"count", "0"}, {"rate", "4000"}});
  p.add("sink", "t.sink", {{"log", "progress"}});
  p.connect("source", "sink");
  Compiled compiled(p, setup);
  compiled.live().start();
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return seen.dropped["rate"] > 0; });
  }
  compiled.live().stop();
  const Ran result = compiled.wait();
  REQUIRE(result.ok);
  CHECK(seen.dropped.size() == 1); // each once, as the report counts them
  CHECK(seen.dropped["rate"] <= result.report.edges[0].dropped.at("rate"));
  CHECK(seen.ticks <= result.report.ticks_run);
}

TEST_CASE("the progress counts what a busy reader missed as the report does, and no drop twice") {
  exec::Progress seen;
  Setup setup;
  setup.workers = 2;
  setup.options.on_progress = [&](const exec::Progress& progress) { seen = progress; };
  Pipeline p;
  p.clock(graph::ClockMode::realtime, 200);
  p.add("source", "t.count", {{"count", "100"}});
  p.add("slow", "insight.slow_sink");
  p.connect("source", "slow", graph::Policy::latest);
  setup.more = &insight_plugin();
  const Ran result = run(p, setup);
  REQUIRE(result.ok);
  REQUIRE(result.report.edges[0].dropped.at("superseded") > 0);
  REQUIRE(seen.dropped.contains("superseded"));
  CHECK(seen.dropped["superseded"] <= result.report.edges[0].dropped.at("superseded"));
  CHECK(!seen.dropped.contains("busy")); // the gate's: what it holds back is superseded, and counts there
}

TEST_CASE("2.6: what a handler says when it fails is told once, and all of it is in the report") {
  for (const auto on_error : {graph::OnError::skip, graph::OnError::restart, graph::OnError::bypass}) {
    for (const char* const domain : {"cpu", "sim:0"}) {
      CAPTURE(domain);
      CAPTURE(static_cast<int>(on_error));
      std::vector<std::string> said;
      Setup setup;
      setup.more = &insight_plugin();
      if (domain != std::string("cpu")) setup.domains = {"cpu", domain};
      setup.options.on_message = [&](const std::string& line) {
        if (line.find("MR0603") == std::string::npos) said.push_back(line);
      };
      Pipeline p;
      p.add("source", "t.count", {{"count", "30"}});
      graph::Handler& bad = p.add("bad", "insight.complainer", {{"times", "3"}});
      bad.on_error = on_error;
      bad.device = domain;
      p.add("sink", "t.sink", {{"log", "heard"}});
      p.connect("source", "bad");
      p.connect("bad", "sink");
      const Ran result = run(p, setup);
      REQUIRE(result.ok);
      const HandlerReport& report = result.report.handlers[1];
      REQUIRE(report.errors > 0);
      REQUIRE(said.size() == 1);
      CHECK(said[0] == "error bad: \\x1b[2Jthe answer is not 42\n    error MR0000: forged");
      CHECK(report.first_error == "\x1b[2Jthe answer is not 42\nerror MR0000: forged");
      uint64_t told = 0;
      for (const auto& message : report.messages) told += message.times;
      CHECK(told == report.errors);
      CHECK(report.messages.size() == std::min<uint64_t>(3, report.errors));
    }
  }
}

TEST_CASE("counters say by number what the report says by name") {
  Compiled compiled = with_a_queue("3000");
  const Ran result = compiled.run();
  REQUIRE(result.ok);
  const std::unique_ptr<exec::Counters> counters = compiled.live().counters();
  for (int times = 0; times < 2; ++times) { // the second replaces the first
    counters->fill();
    REQUIRE(counters->handlers.size() == result.report.handlers.size());
    for (size_t h = 0; h < counters->handlers.size(); ++h) {
      const exec::HandlerCounters& counted = counters->handlers[h];
      const HandlerReport& told = result.report.handlers[h];
      CHECK(counted.calls == told.calls);
      CHECK(counted.errors == told.errors);
      CHECK(counted.times.count() == told.sampled);
      CHECK(static_cast<double>(counted.times.quantile_ns(0.99)) / 1000 == doctest::Approx(told.p99_us));
    }
    REQUIRE(counters->edges.size() == result.report.edges.size());
    for (size_t e = 0; e < counters->edges.size(); ++e) {
      CHECK(counters->edges[e].delivered == result.report.edges[e].delivered);
      CHECK(counters->edges[e].empty == result.report.edges[e].empty);
      CHECK(counters->edges[e].waiting == 0);
    }
    REQUIRE(counters->clocks.size() == 1);
    CHECK(counters->clocks[0].ticks == 3000);
    CHECK(counters->clocks[0].latencies.count() == result.report.latency_sampled);
  }
}

TEST_CASE("counters are filled while the run goes, allocate nothing, and only grow") {
  const testing::AllocationCounter allocations = cli::allocation_counter();
  Compiled compiled = with_a_queue("0");
  compiled.live().start();
  const std::unique_ptr<exec::Counters> counters = compiled.live().counters(), before = compiled.live().counters();
  counters->fill();
  before->fill();
  while (counters->clocks[0].ticks < 5000) {
    const uint64_t ticks = counters->clocks[0].ticks, delivered = counters->edges[2].delivered;
    const uint64_t counted = allocations.counted();
    allocations.count(true);
    counters->fill();
    allocations.count(false);
    REQUIRE(allocations.counted() == counted);
    REQUIRE(counters->clocks[0].ticks >= ticks);
    REQUIRE(counters->edges[2].delivered >= delivered);
  }
  const uint64_t sampled = counters->handlers[1].times.count(), sampled_before = before->handlers[1].times.count();
  counters->handlers[1].times.take_away(before->handlers[1].times);
  CHECK(counters->handlers[1].times.count() == sampled - sampled_before);
  compiled.live().stop();
  CHECK(compiled.wait().ok);
}

TEST_CASE("counters tell how many ticks wait in a queue") {
  is_held = true;
  Setup setup;
  setup.workers = 2;
  setup.more = &insight_plugin();
  Pipeline p("t.count name=source count=0 ; insight.held_sink name=sink ; source. ! sink. policy=queue depth=3");
  Compiled compiled(p, setup);
  compiled.live().start();
  const std::unique_ptr<exec::Counters> counters = compiled.live().counters();
  for (counters->fill(); counters->edges[0].waiting < 3; counters->fill()) std::this_thread::yield();
  CHECK(counters->edges[0].waiting == 3);
  is_held = false;
  compiled.live().stop();
  CHECK(compiled.wait().ok);
}
