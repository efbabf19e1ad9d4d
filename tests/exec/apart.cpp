// A handler that owes results gets a pace of its own, where what depends on it comes from it alone; elsewhere its gap
// is planned for, and a longer one ends the run (semantics.md 8.12).
#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <atomic>
#include <deque>

#include "harness.h"

using namespace millrace;
using namespace millrace::test;

namespace {

std::atomic<int> drains_in_gaps;

// As an encoder does: it answers a few values later, and to be drained costs it something.
template <uint32_t kMost, uint32_t kGap, bool kFreely>
struct Coder final : Handler {
  Input<Tensor> in{*this, "in"};
  Input<Tensor> hint{*this, "hint", optional};
  Output<Tensor> out{*this, "out", like(in)};
  Param<int64_t> silent_in{*this, "silent_in", 0, "one result of so many is silent; 0: none"};
  std::deque<std::pair<Tick, int64_t>> owed;
  int64_t resets = 0;
  Coder() {
    max_pending(kMost);
    gap(kGap);
    if (kFreely) drains_freely();
  }
  void process(Tick& tick, Cpu&) {
    owed.emplace_back(tick.defer(), read_one(in(tick)) + 1000 * resets);
    if (owed.size() > kMost) settle_one();
  }
  void drain() override {
    while (!owed.empty()) settle_one();
  }
  void reset() override {
    ++resets;
    ++drains_in_gaps;
  }
  void settle_one() {
    auto& [tick, value] = owed.front();
    if (silent_in == 0 || value % silent_in != 0) write_one(out, tick, value);
    tick.publish();
    owed.pop_front();
  }
};

// It needs its input, so it fires if there is a value.
struct Store final : Handler {
  LogWriter writer;
  Input<Tensor> in{*this, "in"};
  Input<Tensor> beside{*this, "beside", optional};
  Param<std::string> name{*this, "log", "", "where it writes", required};
  void process(Tick& tick, Cpu&) {
    const int64_t other = beside.present(tick) ? read_one(beside(tick)) : kEmpty;
    writer.write(*name, {tick.index(), tick.media_time_ns(), {read_one(in(tick)), other}});
  }
};

struct AddMillion final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  void process(Tick& tick, Cpu&) { write_one(out, tick, read_one(in(tick)) + 1'000'000); }
};

const mr_plugin& apart_plugin() {
  static const mr_handler_type types[] = {
      detail::Type<Coder<3, 0, false>>::table("apart.coder", "", ""),
      detail::Type<Coder<3, 10, false>>::table("apart.roomy", "", ""),
      detail::Type<Coder<3, 0, true>>::table("apart.free", "", ""),
      detail::Type<Store>::table("apart.store", "", ""),
      detail::Type<AddMillion>::table("apart.add", "", ""),
  };
  static const mr_handler_type* const pointers[] = {&types[0], &types[1], &types[2], &types[3], &types[4]};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "apart", "1", pointers, 5, 0};
  return plugin;
}

Setup apart_setup(uint32_t workers = 1) {
  Setup setup;
  setup.workers = workers;
  setup.more = &apart_plugin();
  drains_in_gaps = 0;
  return setup;
}

// source → some (values but for ticks [20, 100)) → coder, of that type
Pipeline gap_of_eighty(const std::string& type, uint32_t in_flight = 0, int64_t rate = 0) {
  Pipeline p;
  p.clock(rate > 0 ? graph::ClockMode::realtime : graph::ClockMode::free, rate, 1, in_flight);
  p.add("source", "t.count", {{"count", "160"}});
  p.add("some", "t.window", {{"from", "20"}, {"until", "100"}});
  p.add("coder", type);
  p.connect("source", "some");
  p.connect("some", "coder.in");
  return p;
}

std::vector<int64_t> outside_the_gap(int64_t add = 0) {
  std::vector<int64_t> ticks;
  for (int64_t i = 0; i < 160; ++i)
    if (i < 20 || i >= 100) ticks.push_back(i + add);
  return ticks;
}

graph::Edge& edge_to(Pipeline& p, const std::string& target, const std::string& port) {
  for (graph::Edge& edge : p.graph.edges)
    if (edge.target == target && edge.target_port == port) return edge;
  FAIL("no such edge");
  return p.graph.edges[0];
}

} // namespace

TEST_CASE("8.12: no gap drains a handler if all that depends on it comes from it alone, on any threads and devices") {
  for (const uint32_t workers : {1u, 2u, 8u}) {
    for (const uint32_t in_flight : {0u, 1u, 4u}) {
      for (const char* device : {"cpu", "sim:0"}) {
        CAPTURE(workers);
        CAPTURE(in_flight);
        CAPTURE(std::string(device));
        Pipeline p = gap_of_eighty("apart.coder", in_flight);
        p.graph.handlers[1].device = device;
        p.add("add", "apart.add").device = device;
        p.add("store", "apart.store", {{"log", "apart"}});
        p.connect("coder", "add");
        p.connect("add", "store.in");
        Setup setup = apart_setup(workers);
        setup.domains = {"cpu", "sim:0"};
        const Ran ran = run(p, setup);
        REQUIRE(ran.ok);
        CHECK(drains_in_gaps == 0);
        CHECK(values(ran.seen("apart")) == outside_the_gap(1'000'000));
      }
    }
  }
}

