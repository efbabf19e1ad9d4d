// Bodies that enqueue, captured and not, against the same handlers on the host (semantics.md 4.4, 4.5).
#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "device/device.h"
#include "device/sim/sim.h"
#include "enqueuing_handlers.h"
#include "plan/machine.h"
#include "table_of.h"
#include "tests/part.h"
#include "tests/seed.h"

namespace millrace::test::enqueuing {
namespace {

using namespace enqueued;

struct Add final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  Param<int64_t> add{*this, "add", 1, "added", live};
  Add() { capturable(); }
  void process(Tick& tick, Cpu&) { *fresh(out, tick) = number(in(tick)) + add; }
  void process(Tick& tick, Cuda& cuda) {
    queue(cuda).launch([to = fresh(out, tick), from = numbers(in(tick).data()), more = *add] { *to = *from + more; });
  }
};

struct Pair final : Handler { // needs one, takes the other where it is there
  Input<Tensor> a{*this, "a"};
  Input<Tensor> b{*this, "b", optional};
  Output<Tensor> out{*this, "out", like(a)};
  Pair() { capturable(); }
  static int64_t of(int64_t a, int64_t b) { return mix(a, b); }
  void process(Tick& tick, Cpu&) { *fresh(out, tick) = of(number(a(tick)), b.present(tick) ? number(b(tick)) : -1); }
  void process(Tick& tick, Cuda& cuda) {
    const int64_t* other = b.present(tick) ? numbers(b(tick).data()) : nullptr;
    queue(cuda).launch(
        [to = fresh(out, tick), from = numbers(a(tick).data()), other] { *to = of(*from, other ? *other : -1); });
  }
};

struct Tally final : Handler { // needs one, and counts in lists; a list that is absent is as one of no records
  Input<Tensor> in{*this, "in"};
  Inputs<Records<Box>> lists{*this, "lists", 3, optional, idle_without};
  Output<Tensor> out{*this, "out", like(in)};
  Tally() { capturable(); }
  static int64_t of(int64_t value, std::span<const int64_t> totals) {
    for (const int64_t total : totals) value = mix(value, total);
    return value;
  }
  void process(Tick& tick, Cpu&) {
    int64_t totals[3] = {};
    for (uint32_t list = 0; list < lists.count(); ++list)
      if (lists.present(tick, list)) totals[list] = Total::of(lists(tick, list).data(), lists(tick, list).size());
    *fresh(out, tick) = of(number(in(tick)), totals);
    take_times(tick);
  }
  void process(Tick& tick, Cuda& cuda) {
    const Box* boxes[3] = {};
    const uint64_t* counts[3] = {};
    for (uint32_t list = 0; list < lists.count(); ++list) {
      if (!lists.present(tick, list)) continue;
      boxes[list] = lists(tick, list).data();
      counts[list] = &Cuda::value_of(lists.raw(tick, list))->as.records.count;
    }
    queue(cuda).launch([=, to = fresh(out, tick), from = numbers(in(tick).data())] {
      int64_t totals[3] = {};
      for (uint32_t list = 0; list < 3; ++list)
        if (counts[list]) totals[list] = Total::of(boxes[list], *counts[list]);
      *to = of(*from, totals);
    });
    take_times(tick);
  }
  // The value has the times of the first list, if that is there.
  void take_times(Tick& tick) {
    if (lists.count() > 0 && lists.present(tick, 0)) out.header(tick).pts_ns = lists.raw(tick, 0).value->header.pts_ns;
  }
};

struct Tells final : Handler { // a list that is absent from one of no records
  Input<Tensor> in{*this, "in"};
  Input<Records<Box>> list{*this, "list", optional};
  Output<Tensor> out{*this, "out", like(in)};
  Tells() { capturable(); }
  void process(Tick& tick, Cpu&) {
    *fresh(out, tick) = mix(number(in(tick)), list.present(tick) ? static_cast<int64_t>(list(tick).size()) : -1);
  }
  void process(Tick& tick, Cuda& cuda) {
    const uint64_t* const count = list.present(tick) ? &Cuda::value_of(list.raw(tick))->as.records.count : nullptr;
    queue(cuda).launch([=, to = fresh(out, tick), from = numbers(in(tick).data())] {
      *to = mix(*from, count ? static_cast<int64_t>(*count) : -1);
    });
  }
};

struct Stamp final : Handler { // on the host: the value and its time
  Input<Tensor> in{*this, "in", on_cpu};
  Output<Tensor> out{*this, "out", like(in)};
  void process(Tick& tick, Cpu&) { *fresh(out, tick) = mix(number(in(tick)), in(tick).header().pts_ns); }
};

struct InPlace final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", in_place(in)};
  InPlace() { capturable(); }
  void process(Tick& tick, Cpu&) { out.modify(tick, in).elements<int64_t>()[0] += 7; }
  void process(Tick& tick, Cuda& cuda) {
    queue(cuda).launch([at = numbers(out.modify(tick, in).data())] { *at += 7; });
  }
};

