// Values that count until their successors come: their memory, their copies on devices, and what is recorded with them
// (semantics.md 3.7).
#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "enqueuing_handlers.h"
#include "memory/ring.h"
#include "plan/domain.h"
#include "plan/memory.h"
#include "plan/plan.h"
#include "plan/step.h"
#include "table_of.h"
#include "tests/part.h"
#include "tests/seed.h"

namespace millrace::test::lasting_values {
namespace {

using namespace enqueued;

constexpr int64_t kEntries = 1000, kTicks = 60;
constexpr int64_t kLarge = 200'000; // entries that have more than a MiB
std::atomic<int64_t> tables_held{0}, tables_held_most{0};

int64_t entry_of(int64_t table, int64_t at) { return mix(table, at); }

// A table, at first and then on every `every`-th tick: in a block, or in memory of its own.
struct Table final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", lasting};
  Param<int64_t> every{*this, "each", 1, "ticks from one to the next"};
  Param<bool> adopts{*this, "adopts", false, "in memory of its own"};
  Param<int64_t> entries{*this, "entries", kEntries, "of the table"};
  void configure(const Formats& formats) override {
    formats.tensor(out, dtype_of<int64_t>(), {*entries}).adopted = *adopts;
  }
  void process(Tick& tick, Cpu&) {
    if (tick.index() % static_cast<uint64_t>(*every) != 0) return;
    const int64_t table = number(in(tick));
    const int64_t shape[] = {*entries};
    if (!*adopts) return fill(out.allocate(tick, dtype_of<int64_t>(), shape).elements<int64_t>(), table);
    auto* const own = new std::vector<int64_t>(static_cast<size_t>(*entries));
    fill(*own, table);
    tables_held_most = std::max<int64_t>(tables_held_most, ++tables_held);
    const auto release = [](void* context) {
      delete static_cast<std::vector<int64_t>*>(context);
      --tables_held;
    };
    mr_value& value = out.adopt(tick, own->data(), own->size() * sizeof(int64_t), release, own);
    detail::lay_out_tensor(dtype_of<int64_t>(), shape, value.as.tensor);
  }
  static void fill(std::span<int64_t> to, int64_t table) {
    for (size_t at = 0; at < to.size(); ++at) to[at] = entry_of(table, static_cast<int64_t>(at));
  }
};

struct Once final : Handler { // a source of one table
  Output<Tensor> out{*this, "out", lasting};
  bool is_over = false;
  void probe(Facts& facts) override { facts.tick_count(1); }
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {kEntries}); }
  void process(Tick& tick, Cpu&) {
    if (std::exchange(is_over, true)) return tick.end();
    const int64_t shape[] = {kEntries};
    Table::fill(out.allocate(tick, dtype_of<int64_t>(), shape).elements<int64_t>(), 5);
  }
};

struct LookUp final : Handler {
  Input<Tensor> in{*this, "in"};
  Input<Tensor> table{*this, "table"};
  Output<Tensor> out{*this, "out", like(in)};
  LookUp() { capturable(); }
  static int64_t of(int64_t value, const int64_t* table) { return mix(value, table[(value * 7) % kEntries]); }
  void process(Tick& tick, Cpu&) { *fresh(out, tick) = of(number(in(tick)), numbers(table(tick).data())); }
  void process(Tick& tick, Cuda& cuda) {
    queue(cuda).launch([to = fresh(out, tick), from = numbers(in(tick).data()), table = numbers(table(tick).data())] {
      *to = of(*from, table);
    });
  }
};

struct Takes final : Handler { // half a MiB and a byte of the device's memory
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  Takes() { takes_device_memory((512 << 10) + 1); }
  void process(Tick& tick, Cpu&) { *fresh(out, tick) = number(in(tick)); }
  void process(Tick& tick, Cuda& cuda) {
    queue(cuda).launch([to = fresh(out, tick), from = numbers(in(tick).data())] { *to = *from; });
  }
};

struct Liar final : Handler { // says that it adopts
  Output<Tensor> out{*this, "out", lasting};
  Param<std::string> how{*this, "how", "adopts", "what it does"};
  bool is_over = false;
  void probe(Facts& facts) override { facts.tick_count(1); }
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}).adopted = 1; }
  void process(Tick& tick, Cpu&) {
    if (std::exchange(is_over, true)) return tick.end();
    static const int64_t numbers[2] = {1, 2};
    const int64_t shape[] = {1};
    if (*how == "allocates") {
      *fresh(out, tick) = 1;
      return;
    }
    const uint64_t bytes = *how == "adopts_more" ? sizeof numbers : sizeof(int64_t);
    detail::lay_out_tensor(dtype_of<int64_t>(), shape, out.adopt(tick, numbers, bytes, nullptr, nullptr).as.tensor);
  }
};

