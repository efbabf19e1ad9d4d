// A run on devices does not take a lost value for a good one, has no device wait for another's copies, and gives what
// the host gives.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

#include "device/sim/sim.h"
#include "harness.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// One thread, two, virtual time, and a device that runs only what somebody waits for.
std::vector<Setup> device_ways() {
  std::vector<Setup> ways(4);
  ways[1].workers = 2;
  ways[2].virtual_time = true;
  ways[3].adversarial = true;
  for (Setup& setup : ways) setup.domains = {"cpu", "sim:0"};
  return ways;
}

std::vector<device::SimFaults> faults() {
  std::vector<device::SimFaults> all;
  for (const uint64_t n : {1u, 2u, 5u, 8u, 20u}) {
    for (int kind = 0; kind < 3; ++kind) {
      device::SimFaults fault;
      (kind == 0 ? fault.fail_run : kind == 1 ? fault.fail_copy : fault.lose_device) = n;
      all.push_back(fault);
    }
  }
  return all;
}

constexpr uint64_t kWritten = 8; // ticks that test.stale writes: more than any ring here is long
template <bool recorded>
struct StaleBlock final : Handler { // takes what its block held before for what it is to hold
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  StaleBlock() {
    if (recorded) capturable();
  }
  void process(Tick& tick, Cpu&) {
    const int64_t value = in(tick).elements<int64_t>()[0];
    const int64_t shape[] = {1};
    int64_t& to = out.allocate(tick, dtype_of<int64_t>(), shape).elements<int64_t>()[0];
    if (tick.index() < kWritten) to = value;
  }
};

const mr_plugin& stale_plugin() {
  static const mr_handler_type types[] = {detail::Type<StaleBlock<false>>::table("test.stale", "", ""),
                                          detail::Type<StaleBlock<true>>::table("test.stale_recorded", "", "")};
  static const mr_handler_type* const pointers[] = {&types[0], &types[1]};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "stale", "1", pointers, 2, 0};
  return plugin;
}

constexpr uint64_t kCopied = 40; // ticks of the tests that count copies

// source → one reader in each of these places, whose outputs nobody reads; the counts of its report.
Ran fan_out(Setup setup, const std::vector<std::string>& places) {
  setup.domains = {"cpu", "sim:0", "sim:1", "sim:2"};
  Pipeline p;
  p.add("source", "t.count", {{"count", std::to_string(kCopied)}});
  for (const std::string& place : places) {
    const std::string name = "reader" + std::to_string(p.graph.handlers.size());
    p.add(name, "t.relay").device = place;
    p.connect("source", name);
  }
  Ran result = run(p, setup);
  REQUIRE(result.ok);
  REQUIRE(result.report.edges.size() == places.size());
  for (const EdgeReport& edge : result.report.edges) CHECK(edge.delivered == kCopied);
  return result;
}

} // namespace

TEST_CASE("4.9: a device that is lost ends the run with its own code, and what it left is never read") {
  size_t there = 0, there_behind = 0;
  for (Setup setup : device_ways()) {
    for (const device::SimFaults& fault : faults()) {
      setup.faults = fault;
      Pipeline p(
          "t.count name=source count=40 first=100 ! t.relay name=d device=sim:0 ! t.paint name=paint device=sim:0 ; "
          "t.relay name=behind ; paint. ! t.sink name=sink log=lost ; behind. ! t.sink name=sink2 log='lost behind' ; "
          "d. ! behind. policy=queue depth=4");
      const Ran result = run(p, setup);
      CHECK(!result.ok);
      CHECK(result.error.code == 703);
      for (const Seen& seen : result.seen_if_any("lost")) {
        CHECK((seen.values[0] == kEmpty || seen.values[0] == 101 + static_cast<int64_t>(seen.index)));
        there += seen.values[0] != kEmpty;
      }
      for (const Seen& seen : result.seen_if_any("lost behind")) {
        CHECK((seen.values[0] == kEmpty || seen.values[0] == 100 + static_cast<int64_t>(seen.index)));
        there_behind += seen.values[0] != kEmpty;
      }
    }
  }
  CHECK(there > 0); // of the later faults
  CHECK(there_behind > 0);
}