struct Odd final : Handler { // silent on even ticks, so it has to be called on each
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  void process(Tick& tick, Cpu&) {
    if (tick.index() % 2) *fresh(out, tick) = number(in(tick)) * 3;
  }
  void process(Tick& tick, Cuda& cuda) {
    if (tick.index() % 2)
      queue(cuda).launch([to = fresh(out, tick), from = numbers(in(tick).data())] { *to = *from * 3; });
  }
};

struct Pass final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", forward(in)};
  Pass() { capturable(); }
  void process(Tick& tick, Cpu&) { out.forward(tick, in); }
  void process(Tick& tick, Cuda&) { out.forward(tick, in); }
};

struct Held final : Handler { // its body has the stream and the memory that start() was told
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  Held() { needs_scratch(sizeof(int64_t)); }
  void start() override { place_ = gpu(); }
  void process(Tick& tick, Cpu&) { *fresh(out, tick) = gpu() ? -1 : number(in(tick)); }
  void process(Tick& tick, Cuda& cuda) {
    const bool is_told = place_ && place_->stream == cuda.stream() && place_->scratch == cuda.scratch() &&
                         place_->scratch && place_->scratch_bytes == sizeof(int64_t);
    queue(cuda).launch(
        [to = fresh(out, tick), from = numbers(in(tick).data()), is_told] { *to = is_told ? *from : -2; });
  }

 private:
  std::optional<GpuPlace> place_;
};

struct OnHost final : Handler { // with its parameters there is no GPU body
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  void probe(Facts& facts) override { facts.no_gpu_body(); }
  void process(Tick& tick, Cpu&) { *fresh(out, tick) = number(in(tick)); }
  void process(Tick&, Cuda&) { throw std::logic_error("it has none"); }
};

struct FailsOnDevice final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  void process(Tick& tick, Cpu&) { *fresh(out, tick) = number(in(tick)); }
  void process(Tick& tick, Cuda& cuda) {
    if (tick.index() == 5) throw std::runtime_error("told to fail");
    queue(cuda).launch([to = fresh(out, tick), from = numbers(in(tick).data())] { *to = *from; });
  }
};

// q.heavy stays in its call for tick kMet until q.meets has been called for that tick, which q.gate lets through only
// once q.heavy is inside.
constexpr uint64_t kMet = 3;
struct Meeting {
  std::atomic<bool> inside{false}, met{false}, missed{false};
  bool await(const std::atomic<bool>& flag) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!flag && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    if (!flag) missed = true;
    return flag;
  }
};
Meeting* meeting = nullptr;

struct Heavy final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  Heavy() { host_heavy(); }
  void process(Tick& tick, Cpu&) { *fresh(out, tick) = number(in(tick)) * 5; }
  void process(Tick& tick, Cuda& cuda) {
    if (tick.index() == kMet) meeting->inside = true;
    if (tick.index() == kMet) meeting->await(meeting->met);
    queue(cuda).launch([to = fresh(out, tick), from = numbers(in(tick).data())] { *to = *from * 5; });
  }
};
struct Gate final : Handler { // on the host
  Input<Tensor> in{*this, "in", on_cpu};
  Output<Tensor> out{*this, "out", like(in)};
  void process(Tick& tick, Cpu&) {
    if (meeting && tick.index() == kMet) meeting->await(meeting->inside);
    *fresh(out, tick) = number(in(tick));
  }
};
struct Meets final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  void process(Tick& tick, Cpu&) { *fresh(out, tick) = number(in(tick)); }
  void process(Tick& tick, Cuda& cuda) {
    if (tick.index() == kMet) meeting->met = true;
    queue(cuda).launch([to = fresh(out, tick), from = numbers(in(tick).data())] { *to = *from; });
  }
};
struct Spares final : Handler { // makes the second value for readers alone
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  Output<Tensor> spare{*this, "spare", like(in)};
  Spares() { capturable(); }
  void process(Tick& tick, Cpu&) {
    *fresh(out, tick) = number(in(tick)) + 2;
    if (spare.connected()) *fresh(spare, tick) = number(in(tick)) + 3;
  }
  void process(Tick& tick, Cuda& cuda) {
    queue(cuda).launch([to = fresh(out, tick), from = numbers(in(tick).data())] { *to = *from + 2; });
    if (!spare.connected()) return;
    queue(cuda).launch([to = fresh(spare, tick), from = numbers(in(tick).data())] { *to = *from + 3; });
  }
};
struct Drop final : Handler {
  Input<Tensor> in{*this, "in"};
  void process(Tick&, Cpu&) {}
  void process(Tick&, Cuda&) {}
};

