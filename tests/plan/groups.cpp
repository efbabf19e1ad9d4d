// Groups of shared handlers in the plan: how they take their items, and what is refused.
#include "plan/groups.h"

#include <doctest/doctest.h>

#include "graph/unfold.h"
#include "over_nodes.h"
#include "plan/group_plan.h"
#include "planned.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// Three streams of numbers, and the handlers of `text`.
Pipeline three_streams(const std::string& text, const std::string& clock = "{ mode: free }") {
  Pipeline pipeline;
  pipeline.graph = graph::unfold(graph::parse_yaml("version: 1\nclocks: { cameras: " + clock +
                                                       " }\nstreams: { cameras: { items: [gate, hall, yard] } }\n"
                                                       "handlers:\n  source: { type: t.count, for_each: cameras }\n" +
                                                       text,
                                                   "streams.yaml"));
  return pipeline;
}

std::string shared_with(const std::string& batch) {
  return "  model: { type: t.relay, input: source" + batch +
         " }\n  sink: { type: t.sink, for_each: cameras, input: model, log: none }\n";
}

plan::GroupPlan group_with(const std::string& batch, const std::string& clock) {
  const Planned planned(three_streams(shared_with(batch), clock));
  REQUIRE(planned.plan().groups.size() == 1);
  return planned.plan().groups[0];
}

} // namespace

TEST_CASE("B2: a shared handler is a group, which each stream gives its items") {
  const plan::GroupPlan group = group_with("", "{ mode: free }");
  CHECK(group.name == "model");
  CHECK(group.set == "cameras");
  CHECK(group.handlers.size() == 1);
  CHECK(group.gives.size() == 3);
  for (const uint32_t give : group.gives) CHECK(give != plan::kNone);
}

TEST_CASE("B12: under free a group takes what waits, and has no budget") {
  const plan::GroupPlan group = group_with("", "{ mode: free }");
  CHECK(group.rule == plan::BatchRule::free);
  CHECK(group.budget_ns == 0);
  CHECK_FALSE(group.drop_late);
  CHECK(group_with(", batch: { max: 2 }", "{ mode: free }").items_max == 2);
}

TEST_CASE("B13: in real time a group has a size and a wait, or learns within a budget; each is a period if left out") {
  const std::string clock = "{ mode: realtime, rate: 50 }";
  const plan::GroupPlan fixed = group_with(", batch: 3", clock);
  CHECK(fixed.rule == plan::BatchRule::fixed);
  CHECK(fixed.size == 3);
  CHECK(fixed.items_max == 4); // a power of two
  CHECK(fixed.wait_ns == 20'000'000);
  CHECK(group_with(", batch: { size: 3, wait: 5ms }", clock).wait_ns == 5'000'000);
  const plan::GroupPlan learnt = group_with("", clock);
  CHECK(learnt.rule == plan::BatchRule::learnt);
  CHECK(learnt.budget_ns == 20'000'000);
  CHECK(group_with(", batch: { budget: 15ms }", clock).budget_ns == 15'000'000);
}

TEST_CASE("B9: in real time late items are dropped, unless the group keeps them or has a fixed size") {
  const std::string clock = "{ mode: realtime, rate: 50 }";
  CHECK(group_with("", clock).drop_late);
  CHECK_FALSE(group_with(", batch: { late: keep }", clock).drop_late);
  CHECK_FALSE(group_with(", batch: 3", clock).drop_late);
}

TEST_CASE("a handler that answers later cannot take items: MR0325") {
  const Error error =
      error_of(three_streams("  model: { type: t.late, input: source, after: 1 }\n"
                             "  sink: { type: t.sink, for_each: cameras, input: model, log: none }\n"));
  CHECK(error.code == 325);
  CHECK(error.what == "model (t.late) takes items of 'cameras', and answers later");
  CHECK(error.place.line == 6);
  CHECK(error.edit == "for_each: cameras");
  CHECK(refusal(three_streams("  model: { type: t.late, for_each: cameras, input: source, after: 1 }\n"
                              "  sink: { type: t.sink, for_each: cameras, input: model, log: none }\n")) == 0);
}