TEST_CASE("8.12: the same under realtime: no beat is late and nothing is drained") {
  Pipeline p = gap_of_eighty("apart.coder", 1, 100);
  p.add("store", "apart.store", {{"log", "apart"}});
  p.connect("coder", "store.in");
  Setup setup = apart_setup();
  setup.virtual_time = true;
  const Ran result = run(p, setup);
  REQUIRE(result.ok);
  CHECK(result.report.ticks_late == 0);
  CHECK(drains_in_gaps == 0);
  CHECK(values(result.seen("apart")) == outside_the_gap());
}

TEST_CASE("8.12: two in a row have a pace each: gaps in the results of the first do not drain the second") {
  Pipeline p = gap_of_eighty("apart.coder");
  p.graph.handlers[2].params.push_back(graph::Param{"silent_in", "2", {}, {}});
  p.add("second", "apart.coder");
  p.add("store", "apart.store", {{"log", "apart"}});
  p.connect("coder", "second.in");
  p.connect("second", "store.in");
  for (const uint32_t workers : {1u, 2u, 8u}) {
    const Ran ran = run(p, apart_setup(workers));
    REQUIRE(ran.ok);
    CHECK(drains_in_gaps == 0);
    std::vector<int64_t> odd;
    for (const int64_t value : outside_the_gap())
      if (value % 2) odd.push_back(value);
    CHECK(values(ran.seen("apart")) == odd);
  }
}

TEST_CASE("8.12: every counts in the clock's ticks there, and memory is for firings alone") {
  Pipeline p = gap_of_eighty("apart.coder", 1);
  p.graph.handlers[2].every = 7;
  p.add("store", "apart.store", {{"log", "apart"}});
  p.connect("coder", "store.in");
  Compiled compiled(p, apart_setup());
  CHECK(compiled.window("coder") == 1 + 3);
  REQUIRE(compiled.run().ok);
  std::vector<int64_t> sevenths;
  for (const int64_t value : outside_the_gap())
    if (value % 7 == 0) sevenths.push_back(value);
  CHECK(values(compiled.seen("apart")) == sevenths);
}

TEST_CASE("8.12: a handler stays with its clock if a reader waits for a tick of its results") {
  const auto is_apart = [](Pipeline& p) {
    Compiled compiled(p, apart_setup());
    return compiled.decoupled("coder");
  };
  const auto with_store = [] {
    Pipeline p = gap_of_eighty("apart.coder");
    p.add("store", "apart.store", {{"log", "apart"}});
    p.connect("coder", "store.in");
    return p;
  };
  Pipeline alone = with_store();
  CHECK(is_apart(alone));
  Pipeline rejoins = with_store();
  rejoins.connect("source", "store.beside");
  CHECK_FALSE(is_apart(rejoins));
  Pipeline by_latest = with_store();
  by_latest.add("sink", "t.sink", {{"log", "latest"}});
  by_latest.connect("coder", "sink.in", graph::Policy::latest);
  CHECK_FALSE(is_apart(by_latest));
  Pipeline on_every_tick = with_store();
  on_every_tick.add("sink", "t.sink", {{"log", "every"}}); // its inputs are optional: it fires without a value too
  on_every_tick.connect("coder", "sink.in");
  CHECK_FALSE(is_apart(on_every_tick));
  Pipeline reads_aside = gap_of_eighty("apart.coder"); // its reader would keep the source waiting for room
  reads_aside.add("paced", "t.paced");
  reads_aside.connect("coder", "paced.in");
  reads_aside.connect("source", "paced.extra", graph::Policy::latest);
  CHECK_FALSE(is_apart(reads_aside));
  Pipeline hinted = with_store();
  hinted.connect("source", "coder.hint", graph::Policy::latest);
  CHECK(is_apart(hinted));
  CHECK(run(hinted, apart_setup()).ok);
  CHECK(drains_in_gaps == 0);
  Pipeline queued = with_store();
  queued.add("after", "apart.store", {{"log", "queued"}});
  queued.connect("coder", "after.in", graph::Policy::queue).depth = 2;
  CHECK(is_apart(queued));
}

TEST_CASE("8.12: a handler that reads from two decoupled ones has a pace within theirs: no gap of one drains it") {
  for (const uint32_t workers : {1u, 2u, 8u}) {
    Pipeline p(
        "t.count name=source count=160 ! t.window name=a from=20 until=100 ; source. ! t.relay name=b ; "
        "a. ! apart.coder name=coder ! apart.store name=store log=apart ; b. ! coder.hint");
    for (const char* queued : {"a", "b"}) {
      graph::Edge& edge = edge_to(p, queued, "");
      edge.policy = graph::Policy::queue;
      edge.depth = 4;
    }
    Compiled compiled(p, apart_setup(workers));
    CHECK(compiled.in_step("a", "b"));
    CHECK_FALSE(compiled.in_step("coder", "a"));
    CHECK(compiled.gated_by("coder", "a"));
    REQUIRE(compiled.run().ok);
    CHECK(values(compiled.seen("apart")) == outside_the_gap());
    CHECK(drains_in_gaps == 0);
  }
}