const mr_plugin& plugin() {
  static const mr_handler_type* const types[] = {
      table_of<Index>("q.index"),         table_of<Add>("q.add"),     table_of<Pair>("q.pair"),
      table_of<InPlace>("q.paint"),       table_of<Odd>("q.odd"),     table_of<Pass>("q.pass"),
      table_of<FailsOnDevice>("q.fails"), table_of<Few>("q.few"),     table_of<Total>("q.total"),
      table_of<Heavy>("q.heavy"),         table_of<Gate>("q.gate"),   table_of<Meets>("q.meets"),
      table_of<Drop>("q.drop"),           table_of<Held>("q.held"),   table_of<OnHost>("q.onhost"),
      table_of<Tally>("q.tally"),         table_of<Stamp>("q.stamp"), table_of<Tells>("q.tells"),
      table_of<Spares>("q.spares")};
  static const mr_plugin table = {sizeof(mr_plugin), MR_ABI_VERSION, "q", "1", types, std::size(types), 0};
  return table;
}

Setup on_device(uint64_t seed = 1) {
  Setup setup;
  setup.domains = {"cuda:0", "cpu"};
  setup.more = &plugin();
  setup.seed = seed;
  return setup;
}
Setup on_host() {
  Setup setup;
  setup.more = &plugin();
  return setup;
}

// index on the host, unless it is said that it need not be → what `middle` says → a sink on the host.
Pipeline chain(const std::vector<std::string>& middle, bool source_on_device = false) {
  Pipeline pipeline = test::chain("q", middle, 40);
  if (!source_on_device) pipeline.graph.handlers[0].device = "cpu";
  return pipeline;
}

TEST_CASE("4.5: a captured chain gives on each tick what the host gives, and is one region") {
  const std::vector<std::string> middle = {"add", "paint", "add", "pass", "add"};
  for (const bool source_on_device : {false, true}) {
    CAPTURE(source_on_device);
    Compiled compiled(chain(middle, source_on_device), on_device());
    REQUIRE(compiled.regions().size() == 1);
    CHECK(compiled.regions()[0].steps.size() == middle.size() + 1 + (source_on_device ? 1 : 0)); // and the way down
    REQUIRE(compiled.run().ok);
    const std::vector<Seen> device = compiled.seen("q");
    CHECK(device.size() == 40);
    CHECK(device == seen_by(chain(middle), on_host(), "q"));
  }
}

TEST_CASE("4.5: a handler that leaves an output empty which nobody reads is captured") {
  Pipeline pipeline = chain({"spares", "add"});
  Compiled compiled(pipeline, on_device());
  REQUIRE(compiled.regions().size() == 1);
  const Ran ran = compiled.run();
  REQUIRE(ran.ok);
  REQUIRE(ran.report.regions.size() == 1);
  CHECK(ran.report.regions[0].launches + ran.report.regions[0].one_by_one == 40);
  CHECK(ran.report.regions[0].launches > 0);
  CHECK(compiled.seen("q") == seen_by(pipeline, on_host(), "q"));
}

TEST_CASE("4.3: a handler is told when it starts on which stream and in which memory its GPU body works") {
  const std::vector<Seen> device = seen_by(chain({"held"}), on_device(), "q");
  CHECK(device.size() == 40);
  CHECK(device == seen_by(chain({"held"}), on_host(), "q"));
}

TEST_CASE("5.1: a handler whose parameters leave it no GPU body runs on the host") {
  const std::vector<Seen> seen = seen_by(chain({"add", "onhost", "add"}), on_device(), "q");
  CHECK(seen.size() == 40);
  CHECK(seen == seen_by(chain({"add", "onhost", "add"}), on_host(), "q"));
}

TEST_CASE("4.5: where it cannot be captured, a region runs on streams and says why") {
  Setup setup = on_device();
  setup.gpu_faults.fail_record = 1;
  std::vector<std::string> messages;
  setup.options.on_message = [&](const std::string& line) { messages.push_back(line); };
  const std::vector<Seen> device = seen_by(chain({"add", "add"}), setup, "q");
  CHECK(device == seen_by(chain({"add", "add"}), on_host(), "q"));
  REQUIRE(messages.size() == 1);
  CHECK(messages[0] == "warning h0 and 1 more run on streams: told to fail");
}

