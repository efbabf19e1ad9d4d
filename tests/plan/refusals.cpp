// Graphs that compile() refuses, by the exact code of the error, each beside the nearest graph that it takes.
#include <doctest/doctest.h>

#include <functional>
#include <map>

#include "planned.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// source → relay → sink: accepted, before `spoil` changes it.
int refused(const std::function<void(Pipeline&)>& spoil, const plan::Machine& machine = {}) {
  Pipeline p("t.count name=source ! t.relay name=relay ! t.sink name=sink log=none");
  spoil(p);
  return refusal(p, machine);
}

Pipeline pictures(const char* source, const char* reader) {
  Pipeline p;
  p.add("source", source);
  p.add("reader", reader);
  p.connect("source", "reader");
  return p;
}

} // namespace

TEST_CASE("5.1: the graph that the refusals spoil is accepted") {
  CHECK(refused([](Pipeline&) {}) == 0);
}

TEST_CASE("5.1: names are refused with MR0301 to MR0304") {
  CHECK(refused([](Pipeline& p) { p.connect("nobody", "sink.in"); }) == 301);
  CHECK(refused([](Pipeline& p) { p.connect("relay", "nobody"); }) == 301);
  CHECK(refused([](Pipeline& p) { p.connect("relay.left", "sink.in"); }) == 302);
  CHECK(refused([](Pipeline& p) { p.connect("relay", "sink.left"); }) == 302);
  CHECK(refused([](Pipeline& p) { p.add("relay", "t.relay"); }) == 303);
  CHECK(refused([](Pipeline& p) { p.add("other", "t.relax"); }) == 304);
}

TEST_CASE("5.1: edges are refused with MR0305 to MR0308") {
  CHECK(refused([](Pipeline& p) {
          p.add("picture", "p.bgr");
          p.connect("picture", "sink.in");
        }) == 305);
  CHECK(refused([](Pipeline& p) { p.add("lonely", "t.relay"); }) == 306);
  CHECK(refused([](Pipeline& p) { p.connect("source", "relay"); }) == 307);
  CHECK(refused([](Pipeline& p) {
          for (int i = 0; i < 8; ++i) p.connect("relay", "sink.in"); // takes eight in all
        }) == 307);
  CHECK(refused([](Pipeline& p) {
          p.add("two", "p.two");
          p.connect("source", "two");
          p.connect("two", "sink.in");
        }) == 308);
  CHECK(refused([](Pipeline& p) {
          p.add("two", "p.two");
          p.connect("source", "two");
          p.connect("two.right", "sink.in");
        }) == 0);
  CHECK(refused([](Pipeline& p) { p.connect("sink", "relay"); }) == 308); // it has no output
}

TEST_CASE("5.1: parameters are refused with MR0310 to MR0314") {
  const auto with = [](const char* type, std::map<std::string, std::string> params) {
    return refused([&](Pipeline& p) {
      p.add("other", type, params);
      p.connect("source", "other");
    });
  };
  CHECK(with("t.relay", {{"ad", "1"}}) == 310);
  CHECK(with("t.relay", {{"add", "one"}}) == 311);
  CHECK(with("t.late", {{"after", "-1"}}) == 312);
  CHECK(with("t.sink", {}) == 314);
  CHECK(with("t.relay", {{"add", "1"}}) == 0);
}

TEST_CASE("5.1: a source that cannot be opened is refused with MR0604") {
  CHECK(refused([](Pipeline& p) { p.add("camera", "p.unopened"); }) == 604);
}

TEST_CASE("2.3: a cycle needs a delay, and the delay an initial value: MR0401, MR0407") {
  const auto loop = [](uint32_t delay, bool initial) {
    return refused([&](Pipeline& p) {
      p.add("both", "t.need");
      p.add("back", "t.relay");
      p.connect("source", "both.a");
      graph::Edge& edge = p.connect("back", "both.b");
      edge.delay = delay;
      edge.initial_empty = initial;
      p.connect("both", "back");
    });
  };
  CHECK(loop(0, false) == 401);
  CHECK(loop(1, false) == 407);
  CHECK(loop(1, true) == 0);
  CHECK(refused([](Pipeline& p) { // an optional input needs none
          p.add("paced", "t.paced");
          p.connect("source", "paced.in");
          p.connect("paced", "paced.extra").delay = 1;
        }) == 0);
}

TEST_CASE("5.1: formats that do not meet are converted where a conversion is known and allowed, else MR0402") {
  const Planned planned(pictures("p.bgr", "p.rgb"));
  CHECK(planned.inserted() == std::vector<std::string>{"reader~rgb8"});
  CHECK(planned.type("reader~rgb8") == "image.convert");
  Pipeline p = pictures("p.bgr", "p.rgb");
  p.graph.edges[0].forbid_convert = true;
  CHECK(refusal(p) == 402);
  CHECK(Planned(pictures("p.nv12", "p.gray")).inserted().empty()); // they share one
}