TEST_CASE("4.10: in adversarial mode a handler that reads what its block held before reads poison") {
  int64_t poison = 0;
  std::memset(&poison, device::kPoison, sizeof poison);
  for (const std::string type : {"test.stale", "test.stale_recorded"}) {
    for (const bool adversarial : {false, true}) {
      CAPTURE(type);
      CAPTURE(adversarial);
      Setup setup;
      setup.domains = {"cpu", "sim:0"};
      setup.adversarial = adversarial;
      setup.more = &stale_plugin();
      Pipeline p = line({type}, "stale", 40);
      p.graph.handlers[1].device = "sim:0";
      const Ran ran = run(p, setup);
      REQUIRE(ran.ok);
      const std::vector<int64_t> seen = values(ran.seen("stale"));
      REQUIRE(seen.size() == 40);
      for (size_t n = 0; n < kWritten; ++n) CHECK(seen[n] == static_cast<int64_t>(n));
      CHECK(std::count(seen.begin() + kWritten, seen.end(), poison) == (adversarial ? 40 - kWritten : 0));
    }
  }
}

TEST_CASE("4.9: a device that is lost is the cause before any handler that failed") {
  for (Setup setup : device_ways()) {
    setup.faults.fail_run = 1;
    Pipeline p(
        "t.count name=source count=20 ! t.relay name=d device=sim:0 ; source. ! t.relay name=fails fail_at=0 ; "
        "d. ! t.sink name=sink log=cause ; fails. ! sink.");
    const Ran result = run(p, setup);
    CHECK(!result.ok);
    CHECK(result.error.code == 703);
  }
}

TEST_CASE("3.4: a copy is not waited for by what it waits for: a reader's other input may depend on it") {
  for (const Setup& setup : device_ways()) {
    Pipeline p;
    p.add("source", "t.count", {{"count", "9"}});
    p.add("seldom", "t.relay").every = 3;
    p.graph.handlers.back().device = "sim:0";
    p.add("need", "t.need").device = "sim:0";
    p.add("sink", "t.sink", {{"log", "circle"}});
    p.connect("source", "seldom");
    p.connect("source", "need.a");
    p.connect("seldom", "need.b");
    p.connect("need", "sink");
    const Ran ran = run(p, setup);
    REQUIRE(ran.ok);
    const std::vector<int64_t> expected = {0, kEmpty, kEmpty, 3003, kEmpty, kEmpty, 6006, kEmpty, kEmpty};
    CHECK(values(ran.seen("circle")) == expected);
  }
}

TEST_CASE("2.3: a delayed required input repeats the last value on a device as it does on the host") {
  for (const Setup& setup : device_ways()) {
    std::vector<Seen> logs[2];
    for (const bool on_device : {false, true}) {
      Pipeline p;
      p.add("source", "t.count", {{"count", "20"}, {"first", "1"}});
      p.add("quiet", "t.relay", {{"silent_every", "3"}}).device = on_device ? "sim:0" : "cpu";
      p.add("need", "t.need").device = on_device ? "sim:0" : "cpu";
      p.add("sink", "t.sink", {{"log", "repeat"}});
      p.connect("source", "quiet");
      p.connect("source", "need.a");
      graph::Edge& edge = p.connect("quiet", "need.b");
      edge.delay = 1;
      edge.initial_empty = true;
      p.connect("need", "sink");
      const Ran ran = run(p, setup);
      REQUIRE(ran.ok);
      logs[on_device] = ran.seen("repeat");
    }
    REQUIRE(logs[0].size() == 20);
    CHECK(logs[0][3].values[0] == 4002); // tick 2 was silent
    CHECK(logs[0] == logs[1]);
  }
}