// The calls that a device gets because bodies are measured: one tick in 64, the first.
struct Watched {
  std::vector<std::string> calls;
  Ran result;

  Watched(Pipeline pipeline, bool measure_bodies, device::SimFaults faults = {}) {
    Setup setup = on_device();
    setup.options.measure_bodies = measure_bodies;
    setup.gpu_faults = faults;
    setup.gpu = [this](device::SimOptions& sim) {
      sim.watcher.called = [this](const std::string& call) { calls.push_back(call); };
      sim.watcher.span_ns = [](size_t bodies) { return static_cast<int64_t>(2000 + 3000 * bodies); };
    };
    result = test::run(std::move(pipeline), setup);
  }
  // The calls from each hold to the let go that belongs to it: "begin body h0 end".
  std::vector<std::string> held() const {
    std::vector<std::string> all;
    bool holds = false;
    for (const std::string& call : calls) {
      if (call == "hold" || call == "let go") {
        REQUIRE(holds == (call == "let go"));
        holds = !holds;
        if (holds) all.emplace_back();
      } else if (holds) {
        all.back() += (all.back().empty() ? "" : " ") + call;
      }
    }
    REQUIRE_FALSE(holds);
    return all;
  }
};

TEST_CASE("5.5: a captured body is measured on a held stream, without what a span takes that has nothing in it") {
  const Watched watched(chain({"add", "paint", "odd"}), true);
  REQUIRE(watched.result.ok);
  std::vector<std::string> held = watched.held();
  const std::string empty = held.empty() ? "" : held[0]; // before the first tick, once a region
  CHECK(empty.starts_with("begin end begin end"));
  CHECK(empty.find("body") == std::string::npos);
  std::erase(held, empty);
  CHECK(held == std::vector<std::string>{"begin body h0 end", "begin body h1 end"});
  for (const HandlerReport& handler : watched.result.report.handlers) {
    if (handler.domain != "cuda:0") continue;
    CAPTURE(handler.name);
    CHECK(handler.sampled == 1);
    CHECK(handler.sampled_us == doctest::Approx(handler.name == "h2" ? 5 : 3)); // h2 is not captured, nor is it held
  }
  CHECK(watched.result.seen("q").size() == 40);
}

TEST_CASE("4.3: while a body that keeps the host busy is called, others submit to its device") {
  const auto make = [] {
    Pipeline pipeline;
    pipeline.clock(graph::ClockMode::free, 0, 1, 4);
    pipeline.add("source", "q.index", {{"count", "40"}}).device = "cpu";
    pipeline.add("heavy", "q.heavy");
    pipeline.add("gate", "q.gate");
    pipeline.add("meets", "q.meets");
    pipeline.add("pair", "q.pair");
    pipeline.add("sink", "t.sink", {{"log", "q"}});
    pipeline.connect("source.out", "heavy.in");
    pipeline.connect("source.out", "gate.in");
    pipeline.connect("gate.out", "meets.in");
    pipeline.connect("heavy.out", "pair.a");
    pipeline.connect("meets.out", "pair.b");
    pipeline.connect("pair.out", "sink.in");
    return pipeline;
  };
  const std::vector<Seen> host = seen_by(make(), on_host(), "q");
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    CAPTURE(seed);
    Meeting here;
    meeting = &here;
    Setup setup = on_device(seed);
    setup.workers = 2;
    const std::vector<Seen> device = seen_by(make(), setup, "q");
    meeting = nullptr;
    CHECK(here.met);
    CHECK_FALSE(here.missed);
    CHECK(device == host);
  }
}

TEST_CASE("3.2: what is allocated on a device while it runs is refused, and counted in the report") {
  Setup setup = on_device();
  device::Device* gpu = nullptr;
  uint64_t bodies = 0;
  setup.gpu = [&](device::SimOptions& sim) {
    sim.watcher.called = [&](const std::string& call) {
      device::DeviceStatus status;
      if (call == "body h0" && ++bodies == 17) gpu->allocate(64, {}, status);
    };
  };
  Compiled compiled(chain({"odd"}), setup);
  gpu = &compiled.device("cuda:0");
  const Ran result = compiled.run();
  CHECK(result.error.code == 703);
  CHECK(result.error.what.find("64 bytes were asked for in steady state") != std::string::npos);
  CHECK(bodies == 17);
  CHECK(result.report.pools.at("cuda:0").steady_allocations == 1);
  CHECK(result.report.pools.at("cpu").steady_allocations == 0);
}

