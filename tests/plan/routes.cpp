// Copies across boundaries, and where handlers are placed.
#include <doctest/doctest.h>

#include "plan/print.h"
#include "planned.h"
#include "tests/exec/harness.h"

using namespace millrace;
using namespace millrace::test;

namespace {

using Hops = std::vector<std::string>;

// source → every one of `devices` → sink.
Pipeline fan_out(const std::vector<std::string>& devices) {
  Pipeline p;
  p.add("source", "t.count");
  for (const std::string& device : devices) {
    const std::string name = "h" + std::to_string(p.graph.handlers.size());
    p.add(name, "t.relay").device = device;
    p.connect("source", name);
  }
  return p;
}

// source → "h".
Pipeline line_of(const std::string& type, const std::string& device = "") {
  Pipeline p;
  p.add("source", "t.count");
  p.add("h", type).device = device;
  p.connect("source", "h");
  return p;
}

} // namespace

TEST_CASE("3.4: all readers in one domain share one copy") {
  CHECK(Planned(fan_out({"cpu", "cpu"}), two_devices).hops() == Hops{});
  const Planned planned(fan_out({"sim:0", "sim:0", "sim:0"}), two_devices);
  CHECK(planned.hops() == Hops{"cpu → sim:0"});
  CHECK(planned.copies()[0].edges == 3);
  CHECK(planned.copies()[0].bytes == 256 + 8);
  CHECK(planned.copies()[0].reason == "read by h1, h2, h3 in sim:0");
  CHECK(Planned(fan_out({"sim:0", "sim:1", "sim:0"}), two_devices).hops() == Hops{"cpu → sim:0", "cpu → sim:1"});
}

TEST_CASE("3.4: a route between devices goes by way of the host and shares its first hop with readers there") {
  Pipeline p = fan_out({"sim:0"});
  p.add("other", "t.relay").device = "sim:1";
  p.connect("h1", "other");
  CHECK(Planned(p, two_devices).hops() == Hops{"cpu → sim:0", "cpu → sim:1", "sim:0 → cpu"});
  p.add("host", "t.relay").device = "cpu";
  p.connect("h1", "host");
  CHECK(Planned(p, two_devices).hops() == Hops{"cpu → sim:0", "cpu → sim:1", "sim:0 → cpu"});
}

TEST_CASE("3.6: between devices that have a hop of their own nothing goes by way of the host, unless that is cheaper") {
  Pipeline p = fan_out({"sim:0"});
  p.add("other", "t.relay").device = "sim:1";
  p.connect("h1", "other");
  plan::Machine machine = two_devices;
  machine.hops = {copy_hop("sim:0", "sim:1", 2)};
  CHECK(Planned(p, machine).hops() == Hops{"cpu → sim:0", "sim:0 → sim:1"});
  machine.hops = {copy_hop("sim:0", "sim:1", 100)}; // twice 10 µs are less
  CHECK(Planned(p, machine).hops() == Hops{"cpu → sim:0", "cpu → sim:1", "sim:0 → cpu"});
}

TEST_CASE("3.6: a way of several hops is taken where it is the cheapest, and readers on it share its hops") {
  Pipeline p = fan_out({"sim:0", "sim:1"});
  plan::Machine machine = two_devices;
  machine.hops = {copy_hop("cpu", "sim:1", 1000), copy_hop("sim:0", "sim:1", 3)};
  const Planned planned(p, machine);
  CHECK(planned.hops() == Hops{"cpu → sim:0", "sim:0 → sim:1"});
}

