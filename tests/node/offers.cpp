// Offers of several nodes: the coordinator places handlers that name no node, and each node hears it in the brief.
#include "node/offers.h"

#include <doctest/doctest.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "device/timeline.h"
#include "exec/run.h"
#include "node/documents.h"
#include "node/link_prices.h"
#include "observe/error_codes.h"
#include "plan/plan.h"
#include "tests/node/types.h"

namespace millrace::node {
namespace {

using nlohmann::json;

// The handler between the camera and the screen names no node.
constexpr const char* kFree = R"(version: 1
nodes: { home: {}, gpu: {} }
handlers:
  camera: { type: test.pattern, width: 64, height: 48, node: home }
  blur: { type: image.blur, input: camera }
  screen: { type: null.sink, input: blur, node: home }
)";
constexpr uint64_t kPictureBytes = 64 * 48 * 3;

// A process of one node, on whose machine a call of image.blur takes so long.
struct PricedNode {
  PricedNode(const std::string& node, double blur_us, const std::string& pipeline = kFree,
             const std::vector<const mr_plugin*>& plugins = {})
      : name(node) {
    for (const mr_plugin* const plugin : plugins) registry.add(*plugin, "");
    choices.node = node;
    choices.threads = 1;
    if (blur_us > 0)
      choices.machine.bodies = {{"image.blur", "", "cpu", kPictureBytes, blur_us, blur_us, blur_us, 100}};
    preparation.emplace(graph::parse_yaml(pipeline, "p.yaml"), registry, exec::host_table(), choices);
  }
  plan::Plan compile(const Decided& decided) { return preparation->compile(options_by(decided, *preparation, name)); }
  std::string name;
  plugin::Registry registry;
  embed::Choices choices;
  std::optional<embed::Preparation> preparation;
  ToldHandlers told;
  RecordTypes records;
};

std::vector<plan::Hop> link_of(double one_way_us) {
  const plan::HopPrice price(one_way_us, 0);
  return {{"home/cpu", "gpu/cpu", price}, {"gpu/cpu", "home/cpu", price}};
}

AskNodes asking(PricedNode& gpu) {
  return [&gpu](const std::string&, const std::string& question) {
    return answer_question(question, *gpu.preparation, gpu.records);
  };
}

Error error_of_offers(PricedNode& home, const std::map<std::string, std::string>& offers) {
  try {
    Offers(offers, {}, *home.preparation, home.told).place(link_of(1), {});
  } catch (const Failure& failure) {
    return failure.error();
  }
  return {};
}

// A machine whose time goes on as a link carries bytes.
struct CarryingLink final : device::Timeline {
  int64_t now_ns() const override { return now; }
  // The words alone take 5 ns a byte.
  std::string ask_here(const std::string& question) {
    std::string answer = *LinkPrices::answer(question);
    now += static_cast<int64_t>(question.size() + answer.size()) * 5;
    return answer;
  }
  std::string ask(const std::string& question) {
    const std::string answer = *LinkPrices::answer(question);
    const auto bytes = static_cast<double>(question.size());
    const auto back = static_cast<double>(answer.size());
    now += round_trip_ns + static_cast<int64_t>(bytes * (there_ns_per_byte + 5) + back * (back_ns_per_byte + 5));
    return answer;
  }
  int64_t now = 0, round_trip_ns = 2'000'000;
  double there_ns_per_byte = 80, back_ns_per_byte = 8; // 100 and 1,000 Mbit/s
};

} // namespace

TEST_CASE("7.3: a handler that names no node runs where the coordinator has placed it, and each node knows") {
  for (const double link_us : {100.0, 10'000.0}) {
    CAPTURE(link_us);
    PricedNode home("home", 9'000), gpu("gpu", 1'000);
    Offers offers({{"gpu", write_offer(*gpu.preparation, "gpu")}}, asking(gpu), *home.preparation, home.told);
    CHECK(offers.leave_choice());
    Decided decided;
    plan::Options live;
    live.clock = graph::ClockMode::realtime;
    live.rate = graph::Rational{10, 1};
    decided.placed = offers.place(link_of(link_us), live);
    const std::string node = link_us < 4'000 ? "gpu" : "home";
    REQUIRE(decided.placed.handlers.size() == 1);
    CHECK(decided.placed.handlers[0].node == node);
    const plan::Plan at_home = home.compile(decided);
    const std::string brief = write_brief(*home.preparation, decided);
    const Decided told = read_brief(brief, "gpu", *gpu.preparation, gpu.told);
    CHECK(told.placed.notes == decided.placed.notes);
    const plan::Plan there = gpu.compile(told);
    for (const plan::Plan* const plan : {&at_home, &there})
      for (const plan::HandlerPlan& handler : plan->handlers)
        CHECK(plan->nodes[handler.node] == (handler.name == "blur" ? node : "home"));
    CHECK(at_home.crossings.size() == (node == "gpu" ? 2 : 0));
    CHECK(there.crossings.size() == at_home.crossings.size());
  }
}

TEST_CASE("7.3: a handler that names no node runs where its plugin is") {
  const std::string pipeline = R"(version: 1
nodes: { home: {}, gpu: {} }
handlers:
  camera: { type: n.boxes, most: 7, rate: 25, node: gpu }
  total: { type: n.total, input: camera }
  screen: { type: null.sink, input: total, node: home }
)";
  PricedNode home("home", 0, pipeline), other("home", 0, pipeline);
  PricedNode gpu("gpu", 0, pipeline, {&test::total_plugin(), &test::boxes_plugin()});
  Offers offers({{"gpu", write_offer(*gpu.preparation, "gpu")}}, asking(gpu), *home.preparation, home.told);
  CHECK(!offers.leave_choice());
  const plan::ChosenNodes placed = offers.place({}, {});
  REQUIRE(placed.handlers.size() == 1);
  CHECK(placed.handlers[0].node == "gpu");
  Decided decided;
  decided.placed = placed;
  CHECK(home.compile(decided).crossings.size() == 1);

  json offer = json::parse(write_offer(*gpu.preparation, "gpu"));
  offer["handlers"].erase("total");
  const Error nobody = error_of_offers(other, {{"gpu", offer.dump()}});
  CHECK(nobody.code == code::unknown_type);
  CHECK(nobody.what == "no node can run total (n.total)");
  CHECK(nobody.place.line == 5);
}