TEST_CASE(
    "5.1: a pipeline that ends in a sink with a GPU body copies nothing to the host, with its source there or not") {
  for (const char* source : {"cpu", "cuda:0"}) {
    CAPTURE(source);
    Pipeline pipeline;
    pipeline.add("source", "q.index", {{"count", "40"}}).device = source;
    pipeline.add("add", "q.add");
    pipeline.add("odd", "q.odd");
    pipeline.add("drop", "q.drop");
    pipeline.connect("source.out", "add.in");
    pipeline.connect("add.out", "odd.in");
    pipeline.connect("odd.out", "drop.in");
    const Result result = run(std::move(pipeline), on_device());
    REQUIRE(result.ok);
    CHECK(result.report.ticks_run == 40);
    CHECK(copied(result, "", "cpu") == 0);
    for (const HandlerReport& handler : result.report.handlers)
      if (handler.name == "drop") CHECK(handler.calls == 20); // odd is silent on every other tick
  }
}

TEST_CASE("5.5: a CUDA device whose launches nobody measured is planned with a guess, and the plan says so") {
  Setup setup = on_device();
  setup.hops = {copy_hop("cpu", "cuda:0", 1), copy_hop("cuda:0", "cpu", 1)};
  std::vector<plan::LaunchCost> launches;
  setup.machine = [&](plan::Machine& machine) {
    machine.bodies = {{"q.add", "", "cpu", 8, 8, 8, 8, 1}, {"q.add", "", "cuda:0", 8, 1, 1, 1, 1}};
    machine.launches = launches;
  };
  const auto guessed = [](const Compiled& compiled) { return compiled.has_note("launches not measured: cuda:0"); };
  const auto domain = [](const Compiled& compiled) { return compiled.place("h0"); };
  const Compiled by_guess(chain({"add"}), setup);
  CHECK(guessed(by_guess));
  CHECK(domain(by_guess) == "cpu"); // 8 µs there, and here 1, a launch, and two copies
  launches = {{"cuda:0", 2, 1}};
  const Compiled measured(chain({"add"}), setup);
  CHECK_FALSE(guessed(measured));
  CHECK(domain(measured) == "cuda:0");
}

TEST_CASE("5.5: no stream is held where bodies are not measured, nor where they could not be captured") {
  CHECK(Watched(chain({"add", "paint", "odd"}), false).held().empty());
  device::SimFaults faults;
  faults.fail_record = 1; // what waits for its stream while it is called would wait for ever
  const Watched watched(chain({"add", "add"}), true, faults);
  CHECK(watched.result.ok);
  CHECK(watched.held().empty());
  CHECK(std::count(watched.calls.begin(), watched.calls.end(), "body h0") == 40);
}

TEST_CASE("4.5: a tick on which an optional input is missing is called body by body") {
  const auto make = [] {
    Pipeline pipeline;
    pipeline.add("source", "q.index", {{"count", "40"}}).device = "cpu";
    pipeline.add("odd", "q.odd").device = "cpu";
    pipeline.add("pair", "q.pair");
    pipeline.add("after", "q.add");
    pipeline.add("sink", "t.sink", {{"log", "q"}});
    pipeline.connect("source.out", "pair.a");
    pipeline.connect("source.out", "odd.in");
    pipeline.connect("odd.out", "pair.b");
    pipeline.connect("pair.out", "after.in");
    pipeline.connect("after.out", "sink.in");
    return pipeline;
  };
  const std::vector<Seen> device = seen_by(make(), on_device(), "q");
  CHECK(device.size() == 40);
  CHECK(device == seen_by(make(), on_host(), "q"));
}

// Boxes on every third tick and on each, made at `place`, and on every second, made on the host. All lead to q.tally.
// On a device it has q.add after it in its region, and what makes boxes on each tick before it, if that is at the same
// place.
Pipeline three_lists(const std::string& place, const std::string& tally) {
  Pipeline pipeline;
  pipeline.clock(graph::ClockMode::free, 1000, 1, 3);
  pipeline.add("source", "q.index", {{"count", "40"}}).device = "cpu";
  pipeline.add("odd", "q.odd").device = "cpu";
  pipeline.connect("source.out", "odd.in");
  for (const char* const name : {"third", "second", "each"}) {
    graph::Handler& few = pipeline.add(name, "q.few");
    few.device = std::string(name) == "second" ? "cpu" : place;
    if (std::string(name) == "third") few.every = 3;
    pipeline.connect(std::string(name) == "second" ? "odd.out" : "source.out", std::string(name) + ".in");
  }
  pipeline.add("tally", "q.tally").device = tally;
  pipeline.add("after", "q.add").device = tally;
  pipeline.add("stamp", "q.stamp");
  pipeline.add("sink", "t.sink", {{"log", "q"}});
  pipeline.connect("source.out", "tally.in");
  for (const char* const list : {"third.out", "second.out", "each.out"}) pipeline.connect(list, "tally.lists");
  pipeline.connect("tally.out", "after.in");
  pipeline.connect("tally.out", "stamp.in");
  for (const char* const last : {"after.out", "stamp.out"}) pipeline.connect(last, "sink.in");
  return pipeline;
}