TEST_CASE("3.6: which way is the cheapest depends on the bytes") {
  Pipeline p("p.nv12 name=source ! p.gray name=h device=sim:0 ! p.gray name=other device=sim:1");
  plan::Machine machine = two_devices;
  machine.hops = {copy_hop("sim:0", "sim:1", 1, 0.01)}; // quick to begin, and slow: 6 KiB take 63 µs
  CHECK(Planned(p, machine).hops() == Hops{"cpu → sim:0", "cpu → sim:1", "sim:0 → cpu"});
  Pipeline small = fan_out({"sim:0"});
  small.add("other", "t.relay").device = "sim:1";
  small.connect("h1", "other");
  machine.hops = {copy_hop("sim:0", "sim:1", 1, 0.01)};
  CHECK(Planned(small, machine).hops() == Hops{"cpu → sim:0", "sim:0 → sim:1"});
}

TEST_CASE("3.6: what a device reads in place is not copied, as long as all its readers together pay less for it") {
  Pipeline p = fan_out({"sim:0", "sim:0", "sim:1"});
  plan::Machine machine = two_devices;
  plan::Hop hop = copy_hop("cpu", "sim:0", 10);
  hop.price.access_us_per_byte = 4.0 / 264; // 264 bytes; one reader pays 4 µs
  machine.hops = {hop};
  const Planned planned(p, machine);
  CHECK(planned.hops() == Hops{"cpu → sim:1"});
  CHECK(planned.count_of("= reads source.out where it is") == 2);
  CHECK(planned.ring("source").pinned);
  CHECK(planned.text().find("= reads source.out where it is, in cpu: 264 B, 4.0 µs; copied it would "
                            "take 10.0 µs") != std::string::npos);
  machine.hops[0].price.access_us_per_byte = 6.0 / 264; // two pay 12
  CHECK(Planned(p, machine).hops() == Hops{"cpu → sim:0", "cpu → sim:1"});
}

TEST_CASE("5.1: a hop that nobody measured is guessed, and the plan says so") {
  const Planned planned(fan_out({"sim:0"}), two_devices);
  CHECK(planned.has_note("hops not measured: cpu → sim:0, cpu → sim:1, sim:0 → cpu, sim:1 → cpu"));
}

TEST_CASE("3.4: a copy asks what else its readers need, unless that depends on the copy itself") {
  Pipeline p(
      "t.count name=source ! t.relay name=device device=sim:0 ! t.relay name=host ; t.need name=both device=sim:1 ; "
      "device. ! both.a ; host. ! both.b");
  const Planned planned(p, two_devices);
  uint32_t down = 0;
  for (const CopyView& copy : planned.copies()) {
    down += copy.to == "cpu"; // feeds host, which feeds both
    CHECK(copy.presumes("host") == (copy.to == "cpu"));
  }
  CHECK(down == 1);
}

TEST_CASE("3.4: a copy does not ask for a result that may be owed until its last value has been read") {
  for (const uint32_t delay : {0u, 1u}) { // 0: nobody reads its last value
    Pipeline p;
    p.add("source", "t.count");
    p.add("device", "t.relay").device = "sim:0";
    p.add("again", "t.join");
    p.add("late", "t.late", {{"after", "2"}});
    p.add("both", "t.need");
    p.connect("source", "device");
    p.connect("source", "again.in");
    if (delay > 0) {
      graph::Edge& edge = p.connect("device", "again.in");
      edge.delay = delay;
      edge.initial_empty = true;
    }
    p.connect("again", "late.in");
    p.connect("late", "both.a");
    p.connect("device", "both.b");
    const Planned planned(p, two_devices);
    uint32_t down = 0;
    for (const CopyView& copy : planned.copies()) {
      if (copy.to != "cpu") continue;
      ++down;
      CHECK(copy.presumes("late") == (delay > 0));
    }
    CHECK(down == 1);
  }
}

TEST_CASE("3.6, 3.4: within a domain nothing is copied, also where both ends are on a device") {
  Pipeline p = fan_out({"sim:0"});
  p.add("next", "t.relay").device = "sim:0";
  p.connect("h1", "next");
  CHECK(Planned(p, two_devices).hops() == Hops{"cpu → sim:0"});
}