TEST_CASE("MR0812: a handler that no node can open is refused with the reason of each") {
  PricedNode home("home", 0), gpu("gpu", 0);
  json offer = json::parse(write_offer(*gpu.preparation, "gpu"));
  CHECK(offer["handlers"].contains("blur"));
  CHECK(!offer["handlers"].contains("camera"));
  offer["handlers"].erase("blur");
  offer["unable"]["blur"] = "there is no glass";
  for (plan::HandlerFacts& handler : home.preparation->facts().handlers)
    if (handler.name == "blur") handler.answers = nullptr;
  const Error error = error_of_offers(home, {{"gpu", offer.dump()}});
  CHECK(error.code == code::unable_node);
  CHECK(error.notes.back() == "gpu: there is no glass");
}

TEST_CASE("MR0805: a machine that cannot be read is refused, whatever is wrong with it") {
  PricedNode gpu("gpu", 1'000);
  const json sound = json::parse(write_offer(*gpu.preparation, "gpu"));
  const auto code_with = [&](const char* key, const json& value) {
    PricedNode home("home", 9'000);
    json offer = sound;
    offer["machine"][key] = value;
    return error_of_offers(home, {{"gpu", offer.dump()}}).code;
  };
  CHECK(code_with("workers", 4) == 0);
  CHECK(code_with("workers", "many") == code::other_version);
  CHECK(code_with("devices", json::array({"tpu:0"})) == code::other_version);
  CHECK(code_with("devices", json::array({"edge/cpu"})) == code::other_version);
  CHECK(code_with("devices", json(std::vector<std::string>(65, "sim:0"))) == code::other_version);
  CHECK(code_with("devices", 7) == code::other_version);
  CHECK(code_with("prices", json::object()) == code::other_version);
  CHECK(code_with("prices", {{"version", 1}, {"hops", {{{"from", "cpu"}}}}}) == code::other_version);
}

TEST_CASE("the price of a link is half its round trip and its bandwidth each way, and it is measured once") {
  CarryingLink link;
  LinkPrices prices(link);
  int questions = 0;
  const auto ask = [&](const std::string& node, const std::string& question) {
    ++questions;
    return node == "home" ? link.ask_here(question) : link.ask(question);
  };
  const std::vector<plan::Hop> hops = prices.all({"home", "gpu"}, ask);
  REQUIRE(hops.size() == 2);
  CHECK(hops[0].from == "home/cpu");
  CHECK(hops[0].to == "gpu/cpu");
  CHECK(hops[1].engine != hops[0].engine);
  CHECK(hops[0].price.latency_us == doctest::Approx(1000).epsilon(0.05));
  for (const double bytes : {100e3, 1e6, 6e6}) {
    CHECK(hops[0].price.copy_us(bytes) == doctest::Approx(1000 + bytes * 0.08).epsilon(0.05));
    CHECK(hops[1].price.copy_us(bytes) == doctest::Approx(1000 + bytes * 0.008).epsilon(0.1));
  }
  const int before = questions;
  CHECK(prices.all({"home", "gpu"}, ask).size() == 2);
  CHECK(questions == before);
}

TEST_CASE("a slow link is not measured by what it carries in a minute") {
  CarryingLink link;
  link.there_ns_per_byte = link.back_ns_per_byte = 16'000; // 0.5 Mbit/s
  LinkPrices prices(link);
  const auto ask = [&](const std::string& node, const std::string& question) {
    return node == "home" ? link.ask_here(question) : link.ask(question);
  };
  const std::vector<plan::Hop> hops = prices.all({"home", "gpu"}, ask);
  CHECK(hops[0].price.copy_us(1e6) == doctest::Approx(16e6).epsilon(0.05));
  CHECK(link.now < 5'000'000'000);
}

} // namespace millrace::node
