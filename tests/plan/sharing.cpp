// In-place writing and forwarding: whose buffer an output is, and after whom it is written.
#include <doctest/doctest.h>

#include "planned.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// source → paint → sink, with room for other readers of the source's picture.
Pipeline painting() {
  Pipeline p("t.count name=source ! t.paint name=paint ! t.sink name=sink log=none");
  return p;
}

bool in_place(const Planned& planned) { return !planned.owns_memory("paint"); }

bool comes_after(const Planned& planned, const std::string& reader) { return planned.waits_for("paint", reader); }

} // namespace

TEST_CASE("3.5: the only reader of a buffer writes it in place, and its ring is the source's") {
  const Planned planned(painting());
  CHECK(in_place(planned));
  CHECK(planned.share_memory("paint", "source"));
  CHECK(planned.rings().size() == 1);
}

TEST_CASE("3.5: the writer comes after every other reader of the same tick") {
  Pipeline p = painting();
  p.add("preview", "t.relay");
  p.add("other", "t.relay");
  p.connect("source", "preview");
  p.connect("source", "other");
  const Planned planned(p);
  CHECK(in_place(planned));
  CHECK(comes_after(planned, "preview"));
  CHECK(comes_after(planned, "other"));
  CHECK(planned.comes_later("paint", "other"));
}

TEST_CASE("3.5: the writer comes after a reader that may pass the picture on, also where nobody reads what it passes") {
  for (const char* type : {"t.forward", "t.relay"}) {
    CAPTURE(std::string(type));
    Pipeline p = painting();
    p.add("reader", type).on_error = graph::OnError::bypass;
    p.connect("source", "reader");
    const Planned planned(p);
    CHECK(in_place(planned));
    CHECK(comes_after(planned, "reader"));
  }
}

TEST_CASE("3.5: a reader by delay, by latest, by queue or that keeps the value forces a copy") {
  for (const char* way : {"delay", "latest", "queue", "keeps"}) {
    CAPTURE(std::string(way));
    Pipeline p = painting();
    p.add("reader", std::string(way) == "keeps" ? "t.keep" : "t.paced");
    if (std::string(way) != "keeps") p.connect("paint", "reader.in");
    graph::Edge& edge = p.connect("source", std::string(way) == "keeps" ? "reader" : "reader.extra");
    if (std::string(way) == "delay") edge.delay = 2;
    if (std::string(way) == "latest") edge.policy = graph::Policy::latest;
    p.add("writer", "t.sink", {{"log", "none"}});
    if (std::string(way) == "queue") p.connect("source", "writer", graph::Policy::queue);
    const Planned planned(p);
    CHECK_FALSE(in_place(planned));
    CHECK(planned.has_note("paint copies its input before it writes"));
  }
}

TEST_CASE("3.5: a reader of both the picture and what is drawn on it forces a copy") {
  Pipeline p = painting();
  p.connect("source", "sink.in");
  const Planned planned(p);
  CHECK_FALSE(in_place(planned));
  CHECK(planned.has_note("sink reads both the picture and what is drawn on it"));
}

TEST_CASE("3.5: a reader that answers later forces a copy, since waiting for it would cost latency") {
  Pipeline p = painting();
  p.add("encoder", "t.late");
  p.connect("source", "encoder");
  CHECK_FALSE(in_place(Planned(p)));
}

TEST_CASE("3.5: of two writers one writes in place and the other copies; one after the other both write in place") {
  Pipeline beside = painting();
  beside.add("second", "t.paint");
  beside.connect("source", "second");
  const Planned side(beside);
  CHECK(side.owns_memory("paint") != side.owns_memory("second"));

  Pipeline behind = painting();
  behind.graph.edges.pop_back();
  behind.add("second", "t.paint");
  behind.connect("paint", "second");
  behind.connect("second", "sink.in");
  const Planned line(behind);
  CHECK_FALSE(line.owns_memory("paint"));
  CHECK_FALSE(line.owns_memory("second"));
  CHECK(line.rings().size() == 1);
}

TEST_CASE("3.5: on a device a replica is written in place while the host's buffer stays") {
  Pipeline p = painting();
  p.add("preview", "t.relay");
  p.connect("source", "preview");
  p.graph.handlers[1].device = "sim:0"; // paint
  const Planned planned(p, machine_of(1, {"cpu", "sim:0"}));
  CHECK(in_place(planned));
  CHECK_FALSE(comes_after(planned, "preview")); // it reads another replica
}

TEST_CASE("3.2: an output that forwards has no memory of its own, but where it reads an earlier tick") {
  Pipeline p("t.count name=source ! t.forward name=pass ! t.sink name=sink log=none");
  CHECK(Planned(p).rings().size() == 1);
  p.graph.edges[0].delay = 1;
  p.graph.edges[0].initial_empty = true;
  CHECK(Planned(p).rings().size() == 2);
}

TEST_CASE("3.5: what may be a copy of an empty initial value is not written over in place") {
  Pipeline p("t.count name=source ! t.forward name=pass ! t.paint name=paint");
  CHECK_FALSE(Planned(p).owns_memory("paint"));
  p.graph.edges[0].delay = 1;
  p.graph.edges[0].initial_empty = true;
  CHECK(Planned(p).owns_memory("paint"));
}

TEST_CASE("3.5: so is what was copied from a device, where a handler passed it on or was bypassed") {
  for (const char* type : {"t.forward", "t.relay"}) {
    CAPTURE(std::string(type));
    Pipeline p("t.count name=source ! t.forward name=pass ! t.paint name=paint");
    p.graph.handlers[1].type = type;
    p.graph.handlers[1].device = "sim:0";
    p.graph.handlers[1].on_error = graph::OnError::bypass;
    p.graph.handlers[2].device = "cpu";
    CHECK_FALSE(Planned(p, two_devices).owns_memory("paint"));
    p.graph.edges[0].delay = 1;
    p.graph.edges[0].initial_empty = true;
    CHECK(Planned(p, two_devices).owns_memory("paint"));
  }
}