const mr_plugin& plugin() {
  static const mr_handler_type* const types[] = {table_of<Index>("l.index"),   table_of<Table>("l.table"),
                                                 table_of<LookUp>("l.lookup"), table_of<Takes>("l.takes"),
                                                 table_of<Liar>("l.liar"),     table_of<Once>("l.once")};
  static const mr_plugin table = {sizeof(mr_plugin), MR_ABI_VERSION, "l", "1", types, std::size(types), 0};
  return table;
}

Setup on(std::vector<std::string> domains) {
  Setup setup;
  setup.domains = std::move(domains);
  setup.more = &plugin();
  return setup;
}

// Two handlers at `place` that look things up in a table of the host, one after the other.
Pipeline pipeline_at(const std::string& place, int64_t every, bool adopts, uint32_t in_flight = 3,
                     int64_t entries = kEntries) {
  Pipeline pipeline;
  pipeline.clock(graph::ClockMode::free, 0, 1, in_flight);
  pipeline.add("source", "l.index", {{"count", std::to_string(kTicks)}}).device = "cpu";
  const Params table = {
      {"each", std::to_string(every)}, {"adopts", adopts ? "true" : "false"}, {"entries", std::to_string(entries)}};
  pipeline.add("table", "l.table", table).device = "cpu";
  pipeline.add("one", "l.lookup").device = place;
  pipeline.add("two", "l.lookup").device = place;
  pipeline.add("sink", "t.sink", {{"log", "l"}});
  pipeline.connect("source.out", "table.in");
  pipeline.connect("source.out", "one.in");
  pipeline.connect("one.out", "two.in");
  for (const char* reader : {"one.table", "two.table"})
    pipeline.connect("table.out", reader).policy = graph::Policy::latest;
  pipeline.connect("two.out", "sink.in");
  return pipeline;
}

uint64_t copies_of_table(const Result& result) {
  uint64_t copies = 0;
  for (const TransferReport& transfer : result.report.transfers)
    if (transfer.edge.rfind("table.out", 0) == 0) copies += transfer.count;
  return copies;
}

const plan::Ring& ring_of(const plan::Plan& plan, const std::string& step, const std::string& domain) {
  const auto found = std::find_if(plan.rings.begin(), plan.rings.end(), [&](const plan::Ring& ring) {
    return plan.steps[plan.outputs[ring.output].step].name == step && plan.domains[ring.domain].name == domain;
  });
  REQUIRE(found != plan.rings.end());
  return *found;
}

TEST_CASE("3.7: a device gets each lasting value once, in one of two blocks, and ticks read it as on the host") {
  for (const bool adopts : {false, true}) {
    for (const int64_t every : {1000, 20, 7, 1}) {
      const std::vector<Seen> host = seen_by(pipeline_at("cpu", every, adopts), on({"cpu"}), "l");
      REQUIRE(host.size() == kTicks);
      for (const std::string place : {"cuda:0", "sim:0"}) {
        CAPTURE(place);
        CAPTURE(every);
        CAPTURE(adopts);
        Compiled compiled(pipeline_at(place, every, adopts), on({"cpu", place}));
        const plan::Ring& copied = ring_of(compiled.plan(), "copy latest table.out.out → " + place, place);
        CHECK(copied.length == 2);
        CHECK(copied.capacity == kEntries * sizeof(int64_t));
        CHECK(ring_of(compiled.plan(), "table", "cpu").capacity == (adopts ? 0 : copied.capacity));
        const Ran ran = compiled.run();
        REQUIRE_MESSAGE(ran.ok, ran.error.what);
        CHECK(ran.seen("l") == host);
        CHECK(copies_of_table(ran) == static_cast<uint64_t>((kTicks + every - 1) / every));
      }
    }
  }
  CHECK(tables_held == 0);
}

