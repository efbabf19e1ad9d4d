// The number of a stream, as handlers are told it and as the headers of values say it (B1).
#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <map>
#include <mutex>
#include <set>

#include "device/sim/sim.h"
#include "graph/unfold.h"
#include "spread.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// By the name of a note: the stream that the handler was told, and the one that each value said.
using Numbers = std::set<std::pair<uint32_t, uint32_t>>;
std::mutex numbers_mutex;
std::map<std::string, Numbers> noted;

struct NotesStreams final : Handler {
  Inputs<Tensor> in{*this, "in", 8};
  Param<std::string> name{*this, "name", "", "of the note"};
  void process(Tick& tick, Cpu&) {
    const std::lock_guard lock(numbers_mutex);
    for (uint32_t i = 0; i < in.count(); ++i)
      if (in.present(tick, i)) noted[*name].insert({tick.stream(), in(tick, i).header().stream});
  }
};

// Its value has the input's time and stream, as one of allocate_like() has.
struct AlikeOne final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  AlikeOne() { capturable(); }
  uint8_t* begin(Tick& tick) {
    const int64_t shape[] = {1};
    uint8_t* const data = out.allocate(tick, dtype_of<int64_t>(), shape).data();
    out.header(tick).stream = in(tick).header().stream;
    out.header(tick).pts_ns = in(tick).header().pts_ns;
    return data;
  }
  void process(Tick& tick, Cpu&) { std::memcpy(begin(tick), in(tick).data(), 8); }
  void process(Tick& tick, Cuda& cuda) {
    static_cast<device::SimQueue*>(cuda.stream())->launch([to = begin(tick), from = in(tick).data()] {
      std::memcpy(to, from, 8);
    });
  }
};

struct PassedOn final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", forward(in)};
  PassedOn() { capturable(); }
  void process(Tick& tick, Cpu&) { out.forward(tick, in); }
  void process(Tick& tick, Cuda&) { out.forward(tick, in); }
};

const mr_plugin& numbers_plugin() {
  static const mr_handler_type types[] = {detail::Type<NotesStreams>::table("n.notes", "Notes streams", ""),
                                          detail::Type<AlikeOne>::table("n.alike", "Copies", ""),
                                          detail::Type<PassedOn>::table("n.pass", "Passes on", "")};
  static const mr_handler_type* const pointers[] = {&types[0], &types[1], &types[2]};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "numbers", "1", pointers, 3, 0};
  return plugin;
}

Pipeline unfolded_pipeline(const std::string& text) {
  Pipeline pipeline;
  pipeline.graph = graph::unfold(graph::parse_yaml("version: 1\n" + text, "numbers.yaml"));
  return pipeline;
}

Setup numbers_setup(const std::vector<std::string>& domains = {"cpu"}) {
  Setup setup;
  setup.more = &numbers_plugin();
  setup.domains = domains;
  return setup;
}

const Numbers kOwn = {{0, 0}, {1, 1}, {2, 2}}; // each stream its own
// Values from a maker outside streams, and from camera c.
const std::string kCameras = R"(
clocks: { cameras: { mode: free }, far: { mode: free }, wall: { mode: free } }
handlers:
  far:     { type: t.count, clock: far, count: 5 }
  source:  { type: t.count, for_each: cameras, count: 5 }
  first:   { type: n.notes, for_each: cameras, input: source, name: first }
  alike:   { type: n.alike, for_each: cameras, input: { from: far, policy: latest } }
  alike_n: { type: n.notes, for_each: cameras, input: alike, name: alike }
  paint:   { type: t.paint, for_each: cameras, input: { from: source@c, policy: latest } }
  paint_n: { type: n.notes, for_each: cameras, input: paint, name: paint }
  pass:    { type: n.pass, for_each: cameras, input: { from: source@c, policy: latest } }
  pass_n:  { type: n.notes, for_each: cameras, input: pass, name: pass }
  late:    { type: t.late, for_each: cameras, input: source }
  late_n:  { type: n.notes, for_each: cameras, input: late, name: late }
  second:  { type: n.alike, input: source@b }
  next_n:  { type: n.notes, input: second, name: next }
  held_n:  { type: n.notes, clock: wall, input: { from: alike, policy: latest }, name: held }
  kept:    { type: n.alike, clock: wall, input: { from: source@c, policy: latest } }
  kept_n:  { type: n.notes, input: kept, name: kept }
)";

} // namespace

