// A plan is data: written, read, written again; compiled side by side; and what cannot be read.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "plan/compile.h"
#include "plan/explained.h"
#include "plan/memory.h"
#include "plan/prepare.h"
#include "plan/print.h"
#include "planned.h"
#include "plugin/registry.h"
#include "tests/plan/plan_json.h"

using namespace millrace;
using namespace millrace::test;
using nlohmann::json;

namespace {

int read_refusal(const json& document) {
  try {
    read_plan(document);
  } catch (const Failure& failure) {
    return failure.error().code;
  }
  return 0;
}

// All kinds of steps but a finish: a source, handlers, copies, a gate with its entry, a latest edge with its post and
// resolve.
Pipeline with_all_kinds() {
  return Pipeline(
      "t.count name=source count=8 ! t.relay name=third every=3 device=sim:0 ; source. ! t.paced name=paced ! t.sink "
      "name=sink log=all ; third. ! paced.extra policy=latest lag=1 ; t.relay name=queued ! t.sink name=end log=end ; "
      "source. ! queued. policy=queue depth=2 full=drop_oldest");
}

} // namespace

// Planned itself writes, reads and writes again every plan of these tests, and asks the one that was read.
TEST_CASE("a plan that was read says what the one says that was written") {
  const Planned planned(with_all_kinds(), machine_of(2, {"cpu", "sim:0"}));
  CHECK(planned.compiled().steps.size() == planned.plan().steps.size());
  CHECK(plan::print_text(planned.compiled()) == plan::print_text(planned.plan()));
  CHECK(plan::print_json(planned.compiled()) == plan::print_json(planned.plan()));
  CHECK(plan::print_dot(planned.compiled()) == plan::print_dot(planned.plan()));
}

TEST_CASE("the formats of a plan's records are its own") {
  const Planned planned(Pipeline("test.number ! stats.fps name=fps ; fps.rate ! null.sink"));
  REQUIRE(planned.compiled().records.size() == 1);
  for (const plan::Plan* plan : {&planned.compiled(), &planned.plan()}) {
    bool found = false;
    for (const plan::Output& output : plan->outputs) {
      if (output.format.kind != MR_KIND_RECORDS) continue;
      found = true;
      CHECK(output.format.records == &plan->records[0]->raw);
    }
    CHECK(found);
  }
}

TEST_CASE("compiling changes neither the graph nor the facts, and two plans of one graph are the same") {
  plugin::Registry registry;
  registry.add(test_plugin(), "");
  registry.add(plan_plugin(), "");
  const mr_host host = plugin::basic_host();
  graph::Graph graph = Pipeline("p.bgr ! p.grayonly ! null.sink").graph;
  const std::string before = graph::to_yaml(graph);
  plan::Prepared one = plan::prepare(graph, registry, host), other = plan::prepare(graph, registry, host);
  const plan::Plan first = plan::compile(graph, one.facts, plan::LiveTypes(registry, host), machine_of(1), {});
  const plan::Plan second = plan::compile(graph, other.facts, plan::LiveTypes(registry, host), machine_of(1), {});
  CHECK(first.inserted.size() == 1);
  CHECK(graph::to_yaml(graph) == before);
  CHECK(graph.handlers.size() == 3);
  CHECK(one.facts.handlers.size() == 3);
  CHECK(write_plan(first) == write_plan(second));
}

TEST_CASE("what is no plan is refused with what is missing or wrong") {
  const json whole = write_plan(Planned(with_all_kinds(), machine_of(2, {"cpu", "sim:0"})).plan());
  CHECK(read_refusal(whole) == 0);
  CHECK(read_refusal(json()) == 115);
  CHECK(read_refusal(json::array()) == 115);
  for (const auto& [key, value] : whole.items()) {
    CAPTURE(key);
    json less = whole;
    less.erase(key);
    CHECK(read_refusal(less) == 115);
  }
  json wrong = whole;
  wrong["steps"][0]["kind"]["is"] = "miracle";
  CHECK(read_refusal(wrong) == 115);
  wrong = whole;
  wrong["edges"][0]["policy"] = "miracle";
  CHECK(read_refusal(wrong) == 115);
  wrong = whole;
  wrong["steps"][0]["inputs"] = 3;
  CHECK(read_refusal(wrong) == 115);
  wrong = whole;
  wrong["outputs"][0]["records"] = 4711;
  CHECK(read_refusal(wrong) == 115);
}
