// A pipeline is prepared first, and compiled and run later with what others have chosen by then.
#include "embed/compose.h"

#include <doctest/doctest.h>

#include <utility>
#include <vector>

#include "device/timeline.h"
#include "exec/run.h"
#include "exec/run_options.h"
#include "observe/report.h"
#include "plan/explained.h"
#include "plan/machine.h"
#include "plan/pace.h"
#include "plan/plan.h"
#include "plan/print.h"
#include "plugin/registry.h"

using namespace millrace;
using namespace millrace::embed;

namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kBeginNs = 5000 * kMs;

// Pictures of nv12 on which a marker is drawn in rgb8, so that the plan inserts a conversion.
constexpr const char* kConverted =
    "test.pattern name=video width=64 height=48 count=10 format=nv12 ! draw.marker name=spot ! null.sink "
    "name=end";
constexpr const char* kNumbers = "test.number name=numbers count=10 ! null.sink name=end";

struct Composing {
  plugin::Registry registry;
  Choices choices;

  Composing() {
    choices.domains = {"cpu", "sim:0"};
    choices.threads = 2;
  }
  Preparation prepare(const std::string& pipeline) const { return prepare(graph::load(pipeline)); }
  Preparation prepare(graph::Graph graph) const {
    return Preparation(std::move(graph), registry, exec::host_table(), choices);
  }
};

// The code that these options are refused with; 0 if they are not.
int refusal_of(Preparation& preparation, const plan::Options& options) {
  try {
    Composition(std::move(preparation), options);
  } catch (const Failure& failure) {
    return failure.error().code;
  }
  return 0;
}

Result result_of(Composition& composition, const exec::RunOptions& options = {}) {
  const std::unique_ptr<exec::Run> run = composition.make_run(options);
  run->start();
  return run->wait();
}

// Realtime at 100 ticks a second: a tick every 10 ms.
plan::Options at_100_hz(plan::Options options) {
  options.clock = graph::ClockMode::realtime;
  options.rate = graph::Rational{100, 1};
  return options;
}

} // namespace

TEST_CASE("a preparation knows the handlers' facts and the machine before there is a plan") {
  Composing composing;
  composing.choices.rate = graph::Rational{50, 1};
  composing.choices.machine.bodies = {{"draw.marker", "", "cpu", 9216, 10, 10, 10, 1}};
  const Preparation preparation = composing.prepare(kConverted);
  CHECK(preparation.graph().handlers.size() == 3);
  REQUIRE(preparation.facts().handlers.size() == 3);
  CHECK(preparation.facts().handlers[0].facts.tick_count == 10);
  CHECK(preparation.machine().workers == 2);
  REQUIRE(preparation.machine().domains.size() == 2);
  CHECK(preparation.machine().domains[1].name == "sim:0");
  CHECK(preparation.machine().bodies.size() == 1);
  CHECK(preparation.options().rate->numerator == 50);
  CHECK(preparation.options().nodes.empty());
}

TEST_CASE("preparing and compiling one after the other makes the plan of the one call") {
  const Composing composing;
  const Composition at_once(graph::load(kConverted), composing.registry, exec::host_table(), composing.choices);
  Preparation preparation = composing.prepare(kConverted);
  const plan::Options options = preparation.options();
  Composition in_two(std::move(preparation), options);
  CHECK(plan::print_json(in_two.plan()) == plan::print_json(at_once.plan()));
  CHECK(result_of(in_two).ok);
}

TEST_CASE("a clock and a start that are chosen after the preparation are those of the run") {
  Composing composing;
  composing.choices.clock = graph::ClockMode::free;
  composing.choices.domains = {"cpu"};
  Preparation preparation = composing.prepare(kNumbers);
  plan::Options options = at_100_hz(preparation.options());
  options.nodes.clear();
  Composition composition(std::move(preparation), options);
  REQUIRE(composition.plan().clocks.size() == 1);
  CHECK(composition.plan().clocks[0].realtime());

  device::VirtualTime time;
  exec::RunOptions run_options;
  run_options.virtual_time = &time;
  run_options.begin_ns = kBeginNs;
  std::vector<int64_t> called_at_ns, expected;
  run_options.cost_ns = [&](const std::string& handler, uint64_t) {
    if (handler == "end") called_at_ns.push_back(time.now_ns());
    return 0;
  };
  CHECK(result_of(composition, run_options).ok);
  for (int64_t tick = 0; tick < 10; ++tick) expected.push_back(kBeginNs + tick * 10 * kMs);
  CHECK(called_at_ns == expected);
}

TEST_CASE("a run of a preparation tells its failure to the hook that it is given") {
  Composing composing;
  composing.choices.domains = {"cpu"};
  Preparation preparation = composing.prepare("test.number name=numbers count=10 fail_at=3 ! null.sink name=end");
  const plan::Options options = at_100_hz(preparation.options());
  Composition composition(std::move(preparation), options);
  device::VirtualTime time;
  exec::RunOptions run_options;
  run_options.virtual_time = &time;
  run_options.begin_ns = kBeginNs;
  std::vector<uint64_t> failed_at;
  run_options.on_failure = [&](const exec::FailureRecord& failure) { failed_at.push_back(failure.index); };
  CHECK_FALSE(result_of(composition, run_options).ok);
  CHECK(failed_at == std::vector<uint64_t>{3});
  CHECK(time.now_ns() == kBeginNs + 30 * kMs);
}

TEST_CASE("a node that is told the nodes and its own number compiles its own steps alone") {
  const Composing composing;
  for (const uint32_t node : {0u, 1u}) {
    CAPTURE(node);
    graph::Graph graph = graph::load(kConverted);
    graph.handlers[1].node = graph.handlers[2].node = "gpu";
    Preparation preparation = composing.prepare(std::move(graph));
    plan::Options options = preparation.options();
    options.nodes = {"home", "gpu"};
    options.node = node;
    options.places = {{"spot", "sim:0"}};
    const Composition composition(std::move(preparation), options);
    const plan::Plan& plan = composition.plan();
    REQUIRE(plan.handlers.size() == 4);
    for (const plan::HandlerPlan& handler : plan.handlers) {
      CAPTURE(handler.name);
      CHECK((handler.step == plan::kNone) == (handler.name == "video" ? node == 1 : node == 0));
      if (handler.name == "spot" && node == 1) CHECK(plan.domains[handler.domain].name == "sim:0");
    }
  }
}

TEST_CASE("options that cannot be compiled leave the preparation as it was, and others may be tried") {
  const Composing composing;
  Preparation preparation = composing.prepare(kConverted);
  plan::Options options = preparation.options();
  options.places = {{"spot", "sim:7"}};
  CHECK(refusal_of(preparation, options) == 408);
  options.places = {{"spot", "sim:0"}};
  Composition composition(std::move(preparation), options);
  CHECK(composition.plan().domains[composition.plan().handlers[1].domain].name == "sim:0");
  CHECK(result_of(composition).ok);
}

TEST_CASE("5.6: a preparation with a saved plan refuses options that make another one, and then makes the saved one") {
  Composing composing;
  {
    const Composition before(graph::load(kConverted), composing.registry, exec::host_table(), composing.choices);
    composing.choices.saved = parse_plan(plan::print_json(before.plan()));
  }
  Preparation preparation = composing.prepare(kConverted);
  const plan::Options saved = preparation.options();
  CHECK(refusal_of(preparation, at_100_hz(saved)) == 412);
  Composition composition(std::move(preparation), saved);
  REQUIRE(composition.plan().inserted.size() == 1);
  CHECK(composition.find(composition.plan().inserted[0].declared.name));
  CHECK(result_of(composition).ok);
}
