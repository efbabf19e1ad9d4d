// The runtime on a real device: what pipelines give, and what becomes of faults (semantics.md 4.5, 4.9).
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>

#include "alike.h"
#include "embed/compose.h"
#include "embed/device_module.h"
#include "exec/run.h"
#include "plan/pace.h"
#include "plan/plan.h"
#include "plugin/registry.h"
#include "rig.h"
#include "tests/exec/test_handlers.h"
#include "tests/seed.h"

namespace millrace::test {
namespace {

Setup on_host() {
  Setup setup;
  setup.more = &cuda_plugin();
  return setup;
}

Pipeline chain(const std::vector<std::string>& middle, int64_t count = 1000) { return test::chain("c", middle, count); }

TEST_CASE("4.5: a captured chain on a GPU gives what the host gives") {
  const std::vector<std::string> middle = {"add", "paint", "add", "pair", "add"};
  Compiled compiled(chain(middle), on_gpu());
  REQUIRE(compiled.regions().size() == 1);
  CHECK(compiled.regions()[0].steps.size() == middle.size() + 2); // the source, and the way down
  const Ran result = compiled.run();
  REQUIRE_MESSAGE(result.ok, result.error.what);
  const std::vector<Seen> device = result.seen("c");
  CHECK(device.size() == 1000);
  CHECK(device == seen_by(chain(middle), on_host(), "c"));
}

TEST_CASE("4.5: what cannot be captured runs on streams, and says why") {
  Setup setup = on_gpu();
  std::vector<std::string> messages;
  setup.options.on_message = [&](const std::string& line) { messages.push_back(line); };
  const std::vector<Seen> device = seen_by(chain({"add", "waits"}, 100), setup, "c");
  CHECK(device == seen_by(chain({"add", "add"}, 100), on_host(), "c"));
  REQUIRE(messages.size() == 1);
  MESSAGE(messages[0]);
  CHECK(messages[0].find("run on streams") != std::string::npos);
}

TEST_CASE("3.2: a run takes no more of a GPU than its plan lays out there and what is kept for the rest") {
  const device::DeviceModule& module = *embed::cuda_module().module;
  const uint64_t before = module.bytes_free(0);
  REQUIRE(before > 0);
  Compiled compiled(chain({"add", "paint", "waits", "pair", "add"}, 100), on_gpu());
  const Result result = compiled.run();
  REQUIRE_MESSAGE(result.ok, result.error.what);
  const uint64_t after = module.bytes_free(0), planned = compiled.plan().memory.at("cuda:0");
  const uint64_t taken = before - std::min(before, after);
  MESSAGE("taken " << taken << " bytes, of them planned " << planned);
  CHECK(taken <= planned + device::kTakenBeside);
}

struct OnGpu {
  uint32_t in_flight = 0;
  uint64_t bytes = 0, limit = 0;
};

// A plan for the GPU that is here, made as the command makes it; `allowed` as a machine file says it, 0: nothing.
OnGpu planned_for(uint32_t least, uint32_t most, uint64_t allowed) {
  Pipeline pipeline = chain({"add", "add"});
  pipeline.clock(graph::ClockMode::free, 0, 1, most);
  pipeline.graph.clocks[0].in_flight_least = least;
  plugin::Registry registry;
  registry.add(test_plugin(), "");
  registry.add(cuda_plugin(), "");
  embed::Choices choices;
  choices.domains = {"cuda:0", "cpu"};
  if (allowed > 0) choices.machine.bytes_allowed["cuda:0"] = allowed;
  const embed::Composition composition(std::move(pipeline.graph), registry, exec::host_table(), choices);
  const plan::Plan& plan = composition.plan();
  return {plan.clocks[0].in_flight, plan.memory.at("cuda:0"), plan.domains[1].bytes_limit};
}

TEST_CASE("3.2: a plan knows how much of a GPU is free before the GPU is opened, and is lowered to that or refused") {
  const OnGpu all = planned_for(0, 8, 0);
  CHECK(all.in_flight == 8);
  CHECK(all.limit > all.bytes);
  CHECK(planned_for(0, 8, all.bytes).limit == all.bytes);
  const OnGpu lowered = planned_for(1, 8, all.bytes - 1);
  CHECK(lowered.in_flight < 8);
  CHECK(lowered.bytes < all.bytes);
  try {
    planned_for(0, 8, all.bytes - 1);
    FAIL("it does not fit");
  } catch (const Failure& failure) {
    CHECK(failure.error().code == 404);
    CHECK(failure.error().what.find("bytes in cuda:0, which has " + std::to_string(all.bytes - 1)) !=
          std::string::npos);
    CHECK_FALSE(failure.error().notes.empty());
  }
}

Pipeline random_graph(uint64_t seed, const std::vector<std::string>& places) {
  return test::random_graph("c", {"add", "pair", "paint", "add"}, 100, seed, places);
}

std::vector<std::string> gpus_of_test() {
  if (std::getenv("MILLRACE_TWO_GPUS")) return {"cuda:0", "cuda:1"};
  return {"cuda:0"};
}

TEST_CASE("4.4: how many records there are a kernel says, and whoever reads them learns it") {
  const std::vector<Seen> host = seen_by(few_and_totals("c", {}), on_host(), "c");
  REQUIRE(host.size() == 50);
  std::vector<std::string> all = gpus_of_test();
  all.push_back("cpu");
  for_all_places(all, [&](const std::array<std::string, 3>& places) {
    CAPTURE(places[0] + " → " + places[1] + ", " + places[2]);
    CHECK(seen_by(few_and_totals("c", places), on_gpu(all), "c") == host);
  });
}

TEST_CASE("4.5: records that a region reads by latest are copied into its slot, also from its own memory") {
  const auto make = [](const std::string& place, const std::string& readers) {
    Pipeline pipeline = few_and_totals("c", {place, readers, readers});
    for (graph::Edge& edge : pipeline.graph.edges)
      if (edge.source == "few") edge.policy = graph::Policy::latest;
    return pipeline;
  };
  const std::vector<Seen> host = seen_by(make("cpu", "cpu"), on_host(), "c");
  REQUIRE(host.size() == 50);
  for (const std::string place : {"cpu", "cuda:0"}) {
    CAPTURE(place);
    const Ran result = run(make(place, "cuda:0"), on_gpu());
    REQUIRE_MESSAGE(result.ok, result.error.what);
    CHECK(result.seen("c") == host);
    uint64_t readers = 0;
    for (const auto& region : result.report.regions) {
      if (std::find(region.handlers.begin(), region.handlers.end(), "one") == region.handlers.end()) continue;
      ++readers;
      CHECK(region.launches == 50);
      CHECK(region.one_by_one == 0);
    }
    CHECK(readers == 1);
  }
}

TEST_CASE("3.7: a GPU gets each lasting value once, and regions that read it are recorded anew for a successor") {
  const auto make = [](const std::string& place, int64_t each) {
    Pipeline pipeline;
    pipeline.clock(graph::ClockMode::free, 0, 1, 3);
    pipeline.add("source", "c.index", {{"count", "200"}}).device = "cpu";
    pipeline.add("table", "c.table", {{"each", std::to_string(each)}}).device = "cpu";
    pipeline.add("one", "c.lookup").device = place;
    pipeline.add("two", "c.add").device = place;
    pipeline.add("sink", "t.sink", {{"log", "c"}});
    pipeline.connect("source.out", "table.in");
    pipeline.connect("source.out", "one.in");
    pipeline.connect("table.out", "one.table").policy = graph::Policy::latest;
    pipeline.connect("one.out", "two.in");
    pipeline.connect("two.out", "sink.in");
    return pipeline;
  };
  for (const int64_t each : {1000, 50, 3, 1}) {
    CAPTURE(each);
    const std::vector<Seen> host = seen_by(make("cpu", each), on_host(), "c");
    REQUIRE(host.size() == 200);
    const Ran result = run(make("cuda:0", each), on_gpu());
    REQUIRE_MESSAGE(result.ok, result.error.what);
    CHECK(result.seen("c") == host);
    uint64_t copies = 0;
    for (const TransferReport& transfer : result.report.transfers)
      if (transfer.edge.rfind("table.out", 0) == 0) copies += transfer.count;
    CHECK(copies == static_cast<uint64_t>((200 + each - 1) / each));
    REQUIRE(result.report.regions.size() == 1);
    CHECK(result.report.regions[0].launches == 200);
    CHECK(result.report.regions[0].one_by_one == 0);
  }
}

TEST_CASE("4.4: what kernels write to the host is read there, with its count, and was copied nowhere") {
  const auto make = [](const std::array<std::string, 3>& places) {
    Pipeline pipeline = few_and_totals("c", places);
    pipeline.graph.handlers[1].type = "c.hostfew";
    return pipeline;
  };
  const std::vector<Seen> host = seen_by(make({}), on_host(), "c");
  REQUIRE(host.size() == 50);
  std::vector<std::string> all = gpus_of_test();
  all.push_back("cpu");
  for_all_places(all, [&](const std::array<std::string, 3>& places) {
    CAPTURE(places[0] + " → " + places[1] + ", " + places[2]);
    const Ran result = run(make(places), on_gpu(all));
    REQUIRE_MESSAGE(result.ok, result.error.what);
    CHECK(result.seen("c") == host);
    for (const TransferReport& transfer : result.report.transfers)
      if (transfer.edge.rfind("few.out", 0) == 0) CHECK(transfer.from == "cpu");
  });
}

TEST_CASE("4.4: finish runs after the fence of its tick, captured and on streams, and publishes on the host") {
  const auto make = [](const std::string& place) {
    Pipeline pipeline;
    pipeline.clock(graph::ClockMode::free, 0, 1, 3);
    pipeline.add("source", "c.index", {{"count", "1000"}}).device = place;
    pipeline.add("judge", "c.judge").device = place;
    pipeline.add("total", "c.total").device = "cpu";
    pipeline.add("add", "c.add").device = place;
    pipeline.add("sink", "t.sink", {{"log", "c"}});
    pipeline.connect("source.out", "judge.in");
    pipeline.connect("judge.boxes", "total.in");
    pipeline.connect("judge.next", "add.in");
    for (const char* made : {"total.out", "judge.out", "add.out"}) pipeline.connect(made, "sink.in");
    return pipeline;
  };
  const std::vector<Seen> host = seen_by(make("cpu"), on_host(), "c");
  REQUIRE(host.size() == 1000);
  for (const char* fault : {"", "GraphInstantiate:1:2"}) {
    CAPTURE(fault);
    const Ran result = run(make("cuda:0"), on_gpu({"cuda:0", "cpu"}, fault));
    REQUIRE_MESSAGE(result.ok, result.error.what);
    CHECK(result.seen("c") == host);
    REQUIRE(result.report.handlers[1].name == "judge");
    CHECK(result.report.handlers[1].calls == 1000);
    CHECK(result.report.handlers[1].finish_sampled == 1000);
    if (!*fault) CHECK(result.report.regions.at(0).launches == 1000);
  }
}

TEST_CASE("4.5: random graphs give the same on GPUs as on the host") {
  const std::vector<std::string> gpus = gpus_of_test();
  for (uint64_t n = 0; n < 30; ++n) {
    const uint64_t seed = random_seed() + n;
    CAPTURE(seed);
    const std::vector<Seen> host = seen_by(random_graph(seed, {}), on_host(), "c");
    std::vector<std::string> domains = {"cpu"}, places = gpus;
    domains.insert(domains.end(), gpus.begin(), gpus.end());
    Setup setup = on_gpu(domains);
    setup.workers = 2;
    if (n % 2) places.push_back("cpu");
    REQUIRE(seen_by(random_graph(seed, places), setup, "c") == host);
  }
}

TEST_CASE("4.2: a worker that sleeps is woken when a long region is done") {
  Pipeline pipeline = chain({"spin"}, 50);
  pipeline.graph.handlers[1].params.push_back({"us", "3000", {}});
  pipeline.clock(graph::ClockMode::free, 0, 1, 1);
  const auto begin = std::chrono::steady_clock::now();
  CHECK(seen_by(std::move(pipeline), on_gpu(), "c").size() == 50);
  const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  MESSAGE("50 ticks of 3 ms: ", ms, " ms with opening the device");
}

// ---- 4.9: each class of fault ends as it should, and nothing hangs ----------------------------------------------

TEST_CASE("4.9: an injected failure of a copy, a wait or a signal ends the run as a lost device") {
  for (const char* fault :
       {"MemcpyAsync:20:719", "StreamWriteValue:20:719", "StreamWaitEvent:20:719", "EventRecord:20:719"}) {
    CAPTURE(fault);
    Pipeline pipeline;
    pipeline.add("source", "c.frames", {{"bytes", "1048576"}, {"count", "100000"}});
    pipeline.add("move", "c.move");
    pipeline.add("sink", "null.sink").device = "cpu";
    pipeline.connect("source.out", "move.in");
    pipeline.connect("move.out", "sink.in");
    const Ran result = run(std::move(pipeline), on_gpu({"cuda:0", "cpu"}, fault));
    CHECK_FALSE(result.ok);
    CHECK(result.error.code == 703);
  }
}

TEST_CASE("4.9: an injected failure of a launch ends the run as a lost device, and nobody reads what it left") {
  for (const char* fault : {"GraphLaunch:20:719", "GraphExecKernelNodeSetParams:20:719"}) {
    CAPTURE(fault);
    const Ran result = run(chain({"add"}, 100000), on_gpu({"cuda:0", "cpu"}, fault));
    CHECK_FALSE(result.ok);
    CHECK(result.error.code == 703);
    int64_t expected = 1;
    for (const int64_t value : values(result.seen_if_any("c"))) {
      if (value != kEmpty) REQUIRE(value == expected);
      ++expected;
    }
  }
}

TEST_CASE("4.9: an injected failure of the capture leaves the region to streams") {
  Setup setup = on_gpu({"cuda:0", "cpu"}, "GraphInstantiate:1:2");
  std::vector<std::string> messages;
  setup.options.on_message = [&](const std::string& line) { messages.push_back(line); };
  CHECK(seen_by(chain({"add"}, 100), setup, "c").size() == 100);
  REQUIRE(messages.size() == 1);
  CHECK(messages[0].find("run on streams") != std::string::npos);
}

TEST_CASE("4.9: memory that is not there is told before the run") {
  Pipeline pipeline;
  pipeline.add("source", "c.frames", {{"bytes", "60000000000"}, {"count", "3"}});
  pipeline.add("move", "c.move");
  pipeline.add("sink", "c.end");
  pipeline.connect("source.out", "move.in");
  pipeline.connect("move.out", "sink.in");
  CHECK_THROWS_AS(Compiled(std::move(pipeline), on_gpu()), Failure);
}

// In a process of its own: what it leaves on the device holds up whatever is launched after it.
TEST_CASE("4.9: a device that never finishes is given up" * doctest::skip()) {
  Pipeline pipeline = chain({"spin"}, 10);
  pipeline.graph.handlers[1].params.push_back({"us", "4000000", {}}); // four seconds a tick
  Setup setup = on_gpu();
  setup.options.device_patience_ns = 1'000'000'000;
  const Ran result = run(std::move(pipeline), setup);
  CHECK_FALSE(result.ok);
  CHECK(result.error.code == 703);
  MESSAGE(result.error.what);
}

// Under memcheck, which has to find it: a kernel that writes between two blocks of an arena hurts nobody else.
TEST_CASE("4.9: a checker finds a kernel that writes past the end of its block" * doctest::skip()) {
  CHECK(seen_by(chain({"past_end"}, 10), on_gpu(), "c").size() == 10);
}

// In a process of its own: an illegal address ends the process's context for good.
TEST_CASE("4.9: a real illegal address ends the run within a second" * doctest::skip()) {
  Pipeline pipeline = chain({"add", "wild"}, 1000000);
  pipeline.graph.handlers[2].params.push_back({"at", "500", {}});
  const auto begin = std::chrono::steady_clock::now();
  const Ran result = run(std::move(pipeline), on_gpu());
  const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  CHECK_FALSE(result.ok);
  CHECK(result.error.code == 703);
  MESSAGE(result.error.what, "; after ", s, " s with opening the device");
  int64_t there = 0;
  for (const int64_t value : values(result.seen_if_any("c"))) there += value != kEmpty;
  CHECK(there < 600);
}

} // namespace
} // namespace millrace::test
