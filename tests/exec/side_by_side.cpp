// Plans that are compiled while another run goes on: a plan is data, and making one touches nothing of a run.
#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>

#include "exec/run.h"
#include "harness.h"
#include "plan/compile.h"
#include "plan/domain.h"
#include "plan/facts.h"
#include "plan/machine.h"
#include "plan/memory.h"
#include "plan/prepare.h"
#include "plan/step.h"
#include "plugin/registry.h"
#include "tests/exec/test_handlers.h"
#include "tests/plan/plan_json.h"

using namespace millrace;
using namespace millrace::test;

namespace {

constexpr int64_t kSent = 8'000;
std::atomic<int> opened{0};

// As a camera: there is one, which is opened once, and knows its size then.
struct Camera final : Handler {
  Output<Tensor> out{*this, "out"};
  int64_t size = 0, sent = 0;
  void probe(Facts& facts) override {
    if (opened++ > 0) throw std::runtime_error("the camera is open already");
    size = 4;
    facts.rate(30);
  }
  void configure(const Formats& formats) override {
    if (size == 0) throw std::runtime_error("it was never opened");
    formats.tensor(out, dtype_of<int64_t>(), {size});
  }
  void process(Tick& tick, Cpu&) {
    if (sent == kSent) return tick.end();
    const int64_t shape[] = {size};
    for (int64_t& element : out.allocate(tick, dtype_of<int64_t>(), shape).elements<int64_t>()) element = sent;
    ++sent;
  }
};

const mr_plugin& camera_plugin() {
  static const mr_handler_type type = detail::Type<Camera>::table("t.camera", "", "");
  static const mr_handler_type* const types[] = {&type};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "camera", "1", types, 1, 0};
  return plugin;
}

// Takes over the facts that another plan of this graph was made with: no handler is probed, and sources are not asked
// for their formats.
void know_from(const plan::Plan& plan, plan::Facts& facts) {
  for (plan::HandlerFacts& handler : facts.handlers) {
    const auto known = std::find_if(plan.handlers.begin(), plan.handlers.end(),
                                    [&](const plan::HandlerPlan& other) { return other.name == handler.name; });
    if (known == plan.handlers.end()) continue;
    handler.facts = known->facts;
    if (!handler.answers->info().is_source() || known->step == plan::kNone) continue;
    handler.outputs.clear();
    for (const uint32_t output : plan.steps[known->step].outputs)
      handler.outputs.push_back(plan.outputs[output].format);
  }
}

} // namespace

TEST_CASE(
    "5.1: plans of a graph are compiled while it runs, from what its plan knew, and the run goes on undisturbed") {
  opened = 0;
  Setup setup;
  setup.workers = 2;
  setup.domains = {"cpu", "sim:0"};
  setup.more = &camera_plugin();
  const Pipeline pipeline(
      "t.camera name=camera ! t.relay name=near ! t.relay name=far device=sim:0 ! t.sink name=sink log=seen");
  Compiled running(pipeline, setup);
  CHECK(opened == 1);
  running.live().start();
  int compiled = 0;
  const auto compile_again = [&] {
    plugin::Registry registry;
    registry.add(test_plugin(), "");
    registry.add(camera_plugin(), "");
    graph::Graph graph = pipeline.graph;
    plan::Prepared prepared = plan::prepare(graph, registry, exec::host_table(), false);
    know_from(running.plan(), prepared.facts);
    prepared.facts.probed = true;
    plan::Machine machine;
    machine.workers = setup.workers;
    machine.use(plan::domains_named(setup.domains));
    const plan::Plan plan =
        plan::compile(graph, prepared.facts, plan::LiveTypes(registry, exec::host_table()), machine, {});
    return write_plan(plan).dump() == write_plan(running.plan()).dump();
  };
  while (!running.live().finished() && compiled < 50) {
    bool first = false, second = false;
    std::thread other([&] { second = compile_again(); });
    first = compile_again();
    other.join();
    CHECK(first);
    CHECK(second);
    compiled += 2;
  }
  const Ran ran = running.wait();
  REQUIRE(ran.ok);
  CHECK(compiled >= 2);
  CHECK(opened == 1);
  const std::vector<Seen> seen = ran.seen("seen");
  REQUIRE(seen.size() == kSent);
  for (size_t i = 0; i < seen.size(); ++i) REQUIRE(seen[i].values.at(0) == static_cast<int64_t>(i));
}