// The report of the region with q.tally.
const RegionReport& region_of_tally(const Ran& ran) {
  for (const RegionReport& region : ran.report.regions)
    for (const std::string& handler : region.handlers)
      if (handler == "tally") return region;
  FAIL("tally is in no region");
  return ran.report.regions.front();
}

TEST_CASE("4.12: a tick on which optional lists are missing is one launch, in which they have no records") {
  const std::vector<Seen> host = seen_by(three_lists("cpu", "cpu"), on_host(), "q");
  REQUIRE(host.size() == 40);
  for (const char* const place : {"cpu", "cuda:0", "cuda:1", "sim:0"})
    for (const bool is_quick : {false, true}) { // copies of small values are packed
      CAPTURE(std::string(place));
      CAPTURE(is_quick);
      Setup setup = on_device();
      setup.domains = {"cpu", "cuda:0", "cuda:1", "sim:0"};
      if (is_quick)
        for (const char* const name : {"source", "odd", "third", "second", "each", "tally", "after", "stamp", "sink"})
          setup.costs_ns[name] = 1000;
      const Ran ran = test::run(three_lists(place, "cuda:0"), setup);
      REQUIRE(ran.ok);
      CHECK(ran.seen("q") == host);
      const RegionReport& region = region_of_tally(ran);
      CHECK(region.launches == 40);
      CHECK(region.one_by_one == 0);
      std::map<std::string, std::array<uint64_t, 2>> edges;
      for (const EdgeReport& edge : ran.report.edges) edges[edge.from] = {edge.delivered, edge.empty};
      CHECK(edges["third.out"] == std::array<uint64_t, 2>{14, 26});
      CHECK(edges["second.out"] == std::array<uint64_t, 2>{20, 20});
      CHECK(edges["each.out"] == std::array<uint64_t, 2>{40, 0});
    }
}

TEST_CASE("4.12: a body that tells an absent list from an empty one is called on a tick without it") {
  const auto make = [](const std::string& place) {
    Pipeline pipeline;
    pipeline.add("source", "q.index", {{"count", "40"}}).device = "cpu";
    graph::Handler& few = pipeline.add("few", "q.few");
    few.device = "cpu";
    few.every = 3;
    pipeline.add("tells", "q.tells").device = place;
    pipeline.add("after", "q.add").device = place;
    pipeline.add("sink", "t.sink", {{"log", "q"}});
    pipeline.connect("source.out", "few.in");
    pipeline.connect("source.out", "tells.in");
    pipeline.connect("few.out", "tells.list");
    pipeline.connect("tells.out", "after.in");
    pipeline.connect("after.out", "sink.in");
    return pipeline;
  };
  const Ran ran = test::run(make("cuda:0"), on_device());
  REQUIRE(ran.ok);
  CHECK(ran.seen("q") == seen_by(make("cpu"), on_host(), "q"));
  REQUIRE(ran.report.regions.size() == 1);
  CHECK(ran.report.regions[0].launches == 14);
  CHECK(ran.report.regions[0].one_by_one == 26);
}

TEST_CASE("2.7: a live parameter of a captured handler takes effect at its tick") {
  Setup setup = on_device();
  setup.options.script = {{13, {"h1", "add", "1000"}}, {13, {"h0", "add", "5"}}, {20, {"h1", "add", "1"}}};
  Setup host = on_host();
  host.options.script = setup.options.script;
  const std::vector<Seen> device = seen_by(chain({"add", "add"}), setup, "q");
  CHECK(device == seen_by(chain({"add", "add"}), host, "q"));
  CHECK(values(device)[13] == 13 + 1005);
}

TEST_CASE("2.6: a body that fails while it enqueues leaves its tick empty, by its policy") {
  Pipeline pipeline = chain({"fails", "add"});
  pipeline.graph.handlers[1].on_error = graph::OnError::skip;
  const std::vector<Seen> device = seen_by(std::move(pipeline), on_device(), "q");
  REQUIRE(device.size() == 40);
  CHECK(values(device)[5] == kEmpty);
  CHECK(values(device)[6] == 7);
}