TEST_CASE("a handler that keeps earlier values cannot take items: MR0325") {
  const Error error = error_of(three_streams("  model: { type: t.keep, input: source, log: none }\n"));
  CHECK(error.code == 325);
  CHECK(error.what == "model (t.keep) takes items of 'cameras', and keeps earlier values of in");
  CHECK(error.edit == "for_each: cameras");
  CHECK(refusal(three_streams("  model: { type: t.keep, for_each: cameras, input: source, log: none }\n")) == 0);
}

TEST_CASE("4.7: a handler with state cannot take items, since one state would serve all streams: MR0325") {
  const Error error =
      error_of(three_streams("  model: { type: p.state, input: source }\n"
                             "  sink: { type: t.sink, for_each: cameras, input: model, log: none }\n"));
  CHECK(error.code == 325);
  CHECK(error.what == "model (p.state) takes items of 'cameras', and has state");
  CHECK(error.edit == "for_each: cameras");
  CHECK(refusal(three_streams("  model: { type: p.state, for_each: cameras, input: source }\n"
                              "  sink: { type: t.sink, for_each: cameras, input: model, log: none }\n")) == 0);
}

TEST_CASE("items that are not all in one memory are refused, with the device that mends it: MR0325") {
  const auto placed = [](const std::string& device) {
    Pipeline pipeline;
    pipeline.graph = graph::unfold(
        graph::parse_yaml("version: 1\nstreams: { cameras: { items: { gate: { on: cpu }, hall: { on: '" + device +
                              "' } } } }\nhandlers:\n  source: { type: t.count, for_each: cameras }\n"
                              "  relay: { type: t.relay, for_each: cameras, input: source, device: '{on}' }\n"
                              "  model: { type: t.relay, input: relay, device: cpu }\n"
                              "  sink: { type: t.sink, for_each: cameras, input: model, log: none }\n",
                          "streams.yaml"));
    return error_of(pipeline, machine_of(2, {"cpu", "sim:0"}));
  };
  const Error error = placed("sim:0");
  CHECK(error.code == 325);
  CHECK(error.what == "model (t.relay) takes items of all streams, and relay@hall.out is in sim:0, others in cpu");
  CHECK(error.edit == "device: cpu, for relay");
  CHECK(placed("cpu").code == 0);
}

TEST_CASE("a budget that one item cannot keep is refused with both times where they are known: MR0418") {
  plan::Options options;
  options.costs_ns["model"] = 12'000'000;
  const std::string clock = "{ mode: realtime, rate: 50 }";
  const Error error = error_of(three_streams(shared_with(", batch: { budget: 10ms }"), clock), {}, options);
  CHECK(error.code == 418);
  CHECK(error.what == "the group of model takes 12ms for one item, and its budget is 10ms");
  CHECK(error.place.line == 6);
  CHECK(error.edit == "budget: 24400us");
  CHECK(error_of(three_streams(shared_with(", batch: { budget: 20ms }"), clock), {}, options).code == 0);
  CHECK(error_of(three_streams(shared_with(", batch: { budget: 10ms }"), clock)).code == 0); // not known
}

TEST_CASE("6: what a firing takes is known by calls that were measured with several items") {
  plan::Options options;
  options.costs_ns["model"] = 1'000'000;
  const Planned planned(three_streams(shared_with(", batch: { max: 8 }")), {}, options);
  CHECK(planned.plan().groups[0].curve_ns == std::vector<int64_t>{1'000'000, 2'000'000, 4'000'000, 8'000'000});
}

TEST_CASE("items of different numbers of dimensions are refused, with what each stream gives: MR0402") {
  const auto told = [](const std::string& dimensions) {
    Pipeline pipeline;
    pipeline.graph = graph::unfold(graph::parse_yaml(
        "version: 1\nstreams: { cameras: { items: { gate: { of: 1 }, hall: { of: " + dimensions +
            " } } } }\nhandlers:\n  source: { type: p.numbers, for_each: cameras, dimensions: '{of}' }\n" +
            shared_with(""),
        "streams.yaml"));
    return error_of(pipeline);
  };
  const Error error = told("2");
  CHECK(error.code == 402);
  CHECK(error.what == "model.in takes items of all streams, and they have different numbers of dimensions");
  CHECK(error.place.line == 5);
  CHECK(error.notes[0] == "source@gate.out gives int64[1]");
  CHECK(error.notes[1] == "source@hall.out gives int64[1×1]");
  CHECK(error.edit == "for_each: cameras");
  CHECK(told("1").code == 0);
}