TEST_CASE(
    "8.12: a gap that was not planned for ends the run if results rejoin their tick, and the error says its number") {
  for (const uint32_t workers : {1u, 2u, 8u}) {
    Pipeline p = gap_of_eighty("apart.coder", 1);
    p.add("store", "apart.store", {{"log", "apart"}});
    p.connect("coder", "store.in");
    p.connect("source", "store.beside");
    const Ran result = run(p, apart_setup(workers));
    REQUIRE_FALSE(result.ok);
    CHECK(result.error.what ==
          "coder (apart.coder) failed at tick 20: it owes the result of tick 17, and more ticks without a firing came "
          "since than its gap of 0 is planned for; say gap: 1 or more on its input, or drains_freely() in its "
          "constructor if a drain costs nothing");
    const std::vector<int64_t> seen = values(result.seen("apart"));
    CHECK(seen.size() == 20); // what it owed is delivered
  }
}

TEST_CASE("8.12: a gap that the edge or the handler says is planned for, with its memory, and nothing is drained") {
  for (const bool by_edge : {true, false}) {
    for (const uint32_t workers : {1u, 2u, 8u}) {
      CAPTURE(by_edge);
      CAPTURE(workers);
      Pipeline p;
      p.clock(graph::ClockMode::free, 0, 1, 1);
      p.add("source", "t.count", {{"count", "60"}});
      p.add("some", "t.window", {{"from", "20"}, {"until", "30"}});
      p.add("coder", by_edge ? "apart.coder" : "apart.roomy");
      p.add("store", "apart.store", {{"log", "apart"}});
      p.connect("source", "some");
      p.connect("some", "coder.in");
      p.connect("coder", "store.in");
      p.connect("source", "store.beside");
      if (by_edge) edge_to(p, "coder", "in").gap = 10;
      Compiled compiled(p, apart_setup(workers));
      CHECK(compiled.window("coder") == 1 + 3 + 10);
      REQUIRE(compiled.run().ok);
      CHECK(drains_in_gaps == 0);
      CHECK(compiled.seen("apart").size() == 50);
    }
  }
}

TEST_CASE("8.12: the plan says at the handler which of the ways it has") {
  const auto printed = [](const std::string& type, bool rejoins) {
    Pipeline p = gap_of_eighty(type, 1);
    p.add("store", "apart.store", {{"log", "apart"}});
    p.connect("coder", "store.in");
    if (rejoins) p.connect("source", "store.beside");
    return Compiled(p, apart_setup()).text();
  };
  const auto has = [](const std::string& text, const std::string& words) {
    INFO(text);
    CHECK(text.find(words) != std::string::npos);
  };
  has(printed("apart.coder", false), "gate of coder: the ticks that it fires on pass, and wait for room");
  has(printed("apart.coder", false), "lags its clock by at most 4 firings");
  has(printed("apart.coder", true), "owes up to 3 results, fails in a gap of more than 0 ticks");
  has(printed("apart.roomy", true), "owes up to 3 results, fails in a gap of more than 10 ticks");
  has(printed("apart.free", true), "owes up to 3 results, drained in a gap of more than 0 ticks");
}

TEST_CASE("8.12: one tick of gap more than was planned for is one too many") {
  for (const uint32_t gap : {9u, 10u}) {
    Pipeline p = gap_of_eighty("apart.coder", 1);
    p.graph.handlers[1].params[1].text = "30";
    p.add("store", "apart.store", {{"log", "apart"}});
    p.connect("coder", "store.in");
    p.connect("source", "store.beside");
    edge_to(p, "coder", "in").gap = gap;
    CHECK(run(p, apart_setup()).ok == (gap == 10));
  }
}

TEST_CASE("8.12: one that drains freely is drained in any gap, and one whose failures are passed over as well") {
  for (const char* type : {"apart.free", "apart.coder"}) {
    const bool freely = std::string(type) == "apart.free";
    for (const uint32_t workers : {1u, 2u, 8u}) {
      Pipeline p = gap_of_eighty(type, 1);
      if (!freely) p.graph.handlers[2].on_error = graph::OnError::skip;
      p.add("store", "apart.store", {{"log", "apart"}});
      p.connect("coder", "store.in");
      p.connect("source", "store.beside");
      const Ran result = run(p, apart_setup(workers));
      REQUIRE(result.ok);
      CHECK(drains_in_gaps == 1);
      CHECK(result.report.handlers[2].errors == (freely ? 0 : 1));
      CHECK(result.seen("apart").size() == 80);
    }
  }
}

TEST_CASE("8.12: a gap on the edge of a reader that owes nothing is refused") {
  Pipeline p = gap_of_eighty("apart.add");
  edge_to(p, "coder", "in").gap = 4;
  try {
    Compiled compiled(p, apart_setup());
    FAIL("it was planned");
  } catch (const Failure& failure) {
    CHECK(failure.error().code == 417);
    CHECK(failure.error().what == "the gap of coder.in means nothing: coder (apart.add) owes no results");
  }
}