TEST_CASE(
    "5.1: tensors of a type or rank that the reader does not declare are refused, with what each says and an edit") {
  const auto told = [](const std::map<std::string, std::string>& settings) {
    Pipeline p;
    graph::Handler& numbers = p.add("numbers", "p.numbers", settings);
    for (graph::Param& param : numbers.params) param.place = {"tensors.yaml", 3, 9};
    p.add("reader", "p.floats");
    p.connect("numbers", "reader");
    return error_of(p);
  };
  CHECK(told({{"dtype", "f32"}, {"dimensions", "2"}}).code == 0);
  const Error given = told({{"dtype", "i64"}});
  CHECK(given.code == 402);
  CHECK(given.what == "the two ends of an edge share no element type");
  CHECK(given.notes == std::vector<std::string>{"numbers.out gives int64", "reader.in takes float32, float64"});
  CHECK(given.edit == "dtype: f32");
  CHECK(given.place.line == 3);
  CHECK(told({}).edit == "numbers: { …, dtype: f32 }");
  const Error rank = told({{"dtype", "f32"}, {"dimensions", "3"}});
  CHECK(rank.what == "the two ends of an edge share no number of dimensions");
  CHECK(rank.notes == std::vector<std::string>{"numbers.out gives 3 dimensions", "reader.in takes 1 or 2 dimensions"});
  CHECK(rank.edit == "a handler between them that gives tensors of 1 or 2 dimensions");
}

TEST_CASE("5.1: an output that is of another element type than it declares is its handler's mistake") {
  Pipeline p;
  p.add("source", "p.overstated");
  p.add("sink", "null.sink");
  p.connect("source", "sink");
  CHECK(error_of(p).what == "source.out (p.overstated) is of int8, and it declares uint8");
}

TEST_CASE("5.1: two readers that want the same format share one conversion") {
  Pipeline p = pictures("p.bgr", "p.rgb");
  p.add("other", "p.rgb");
  p.connect("source", "other");
  CHECK(Planned(p).inserted().size() == 1);
}

TEST_CASE("2.3: what is pending must fit into the queue that rejoins it, and into the delay of its loop: MR0405") {
  const auto rejoin = [](uint32_t depth) {
    return refused([&](Pipeline& p) {
      p.add("encoder", "t.late");
      p.add("both", "t.need");
      p.connect("source", "encoder");
      p.connect("encoder", "both.a");
      p.connect("source", "both.b", graph::Policy::queue).depth = depth;
    });
  };
  CHECK(rejoin(7) == 405);
  CHECK(rejoin(8) == 0);
  const auto loop = [](uint32_t delay) {
    return refused([&](Pipeline& p) {
      p.add("paced", "t.paced");
      p.add("encoder", "t.late");
      p.connect("source", "paced.in");
      p.connect("encoder", "paced.extra").delay = delay;
      p.connect("paced", "encoder");
    });
  };
  CHECK(loop(8) == 405);
  CHECK(loop(9) == 0);
}

TEST_CASE("2.3: a delayed reader outside any loop may ask for what is not answered yet: the window has room for it") {
  Pipeline p(
      "t.count name=source ! t.late name=encoder ; source. ! t.paced name=paced ; encoder. ! paced.extra delay=3");
  p.clock(graph::ClockMode::free, 0, 1, 2);
  const Planned planned(p);
  CHECK(planned.level("paced") == 5);
  CHECK(planned.window("paced") == 2 + 8);
}

TEST_CASE("1.2: clocks that cannot beat are refused with MR0406, clocks that are not there with MR0301") {
  CHECK(refused([](Pipeline& p) { p.clock(graph::ClockMode::realtime); }) == 406); // no rate
  CHECK(refused([](Pipeline& p) { p.clock(graph::ClockMode::realtime, 30); }) == 0);
  CHECK(refused([](Pipeline& p) { p.graph.handlers[0].clock = "wall"; }) == 301);
}

TEST_CASE("5.1: devices that are not there, or that cannot run a handler, are refused with MR0408") {
  CHECK(refused([](Pipeline& p) { p.graph.handlers[1].device = "sim:0"; }) == 408);
  CHECK(refused([](Pipeline& p) { p.graph.handlers[1].device = "sim:0"; }, machine_of(1, {"cpu", "sim:0"})) == 0);
  CHECK(refused([](Pipeline& p) { p.graph.handlers[0].device = "sim:0"; }, machine_of(1, {"cpu", "sim:0"})) == 408);
  CHECK(refused([](Pipeline& p) {
          p.add("gpu", "p.gpu");
          p.connect("source", "gpu");
        }) == 408);
}

TEST_CASE("2.4: several instances of a handler with state are refused with MR0409") {
  CHECK(refused([](Pipeline& p) { p.graph.handlers[1].concurrency = 2; }) == 409);
  CHECK(refused([](Pipeline& p) {
          p.add("free", "t.stateless").concurrency = 2;
          p.connect("source", "free");
        }) == 0);
}

TEST_CASE("2.6: a bypass is refused with MR0410 where the output is another format or is written in place") {
  const auto bypassed = [](const char* type) {
    return refused([&](Pipeline& p) {
      p.add("bad", type).on_error = graph::OnError::bypass;
      p.connect("source", "bad");
    });
  };
  CHECK(bypassed("t.join") == 410);
  CHECK(bypassed("t.paint") == 410);
  CHECK(bypassed("t.relay") == 0);
  const auto cropped = [](const char* width) { // an output that is like its input, but not as large
    Pipeline p = pictures("p.bgr", "image.crop");
    p.graph.handlers[1].on_error = graph::OnError::bypass;
    p.graph.handlers[1].params.push_back({"width", width, {}, {}});
    return refusal(p);
  };
  CHECK(cropped("32") == 410);
  CHECK(cropped("64") == 0);
}

TEST_CASE("3.4, 5.1: a copy that the edge forbids is refused with MR0411") {
  const plan::Machine machine = machine_of(1, {"cpu", "sim:0"});
  const auto copy = [&](const char* device) {
    return refused(
        [&](Pipeline& p) {
          p.graph.handlers[1].device = device;
          p.graph.edges[0].forbid_copy = true;
        },
        machine);
  };
  CHECK(copy("sim:0") == 411);
  CHECK(copy("cpu") == 0);
}