TEST_CASE("2.1: a value that a device left absent takes no place in a queue, and none is dropped for it") {
  Pipeline p(
      "t.count name=source count=10 ! t.relay name=quiet silent_every=3 device=sim:0 ; t.relay name=writer "
      "device=cpu ; quiet. ! writer. policy=queue depth=1 full=drop_oldest");
  p.clock(graph::ClockMode::realtime, 100);
  Setup setup;
  setup.workers = 2;
  setup.domains = {"cpu", "sim:0"};
  setup.virtual_time = true;
  setup.costs_ns = {{"writer", 44 * kMs}};
  Compiled compiled(p, setup);
  CHECK(compiled.window("writer") == 3);
  const Ran result = compiled.run();
  REQUIRE(result.ok);
  // Values come at 0, 10, 30, 40, 60, 70 and 90 ms. One is being written, two are on their way there, one may wait: at
  // 70 ms a newer one takes its place. Absent ones at 20, 50 and 80 ms would take more.
  REQUIRE(result.report.edges[1].to == "writer.in");
  CHECK(result.report.edges[1].dropped.at("queue_full") == 1);
  REQUIRE(result.report.handlers[2].name == "writer");
  CHECK(result.report.handlers[2].calls == 6);
}

TEST_CASE("4.5: an input that may be an initial value keeps its handler on streams") {
  for (const Setup& setup : device_ways()) {
    Pipeline p(
        "t.count name=source count=9 ! t.relay name=silent silent_every=1 ; t.capturable name=c device=sim:0 ; "
        "silent. ! t.sink name=sink log=initial ; silent. ! c. policy=latest initial=empty ! sink.in");
    Compiled compiled(p, setup);
    CHECK(compiled.regions().empty());
    REQUIRE(compiled.run().ok);
    CHECK(values(compiled.seen("initial"), 1) == std::vector<int64_t>(9, 0));
  }
}

TEST_CASE("4.5: regions that share a ring have one length, whichever of them is longer") {
  for (const Setup& setup : device_ways()) {
    Pipeline p(
        "t.count name=source count=40 ! t.capturable name=a device=sim:0 ! t.relay name=between device=sim:0 ; "
        "t.captureneed name=b device=sim:0 ! t.paced name=delayed device=sim:0 ! t.sink name=sink log=regions ; "
        "source. ! b.a ; between. ! b.b ! delayed.extra delay=4");
    p.clock(graph::ClockMode::free, 0, 1, 3);
    Compiled compiled(p, setup);
    REQUIRE(compiled.regions().size() == 2);
    CHECK(compiled.regions()[0].slots == compiled.regions()[1].slots);
    CHECK(compiled.ring("a").length == compiled.ring("b").length);
    REQUIRE(compiled.run().ok);
    const std::vector<int64_t> seen = values(compiled.seen("regions"));
    REQUIRE(seen.size() == 40);
    for (int64_t i = 0; i < 40; ++i)
      CHECK(seen[static_cast<size_t>(i)] == i * 1001 * 1000 + (i < 4 ? 999 : (i - 4) * 1001));
  }
}

TEST_CASE("3.5: on a device an optional input is not written over in place, since it may not be there") {
  for (const Setup& setup : device_ways()) {
    Pipeline p(
        "t.count name=source count=9 ! t.relay name=quiet silent_every=3 ! t.maybepaint name=paint device=sim:0 ! "
        "t.sink name=sink log=maybe");
    const Ran ran = run(p, setup);
    REQUIRE(ran.ok);
    CHECK(values(ran.seen("maybe")) == std::vector<int64_t>{1, 2, kEmpty, 4, 5, kEmpty, 7, 8, kEmpty});
  }
}

TEST_CASE("3.4: foreign memory that two devices read is brought to its block once") {
  for (Setup setup : device_ways()) {
    setup.domains = {"cpu", "sim:0", "sim:1"};
    Pipeline p(
        "t.foreign name=source count=200 ! t.relay name=x device=sim:0 ; source. ! t.relay name=y device=sim:1 ; "
        "x. ! t.sink name=sink log=foreign ; y. ! sink.");
    const Ran ran = run(p, setup);
    REQUIRE(ran.ok);
    const std::vector<Seen> log = ran.seen("foreign");
    REQUIRE(log.size() == 200);
    for (const Seen& seen : log) CHECK(seen.values == std::vector<int64_t>{7, 7});
  }
}

