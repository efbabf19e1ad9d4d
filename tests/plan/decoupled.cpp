// The plan finds the handlers that are decoupled, those that hold the tick open, and what the gates between them let
// through.
#include <doctest/doctest.h>

#include "planned.h"

using namespace millrace;
using namespace millrace::test;

namespace {

Pipeline street(graph::Policy to_overlay) {
  Pipeline p;
  p.add("video", "t.count");
  p.add("detect", "t.relay").every = 3;
  p.add("overlay", "t.paced");
  p.add("show", "t.sink", {{"log", "none"}});
  p.connect("video", "detect");
  p.connect("video", "overlay.in");
  p.connect("detect", "overlay.extra", to_overlay);
  p.connect("overlay", "show");
  return p;
}

} // namespace

TEST_CASE("1.6: a handler whose outputs all leave by latest is decoupled, one that is read by sync is not") {
  const Planned behind(street(graph::Policy::latest));
  CHECK(behind.decoupled("detect"));
  CHECK_FALSE(behind.decoupled("overlay"));
  CHECK_FALSE(behind.decoupled("show"));
  CHECK(behind.window("detect") == 1); // its bound: one tick
  CHECK_FALSE(Planned(street(graph::Policy::sync)).decoupled("detect"));
}

TEST_CASE("1.6: the gate of a handler with every: lets in only the ticks on which it fires") {
  const Planned planned(street(graph::Policy::latest));
  CHECK(planned.gate("detect").every == 3);
  CHECK(planned.gate("detect").busy);
}

TEST_CASE("1.6: a sink that reads by queue is decoupled, bounded by the queue's depth") {
  Pipeline p = street(graph::Policy::sync);
  p.add("writer", "t.sink", {{"log", "none"}});
  graph::Edge& edge = p.connect("overlay", "writer", graph::Policy::queue);
  edge.depth = 6;
  edge.full = graph::Full::drop_newest;
  const Planned planned(p);
  CHECK(planned.decoupled("writer"));
  CHECK(planned.gate("writer").depth == 6);
  CHECK(planned.gate("writer").queued);
  CHECK_FALSE(planned.gate("writer").busy);
}

TEST_CASE("1.6: decoupled handlers share a pace if sync joins them; a source is never decoupled") {
  Pipeline p(
      "t.count name=source ; t.relay name=first ! t.relay name=second ! t.sink name=sink log=none ; source. ! "
      "first. policy=queue");
  const Planned planned(p);
  CHECK_FALSE(planned.decoupled("source"));
  for (const char* name : {"first", "second", "sink"}) {
    CHECK(planned.decoupled(name));
    CHECK(planned.in_step(name, "first"));
  }
}

TEST_CASE("1.6: a handler that holds the tick open makes those that it waits for hold it open too, by queue as well") {
  Pipeline p(
      "t.count name=source ! t.relay name=side ; t.need name=both ! t.sink name=sink log=none ; source. ! both.a ; "
      "side. ! both.b policy=queue");
  const Planned planned(p);
  CHECK_FALSE(planned.decoupled("side"));
  CHECK_FALSE(planned.decoupled("both"));
}

TEST_CASE("1.6, 2.2: a gate lets in ticks without a value if a handler after it fires on them") {
  Pipeline p;
  p.add("source", "t.count");
  p.add("quiet", "t.relay", {{"silent_every", "2"}});
  p.add("mix", "t.join"); // nothing required
  p.add("sink", "t.sink", {{"log", "none"}});
  p.connect("source", "quiet");
  p.connect("quiet", "mix");
  p.connect("mix", "sink.in", graph::Policy::latest);
  p.connect("source", "sink.in");
  CHECK(Planned(p).gate("mix").every_tick);
  CHECK_FALSE(Planned(street(graph::Policy::latest)).gate("detect").every_tick);
}

TEST_CASE("1.6: a group that would wait for itself by another path holds the tick open") {
  Pipeline p; // behind ‑latest→ other ‑queue→ join ← behind: all of them behind, in a circle of gates
  p.add("source", "t.count");
  p.add("behind", "t.relay");
  p.add("other", "t.relay");
  p.add("both", "t.need");
  p.add("sink", "t.sink", {{"log", "none"}});
  p.connect("source", "behind", graph::Policy::latest);
  p.connect("behind", "other", graph::Policy::latest);
  p.connect("other", "both.a", graph::Policy::queue);
  p.connect("behind", "both.b");
  p.connect("both", "sink");
  const Planned planned(p);
  CHECK_FALSE(planned.decoupled("behind"));
  CHECK_FALSE(planned.decoupled("both"));
}

TEST_CASE(
    "1.6: who reads from all ticks of its clock and from those that a gate let in holds its tick open, and says so") {
  Pipeline p(
      "t.count name=source ; t.relay name=slow ; t.join name=join ; source. ! slow. policy=queue ! join. "
      "policy=queue");
  CHECK(Planned(p).pace_count() > 1);
  p.connect("source", "join", graph::Policy::queue);
  const Planned planned(p);
  CHECK(planned.pace_count() == 1);
  REQUIRE(planned.notes().size() == 1);
  CHECK(planned.notes()[0].starts_with("join holds its tick open"));
}

TEST_CASE("1.2: the clock follows the only source with a rate, else realtime where one is live, else free") {
  Pipeline one;
  one.add("file", "t.count", {{"rate", "50"}});
  one.add("other", "t.count");
  CHECK(Planned(one).clocks()[0].mode == "source");
  CHECK(Planned(one).clocks()[0].rate.numerator == 50);
  CHECK_FALSE(Planned(one).clocks()[0].realtime);

  Pipeline camera;
  camera.add("camera", "p.camera");
  CHECK(Planned(camera).clocks()[0].mode == "source");
  CHECK(Planned(camera).clocks()[0].realtime); // a live one follows realtime's rules

  Pipeline two;
  two.add("camera", "p.camera");
  two.add("file", "t.count", {{"rate", "50"}});
  CHECK(Planned(two).clocks()[0].mode == "realtime");

  Pipeline none;
  none.add("source", "t.count");
  CHECK(Planned(none).clocks()[0].mode == "free");
}

TEST_CASE("1.2: sources of several rates under one free clock are refused, unless the clock has a rate") {
  Pipeline p;
  p.clock(graph::ClockMode::free);
  p.add("a", "t.count", {{"rate", "50"}});
  p.add("b", "t.count", {{"rate", "30"}});
  CHECK(refusal(p) == 406);
  p.graph.clocks[0].rate = {25, 1};
  CHECK(refusal(p) == 0);
}

TEST_CASE("1.3: a handler belongs to the clock of its inputs, and an edge between clocks is refused without a policy") {
  Pipeline p;
  graph::Clock left, right;
  left.name = "left";
  right.name = "right";
  left.mode = right.mode = graph::ClockMode::free;
  p.graph.clocks = {left, right};
  p.add("a", "t.count").clock = "left";
  p.add("b", "t.count").clock = "right";
  p.add("of_b", "t.relay");
  p.add("both", "t.paced").clock = "left";
  p.connect("b", "of_b");
  p.connect("a", "both.in");
  p.connect("of_b", "both.extra");
  CHECK(refusal(p) == 406);
  for (const graph::Policy policy : {graph::Policy::latest, graph::Policy::queue, graph::Policy::align}) {
    p.graph.edges.back().policy = policy;
    p.graph.edges.back().within_ns = 1000;
    const Planned planned(p);
    CHECK(planned.clock("of_b") == 1);
    CHECK(planned.clock("both") == 0);
  }
}
