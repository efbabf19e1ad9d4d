// The cut of segments that is made once more when the first ticks have said what handlers cost (5.2): exact in virtual
// time, where a call takes what it is said to, and with threads that run while it is made.
#include <doctest/doctest.h>

#include <algorithm>

#include "harness.h"
#include "tests/part.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// Calls cost this much, and the plan does not know it.
Setup measured(uint32_t workers, std::map<std::string, int64_t> costs) {
  Setup setup;
  setup.workers = workers;
  setup.virtual_time = true;
  setup.options.cost_ns = [costs = std::move(costs)](const std::string& handler, uint64_t) {
    const auto at = costs.find(handler);
    return at == costs.end() ? int64_t{1000} : at->second;
  };
  return setup;
}

// The handlers of each segment: "source h1 | h2 sink".
std::string segments(const Report& report) {
  std::string all;
  for (const SegmentReport& segment : report.segments) {
    if (&segment != &report.segments[0]) all += " | ";
    for (const std::string& handler : segment.handlers) all += (&handler == &segment.handlers[0] ? "" : " ") + handler;
  }
  return all;
}

// True if a log has the ticks from 0 on, without a gap and in order.
bool is_whole(const std::vector<Seen>& log, size_t count) {
  for (size_t i = 0; i < log.size(); ++i)
    if (log[i].index != i) return false;
  return log.size() == count;
}

} // namespace

TEST_CASE(
    "5.2: three handlers of 8 ms that nobody told the plan of keep 60 Hz once the first ticks have been measured") {
  Pipeline p = line({"t.relay", "t.relay", "t.relay"}, "sixty", 600);
  p.clock(graph::ClockMode::realtime, 60);
  const Setup setup = measured(2, {{"h1", 8 * kMs}, {"h2", 8 * kMs}, {"h3", 8 * kMs}});
  Compiled compiled(p, setup);
  CHECK(compiled.all_segments().size() == 1); // 300 µs each are taken
  CHECK(compiled.guessed());
  const Ran result = compiled.run();
  REQUIRE(result.ok);
  CHECK(result.report.cut_again);
  CHECK(segments(result.report) == "source h1 | h2 | h3 sink");
  // Eight ticks of 24 ms each before, and the hold; from then on every beat.
  const uint64_t lost = result.report.ticks_late + result.report.ticks_skipped;
  CHECK(lost > 0);
  CHECK(lost <= 8);
  CHECK(is_whole(result.seen("sixty"), 600));
}

TEST_CASE("5.2: handlers that turn out to be short come together again") {
  const Pipeline p = line({"t.relay", "t.relay", "t.relay"}, "short", 200);
  const Setup setup = measured(3, {});
  Compiled compiled(p, setup);
  CHECK(compiled.all_segments().size() > 1);
  const Ran result = compiled.run();
  REQUIRE(result.ok);
  CHECK(segments(result.report) == "source h1 h2 h3 sink");
  CHECK(is_whole(result.seen("short"), 200));
}

TEST_CASE("5.2: under free the work that was measured is shared out, and takes as long as the largest share") {
  const Pipeline p = line({"t.relay", "t.relay", "t.relay", "t.relay"}, "shared", 300);
  const Setup setup = measured(2, {{"h1", 9 * kMs}, {"h2", 3 * kMs}, {"h3", 3 * kMs}, {"h4", 3 * kMs}, {"sink", 0}});
  const Ran result = run(p, setup);
  REQUIRE(result.ok);
  CHECK(segments(result.report) == "source h1 | h2 h3 h4 sink");
  CHECK(result.report.duration_s == doctest::Approx(300 * 0.009).epsilon(0.05));
  CHECK(is_whole(result.seen("shared"), 300));
}