TEST_CASE("4.6: a packed copy carries what is wanted of it on each tick, and counts as one") {
  // `half` is silent on every second tick, `never` has no value that its reader could fire on.
  Pipeline p;
  p.clock(graph::ClockMode::free, 0, 1, 3);
  p.add("source", "t.count", {{"count", "24"}});
  p.add("always", "t.relay", {{"add", "100"}});
  p.add("half", "t.relay", {{"add", "200"}, {"silent_every", "2"}});
  p.add("never", "t.relay", {{"add", "300"}, {"silent_every", "1"}});
  p.add("join", "t.join").device = "sim:0";
  p.add("sink", "t.sink", {{"log", "packed"}});
  for (const char* name : {"always", "half", "never"}) {
    p.connect("source", name);
    p.connect(name, "join.in");
  }
  p.connect("join", "sink");
  Setup host;
  Pipeline on_host = p;
  on_host.graph.handlers[4].device = "";
  const Ran expected = run(on_host, host);
  REQUIRE(expected.ok);
  const std::vector<Seen> right = expected.seen("packed");
  for (const bool adversarial : {false, true}) {
    CAPTURE(adversarial);
    Setup setup;
    setup.domains = {"cpu", "sim:0"};
    setup.workers = 2;
    setup.adversarial = adversarial;
    const Ran result = run(p, setup);
    REQUIRE(result.ok);
    CHECK(result.seen("packed") == right);
    REQUIRE(result.report.transfers.size() == 2); // up and down
    CHECK(result.report.transfers[0].count == 24);
    CHECK(result.report.transfers[0].edge.find(", ") != std::string::npos);
  }
}

TEST_CASE("4.9: a device that finishes nothing while nothing else moves is lost, and the run ends") {
  Setup setup;
  setup.domains = {"cpu", "sim:0"};
  setup.workers = 2;
  setup.faults.hang_command = 9;
  setup.options.device_patience_ns = 300'000'000;
  Pipeline p = line({"t.relay"}, "hung", 1000);
  p.graph.handlers[1].device = "sim:0";
  const Ran result = run(p, setup);
  REQUIRE_FALSE(result.ok);
  CHECK(result.error.code == 703);
  CHECK(result.error.what.find("sim:0 is lost: it has finished nothing for 0.") != std::string::npos);
  CHECK(result.seen("hung").size() < 1000);
}

TEST_CASE("3.4: eight readers in one other domain are served by one copy a tick") {
  for (const Setup& setup : device_ways()) {
    const Ran result = fan_out(setup, std::vector<std::string>(8, "sim:0"));
    CHECK(copied(result, "cpu", "sim:0") == kCopied);
    CHECK(copied(result) == kCopied);
  }
}

TEST_CASE("3.4: readers in three other domains are three copies a tick, however many they are") {
  for (const Setup& setup : device_ways()) {
    const Ran result = fan_out(setup, {"sim:0", "sim:1", "sim:2", "sim:0", "cpu", "sim:2"});
    for (const char* domain : {"sim:0", "sim:1", "sim:2"}) CHECK(copied(result, "cpu", domain) == kCopied);
    CHECK(copied(result) == 3 * kCopied);
  }
}

TEST_CASE("3.4: an output that nobody reads is copied nowhere") {
  for (const Setup& setup : device_ways()) {
    const Ran result = fan_out(setup, {"cpu", "cpu"});
    CHECK(copied(result) == 0);
    const Ran on_device = fan_out(setup, {"sim:0"}); // what goes there; nothing comes back
    CHECK(copied(on_device, "sim:0") == 0);
    CHECK(copied(on_device) == kCopied);
  }
}

TEST_CASE("3.4: what goes from one device to another by way of the host is copied down once, for a reader there too") {
  for (Setup setup : device_ways()) {
    setup.domains = {"cpu", "sim:0", "sim:1"};
    Pipeline p;
    p.add("source", "t.count", {{"count", std::to_string(kCopied)}});
    p.add("first", "t.relay").device = "sim:0";
    p.add("second", "t.relay").device = "sim:1";
    p.add("sink", "t.sink", {{"log", "once down"}}).device = "cpu";
    p.connect("source", "first");
    p.connect("first", "second");
    p.connect("first", "sink");
    const Ran result = run(p, setup);
    REQUIRE(result.ok);
    CHECK(copied(result, "sim:0", "cpu") == kCopied);
    CHECK(copied(result, "cpu", "sim:0") == kCopied);
    CHECK(copied(result, "cpu", "sim:1") == kCopied);
    CHECK(copied(result) == 3 * kCopied);
    CHECK(result.seen("once down").size() == kCopied);
  }
}