TEST_CASE("4.9: a device that fails at a launch ends the run, and nobody reads what it left") {
  Setup setup = on_device();
  setup.gpu_faults.fail_replay = 9;
  const Ran result = run(chain({"add"}), setup);
  CHECK_FALSE(result.ok);
  CHECK(result.error.code == 703);
  int64_t expected = 1;
  for (const int64_t value : values(result.seen("q"))) {
    if (value != kEmpty) CHECK(value == expected);
    ++expected;
  }
}

// index → add on cuda:0 → add on cuda:1 → a sink on the host, with a hop between the devices.
Pipeline over_two_devices() {
  Pipeline pipeline = chain({"add", "add"}, true);
  for (size_t h = 0; h < 2; ++h) pipeline.graph.handlers[h].device = "cuda:0";
  pipeline.graph.handlers[2].device = "cuda:1";
  return pipeline;
}
Setup with_peers(uint64_t seed = 1) {
  Setup setup = on_device(seed);
  setup.domains = {"cpu", "cuda:0", "cuda:1", "sim:0"};
  setup.hops = {copy_hop("cuda:0", "cuda:1", 1), copy_hop("cuda:1", "cuda:0", 1)};
  return setup;
}

TEST_CASE("3.6: from one GPU to another the one that has the bytes copies them") {
  for (const uint64_t no_capture : {0, 1}) {
    Setup setup = with_peers();
    setup.gpu_faults.fail_record = no_capture;
    Compiled compiled(over_two_devices(), setup);
    std::vector<std::string> copies;
    for (const CopyView& copy : compiled.copies())
      copies.push_back(copy.from + " → " + copy.to + " by " + copy.submitter);
    CHECK(copies == std::vector<std::string>{"cuda:0 → cuda:1 by cuda:0", "cuda:1 → cpu by cuda:1"});
    REQUIRE(compiled.run().ok);
    const std::vector<Seen> devices = compiled.seen("q");
    CHECK(devices == seen_by(chain({"add", "add"}), on_host(), "q"));
  }
}

TEST_CASE("4.9: of two GPUs one is lost: what the other one had from it is read by nobody") {
  for (const char* lost : {"cuda:0", "cuda:1"}) {
    for (uint64_t launch = 1; launch <= 24; ++launch) {
      CAPTURE(std::string(lost));
      CAPTURE(launch);
      Setup setup = with_peers(launch);
      setup.workers = 1 + static_cast<uint32_t>(launch % 3);
      setup.gpu = [=](device::SimOptions& sim) {
        if (sim.domain == lost) sim.faults.fail_replay = launch;
      };
      const Ran result = run(over_two_devices(), setup);
      CHECK_FALSE(result.ok);
      CHECK(result.error.code == 703);
      int64_t expected = 2, there = 0;
      for (const int64_t value : values(result.seen_if_any("q"))) {
        if (value != kEmpty) CHECK(value == expected);
        there += value != kEmpty;
        ++expected;
      }
      if (launch > 12) CHECK(there > 0); // the window is far shorter
    }
  }
}

TEST_CASE("4.4: how many records there are a kernel says, and whoever reads them learns it") {
  const std::vector<Seen> host = seen_by(few_and_totals("q", {}), on_host(), "q");
  REQUIRE(host.size() == 50);
  for_all_places({"cpu", "cuda:0", "cuda:1", "sim:0"}, [&](const std::array<std::string, 3>& places) {
    CAPTURE(places[0] + " → " + places[1] + ", " + places[2]);
    Setup setup = on_device();
    setup.domains = {"cpu", "cuda:0", "cuda:1", "sim:0"};
    setup.workers = 3;
    setup.gpu_faults.fail_record = places[1] == places[2] ? 0 : 1; // most of them on streams
    CHECK(seen_by(few_and_totals("q", places), setup, "q") == host);
  });
}

TEST_CASE("4.5: what makes records is captured with what reads them") {
  Compiled compiled(few_and_totals("q", {"cuda:0", "cuda:0", "cuda:0"}), on_device());
  REQUIRE(compiled.regions().size() == 1);
  CHECK(compiled.regions()[0].handlers.size() == 4); // the source is one
  REQUIRE(compiled.run().ok);
  const std::vector<Seen> device = compiled.seen("q");
  CHECK(device == seen_by(few_and_totals("q", {}), on_host(), "q"));
}

