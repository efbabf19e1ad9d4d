// Clocks that wait for each other: which queues may block, how long windows are, and what a plan says of it.
#include <doctest/doctest.h>

#include "planned.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// A clock with a source of this rate for each; none: it has no rate of its own.
Pipeline clocks(const std::vector<std::pair<std::string, int64_t>>& rates, uint32_t in_flight = 0) {
  Pipeline p;
  for (const auto& [name, rate] : rates) {
    p.clock(graph::ClockMode::source, 0, 1, in_flight);
    p.graph.clocks.back().name = name;
    p.add("s" + name, "t.count", {{"rate", std::to_string(rate)}}).clock = name;
    p.add("h" + name, "t.join").clock = name;
    p.connect("s" + name, "h" + name + ".in");
  }
  return p;
}

graph::Edge& join(Pipeline& p, const std::string& from, const std::string& to, graph::Policy policy) {
  return p.connect(from, to + ".in", policy);
}

graph::Edge& align(Pipeline& p, const std::string& from, const std::string& to, int64_t within_ms) {
  graph::Edge& edge = join(p, from, to, graph::Policy::align);
  edge.within_ns = within_ms * 1'000'000;
  return edge;
}

} // namespace

TEST_CASE("8.2: a queue between clocks may block where it is the only way between its two sides") {
  Pipeline p = clocks({{"a", 30}, {"b", 10}, {"c", 5}});
  join(p, "sa", "hb", graph::Policy::queue).depth = 4;
  CHECK(error_of(p).code == 0);
  join(p, "sb", "hc", graph::Policy::latest); // another clock, by another way
  CHECK(error_of(p).code == 0);
  join(p, "hc", "ha", graph::Policy::latest); // and back to where it began
  const Error error = error_of(p);
  CHECK(error.code == 414);
  CHECK(error.what.find("sa.out → hb.in[1]") != std::string::npos);
  CHECK(error.what.find("\"a\" and \"b\"") != std::string::npos);
  REQUIRE(error.notes.size() == 3); // the rest of the circle, and why
  CHECK(error.notes[0].find("hc.out → ha.in[1] is latest, from clock \"c\" to \"a\"") != std::string::npos);
  CHECK(error.notes[1].find("sb.out → hc.in[1] is latest, from clock \"b\" to \"c\"") != std::string::npos);
  CHECK(error.edit == "full: drop_oldest");
}

TEST_CASE("8.2: a second edge between the same clocks, in any direction, by any policy, makes a circle with a queue") {
  for (const bool back : {false, true}) {
    for (const graph::Policy policy : {graph::Policy::latest, graph::Policy::queue, graph::Policy::align}) {
      Pipeline p = clocks({{"a", 30}, {"b", 10}});
      join(p, "sa", "hb", graph::Policy::queue).depth = 4;
      graph::Edge& second = back ? join(p, "hb", "ha", policy) : join(p, "ha", "hb", policy);
      second.within_ns = 40'000'000;
      second.full = graph::Full::drop_newest;
      CHECK(error_of(p).code == 414);
      p.graph.edges[2].full = graph::Full::drop_oldest; // what the error proposes
      CHECK(error_of(p).code == 0);
    }
  }
}

TEST_CASE("8.2: an edge whose reader's clock does not wait makes no circle") {
  Pipeline p = clocks({{"a", 30}, {"b", 10}});
  join(p, "sa", "hb", graph::Policy::queue).depth = 4;
  join(p, "hb", "ha", graph::Policy::latest);
  CHECK(error_of(p).code == 414);
  p.graph.clocks[0].mode = graph::ClockMode::realtime; // reads what is done
  CHECK(error_of(p).code == 0);
}

TEST_CASE("8.3: clocks that align with each other get windows that hold what both wait for, and the plan says so") {
  Pipeline p = clocks({{"left", 30}, {"right", 25}});
  align(p, "sleft", "hright", 40);
  CHECK(Planned(p).window("sleft") == 1); // one way alone needs nothing
  align(p, "sright", "hleft", 60);
  const Planned planned(p);
  // 100 ms are three periods of one clock and two and a half of the other; one tick more, and one to spare.
  CHECK(planned.window("sleft") == 3 + 1 + 1);
  CHECK(planned.window("sright") == 3 + 1 + 1);
  CHECK(
      planned.has_note("clock left: at least 5 in flight, because it and \"right\" wait for each other, for up to 100 "
                       "ms"));
  REQUIRE_FALSE(planned.queue_capacities().empty());
  for (const uint32_t capacity : planned.queue_capacities()) CHECK(capacity >= 4);
}

