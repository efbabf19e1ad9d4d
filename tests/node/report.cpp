// The report of a run on several nodes: handlers in one list, edges added up, the rest by node.
#include "node/report.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

namespace millrace::node {
namespace {

using nlohmann::json;

// A node with one handler, which has one end of the edge camera → detect.
Result result_of_node(const std::string& handler, uint64_t delivered, const std::map<std::string, uint64_t>& dropped) {
  Result result;
  result.report.ticks_run = delivered;
  result.report.handlers.resize(1);
  result.report.handlers[0].name = handler;
  result.report.handlers[0].calls = delivered;
  result.report.edges = {{"camera.out", "detect.in", "sync", delivered, 2, dropped}};
  return result;
}

Result home_result() {
  Result result = result_of_node("camera", 0, {{"link", 3}});
  result.report.edges.push_back({"camera.out", "screen.in", "sync", 50, 0, {}});
  result.report.crossings = {{"main/0>1", "gpu", true, 40, 320, 2, {}}};
  result.report.segments = {{"cpu", {"camera"}}};
  return result;
}
Result gpu_result() {
  Result result = result_of_node("detect", 40, {{"link", 1}, {"late", 4}});
  result.report.transfers = {{"cpu", "cuda:0", "camera.out", 40, 320, 0, 0, 0}};
  result.report.crossings = {{"main/0>1", "home", false, 40, 320, 0, {}}};
  return result;
}

json merged(const std::map<std::string, std::string>& reports) {
  return json::parse(report_of_all(home_result(), "home", reports));
}

} // namespace

TEST_CASE("the report of all has each handler once, with the node that it is on") {
  const json all = merged({{"gpu", to_json(gpu_result())}});
  REQUIRE(all["handlers"].size() == 2);
  CHECK(all["handlers"]["camera"]["on"] == "home");
  CHECK(all["handlers"]["detect"]["on"] == "gpu");
  CHECK(all["handlers"]["detect"]["calls"] == 40);
}

TEST_CASE("the report of all says of a sink on another node than its clock by how much its latency may be wrong") {
  Result near = home_result(), far = gpu_result();
  near.report.paths.resize(1);
  near.report.paths[0].sink = "screen";
  far.report.paths.resize(1);
  far.report.paths[0].sink = "detect";
  far.report.paths[0].p50_us = 5200;
  far.report.paths[0].home = "home";
  far.report.paths[0].clock_error_us = 310;
  const json all = json::parse(report_of_all(near, "home", {{"gpu", to_json(far)}}));
  REQUIRE(all["paths"].size() == 2);
  CHECK(!all["paths"][0].contains("clock_error"));
  CHECK(all["paths"][1]["on"] == "gpu");
  CHECK(all["paths"][1]["p50"] == 5200);
  CHECK(all["paths"][1]["home"] == "home");
  CHECK(all["paths"][1]["clock_error"] == 310);
}

TEST_CASE("the report of all has from the reader's node how well an edge is aligned, whichever node comes first") {
  Result with_values = home_result(), reader = gpu_result();
  reader.report.edges[0].within_us = 1000;
  reader.report.edges[0].clock_error_us = 1500;
  const json expected = {{"within_us", 1000.0}, {"clock_error_us", 1500.0}, {"too_fine", true}};
  const json one = json::parse(report_of_all(with_values, "home", {{"gpu", to_json(reader)}}));
  const json other = json::parse(report_of_all(reader, "gpu", {{"home", to_json(with_values)}}));
  CHECK(one["edges"][0]["align"] == expected);
  CHECK(other["edges"][0]["align"] == expected);
  CHECK(!one["edges"][1].contains("align"));
}

TEST_CASE("counts of an edge from two nodes are added up, and an edge within one node stays as it is") {
  const json all = merged({{"gpu", to_json(gpu_result())}});
  REQUIRE(all["edges"].size() == 2);
  CHECK(all["edges"][0]["from"] == "camera.out");
  CHECK(all["edges"][0]["to"] == "detect.in");
  CHECK(all["edges"][0]["delivered"] == 40);
  CHECK(all["edges"][0]["empty"] == 4);
  CHECK(all["edges"][0]["dropped"] == json{{"link", 4}, {"late", 4}});
  CHECK(all["edges"][1]["delivered"] == 50);
}

TEST_CASE("lists of the nodes are joined, each entry with its node, and the rest is kept by node") {
  const json all = merged({{"gpu", to_json(gpu_result())}});
  REQUIRE(all["crossings"].size() == 2);
  CHECK(all["crossings"][0]["on"] == "home");
  CHECK(all["crossings"][0]["direction"] == "to");
  CHECK(all["crossings"][1]["on"] == "gpu");
  CHECK(all["crossings"][1]["direction"] == "from");
  REQUIRE(all["transfers"].size() == 1);
  CHECK(all["transfers"][0]["on"] == "gpu");
  CHECK(all["segments"][0]["on"] == "home");
  REQUIRE(all["nodes"].size() == 2);
  CHECK(all["nodes"]["gpu"]["ticks"]["run"] == 40);
  CHECK(!all["nodes"]["gpu"].contains("handlers"));
  CHECK(!all["nodes"]["home"].contains("edges"));
  CHECK(all["ticks"]["run"] == 0); // of the coordinator
  CHECK(all["ok"] == true);
}

TEST_CASE("a run that failed on the coordinator says so in the report of all") {
  Result result = home_result();
  result.ok = false;
  result.error = {601, "it failed", {}, {}, {}, {}};
  const json own = json::parse(to_json(result));
  const json all = json::parse(report_of_all(result, "home", {}));
  CHECK(all["ok"] == false);
  CHECK(all["error"] == own["error"]);
  CHECK(all["nodes"].size() == 1);
}

TEST_CASE("a report that cannot be read is left out, and the others are there") {
  const std::string good = to_json(gpu_result());
  const json alone = merged({{"gpu", good}});
  for (const char* const bad :
       {"", "nonsense", "7", "[]", R"({"edges": 5})", R"({"edges": [7]})", R"({"handlers": [1]})",
        R"({"transfers": [1]})", R"({"edges": [{"from": "camera.out", "to": "detect.in", "delivered": "many"}]})",
        R"({"edges": [{}]})", R"({"handlers": {"other": {}}, "edges": [{"from": "camera.out", "to": "detect.in"}]})"}) {
    CAPTURE(bad);
    CHECK(merged({{"gpu", good}, {"other", bad}}) == alone);
  }
}

TEST_CASE("a report without lists, as of a node whose own was too long, adds the node alone") {
  const json all = merged({{"gpu", "{}"}});
  CHECK(all["nodes"]["gpu"].empty());
  CHECK(all["handlers"].size() == 1);
  CHECK(all["edges"].size() == 2);
  CHECK(all["transfers"].empty());
}

namespace {

StreamReport stream_of(const std::string& name, const std::string& state, uint64_t ticks, uint64_t lost) {
  StreamReport stream;
  stream.set = "cameras";
  stream.name = name;
  stream.state = state;
  stream.home = name == "hall" ? "gpu" : "home";
  stream.ticks = ticks;
  if (lost > 0) stream.dropped = {{"link", lost}};
  return stream;
}

StreamReport failed_stream(const std::string& name, uint64_t tick, const std::string& node) {
  StreamReport stream = stream_of(name, "failed", 5, 0);
  stream.error = "MR0601: it failed at tick " + std::to_string(tick);
  stream.failed_at = tick;
  stream.failed_on = node;
  return stream;
}

} // namespace

TEST_CASE("the report of all has a stream's numbers from its home, and its failure from whichever node had it first") {
  Result near = home_result(), far = gpu_result();
  near.report.streams = {stream_of("gate", "ended", 40, 2), stream_of("hall", "runs", 7, 0),
                         stream_of("yard", "ended", 30, 0), failed_stream("roof", 9, "home")};
  far.report.streams = {stream_of("gate", "ended", 38, 3), stream_of("hall", "ended", 20, 0),
                        failed_stream("yard", 29, "gpu"), failed_stream("roof", 4, "gpu")};
  for (const bool coordinates : {true, false}) {
    const json all = coordinates ? json::parse(report_of_all(near, "home", {{"gpu", to_json(far)}}))
                                 : json::parse(report_of_all(far, "gpu", {{"home", to_json(near)}}));
    const json& streams = all["streams"]["cameras"];
    REQUIRE(streams.size() == 4);
    CHECK(streams["gate"]["ticks"] == 40);
    CHECK(streams["gate"]["dropped"] == json{{"link", 5}});
    CHECK(streams["hall"]["ticks"] == 20);
    CHECK(streams["hall"]["state"] == "ended");
    CHECK(!streams["hall"].contains("error"));
    CHECK(streams["yard"]["state"] == "failed");
    CHECK(streams["yard"]["ticks"] == 30);
    CHECK(streams["yard"]["failed_at"] == 29);
    CHECK(streams["yard"]["failed_on"] == "gpu");
    CHECK(streams["roof"]["failed_at"] == 4);
    CHECK(streams["roof"]["error"] == "MR0601: it failed at tick 4");
    CHECK(!all["nodes"]["gpu"].contains("streams"));
  }
}

TEST_CASE("the report of all adds up the calls of a template whose instances are on several nodes") {
  Result near = home_result(), far = gpu_result();
  far.report.handlers[0].name = "camera";
  near.report.handlers[0].sampled = 3;
  near.report.handlers[0].p50_us = 100;
  far.report.handlers[0].sampled = 30;
  far.report.handlers[0].p50_us = 7;
  far.report.handlers[0].errors = 1;
  far.report.handlers[0].first_error = "it failed";
  const json all = json::parse(report_of_all(near, "home", {{"gpu", to_json(far)}}));
  REQUIRE(all["handlers"].size() == 1);
  const json& camera = all["handlers"]["camera"];
  CHECK(camera["on"] == "home, gpu");
  CHECK(camera["calls"] == 40);
  CHECK(camera["sampled"] == 33);
  CHECK(camera["p50_us"] == 7);
  CHECK(camera["errors"] == 1);
  CHECK(camera["first_error"] == "it failed");
}

} // namespace millrace::node