TEST_CASE("3.7: a device has one block for the only value of a source") {
  const auto make = [](const std::string& place) {
    Pipeline pipeline;
    for (const char* clock : {"data", "main"}) {
      pipeline.clock(graph::ClockMode::free, 0, 1, 3);
      pipeline.graph.clocks.back().name = clock;
    }
    graph::Handler& once = pipeline.add("table", "l.once");
    once.clock = "data";
    once.device = "cpu";
    pipeline.add("source", "l.index", {{"count", std::to_string(kTicks)}}).clock = "main";
    pipeline.graph.handlers.back().device = "cpu";
    pipeline.add("one", "l.lookup").clock = "main";
    pipeline.graph.handlers.back().device = place;
    pipeline.add("sink", "t.sink", {{"log", "l"}}).clock = "main";
    pipeline.connect("source.out", "one.in");
    pipeline.connect("table.out", "one.table").policy = graph::Policy::latest;
    pipeline.connect("one.out", "sink.in");
    return pipeline;
  };
  const std::vector<Seen> host = seen_by(make("cpu"), on({"cpu"}), "l");
  REQUIRE(host.size() == kTicks);
  for (const std::string place : {"cuda:0", "sim:0"}) {
    CAPTURE(place);
    Compiled compiled(make(place), on({"cpu", place}));
    CHECK(ring_of(compiled.plan(), "copy latest table.out.out → " + place, place).length == 1);
    const Ran ran = compiled.run();
    REQUIRE_MESSAGE(ran.ok, ran.error.what);
    CHECK(ran.seen("l") == host);
    CHECK(copies_of_table(ran) == 1);
  }
}

TEST_CASE("3.7: what reads a lasting value is captured, and recorded anew when a successor comes") {
  for (const int64_t every : {1000, 20, 1}) {
    CAPTURE(every);
    Compiled compiled(pipeline_at("cuda:0", every, true), on({"cpu", "cuda:0"}));
    const Ran ran = compiled.run();
    REQUIRE_MESSAGE(ran.ok, ran.error.what);
    REQUIRE(ran.report.regions.size() == 1);
    CHECK(ran.report.regions[0].handlers == std::vector<std::string>{"one", "two"});
    CHECK(ran.report.regions[0].launches == kTicks);
    CHECK(ran.report.regions[0].one_by_one == 0);
  }
}

TEST_CASE("3.7: a lasting value that is read on its own tick alone is copied as others are") {
  for (const bool adopts : {false, true}) {
    const auto make = [&](const std::string& place) {
      Pipeline pipeline = pipeline_at(place, 1, adopts);
      for (graph::Edge& edge : pipeline.graph.edges) edge.policy = graph::Policy::sync;
      return pipeline;
    };
    const std::vector<Seen> host = seen_by(make("cpu"), on({"cpu"}), "l");
    REQUIRE(host.size() == kTicks);
    for (const std::string place : {"cuda:0", "sim:0"}) {
      CAPTURE(place);
      CAPTURE(adopts);
      CHECK(seen_by(make(place), on({"cpu", place}), "l") == host);
    }
  }
}

TEST_CASE("3.7: with any number of ticks in flight, and devices that are as late as they may be, nothing is mixed up") {
  const uint64_t base = random_seed();
  for (uint64_t n = 0; n < static_cast<uint64_t>(part_of(40)); ++n) {
    const uint64_t seed = base + n;
    CAPTURE(seed);
    const int64_t every = 1 + static_cast<int64_t>(seed % 5);
    const auto in_flight = static_cast<uint32_t>(1 + seed % 4);
    const std::string place = n % 2 ? "cuda:0" : "sim:0";
    Setup setup = on({"cpu", place});
    setup.seed = seed;
    setup.adversarial = n % 4 == 0;
    setup.workers = 1 + static_cast<uint32_t>(n % 3);
    if (n % 8 == 1) setup.gpu_faults.fail_record = 1; // on streams
    REQUIRE(seen_by(pipeline_at(place, every, n % 3 == 0, in_flight), setup, "l") ==
            seen_by(pipeline_at("cpu", every, false), on({"cpu"}), "l"));
  }
  CHECK(tables_held == 0);
}

TEST_CASE("3.7: of values that a handler brings, the run holds those that somebody reads, and one that waits") {
  tables_held_most = 0;
  constexpr uint32_t kInFlight = 1;
  REQUIRE(run(pipeline_at("cpu", 1, true, kInFlight), on({"cpu"})).ok);
  CHECK(tables_held == 0);
  CHECK(tables_held_most <= 4); // being made, in the channel, and read by a tick: far from one a tick
}

TEST_CASE("3.7: an output whose values are adopted gives no others, and no larger ones") {
  const auto error_of = [](const std::string& how) {
    Pipeline pipeline("l.liar name=source how=" + how + " ! t.sink log=l");
    return run(std::move(pipeline), on({"cpu"})).error.what;
  };
  CHECK(error_of("adopts").empty());
  CHECK(error_of("allocates").find("the output out was said to give adopted memory alone") != std::string::npos);
  CHECK(error_of("adopts_more").find("asks for 16 bytes where 8 were planned") != std::string::npos);
}