TEST_CASE("5.1: pins are kept, the rest goes to the first named domain that can run it, and the reason is told") {
  Pipeline p = fan_out({"sim:1", ""});
  const Planned planned(p, machine_of(1, {"sim:0", "cpu", "sim:1"}));
  CHECK(planned.place("h1") == "sim:1");
  CHECK(planned.reason("h1") == "pinned by device:");
  CHECK(planned.place("h2") == "sim:0");
  CHECK(planned.reason("h2") == "first of --devices that can run it");
  CHECK(planned.place("source") == "cpu"); // its clock calls it
  CHECK(planned.domains()[0] == "cpu");
}

TEST_CASE("5.1: what a device cannot run stays on the host, and the reason says why") {
  const plan::Machine machine = machine_of(1, {"sim:0", "cpu"});
  const std::vector<std::pair<std::string, std::string>> cases = {{"p.blocking", "it blocks"},
                                                                  {"t.late", "its results may come later"},
                                                                  {"p.hostport", "its port in is declared cpu"},
                                                                  {"p.object", "its port out carries a host object"}};
  for (const auto& [type, why] : cases) {
    CAPTURE(type);
    Pipeline p;
    p.add("source", "t.count");
    p.add("h", type);
    p.connect("source", "h");
    const Planned planned(p, machine);
    CHECK(planned.place("h") == "cpu");
    CHECK(planned.reason("h") == "first of --devices that can run it (sim:0: " + why + ")");
    p.graph.handlers[1].device = "sim:0";
    CHECK(refusal(p, machine) == 408);
  }
}

TEST_CASE("5.1: a port that is declared gpu has its bytes there: the handler runs on a device, and the plan says why") {
  Pipeline p = line_of("p.ongpu");
  const Planned planned(p, machine_of(1, {"cpu", "sim:0"}));
  CHECK(planned.place("h") == "sim:0");
  CHECK(planned.reason("h") == "first of --devices that can run it (cpu: its port in is declared gpu)");
  CHECK(planned.hops() == Hops{"cpu → sim:0"});
  plan::Machine machine = machine_of(1, {"cpu", "sim:0"}); // also where it could read the host's memory for nothing
  plan::Hop hop = copy_hop("cpu", "sim:0", 10);
  hop.price.access_us_per_byte = 0;
  machine.hops = {hop};
  CHECK(Planned(p, machine).hops() == Hops{"cpu → sim:0"});
  CHECK(Planned(line_of("t.relay", "sim:0"), machine).hops().empty());
  CHECK(Planned(line_of("p.gpuoutput"), machine).place("h") == "sim:0");
}

TEST_CASE("5.1: a port that is declared gpu is refused where no device has a body for it: MR0408") {
  const auto refused = [](const std::string& type, const plan::Machine& machine, const std::string& device = "") {
    try {
      Planned planned(line_of(type, device), machine);
    } catch (const Failure& failure) {
      return format_error(failure.error());
    }
    return std::string();
  };
  CHECK(refused("p.ongpu", machine_of(1)) ==
        "error MR0408: no device can run h (p.ongpu)\n  cpu: its port in is declared gpu\n"
        "  `millrace doctor` says which GPUs are here\n  try: --devices cuda:0,cpu");
  CHECK(refused("p.gpuoutput", machine_of(1, {"cpu", "cuda:0"})) ==
        "error MR0408: no device can run h (p.gpuoutput)\n  cpu: its port out is declared gpu\n"
        "  cuda:0: it has no CUDA body");
  CHECK(refused("p.gpuoutput", machine_of(1)) ==
        "error MR0408: no device can run h (p.gpuoutput)\n  cpu: its port out is declared gpu\n"
        "  it has no GPU body either: process(Tick&, Cuda&)");
  CHECK(refused("p.ongpu", machine_of(1, {"cpu", "sim:0"}), "cpu") ==
        "error MR0408: h (p.ongpu) cannot run on cpu\n  its port in is declared gpu\n  try: remove device:");
}

