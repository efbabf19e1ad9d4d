// Offers and briefs: nodes that have only their own handlers' code compile parts of one plan.
#include "node/documents.h"

#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "embed/link_ends.h"
#include "exec/run.h"
#include "node/offers.h"
#include "observe/error_codes.h"
#include "plan/plan.h"
#include "plugin/info_json.h"
#include "tests/contains.h"
#include "tests/node/types.h"

namespace millrace::node {
namespace {

using nlohmann::json;

// The source is on edge, the handler that adds up on home, which coordinates, and its readers on home and wall.
constexpr const char* kThreeNodes = R"(version: 1
nodes: { home: {}, edge: { address: "edge.local" }, wall: {} }
handlers:
  camera: { type: n.boxes, node: edge, most: 7, rate: 25 }
  total: { type: n.total, input: { from: camera } }
  screen: { type: null.sink, input: total }
  board: { type: null.sink, input: { from: total, delivery: reliable }, node: wall }
)";

// A process of one node. It has the code of its own handlers, and the built-in ones.
struct NodeProcess {
  explicit NodeProcess(const std::string& node, const std::string& pipeline = kThreeNodes,
                       const std::string& node_of_total = "home")
      : name(node) {
    if (node == "edge") registry.add(test::boxes_plugin(), "");
    if (node == node_of_total) registry.add(test::total_plugin(), "");
    choices.node = node;
    choices.threads = 1;
    preparation.emplace(graph::parse_yaml(pipeline, "p.yaml"), registry, exec::host_table(), choices);
  }
  plan::Plan compile(const Decided& decided) { return preparation->compile(options_by(decided, *preparation, name)); }

  std::string name;
  plugin::Registry registry;
  embed::Choices choices;
  std::optional<embed::Preparation> preparation;
  ToldHandlers told;
  RecordTypes records; // of questions
};

// The coordinator, with the offers of the others.
struct Fleet {
  explicit Fleet(const std::string& pipeline = kThreeNodes, const std::string& node_of_total = "home")
      : text(pipeline), home("home", pipeline, node_of_total) {
    for (const char* const node : {"edge", "wall"}) {
      others[node] = std::make_unique<NodeProcess>(node, pipeline, node_of_total);
      offers[node] = write_offer(*others[node]->preparation, node);
    }
  }
  std::string ask(const std::string& node, const std::string& question) {
    ++questions;
    NodeProcess& asked = *others.at(node);
    return answer_question(question, *asked.preparation, asked.records);
  }
  // Its plan, and the brief for the others.
  plan::Plan compile(const Decided& decided) {
    Offers all(
        offers, [this](const std::string& node, const std::string& question) { return ask(node, question); },
        *home.preparation, home.told);
    plan::Plan plan = home.compile(decided);
    brief = write_brief(*home.preparation, decided);
    return plan;
  }
  std::string text;
  NodeProcess home;
  std::map<std::string, std::unique_ptr<NodeProcess>> others;
  std::map<std::string, std::string> offers;
  std::string brief;
  int questions = 0;
};

Decided realtime_at_25() {
  Decided decided;
  decided.clock = graph::ClockMode::realtime;
  decided.rate = graph::Rational{25, 1};
  decided.ticks_max = 500;
  decided.duration_s = 2.5;
  decided.round_trip_ns = 3'000'000;
  decided.trace = true;
  return decided;
}

// All that both ends of a crossing have to agree on, by the crossing's name.
std::map<std::string, json> crossings_of(const plan::Plan& plan, const std::string& with) {
  std::map<std::string, json> crossings;
  for (const net::CrossingPlan& crossing : embed::link_crossings(plan, with)) {
    json& said = crossings[crossing.name];
    said = {{"number", crossing.number}, {"lane", crossing.lane},
            {"depth", crossing.depth},   {"delivery", crossing.delivery == net::Delivery::live ? "live" : "reliable"},
            {"formats", json::array()},  {"capacities", crossing.capacities}};
    for (const mr_format& format : crossing.formats) {
      said["formats"].push_back(plugin::to_json(format));
      if (format.records) said["formats"].back()["records"] = plugin::to_json(*format.records);
    }
  }
  return crossings;
}

template <class Work>
int code_of_failure(Work work) {
  try {
    work();
  } catch (const Failure& failure) {
    return failure.error().code;
  }
  return 0;
}

} // namespace

TEST_CASE("a handler runs on the node that it names, else on the coordinator") {
  const graph::Graph graph = graph::parse_yaml(kThreeNodes, "p.yaml");
  CHECK(graph::node_of(graph, *graph.find("camera")) == "edge");
  CHECK(graph::node_of(graph, *graph.find("total")) == "home");
}