// The bytes that a plan counts for the ring of the table, and the ring.
std::pair<uint64_t, plan::Ring> counted_for_table(Pipeline pipeline) {
  const Compiled compiled(std::move(pipeline), on({"cpu"}));
  const plan::Ring& ring = ring_of(compiled.plan(), "table", "cpu");
  uint64_t bytes = compiled.plan().memory.at("cpu");
  for (const plan::Ring& other : compiled.plan().rings)
    if (other.output != ring.output) bytes -= other.length * memory::block_bytes(other.capacity);
  const bool is_said = compiled.text().find("each takes memory while it is in use") != std::string::npos;
  CHECK(is_said == ring.lasting);
  return {bytes, ring};
}

TEST_CASE("3.7: the plan counts memory of the host for a large lasting value and its successor") {
  Pipeline large = pipeline_at("cpu", 1, false, 3, kLarge);
  Pipeline in_turn = large; // its blocks are taken in turn, so all of them have pages
  for (graph::Edge& edge : in_turn.graph.edges) edge.policy = graph::Policy::sync;
  const auto [bytes, ring] = counted_for_table(std::move(large));
  CHECK(ring.length > 2);
  CHECK(bytes == 2 * memory::block_bytes(kLarge * sizeof(int64_t)));
  const auto [bytes_in_turn, ring_in_turn] = counted_for_table(std::move(in_turn));
  CHECK(bytes_in_turn == ring_in_turn.length * memory::block_bytes(kLarge * sizeof(int64_t)));
  const auto [bytes_small, ring_small] = counted_for_table(pipeline_at("cpu", 1, false));
  CHECK(bytes_small == ring_small.length * memory::block_bytes(kEntries * sizeof(int64_t)));
  const auto [bytes_adopted, ring_adopted] = counted_for_table(pipeline_at("cpu", 1, true));
  CHECK(bytes_adopted == ring_adopted.length * memory::block_bytes(0));
}

TEST_CASE("3.7: a handler that answers later holds up its ticks, and not the copy of a successor") {
  const auto make = [](const std::string& place) {
    Pipeline pipeline = pipeline_at(place, 1, false);
    pipeline.graph.edges.pop_back(); // two.out → sink.in
    pipeline.add("late", "t.late", {{"after", "2"}}).device = "cpu";
    pipeline.connect("two.out", "late.in");
    pipeline.connect("late.out", "sink.in");
    pipeline.connect("source.out", "sink.in");
    return pipeline;
  };
  const std::vector<Seen> host = seen_by(make("cpu"), on({"cpu"}), "l");
  REQUIRE(host.size() == kTicks);
  for (const std::string place : {"cuda:0", "sim:0"}) {
    CAPTURE(place);
    CHECK(seen_by(make(place), on({"cpu", place}), "l") == host);
  }
}

TEST_CASE("3.7: a value that was adopted on another node has a block with room for its bytes here") {
  Pipeline pipeline = pipeline_at("cpu", 1, true);
  for (graph::Handler& handler : pipeline.graph.handlers) {
    handler.node = handler.name == "one" || handler.name == "two" ? "there" : "home";
    handler.device = "";
  }
  Setup setup = on({"cpu"});
  setup.nodes = {"home", "there"};
  setup.virtual_time = true;
  setup.node = 1;
  const Compiled there(std::move(pipeline), setup);
  const auto& rings = there.plan().rings;
  CHECK(std::any_of(rings.begin(), rings.end(),
                    [](const plan::Ring& ring) { return ring.capacity == kEntries * sizeof(int64_t); }));
  CHECK(std::none_of(rings.begin(), rings.end(), [](const plan::Ring& ring) { return ring.capacity == 0; }));
}

TEST_CASE("3.7: memory that a GPU body takes by itself is in the plan's sum") {
  const auto make = [](const std::string& place) {
    Pipeline pipeline("l.index name=source count=2 ! l.takes name=takes ! t.sink log=l");
    pipeline.graph.handlers[0].device = "cpu";
    pipeline.graph.handlers[1].device = place;
    return pipeline;
  };
  const Compiled device(make("cuda:0"), on({"cpu", "cuda:0"}));
  CHECK(device.text().find("1.0 MiB: what it takes by itself") != std::string::npos);
  CHECK(device.plan().memory.at("cuda:0") > 1 << 20);
  const Compiled host(make("cpu"), on({"cpu", "cuda:0"}));
  CHECK(host.text().find("what it takes by itself") == std::string::npos);
}

} // namespace
} // namespace millrace::test::lasting_values
