// A run does what its plan says: copies are counted where they were planned, windows and rings are not exceeded, bounds
// hold, and threads are those that were named.
#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "tests/exec/harness.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// Counts of the handlers below; one run at a time.
std::atomic<int64_t> begun{0}, finished{0}, apart_min{0}, apart_max{0};
std::mutex seen_mutex;
std::map<std::string, std::vector<std::thread::id>> threads;

struct First final : Handler { // how far the newest tick is from the oldest that is not done
  Output<Tensor> out{*this, "out"};
  Param<int64_t> count{*this, "count", 0, "ticks"};
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}); }
  void start() override {
    begun = finished = apart_max = 0;
    apart_min = INT64_MAX;
  }
  void process(Tick& tick, Cpu&) {
    if (begun == count) return tick.end();
    const int64_t apart = ++begun - finished;
    if (apart > apart_max) apart_max = apart;
    if (begun > count / 2 && apart < apart_min) apart_min = apart; // once the window is full
    const int64_t shape[] = {1};
    out.allocate(tick, dtype_of<int64_t>(), shape).elements<int64_t>()[0] = begun;
  }
};
struct Last final : Handler {
  Input<Tensor> in{*this, "in"};
  void process(Tick&, Cpu&) { ++finished; }
};

// A value of `tick index modulo 101` numbers, of at most 100.
struct Growing final : Handler {
  Output<Tensor> out{*this, "out"};
  Param<int64_t> count{*this, "count", 0, "ticks"};
  Param<int64_t> most{*this, "most", 100, "numbers of the largest value"};
  int64_t next = 0;
  void configure(const Formats& formats) override {
    formats.tensor(out, dtype_of<int64_t>(), {100});
    formats.out(out).shape_kind[0] = MR_DIM_BOUNDED;
  }
  void process(Tick& tick, Cpu&) {
    if (next == count) return tick.end();
    const int64_t shape[] = {next++ % (most + 1)};
    int64_t value = 0;
    for (int64_t& element : out.allocate(tick, dtype_of<int64_t>(), shape).elements<int64_t>()) element = ++value;
  }
};
struct Doubled final : Handler { // as many numbers as there come in
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  void process(Tick& tick, Cpu&) {
    const auto from = in(tick).elements<int64_t>();
    const int64_t shape[] = {static_cast<int64_t>(from.size())};
    const auto to = out.allocate(tick, dtype_of<int64_t>(), shape).elements<int64_t>();
    std::transform(from.begin(), from.end(), to.begin(), [](int64_t x) { return 2 * x; });
  }
};
struct Sum final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out"};
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}); }
  void process(Tick& tick, Cpu&) {
    int64_t sum = 0;
    for (int64_t x : in(tick).elements<int64_t>()) sum += x;
    const int64_t shape[] = {1};
    out.allocate(tick, dtype_of<int64_t>(), shape).elements<int64_t>()[0] = sum;
  }
};

struct Where : Handler { // notes the threads that call it
  Input<Tensor> in{*this, "in"};
  Param<std::string> as{*this, "as", "", "the name that it notes them under", required};
  void process(Tick&, Cpu&) {
    const std::lock_guard lock(seen_mutex);
    std::vector<std::thread::id>& ids = threads[as];
    if (std::find(ids.begin(), ids.end(), std::this_thread::get_id()) == ids.end())
      ids.push_back(std::this_thread::get_id());
  }
};
struct WhereNamed final : Where {
  WhereNamed() { thread("screen"); }
};
struct WhereBlocking final : Where {
  WhereBlocking() { blocking(); }
};

const mr_plugin& kept_plugin() {
  static const mr_handler_type types[] = {
      detail::Type<First>::table("k.first", "Begins ticks", ""),
      detail::Type<Last>::table("k.last", "Ends them", ""),
      detail::Type<Growing>::table("k.growing", "Values of many sizes", ""),
      detail::Type<Doubled>::table("k.doubled", "Doubles each number", ""),
      detail::Type<Sum>::table("k.sum", "The sum of a value's numbers", ""),
      detail::Type<Where>::table("k.where", "Notes its thread", ""),
      detail::Type<WhereNamed>::table("k.where_named", "Notes its thread, which has a name", ""),
      detail::Type<WhereBlocking>::table("k.where_blocking", "Notes its thread, which it blocks", ""),
  };
  static const std::vector<const mr_handler_type*> pointers = [] {
    std::vector<const mr_handler_type*> list;
    for (const mr_handler_type& type : types) list.push_back(&type);
    return list;
  }();
  static const mr_plugin plugin = {
      sizeof(mr_plugin), MR_ABI_VERSION, "kept", "1", pointers.data(), static_cast<uint32_t>(pointers.size()), 0};
  return plugin;
}