TEST_CASE("B1: a tick and the values that are made on it say the stream of their handler") {
  noted.clear();
  Setup setup = numbers_setup();
  setup.virtual_time = true;
  const Ran ran = run(unfolded_pipeline("streams: { cameras: { items: { a: {}, b: {}, c: {} } } }" + kCameras), setup);
  REQUIRE_MESSAGE(ran.ok, ran.error.what);
  CHECK(noted["first"] == kOwn);
  CHECK(noted["alike"] == kOwn);                           // though the value that it was made like came from outside
  CHECK(noted["paint"] == kOwn);                           // though it was written over what another stream had made
  CHECK(noted["late"] == kOwn);                            // published later
  CHECK(noted["pass"] == Numbers{{0, 2}, {1, 2}, {2, 2}}); // passed on, and so its maker's
  CHECK(noted["next"] == Numbers{{1, 1}});                 // outside the streams, but on the clock of one
  CHECK(noted["held"] == Numbers{{0, 0}, {0, 1}, {0, 2}});
  CHECK(noted["kept"] == Numbers{{0, 2}}); // made outside streams, like a value of one
}

TEST_CASE("B1: on a shared clock each instance has a stream, on the host and on devices, captured or not") {
  const std::string text = R"(
streams: { cameras: { clock: shared, items: { a: {}, b: {}, c: {} } } }
handlers:
  source: { type: t.count, for_each: cameras, count: 9 }
  alike:  { type: n.alike, for_each: cameras, input: source@c, device: AT }
  over:   { type: n.pass, for_each: cameras, input: alike, device: AT }
  pass:   { type: n.pass, for_each: cameras, input: source@c, device: AT }
  again:  { type: n.pass, for_each: cameras, input: pass, device: AT }
  over_n: { type: n.notes, for_each: cameras, input: over, name: over }
  pass_n: { type: n.notes, for_each: cameras, input: again, name: pass }
)";
  for (const std::string device : {"cpu", "sim:0", "cuda:0"}) {
    CAPTURE(device);
    std::string placed = text;
    for (size_t at; (at = placed.find("AT")) != std::string::npos;) placed.replace(at, 2, device);
    for (const bool captured : {false, true}) {
      CAPTURE(captured);
      noted.clear();
      Setup setup =
          numbers_setup(device == "cpu" ? std::vector<std::string>{"cpu"} : std::vector<std::string>{device, "cpu"});
      setup.options.sync_devices = !captured;
      Compiled compiled(unfolded_pipeline(placed), setup);
      CHECK(compiled.regions().empty() == (device == "cpu"));
      const Ran ran = compiled.run();
      REQUIRE_MESSAGE(ran.ok, ran.error.what);
      uint64_t launches = 0;
      for (const RegionReport& region : ran.report.regions) launches += region.launches;
      CHECK((launches > 0) == (device == "cuda:0" && captured));
      CHECK(noted["over"] == kOwn);
      CHECK(noted["pass"] == Numbers{{0, 2}, {1, 2}, {2, 2}});
    }
  }
}

TEST_CASE("B1: a value that another node has made says its stream") {
  noted.clear();
  Pipeline pipeline = unfolded_pipeline(R"(
streams: { cameras: { items: { a: {}, b: {}, c: {} } } }
handlers:
  source: { type: t.count, for_each: cameras, count: 5 }
  there:  { type: n.alike, for_each: cameras, input: source }
  notes:  { type: n.notes, for_each: cameras, input: there, name: there }
)");
  for (graph::Handler& handler : pipeline.graph.handlers) handler.node = handler.written_as == "there" ? "gpu" : "home";
  Nodes nodes;
  nodes.names = {"home", "gpu"};
  Spread spread(pipeline, nodes, numbers_setup());
  const Ran ran = spread.run();
  REQUIRE_MESSAGE(ran.ok, ran.error.what);
  CHECK(spread.parcels() > 0);
  CHECK(noted["there"] == kOwn);
}