TEST_CASE("5.1: a sink with a GPU body runs where what it reads is made, so that no copy is for it alone") {
  const auto sink_behind = [](const std::string& device) {
    Pipeline p = line_of("t.relay", device);
    p.add("sink", "p.gpusink");
    p.connect("h", "sink");
    return p;
  };
  const plan::Machine machine = machine_of(1, {"cpu", "sim:0", "sim:1"});
  for (const std::string device : {"cpu", "sim:0", "sim:1"}) {
    CAPTURE(device);
    const Planned planned(sink_behind(device), machine);
    CHECK(planned.place("sink") == device);
    CHECK(planned.reason("sink") == "where what it reads is made");
    CHECK(planned.hops() == (device == "cpu" ? Hops{} : Hops{"cpu → " + device}));
  }
  Pipeline both = sink_behind("sim:1"); // of several it goes by the order
  both.add("other", "t.join").device = "sim:0";
  both.graph.handlers[2].type = "p.gpusinks";
  both.connect("source", "other.in");
  both.connect("other", "sink");
  const Planned planned(both, machine);
  CHECK(planned.place("sink") == "cpu");
  CHECK(planned.reason("sink") == "first of --devices that can run it");
}

TEST_CASE("5.1: a sink acts on the host unless it is pinned to a device or has a GPU body") {
  Pipeline p("t.count name=source ! t.sink name=sink log=none");
  const plan::Machine machine = machine_of(1, {"sim:0", "cpu"});
  const Planned planned(p, machine);
  CHECK(planned.place("sink") == "cpu");
  CHECK(planned.reason("sink") == "first of --devices that can run it (sim:0: a sink without a CUDA body)");
  p.graph.handlers[1].device = "sim:0";
  CHECK(Planned(p, machine).place("sink") == "sim:0");
}

TEST_CASE("5.1: the passes are pure: a graph compiles to the same plan each time") {
  Pipeline p = fan_out({"sim:0", "sim:1", ""});
  p.add("join", "t.join");
  for (const char* name : {"h1", "h2", "h3"}) p.connect(name, "join.in");
  p.add("writer", "t.sink", {{"log", "none"}});
  p.connect("join", "writer", graph::Policy::queue).depth = 3;
  const plan::Machine machine = machine_of(3, {"cpu", "sim:0", "sim:1"});
  CHECK(Planned(p, machine).text() == Planned(p, machine).text());
  CHECK(plan::print_json(Planned(p, machine).plan()) == plan::print_json(Planned(p, machine).plan()));
}

TEST_CASE("4.5: a region takes in capturable handlers of one device, and is cut by what is not") {
  Pipeline p;
  p.add("source", "t.count");
  for (const char* type : {"t.capturable", "t.capturable", "t.relay", "t.capturable"}) {
    const std::string name = "h" + std::to_string(p.graph.handlers.size());
    p.connect(p.graph.handlers.back().name, name);
    p.add(name, type).device = "sim:0";
  }
  const Planned planned(p, machine_of(1, {"cpu", "sim:0"}));
  REQUIRE(planned.regions().size() == 2);
  CHECK(planned.regions()[0].steps == std::vector<std::string>{"h1", "h2"});
  CHECK(planned.regions()[1].steps == std::vector<std::string>{"h4"});
  CHECK(Planned([&] {
          Pipeline host = p;
          for (graph::Handler& handler : host.graph.handlers) handler.device = "";
          return host;
        }())
            .regions()
            .empty());
}

TEST_CASE("4.5: a capturable handler that fires on every second tick, or whose input is held, stays on streams") {
  Pipeline p = fan_out({"sim:0"});
  p.add("h", "t.capturable").device = "sim:0";
  p.connect("h1", "h");
  const auto captured = [&] { return Planned(p, two_devices).captured("h"); };
  CHECK(captured());
  p.graph.handlers[2].every = 2;
  CHECK_FALSE(captured());
  p.graph.handlers[2].every = 1;
  p.graph.edges[1].policy = graph::Policy::latest;
  CHECK_FALSE(captured());
}