TEST_CASE("2.3: an empty initial value has a record that kernels read: there are no records") {
  const auto make = [](const std::string& place) {
    Pipeline pipeline;
    pipeline.add("source", "q.index", {{"count", "40"}}).device = "cpu";
    pipeline.add("odd", "q.odd").device = "cpu";
    pipeline.add("few", "q.few").device = "cpu";
    pipeline.add("total", "q.total").device = place;
    pipeline.add("sink", "t.sink", {{"log", "q"}});
    pipeline.connect("source.out", "odd.in");
    pipeline.connect("odd.out", "few.in");
    graph::Edge& edge = pipeline.connect("few.out", "total.in");
    edge.policy = graph::Policy::latest;
    edge.initial_empty = true;
    pipeline.connect("total.out", "sink.in");
    return pipeline;
  };
  const std::vector<Seen> device = seen_by(make("cuda:0"), on_device(), "q");
  REQUIRE(device.size() == 40);
  CHECK(values(device)[0] == 0);
  CHECK(device == seen_by(make("cpu"), on_host(), "q"));
}

// Boxes made at `place` on every second tick, and read by `latest` on each. On a device, q.tally has q.add after it.
Pipeline latest_list(const std::string& place, const std::string& tally) {
  Pipeline pipeline;
  pipeline.add("source", "q.index", {{"count", "40"}}).device = "cpu";
  pipeline.add("odd", "q.odd").device = "cpu";
  pipeline.add("few", "q.few").device = place;
  pipeline.add("tally", "q.tally").device = tally;
  pipeline.add("after", "q.add").device = tally;
  pipeline.add("sink", "t.sink", {{"log", "q"}});
  pipeline.connect("source.out", "odd.in");
  pipeline.connect("odd.out", "few.in");
  pipeline.connect("source.out", "tally.in");
  pipeline.connect("few.out", "tally.lists").policy = graph::Policy::latest;
  pipeline.connect("tally.out", "after.in");
  pipeline.connect("after.out", "sink.in");
  return pipeline;
}

TEST_CASE("4.5: records that a region reads by latest are copied into its slot, from where the region is too") {
  const std::vector<Seen> host = seen_by(latest_list("cpu", "cpu"), on_host(), "q");
  REQUIRE(host.size() == 40);
  for (const std::string place : {"cpu", "cuda:0"}) {
    CAPTURE(place);
    Compiled compiled(latest_list(place, "cuda:0"), on_device());
    const Ran ran = compiled.run();
    REQUIRE_MESSAGE(ran.ok, ran.error.what);
    CHECK(ran.seen("q") == host);
    const auto& regions = ran.report.regions;
    const auto of_tally = std::find_if(regions.begin(), regions.end(), [](const auto& region) {
      return region.handlers == std::vector<std::string>{"tally", "after"};
    });
    REQUIRE(of_tally != regions.end());
    CHECK(of_tally->launches == 40);
    CHECK(of_tally->one_by_one == 0);
  }
  // A device whose bodies do not enqueue has regions too.
  for (const std::string place : {"cpu", "sim:0"}) {
    CAPTURE(place);
    Setup setup = on_device();
    setup.domains = {"cpu", "sim:0"};
    Compiled compiled(latest_list(place, "sim:0"), setup);
    const auto made = compiled.regions();
    CHECK(std::any_of(made.begin(), made.end(), [](const auto& region) { return region.steps.size() == 2; }));
    REQUIRE(compiled.run().ok);
    CHECK(compiled.seen("q") == host);
  }
}

Pipeline random_graph(uint64_t seed, const std::vector<std::string>& places) {
  return test::random_graph("q", {"add", "pair", "paint", "odd", "pass"}, 40, seed, places);
}

TEST_CASE("4.5: random graphs give the same on devices whose bodies enqueue as on the host") {
  const uint64_t base = random_seed();
  for (uint64_t n = 0; n < static_cast<uint64_t>(part_of(60)); ++n) {
    const uint64_t seed = base + n;
    CAPTURE(seed);
    const std::vector<Seen> host = seen_by(random_graph(seed, {}), on_host(), "q");
    Setup setup = with_peers(seed);
    if (n % 2) setup.hops.clear(); // then by way of the host
    setup.workers = 1 + static_cast<uint32_t>(seed % 3);
    std::vector<std::string> places = {"cuda:0"};
    if (n % 3) places.insert(places.end(), {"cpu", "cuda:0"});
    if (n % 3 == 2) places.insert(places.end(), {"cuda:1"});
    Pipeline pipeline = random_graph(seed, places);
    REQUIRE(seen_by(std::move(pipeline), setup, "q") == host);
  }
}

} // namespace
} // namespace millrace::test::enqueuing