TEST_CASE(
    "8.3: in_flight that is fixed below what clocks of a circle hold is refused with the number, and so is no rate") {
  Pipeline p = clocks({{"left", 30}, {"right", 30}}, 3);
  align(p, "sleft", "hright", 40);
  align(p, "sright", "hleft", 40);
  const Error error = error_of(p);
  CHECK(error.code == 415);
  CHECK(error.what.find("\"left\" has in_flight 3, and needs 4") != std::string::npos);
  for (graph::Clock& clock : p.graph.clocks) clock.in_flight = 4;
  CHECK(Planned(p).window("sleft") == 4);
  for (graph::Clock& clock : p.graph.clocks) {
    clock.in_flight = 8;
    clock.in_flight_least = 1; // memory may lower it, but not below
  }
  CHECK(Planned(p).clocks()[0].in_flight_least == 4);
  Pipeline without = clocks({{"left", 30}, {"right", 0}});
  align(without, "sleft", "hright", 40);
  align(without, "sright", "hleft", 40);
  CHECK(error_of(without).code == 415);
  CHECK(error_of(without).edit == "rate: 30");
}

TEST_CASE("8.3: a clock's own window holds what a circle needs, also where the debt is in another pace of it") {
  Pipeline p = clocks({{"x", 10}, {"y", 100}});
  p.add("late", "t.late").clock = "y";
  p.connect("sy", "late");
  graph::Edge& queue = join(p, "late", "hx", graph::Policy::queue);
  queue.depth = 1;
  queue.full = graph::Full::drop_oldest;
  join(p, "hx", "hy", graph::Policy::latest);
  const Planned planned(p);
  CHECK(planned.decoupled("late"));
  // 8 results and one period to spare: 90 ms, which are 9 ticks of the clock, one more, and one to spare.
  CHECK(planned.window("sy") == 9 + 1 + 1);
  CHECK(planned.window("late") == 9 + 1 + 1 + 8);
}

TEST_CASE("8.3: latest and queues wait for no later time: a window of one is enough for them") {
  Pipeline p = clocks({{"a", 100}, {"b", 1}}, 1);
  join(p, "sa", "hb", graph::Policy::latest);
  join(p, "hb", "ha", graph::Policy::latest);
  graph::Edge& queue = join(p, "sa", "hb", graph::Policy::queue);
  queue.depth = 2;
  queue.full = graph::Full::drop_oldest;
  const Planned planned(p);
  CHECK(planned.window("sa") == 1);
  CHECK(planned.window("sb") == 1);
}

TEST_CASE("8.3: on a circle no segment has steps that wait for other clocks than its first one does") {
  for (const uint32_t workers : {1u, 2u, 8u}) {
    Pipeline p = clocks({{"a", 30}, {"b", 30}});
    join(p, "sb", "ha", graph::Policy::latest);
    join(p, "sa", "hb", graph::Policy::latest);
    const Planned planned(p, machine_of(workers));
    uint32_t of_posts = 0, of_the_held = 0;
    for (const SegmentView& segment : planned.all_segments()) {
      bool held = false, posts = false;
      for (const StepView& step : segment.steps) {
        held = held || step.name == "ha" || step.name == "hb" || step.kind == "resolve";
        posts = posts || step.kind == "post" || step.kind == "source";
      }
      CHECK_FALSE((held && posts));
      if (segment.steps[0].kind == "post") CHECK(segment.steps.size() == 1);
      of_posts += posts;
      of_the_held += held;
    }
    CHECK(of_posts > 0);
    CHECK(of_the_held > 0);
  }
}

TEST_CASE("8.3: a loop by delay that waits for later times of another clock on its way is refused") {
  Pipeline p = clocks({{"a", 30}, {"b", 30}});
  align(p, "ha", "hb", 40);
  join(p, "hb", "ha", graph::Policy::latest);
  CHECK(error_of(p).code == 401); // a cycle without a delay
  p.graph.edges.pop_back();
  p.add("back", "t.join").clock = "a";
  join(p, "hb", "back", graph::Policy::latest);
  graph::Edge& delayed = p.connect("back", "ha.in");
  delayed.delay = 1;
  delayed.initial_empty = true;
  CHECK(error_of(p).code == 414);
  p.graph.edges[2].policy = graph::Policy::latest;
  CHECK(error_of(p).code == 0);
}