Setup with_devices(uint32_t workers, bool adversarial) {
  Setup setup;
  setup.workers = workers;
  setup.adversarial = adversarial;
  setup.domains = {"cpu", "sim:0", "sim:1"};
  setup.more = &kept_plugin();
  return setup;
}

std::vector<Setup> ways_to_run() {
  return {with_devices(1, false), with_devices(3, false), with_devices(1, true), with_devices(3, true)};
}

} // namespace

TEST_CASE("3.4: one copy a tick serves all readers of a device, and a route by way of the host shares its first hop") {
  for (const Setup& setup : ways_to_run()) {
    Pipeline p;
    p.add("source", "t.count", {{"count", "40"}});
    for (const char* name : {"a", "b", "c"}) {
      p.add(name, "t.relay").device = "sim:0";
      p.connect("source", name);
    }
    p.add("other", "t.relay").device = "sim:1";
    p.add("sink", "t.sink", {{"log", "shared"}}).device = "cpu";
    p.connect("a", "other");
    p.connect("a", "sink.in");
    p.connect("other", "sink.in");
    const Ran result = run(p, setup);
    REQUIRE(result.ok);
    CHECK(copied(result, "cpu", "sim:0") == 40);
    CHECK(copied(result, "sim:0", "cpu") == 40); // for sink and for other
    CHECK(copied(result, "cpu", "sim:1") == 40);
    CHECK(copied(result, "sim:1", "cpu") == 40);
    const std::vector<Seen> log = result.seen("shared");
    REQUIRE(log.size() == 40);
    for (const Seen& seen : log) CHECK(seen.values[0] == seen.values[1]);
  }
}

TEST_CASE("3.4: firing is reading: where no reader fires, nothing is copied for it") {
  for (const Setup& setup : ways_to_run()) {
    Pipeline p;
    p.add("source", "t.count", {{"count", "60"}});
    p.add("quiet", "t.relay", {{"silent_every", "4"}}).device = "cpu";
    p.add("third", "t.relay").device = "sim:0"; // reads on every third tick
    p.add("both", "t.need").device = "sim:1";   // fires where quiet has a value
    p.add("sink", "t.sink", {{"log", "firing"}}).device = "cpu";
    p.graph.handlers[2].every = 3;
    p.connect("source", "quiet");
    p.connect("source", "third");
    p.connect("source", "both.a");
    p.connect("quiet", "both.b");
    p.connect("third", "sink.in");
    p.connect("both", "sink.in");
    const Ran result = run(p, setup);
    REQUIRE(result.ok);
    CHECK(copied(result, "cpu", "sim:0") == 20);
    CHECK(copied(result, "cpu", "sim:1") == 2 * 45);
    CHECK(copied(result, "sim:1", "cpu") == 45);
    CHECK(result.seen("firing").size() == 60);
  }
}

TEST_CASE("1.5: no more ticks are begun and not done than the window has, and with something pending it is used") {
  for (const uint32_t workers : {1u, 2u, 8u}) {
    CAPTURE(workers);
    for (const uint32_t in_flight : {1u, 3u}) {
      CAPTURE(in_flight);
      Pipeline p("k.first name=first count=400 ! t.late name=late after=8 ! k.last name=last");
      p.clock(graph::ClockMode::free, 0, 1, in_flight);
      Setup setup;
      setup.workers = workers;
      setup.more = &kept_plugin();
      Compiled compiled(p, setup);
      REQUIRE(compiled.window("late") > 8); // as many as it has segments, at most as many as were asked for
      REQUIRE(compiled.window("late") <= in_flight + 8);
      REQUIRE(compiled.run().ok);
      CHECK(finished == 400);
      // A handler that owes has a window of its own, and a value waits at its gate.
      CHECK(apart_max <= in_flight + 1 + in_flight + 8);
      CHECK(apart_min >= 8); // the eight that late owes
    }
  }
}

TEST_CASE("3.2: a run takes the memory that its plan has summed, no more and no later") {
  for (const Setup& setup : ways_to_run()) {
    Pipeline p(
        "t.count name=source count=300 ! t.relay name=device device=sim:0 ! t.keep name=keep device=cpu ; source. ! "
        "t.paced name=paced device=cpu ! t.sink name=sink log=memory device=cpu ; keep. ! paced.extra policy=latest "
        "lag=1");
    Compiled compiled(p, setup);
    const Ran result = compiled.run();
    REQUIRE(result.ok);
    CHECK(result.seen("memory").size() == 300);
    REQUIRE_FALSE(compiled.memory().empty());
    for (const auto& [domain, bytes] : compiled.memory()) {
      CAPTURE(domain);
      REQUIRE(result.report.pools.count(domain) == 1);
      const PoolReport& pool = result.report.pools.at(domain);
      CHECK(pool.allocated_bytes >= bytes);
      CHECK(pool.allocated_bytes < bytes + 3 * 4096); // whole pages, pinned and plain apart
      CHECK(pool.high_water_bytes <= pool.allocated_bytes);
      CHECK(pool.high_water_bytes > 0);
      CHECK(pool.steady_allocations == 0);
    }
  }
}

