// Workers are woken where something is to do: heads look at their time, a run ends between beats, and a free worker
// takes what is due while its home is busy.
#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <array>
#include <condition_variable>
#include <ctime>
#include <future>
#include <mutex>
#include <thread>

#include "exec/cluster.h"
#include "exec/run.h"
#include "graph/unfold.h"
#include "harness.h"

namespace millrace::test {
namespace {

// The calls of each stream's handler. One call at a time holds its worker until the other streams have gone on.
constexpr size_t kHolding = 3;
constexpr int64_t kGoesOn = 10; // calls
std::mutex holds_mutex;
std::condition_variable went_on;
std::array<int64_t, kHolding> calls_held;
size_t held = 0; // so many have held, in the order of the streams

struct Holds final : Handler {
  Input<Tensor> in{*this, "in"};
  Param<int64_t> stream{*this, "stream", 0, "its number"};
  Holds() { host_heavy(); }
  void process(Tick&, Cpu&) {
    std::unique_lock lock(holds_mutex);
    const auto mine = static_cast<size_t>(*stream);
    ++calls_held[mine];
    went_on.notify_all();
    if (held != mine || calls_held[mine] < kGoesOn) return;
    const std::array<int64_t, kHolding> before = calls_held;
    const bool is_free = went_on.wait_for(lock, std::chrono::seconds(60), [&] {
      for (size_t other = 0; other < kHolding; ++other)
        if (other != mine && calls_held[other] < before[other] + kGoesOn) return false;
      return true;
    });
    if (!is_free) throw std::runtime_error("another stream waits for this one");
    ++held;
  }
};

// Fails in a segment of its own: a lone worker comes to it once the clock's head waits for the next beat.
struct FailsLate final : Handler {
  Input<Tensor> in{*this, "in"};
  FailsLate() { host_heavy(); }
  void process(Tick&, Cpu&) { throw std::runtime_error("it fails"); }
};

const mr_plugin& cluster_plugin() {
  static const mr_handler_type holding = detail::Type<Holds>::table("c.holds", "a test's", "");
  static const mr_handler_type failing = detail::Type<FailsLate>::table("c.fails", "a test's", "");
  static const mr_handler_type* const types[] = {&holding, &failing};
  static const mr_plugin table = {sizeof(mr_plugin), MR_ABI_VERSION, "c", "1", types, 2, 0};
  return table;
}

void add_beats(Pipeline& pipeline, const std::string& name, int64_t hz) {
  graph::Clock clock;
  clock.name = name;
  clock.mode = graph::ClockMode::realtime;
  clock.rate = {hz, 1};
  pipeline.graph.clocks.push_back(clock);
}

int64_t processor_ms() {
  timespec used;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return int64_t{used.tv_sec} * 1000 + used.tv_nsec / 1'000'000;
}

Pipeline slow_beats(int64_t count) {
  Pipeline pipeline("t.count name=source ! t.relay name=relay ! t.sink name=sink log=seen");
  pipeline.graph.handlers[0].params.push_back({"count", std::to_string(count), {}, {}});
  pipeline.clock(graph::ClockMode::realtime, 1, 3600); // a beat an hour: who waits for one meets the test's time limit
  return pipeline;
}

TEST_CASE("1.2: a run ends with its last tick, and waits for no beat after it") {
  for (const uint32_t workers : {1U, 2U}) {
    Setup setup;
    setup.workers = workers;
    setup.options.ticks_max = 1;
    CHECK(run(slow_beats(9), setup).ok);
  }
}

TEST_CASE("1.2: a run ends at once if it is stopped, or its time is over, between two beats") {
  Setup setup;
  setup.options.duration_ns = 50 * kMs;
  CHECK(run(slow_beats(9), setup).ok);
  setup.options.duration_ns = 0;
  Compiled compiled(slow_beats(9), setup);
  compiled.live().start();
  while (compiled.live().ticks() == 0) std::this_thread::yield();
  compiled.live().stop();
  CHECK(compiled.wait().ok);
}

TEST_CASE("B11: a stream that fails between two beats ends then") {
  for (const uint32_t workers : {1U, 2U}) {
    Pipeline pipeline;
    pipeline.graph = graph::unfold(graph::parse_yaml(R"(version: 1
streams: { cameras: { items: { a: {}, b: {} } } }
clocks: { cameras: { mode: realtime, rate: 1/3600 } }
handlers:
  source: { type: t.count, for_each: cameras, count: 9 }
  fails:  { type: c.fails, for_each: cameras, input: source }
)",
                                                     "streams.yaml"));
    Setup setup;
    setup.workers = workers;
    setup.more = &cluster_plugin();
    CHECK_FALSE(run(std::move(pipeline), setup).ok); // no stream is left
  }
}

TEST_CASE("2.7: a change that is asked for between two beats is admitted then, not at the next beat") {
  Setup setup;
  setup.options.keep_changes = true;
  Compiled compiled(slow_beats(9), setup);
  compiled.live().start();
  while (compiled.live().ticks() == 0) std::this_thread::yield();
  compiled.live().set({{"relay", "add", "1"}});
  while (compiled.live().changes().empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(compiled.live().changes().size() == 1);
  compiled.live().stop();
  CHECK(compiled.wait().ok);
}

TEST_CASE("5.2: a long call of one stream does not hold up others of the same home while a worker is free") {
  calls_held.fill(0);
  held = 0;
  Pipeline pipeline;
  for (size_t stream = 0; stream < kHolding; ++stream) { // so two of them have one home
    const std::string number = std::to_string(stream);
    add_beats(pipeline, "clock" + number, 50 + static_cast<int64_t>(stream));
    pipeline.add("source" + number, "t.count", {{"count", "1000000"}}).clock = "clock" + number;
    pipeline.add("holds" + number, "c.holds", {{"stream", number}}).clock = "clock" + number;
    pipeline.connect("source" + number, "holds" + number);
  }
  Setup setup;
  setup.workers = 2;
  setup.more = &cluster_plugin();
  Compiled compiled(std::move(pipeline), setup);
  compiled.live().start();
  {
    std::unique_lock lock(holds_mutex);
    went_on.wait_for(lock, std::chrono::seconds(60), [] { return held == kHolding; });
  }
  compiled.live().stop();
  CHECK(compiled.wait().ok);
  CHECK(held == kHolding);
}

TEST_CASE("1.2: workers sleep between the beats of streams, also if a stream has several paces") {
  Pipeline pipeline;
  for (const char* number : {"0", "1", "2", "3"}) {
    const std::string of = number;
    add_beats(pipeline, "clock" + of, 20);
    pipeline.add("source" + of, "t.count", {{"count", "1000000"}}).clock = "clock" + of;
    pipeline.add("sink" + of, "t.sink", {{"log", "none"}}).clock = "clock" + of;
    graph::Edge& edge = pipeline.connect("source" + of, "sink" + of);
    edge.policy = graph::Policy::queue;
    edge.depth = 2;
  }
  Setup setup;
  setup.workers = 2;
  setup.options.duration_ns = 1000 * kMs;
  const int64_t used_before = processor_ms();
  CHECK(run(std::move(pipeline), setup).ok);
  CHECK(processor_ms() - used_before < 250); // 80 beats; two workers that keep each other awake take 500 to 2,000
}

TEST_CASE("a set of workers finds each that was added, in order, until it is told to stop") {
  exec::WorkerSet workers(200);
  for (const size_t worker : {199U, 0U, 64U}) workers.add(worker);
  std::vector<size_t> found;
  workers.find([&](size_t worker) {
    found.push_back(worker);
    return worker == 64;
  });
  CHECK(found == std::vector<size_t>{0, 64});
  CHECK(workers.has(199));
  CHECK_FALSE(workers.has(63));
  workers.clear();
  CHECK_FALSE(workers.has(199));
}

} // namespace
} // namespace millrace::test
