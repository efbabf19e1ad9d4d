// Handlers that are told to another node, as text: it knows of them what their own node knows.
#include "node/told_handlers.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "observe/error_codes.h"
#include "plan/prepare.h"
#include "plugin/info_json.h"
#include "tests/contains.h"
#include "tests/node/types.h"

namespace millrace::node {
namespace {

using nlohmann::json;

// The node that has the handlers: boxes are added up and dropped.
struct OwnNode {
  OwnNode() {
    registry.add(test::boxes_plugin(), "");
    registry.add(test::total_plugin(), "");
    graph = graph::parse_line("n.boxes name=boxes rate=25 ! n.total name=total ! null.sink name=end");
    prepared = plan::prepare(graph, registry, host);
  }
  plan::HandlerFacts& handler(const std::string& name) {
    for (plan::HandlerFacts& handler : prepared.facts.handlers)
      if (handler.name == name) return handler;
    throw std::out_of_range(name);
  }
  // As it arrives at the other node.
  json told(const std::string& name) { return json::parse(ToldHandlers::tell(handler(name)).dump()); }

  plugin::Registry registry;
  mr_host host = plugin::basic_host();
  graph::Graph graph;
  plan::Prepared prepared;
};

std::string text_of(const std::vector<mr_format>& formats) {
  json all = json::array();
  for (const mr_format& format : formats) {
    all.push_back(plugin::to_json(format));
    if (format.records) all.back()["records"] = plugin::to_json(*format.records);
  }
  return all.dump();
}

mr_format records_of(const OwnNode& node, uint32_t most) {
  mr_format format = node.prepared.facts.handlers.at(0).accepts.at(0);
  format.record_count_max = most;
  return format;
}

// The outputs that a handler with one output gives; empty if it refuses.
std::vector<mr_format> outputs_of(plugin::Answers& answers, const std::vector<mr_format>& inputs) {
  std::vector<mr_format> outputs(1);
  outputs[0].size = sizeof(mr_format);
  if (answers.configure(inputs, outputs) != MR_OK) return {};
  return outputs;
}

// The code that the other node refuses it with; 0 if it does not.
int refusal_of_told(const json& told) {
  ToldHandlers handlers;
  plan::HandlerFacts handler{"one", nullptr, {}, {}, {}};
  try {
    handlers.take(told, handler);
  } catch (const Failure& failure) {
    CHECK(contains(failure.error().what, "handler one"));
    return failure.error().code;
  }
  return 0;
}

} // namespace

TEST_CASE("a handler that was told has the declaration, the facts and the formats that its own node knows") {
  OwnNode own;
  for (const std::string name : {"boxes", "total", "end"}) {
    CAPTURE(name);
    const plan::HandlerFacts& known = own.handler(name);
    ToldHandlers handlers;
    plan::HandlerFacts handler{name, nullptr, {}, {}, {}};
    handlers.take(own.told(name), handler);
    REQUIRE(handler.answers);
    plugin::HandlerInfo declared = known.answers->info();
    declared.manual.clear(); // is not told
    CHECK(plugin::to_json(handler.answers->info()) == plugin::to_json(declared));
    CHECK(plugin::to_json(handler.facts) == plugin::to_json(known.facts));
    CHECK(text_of(handler.accepts) == text_of(known.accepts));
    CHECK(handler.outputs.empty());
  }
  CHECK(own.handler("boxes").facts.rate_num == 25);
  CHECK(own.handler("boxes").facts.tick_count == 9);
}

TEST_CASE("record types of told formats are copies, which live as long as the handlers that were told") {
  ToldHandlers handlers;
  plan::HandlerFacts handler{"boxes", nullptr, {}, {}, {}};
  std::vector<mr_format> expected, outputs;
  std::string expected_text;
  {
    OwnNode own;
    plan::HandlerFacts& boxes = own.handler("boxes");
    boxes.outputs = plan::formats_of_source(own.graph.handlers.at(0), boxes);
    REQUIRE(boxes.outputs.at(0).records);
    expected_text = text_of(boxes.outputs);
    handlers.take(own.told("boxes"), handler);
    outputs = outputs_of(*handler.answers, {});
    REQUIRE(outputs.size() == 1);
    REQUIRE(outputs[0].records);
    CHECK(outputs[0].records != boxes.outputs[0].records);
    CHECK(plugin::same(*outputs[0].records, *boxes.outputs[0].records));
  }
  CHECK(text_of(outputs) == expected_text);
  CHECK(contains(expected_text, "\"score\"")); // a field of a box
  REQUIRE(handler.accepts.at(0).records);
  CHECK(contains(text_of(handler.accepts), "\"score\""));
}

TEST_CASE("the answers that a compiler got are told, and a node without the code gives them for the same formats") {
  OwnNode own;
  const std::vector<mr_format> few = {records_of(own, 4)}, more = {records_of(own, 5)}, most = {records_of(own, 6)};
  ToldHandlers listening;
  plan::HandlerFacts& total = own.handler("total");
  listening.listen(total);
  CHECK(total.answers->info().type == "n.total");
  const std::vector<mr_format> for_few = outputs_of(*total.answers, few), for_more = outputs_of(*total.answers, more);
  REQUIRE(for_few.size() == 1);
  CHECK(for_few[0].shape[0] == 4);
  CHECK(outputs_of(*total.answers, few).size() == 1);
  const json told = own.told("total");
  CHECK(told["answers"].size() == 2); // each once

  ToldHandlers handlers;
  plan::HandlerFacts handler{"total", nullptr, {}, {}, {}};
  handlers.take(told, handler);
  CHECK(text_of(outputs_of(*handler.answers, few)) == text_of(for_few));
  CHECK(text_of(outputs_of(*handler.answers, more)) == text_of(for_more));
  CHECK(outputs_of(*handler.answers, most).empty());
  CHECK(contains(handler.answers->error(), "the plugin of n.total is not installed here"));
  CHECK(contains(handler.answers->error(), "these formats"));
  CHECK(json::parse(ToldHandlers::tell(handler).dump()) == told); // and tells a third node the same
}

TEST_CASE("4.7: state and other memory of a handler are told with each answer, and a question is answered with them") {
  OwnNode own;
  const std::vector<mr_format> few = {records_of(own, 4)}, more = {records_of(own, 5)}, most = {records_of(own, 6)};
  ToldHandlers listening;
  plan::HandlerFacts& total = own.handler("total");
  listening.listen(total);
  outputs_of(*total.answers, few);
  outputs_of(*total.answers, more);

  ToldHandlers handlers;
  plan::HandlerFacts handler{"total", nullptr, {}, {}, {}};
  RecordTypes records;
  handlers.take(own.told("total"), handler, [&](const std::string& question) {
    return ToldHandlers::answer(json::parse(question), total, records).dump();
  });
  const auto memory_for = [&](const std::vector<mr_format>& inputs) {
    REQUIRE(outputs_of(*handler.answers, inputs).size() == 1);
    return handler.answers->memory();
  };
  CHECK(memory_for(few) == plugin::BodyMemory{4, 1 << 20, 1024});
  CHECK(memory_for(more) == plugin::BodyMemory{5, 1 << 20, 1280});
  CHECK(memory_for(most) == plugin::BodyMemory{6, 1 << 20, 1536}); // it was asked
  CHECK(memory_for(few) == plugin::BodyMemory{4, 1 << 20, 1024});
}

TEST_CASE("a source without code here says that its node did not tell what it makes") {
  OwnNode own;
  ToldHandlers handlers;
  plan::HandlerFacts handler{"boxes", nullptr, {}, {}, {}};
  handlers.take(own.told("boxes"), handler);
  CHECK(outputs_of(*handler.answers, {}).empty());
  CHECK(contains(handler.answers->error(), "did not tell what it makes of nothing"));
}

TEST_CASE("a handler that was told and is live here too asks the live one what it was not told, and keeps that") {
  OwnNode own;
  const std::vector<mr_format> few = {records_of(own, 4)}, more = {records_of(own, 5)};
  json told = own.told("total");
  told["answers"] = {{{"inputs", json::parse(text_of(few))},
                      {"outputs", json::parse(text_of(more))}, // not its own
                      {"memory", {{"scratch", 0}, {"host", 0}, {"state", 0}, {"device", 0}}}}};
  ToldHandlers handlers;
  plan::HandlerFacts& handler = own.handler("total");
  handlers.take(told, handler);
  CHECK(text_of(outputs_of(*handler.answers, few)) == text_of(more));
  const std::vector<mr_format> from_live = outputs_of(*handler.answers, more);
  REQUIRE(from_live.size() == 1);
  CHECK(from_live[0].shape[0] == 5);
  CHECK(own.told("total")["answers"].size() == 2);
}

TEST_CASE("a refusal is in the words of the live handler, and is not kept as an answer") {
  OwnNode own;
  ToldHandlers handlers;
  plan::HandlerFacts& total = own.handler("total");
  handlers.listen(total);
  CHECK(outputs_of(*total.answers, {records_of(own, 101)}).empty());
  CHECK(contains(total.answers->error(), "too many boxes"));
  CHECK(total.answers->fault() == code::model_shape);
  CHECK(own.told("total")["answers"].empty());
}

TEST_CASE("a refusal crosses to another node with the code that the handler gave, and no other code is taken") {
  OwnNode own;
  ToldHandlers handlers;
  plan::HandlerFacts handler{"total", nullptr, {}, {}, {}};
  RecordTypes records;
  int other_code = 0;
  handlers.take(own.told("total"), handler, [&](const std::string& question) {
    json answer = ToldHandlers::answer(json::parse(question), own.handler("total"), records);
    if (other_code) answer["fault"] = other_code;
    return answer.dump();
  });
  CHECK(outputs_of(*handler.answers, {records_of(own, 101)}).empty());
  CHECK(handler.answers->error() == "too many boxes");
  CHECK(handler.answers->fault() == code::model_shape);
  for (const int code : {int{code::memory_exceeded}, 999}) {
    other_code = code;
    CHECK(outputs_of(*handler.answers, {records_of(own, 101)}).empty());
    CHECK(handler.answers->fault() == 0);
  }
}

TEST_CASE("MR0805: a handler that lacks a part, or has one of another kind, is refused as a whole") {
  OwnNode own;
  own.handler("boxes").outputs = plan::formats_of_source(own.graph.handlers.at(0), own.handler("boxes"));
  const json told = own.told("boxes");
  REQUIRE(refusal_of_told(told) == 0);
  for (const auto& [key, value] : told.items()) {
    CAPTURE(key);
    json damaged = told;
    damaged.erase(key);
    CHECK(refusal_of_told(damaged) == code::other_version);
    damaged[key] = 7;
    CHECK(refusal_of_told(damaged) == code::other_version);
  }
  for (const char* const path : {"/info/type", "/info/ports", "/answers/0/inputs", "/answers/0/outputs",
                                 "/answers/0/outputs/0/records/fields", "/accepts/0/records/name"}) {
    CAPTURE(path);
    const json::json_pointer pointer(path);
    json damaged = told;
    damaged[pointer.parent_pointer()].erase(pointer.back());
    CHECK(refusal_of_told(damaged) == code::other_version);
  }
  for (const json& other : {json(), json(3), json("handler"), json::array({1})}) {
    CAPTURE(other.dump());
    CHECK(refusal_of_told(other) == code::other_version);
  }
}

TEST_CASE("MR0805: a told value that no handler can have is refused") {
  OwnNode own;
  own.handler("boxes").outputs = plan::formats_of_source(own.graph.handlers.at(0), own.handler("boxes"));
  const json told = own.told("boxes");
  json dimensions = told;
  dimensions["accepts"][0]["rank"] = MR_RANK_MAX + 1;
  CHECK(refusal_of_told(dimensions) == code::other_version);
  json format = told;
  format["accepts"][0] = 7;
  CHECK(refusal_of_told(format) == code::other_version);
  json port = told;
  port["accepts"].push_back(port["accepts"][0]);
  CHECK(refusal_of_told(port) == code::other_version);
  json output = told;
  output["answers"][0]["outputs"].push_back(output["answers"][0]["outputs"][0]);
  CHECK(refusal_of_told(output) == code::other_version);
  output["answers"][0]["outputs"] = json::array();
  CHECK(refusal_of_told(output) == code::other_version);
}

} // namespace millrace::node