TEST_CASE("3.1: within its bound every value has an extent of its own, on the host and through a device") {
  for (const std::string device : {"cpu", "sim:0"}) {
    CAPTURE(device);
    for (const Setup& setup : ways_to_run()) {
      Pipeline p;
      p.add("source", "k.growing", {{"count", "250"}});
      p.add("doubled", "k.doubled").device = device;
      p.add("sum", "k.sum").device = "cpu";
      p.add("sink", "t.sink", {{"log", "extent"}});
      p.connect("source", "doubled");
      p.connect("doubled", "sum");
      p.connect("sum", "sink");
      Compiled compiled(p, setup);
      CHECK(compiled.ring("doubled").capacity == 800);
      REQUIRE(compiled.run().ok);
      const std::vector<int64_t> sums = values(compiled.seen("extent"));
      REQUIRE(sums.size() == 250);
      for (int64_t i = 0; i < 250; ++i) CHECK(sums[static_cast<size_t>(i)] == (i % 101) * (i % 101 + 1));
    }
  }
}

TEST_CASE("3.1: a value that is larger than its bound is refused where it is made, and harms no other") {
  Pipeline p("k.growing name=source count=110 most=120 ! k.sum name=sum ! t.sink name=sink log=too_large");
  Setup setup;
  setup.more = &kept_plugin();
  const Ran result = run(p, setup);
  CHECK_FALSE(result.ok);
  CHECK(result.error.code == 601);
  const std::vector<int64_t> sums = values(result.seen("too_large"));
  REQUIRE(sums.size() >= 101);
  for (int64_t i = 0; i <= 100; ++i) CHECK(sums[static_cast<size_t>(i)] == i * (i + 1) / 2);
}

TEST_CASE("5.2: handlers that name a thread share it, a blocking one has its own, and the workers take the rest") {
  threads.clear();
  Pipeline p;
  p.add("source", "t.count", {{"count", "200"}});
  for (const auto& [name, type] : std::map<std::string, std::string>{
           {"a", "k.where_named"}, {"b", "k.where_named"}, {"blocking", "k.where_blocking"}, {"plain", "k.where"}}) {
    p.add(name, type, {{"as", name}});
    p.connect("source", name);
  }
  Setup setup;
  setup.workers = 2;
  setup.more = &kept_plugin();
  Compiled compiled(p, setup);
  CHECK(compiled.threads() == 4);
  REQUIRE(compiled.run().ok);
  for (const char* name : {"a", "b", "blocking"}) REQUIRE(threads[name].size() == 1);
  CHECK(threads["a"] == threads["b"]);
  CHECK(threads["a"] != threads["blocking"]);
  REQUIRE_FALSE(threads["plain"].empty());
  CHECK(threads["plain"].size() <= 2);
  for (const std::thread::id& id : threads["plain"]) {
    CHECK(id != threads["a"][0]);
    CHECK(id != threads["blocking"][0]);
  }
}

TEST_CASE("2.2: a handler without a required input fires on every tick, with what there is") {
  for (const Setup& setup : ways_to_run()) {
    Pipeline p;
    p.add("source", "t.count", {{"count", "30"}});
    p.add("quiet", "t.relay", {{"silent_every", "2"}});
    p.add("mute", "t.relay", {{"silent_every", "1"}});
    p.add("join", "t.join");
    p.add("sink", "t.sink", {{"log", "optional"}});
    for (graph::Handler& handler : p.graph.handlers) handler.device = "cpu";
    p.connect("source", "quiet");
    p.connect("source", "mute");
    p.connect("quiet", "join.in");
    p.connect("mute", "join.in");
    p.connect("join", "sink");
    const Ran result = run(p, setup);
    REQUIRE(result.ok);
    for (const HandlerReport& handler : result.report.handlers) CHECK(handler.calls >= 30);
    const std::vector<int64_t> seen = values(result.seen("optional"));
    CHECK(seen.size() == 30);
    CHECK(std::count(seen.begin(), seen.end(), kEmpty) == 0);
  }
}