TEST_CASE("an offer has the node's own handlers alone, and the formats of its sources") {
  const Fleet fleet;
  const json edge = json::parse(fleet.offers.at("edge"))["handlers"], wall = json::parse(fleet.offers.at("wall"));
  REQUIRE(edge.size() == 1);
  CHECK(edge["camera"]["info"]["type"] == "n.boxes");
  CHECK(edge["camera"]["answers"][0]["inputs"] == json::array());
  CHECK(edge["camera"]["answers"][0]["outputs"][0]["record_count_max"] == 7);
  REQUIRE(wall["handlers"].size() == 1);
  CHECK(wall["handlers"]["board"]["info"]["type"] == "null.sink");
}

TEST_CASE("nodes without the code of each other's handlers compile plans whose crossings are the same") {
  for (const bool is_realtime : {true, false}) {
    CAPTURE(is_realtime);
    Fleet fleet;
    const plan::Plan home = fleet.compile(is_realtime ? realtime_at_25() : Decided{});
    std::map<std::string, plan::Plan> plans;
    for (const std::string node : {"edge", "wall"}) {
      CAPTURE(node);
      NodeProcess process(node);
      const Decided decided = read_brief(fleet.brief, node, *process.preparation, process.told);
      const plan::Plan plan = process.compile(decided);
      const std::map<std::string, json> there = crossings_of(plan, "home");
      CHECK(there.size() == 1);
      CHECK(there == crossings_of(home, node));
      for (const plan::CrossingPlan& crossing : plan.crossings) CHECK(crossing.departs == (node == "edge"));
      for (const auto& [name, said] : there)
        CHECK(said["delivery"] == (is_realtime && node == "edge" ? "live" : "reliable"));
    }
    const json boxes = crossings_of(home, "edge").begin()->second["formats"][0];
    CHECK(boxes["record_count_max"] == 7);
    CHECK(boxes["records"]["name"] == "millrace.Box");
    CHECK(crossings_of(home, "wall").begin()->second["formats"][0]["shape"][0] == 7);
  }
}

TEST_CASE("the coordinator asks a node for the formats of handlers whose code it lacks") {
  const std::string at = "input: { from: camera }";
  std::string pipeline = kThreeNodes;
  pipeline.replace(pipeline.find(at), at.size(), at + ", node: edge");
  Fleet fleet(pipeline, "edge");
  REQUIRE(!fleet.home.registry.find("n.total"));
  const plan::Plan home = fleet.compile({});
  CHECK(fleet.questions > 0);
  NodeProcess edge("edge", pipeline, "edge");
  read_brief(fleet.brief, "edge", *edge.preparation, edge.told);
  const plan::Plan there = edge.compile({});
  CHECK(crossings_of(home, "edge").size() == 1);
  CHECK(crossings_of(there, "home") == crossings_of(home, "edge"));
  CHECK(crossings_of(home, "edge").begin()->second["formats"][0]["shape"][0] == 7);
}

TEST_CASE("MR0805: a question or an answer that is not sound is refused") {
  Fleet fleet;
  NodeProcess& edge = *fleet.others.at("edge");
  for (const std::string bad : {"", "[]", "{}", R"({"handler": "total"})", R"({"handler": "camera"})",
                                R"({"handler": "camera", "inputs": [], "outputs": [5]})",
                                R"({"handler": "camera", "inputs": [], "outputs": []})"}) {
    CAPTURE(bad);
    CHECK(code_of_failure([&] { answer_question(bad, *edge.preparation, edge.records); }) == code::other_version);
  }
  for (const std::string bad : {"nonsense", "{}", "[]", R"({"outputs": []})", R"({"outputs": [{}, {}]})"}) {
    CAPTURE(bad);
    json offer = json::parse(fleet.offers.at("edge"));
    offer["handlers"]["camera"]["answers"] = json::array();
    NodeProcess home("home");
    const auto ask = [&](const std::string&, const std::string&) { return bad; };
    CHECK(code_of_failure([&] {
            Offers({{"edge", offer.dump()}, {"wall", fleet.offers.at("wall")}}, ask, *home.preparation, home.told);
            home.compile({});
          }) == code::other_version);
  }
}