TEST_CASE("5.2: a cut that was not guessed is kept, and so is one that another would not change") {
  Pipeline p = line({"t.relay", "t.relay"}, "kept", 100);
  Setup setup = measured(2, {});
  setup.costs_ns = {{"source", 1}, {"h1", kMs}, {"h2", kMs}, {"sink", 1}};
  const Compiled known(p, setup);
  CHECK(!known.guessed());
  const Ran as_known = run(p, setup);
  CHECK(!as_known.report.cut_again);
  CHECK(is_whole(as_known.seen("kept"), 100));
  const Setup as_guessed = measured(2, {{"h1", 599'999}, {"h2", 300'000}, {"sink", 300'000}});
  CHECK(Compiled(p, as_guessed).guessed());
  const Ran by_guess = run(p, as_guessed);
  CHECK(!by_guess.report.cut_again);
  CHECK(is_whole(by_guess.seen("kept"), 100));
}

TEST_CASE("5.2: handlers that come after one that answers later are cut too, and what is owed stays owed") {
  Pipeline p = line({"t.relay", "t.relay", "t.late", "t.relay", "t.relay"}, "late", 200);
  const Setup setup = measured(3, {{"h1", 5 * kMs}, {"h2", 5 * kMs}, {"h4", 5 * kMs}, {"h5", 5 * kMs}});
  const Compiled compiled(p, setup);
  CHECK(compiled.moves("source"));
  CHECK(compiled.moves("h4"));
  const auto alone = run(p, {}).all_seen();
  const Ran result = run(p, setup);
  REQUIRE(result.ok);
  CHECK(result.report.cut_again);
  CHECK(segments(result.report) == "source h1 | h2 h3 | h4 | h5 sink");
  CHECK((result.all_seen() == alone));
}

TEST_CASE("5.2: a handler that answers later may be cut from what is before it") {
  Pipeline p = line({"t.relay", "t.relay", "t.late"}, "encoder", 600);
  p.clock(graph::ClockMode::realtime, 60);
  const Ran result = run(p, measured(2, {{"h1", 8 * kMs}, {"h2", 8 * kMs}, {"h3", 8 * kMs}}));
  REQUIRE(result.ok);
  CHECK(segments(result.report) == "source h1 | h2 | h3 | sink");
  CHECK(result.report.ticks_late + result.report.ticks_skipped <= 12);
  CHECK(is_whole(result.seen("encoder"), result.report.ticks_run));
}

TEST_CASE("5.2: clocks that wait for each other are cut in the middle of the ticks that wait") {
  Pipeline p;
  graph::Clock fast, slow;
  fast.name = "fast";
  slow.name = "slow";
  fast.mode = slow.mode = graph::ClockMode::realtime;
  fast.rate = {60, 1};
  slow.rate = {20, 1};
  p.graph.clocks = {fast, slow};
  p.add("source", "t.count", {{"count", "300"}}).clock = "fast";
  p.add("h1", "t.relay");
  p.add("h2", "t.relay");
  p.add("h3", "t.relay");
  p.add("other", "t.count", {{"count", "100"}}).clock = "slow";
  p.add("join", "t.join").clock = "slow";
  p.add("sink", "t.sink", {{"log", "let go"}});
  p.connect("source", "h1");
  p.connect("h1", "h2");
  p.connect("h2", "h3");
  p.connect("other", "join");
  p.connect("h3", "join", graph::Policy::queue).depth = 2; // full all the time: every tick of `fast` waits
  p.connect("join", "sink");
  const Ran result = run(p, measured(2, {{"h1", 10 * kMs}, {"h2", 10 * kMs}}));
  REQUIRE(result.ok);
  CHECK(result.report.cut_again);
  CHECK(segments(result.report) == "source h1 | h2 | other | h3 | join sink");
  CHECK(is_whole(result.seen("let go"), result.seen("let go").size()));
  CHECK(result.seen("let go").size() >= 100);
}

TEST_CASE("1.5: the window is as wide as another cut may need it, and no wider than was asked for") {
  const auto sixty = [](uint32_t in_flight) {
    Pipeline p = line({"t.relay", "t.relay", "t.relay"}, "unused", 10);
    p.clock(graph::ClockMode::realtime, 60, 1, in_flight);
    return p;
  };
  const Compiled free_choice(sixty(0), measured(2, {}));
  CHECK(free_choice.window("source") == 1);
  CHECK(free_choice.room("source") == 4);
  CHECK(free_choice.ring("h1").length == 4);
  const Compiled asked(sixty(2), measured(2, {}));
  CHECK(asked.window("source") == 2);
  CHECK(asked.room("source") == 2);
}

TEST_CASE("5.2: with threads at work, a second cut changes no value, wherever ticks stand when it is made") {
  const int64_t ticks = part_of(50'000);
  const auto make = [&](const std::string& domain) {
    Pipeline p = line({"t.relay", "t.keep", "t.late", "t.paint", "t.relay"}, "threads", ticks);
    p.add("join", "t.join");
    p.connect("h1", "join");
    p.connect("h4", "join").delay = 2;
    p.graph.edges.back().initial_empty = true;
    p.connect("h5", "join", graph::Policy::latest).lag = 1;
    p.graph.edges.back().initial_empty = true;
    p.connect("join", "joined");
    p.add("joined", "t.sink", {{"log", "joined"}});
    p.connect("h5", "queued", graph::Policy::queue).depth = 2;
    p.add("queued", "t.sink", {{"log", "queued"}});
    for (graph::Handler& handler : p.graph.handlers)
      if (handler.name == "h4") handler.device = domain;
    return p;
  };
  const Ran alone = run(make("cpu"), {});
  REQUIRE(alone.ok);
  CHECK(!alone.report.cut_again);
  const auto expected = alone.all_seen();
  REQUIRE(expected.size() == 3);
  for (const auto& [name, seen] : expected) CHECK(seen.size() == ticks);
  for (const std::string domain : {"cpu", "sim:0"}) {
    CAPTURE(domain);
    Setup setup;
    setup.workers = 3;
    setup.domains = {"cpu", "sim:0"};
    bool cut = false;
    for (int i = 0; i < 3 && !cut; ++i) { // a machine that is too busy may leave a run as it was
      const Ran result = run(make(domain), setup);
      REQUIRE(result.ok);
      cut = result.report.cut_again;
      CHECK((result.all_seen() == expected));
      for (size_t h = 0; h < result.report.handlers.size(); ++h)
        CHECK(result.report.handlers[h].calls == alone.report.handlers[h].calls);
    }
    CHECK(cut);
  }
}