TEST_CASE("a brief has what the coordinator decided, and leaves the rest as the pipeline has it") {
  Fleet fleet;
  fleet.compile(realtime_at_25());
  NodeProcess wall("wall");
  const Decided decided = read_brief(fleet.brief, "wall", *wall.preparation, wall.told);
  CHECK(decided.clock == graph::ClockMode::realtime);
  REQUIRE(decided.rate);
  CHECK(decided.rate->numerator == 25);
  CHECK(decided.rate->denominator == 1);
  CHECK(decided.ticks_max == 500);
  CHECK(decided.duration_s == 2.5);
  CHECK(decided.round_trip_ns == 3'000'000);
  for (const graph::ClockMode mode : {graph::ClockMode::automatic, graph::ClockMode::free, graph::ClockMode::source}) {
    Decided other;
    other.clock = mode;
    NodeProcess process("wall");
    const std::string brief = write_brief(*fleet.home.preparation, other);
    CHECK(read_brief(brief, "wall", *process.preparation, process.told).clock == mode);
  }
  NodeProcess plain("wall");
  const Decided none = read_brief(write_brief(*fleet.home.preparation, {}), "wall", *plain.preparation, plain.told);
  CHECK(!none.clock);
  CHECK(!none.rate);
  CHECK(none.ticks_max == 0);
}

TEST_CASE("a brief tells a node of the other nodes' handlers, and not of its own") {
  Fleet fleet;
  fleet.compile({});
  NodeProcess edge("edge");
  const plugin::Answers* const own = edge.preparation->facts().handlers.at(0).answers;
  REQUIRE(own);
  CHECK(!edge.preparation->facts().handlers.at(1).answers); // its type is not here
  read_brief(fleet.brief, "edge", *edge.preparation, edge.told);
  CHECK(edge.preparation->facts().handlers.at(0).answers == own);
  REQUIRE(edge.preparation->facts().handlers.at(1).answers);
  CHECK(edge.preparation->facts().handlers.at(1).answers->info().type == "n.total");
}

TEST_CASE("MR0403: the coordinator refuses formats by the words of the other node's handler") {
  const std::string none = std::string(kThreeNodes).replace(std::string(kThreeNodes).find("most: 7"), 7, "most: 0");
  NodeProcess edge("edge", none);
  CHECK(code_of_failure([&] { write_offer(*edge.preparation, "edge"); }) == code::incompatible_formats);
  const std::string many = std::string(kThreeNodes).replace(std::string(kThreeNodes).find("most: 7"), 7, "most: 101");
  Fleet fleet(many);
  CHECK(code_of_failure([&] { fleet.compile({}); }) == code::model_shape); // as that handler has said
}

TEST_CASE("MR0805: an offer that cannot be read, or lacks a handler of the node, is refused") {
  const Fleet good;
  for (const std::string bad : {"", "nonsense", "[]", "{}", R"({"handlers": 5})", R"({"handlers": {}})",
                                R"({"handlers": {"camera": 5}})", R"({"handlers": {"camera": {"info": {}}}})"}) {
    CAPTURE(bad);
    NodeProcess home("home");
    std::map<std::string, std::string> offers = good.offers;
    offers["edge"] = bad;
    CHECK(code_of_failure([&] { Offers(offers, {}, *home.preparation, home.told); }) == code::other_version);
  }
}

TEST_CASE("MR0304: a handler of a type that is not here, and of which no node told, is refused") {
  NodeProcess home("home");
  CHECK(code_of_failure([&] { Offers({}, {}, *home.preparation, home.told); }) == code::unknown_type);
}

TEST_CASE("MR0805: a brief that cannot be read, or lacks a handler or a decision, is refused") {
  Fleet fleet;
  fleet.compile(realtime_at_25());
  const auto refusal_of_brief = [](const std::string& brief) {
    NodeProcess wall("wall");
    return code_of_failure([&] { read_brief(brief, "wall", *wall.preparation, wall.told); });
  };
  REQUIRE(refusal_of_brief(fleet.brief) == 0);
  for (const std::string bad : {"", "nonsense", "[]", R"({"handlers": []})"}) {
    CAPTURE(bad);
    CHECK(refusal_of_brief(bad) == code::other_version);
  }
  const json good = json::parse(fleet.brief);
  for (const auto& [key, value] : good.items()) {
    CAPTURE(key);
    json less = good;
    less.erase(key);
    CHECK(refusal_of_brief(less.dump()) == code::other_version);
    less[key] = "words";
    CHECK(refusal_of_brief(less.dump()) == code::other_version);
  }
  json other = good;
  other["rate"] = {25};
  CHECK(refusal_of_brief(other.dump()) == code::other_version);
  other = good;
  other["handlers"].erase("total");
  CHECK(refusal_of_brief(other.dump()) == code::other_version);
  other = good;
  other["handlers"].erase("board"); // its own
  CHECK(refusal_of_brief(other.dump()) == 0);
}

TEST_CASE("SHA-256 is that of FIPS 180-4") {
  CHECK(sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

} // namespace millrace::node
