// The traces of nodes as texts, and the one trace of all.
#include "node/trace.h"

#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

namespace millrace::node {
namespace {

using nlohmann::json;

// Two tracks; a tick each 1,000 ns, of which the second track has the later half, with the clock "slow" in between.
TraceOfRun trace_of_node(uint64_t ticks, int64_t begin_ns = 0) {
  TraceOfRun trace;
  trace.name = "own";
  trace.begin_ns = begin_ns;
  trace.steps = {"camera", "blur \"soft\""};
  trace.clocks = {"main", "slow"};
  trace.forgotten = 3;
  trace.tracks = {{"worker 0", {}}, {"worker 1", {}}};
  for (uint64_t i = 0; i < ticks; ++i) {
    const auto at = static_cast<int64_t>(i) * 1000;
    trace.tracks[0].events.push_back({at, 0, i, 0, TraceKind::admit});
    trace.tracks[0].events.push_back({at, 400, i, 0, TraceKind::call});
    const uint64_t clock = i % 2;
    trace.tracks[1].events.push_back({at + 500, 300, clock << kTraceIndexBits | i, 1, TraceKind::call});
  }
  return trace;
}

size_t events_of(const TraceOfRun& trace) { return trace.tracks[0].events.size() + trace.tracks[1].events.size(); }

std::vector<json> events_of(const json& written, const std::string& phase) {
  std::vector<json> events;
  for (const json& event : written["traceEvents"])
    if (event["ph"] == phase) events.push_back(event);
  return events;
}

} // namespace

TEST_CASE("the firings of another node's group have their items in the trace of all") {
  TraceOfRun trace = trace_of_node(1);
  trace.tracks.push_back({"firings of blur", {}});
  std::vector<TraceEvent>& events = trace.tracks[2].events;
  events.push_back({100, 50, uint64_t{1} << kTraceIndexBits, 1, TraceKind::firing});
  for (const uint64_t tick : {4, 5}) events.push_back({150, 0, tick, 1, TraceKind::item});
  events.push_back({200, 50, (uint64_t{1} << kTraceIndexBits) + 1, 1, TraceKind::firing});
  events.push_back({250, 0, 6, 1, TraceKind::item});
  std::ostringstream out;
  write_trace(traces_of_all(trace_of_node(1), "edge", {{"gpu", write_node_trace(trace, 100'000)}}), out);
  std::vector<json> firings;
  for (const json& event : events_of(json::parse(out.str()), "X"))
    if (event["cat"] == "group") firings.push_back(event);
  REQUIRE(firings.size() == 2);
  const auto item = [](int tick) { return json{{"tick", tick}, {"clock", "main"}}; };
  CHECK(firings[0]["name"] == "2 items");
  CHECK(firings[0]["args"] == json{{"firing", 0}, {"items", {item(4), item(5)}}});
  CHECK(firings[1]["name"] == "1 item");
  CHECK(firings[1]["args"] == json{{"firing", 1}, {"items", json::array({item(6)})}});
}

TEST_CASE("a trace is read as it was written") {
  const TraceOfRun trace = trace_of_node(50, -7);
  const std::optional<TraceOfRun> read = read_node_trace(write_node_trace(trace, 100'000));
  REQUIRE(read);
  CHECK(read->begin_ns == -7);
  CHECK(read->steps == trace.steps);
  CHECK(read->clocks == trace.clocks);
  CHECK(read->forgotten == 3);
  CHECK(read->left_out == 0);
  REQUIRE(read->tracks.size() == 2);
  for (size_t t = 0; t < 2; ++t) {
    CHECK(read->tracks[t].name == trace.tracks[t].name);
    CHECK(read->tracks[t].events == trace.tracks[t].events);
  }
}

TEST_CASE("a trace that is too long is cut to its newest events, and says how many are missing") {
  const TraceOfRun trace = trace_of_node(1000);
  const std::string text = write_node_trace(trace, 20'000);
  CHECK(text.size() <= 20'000);
  CHECK(text.size() > 15'000);
  const std::optional<TraceOfRun> read = read_node_trace(text);
  REQUIRE(read);
  CHECK(read->left_out > 0);
  CHECK(read->left_out + events_of(*read) == 3000);
  const int64_t oldest = read->tracks[0].events[0].begin_ns;
  CHECK(std::abs(read->tracks[1].events[0].begin_ns - oldest) <= 500); // both tracks begin there
  CHECK(read->tracks[0].events.back() == trace.tracks[0].events.back());
  CHECK(read->tracks[1].events.back() == trace.tracks[1].events.back());
  CHECK(write_node_trace(trace, 50) == ""); // not even the names
}

TEST_CASE("a text that is no trace, or refers to steps and clocks that it has not, is not read") {
  const std::string sound = write_node_trace(trace_of_node(1), 10'000);
  REQUIRE(read_node_trace(sound));
  for (const char* const text : {"", "3", "{}", R"({"begin_ns": "now"})"}) CHECK(!read_node_trace(text));
  json document = json::parse(sound);
  for (const auto& [at, number] : std::vector<std::pair<size_t, json>>{
           {0, "x"}, {1, int64_t{2} << kTraceIndexBits}, {2, -1}, {3, 2}, {3, -1}, {4, 6}, {4, 0.5 + 7}}) {
    CAPTURE(at);
    json changed = document;
    changed["tracks"][1]["events"][at] = number;
    CHECK(!read_node_trace(changed.dump()));
  }
  document["tracks"][1]["events"].push_back(1);
  CHECK(!read_node_trace(document.dump()));
  CHECK(!read_node_trace(std::string(40, '[') + std::string(40, ']')));
}

TEST_CASE("the trace of all has a process for each node on the coordinator's time, and arrows from node to node") {
  const TraceOfRun own = trace_of_node(2, -100);
  std::string gpu = write_node_trace(trace_of_node(2, 2'000'000'200), 10'000);
  const std::vector<TraceOfRun> all = traces_of_all(own, "edge", {{"gpu", gpu}, {"wall", "broken"}});
  REQUIRE(all.size() == 2);
  std::ostringstream out;
  write_trace(all, out);
  const json written = json::parse(out.str());
  std::map<int, std::string> processes;
  for (const json& event : events_of(written, "M"))
    if (event["name"] == "process_name") processes[event["pid"]] = event["args"]["name"];
  CHECK(processes == std::map<int, std::string>{{1, "edge"}, {2, "gpu"}});
  const std::vector<json> slices = events_of(written, "X");
  REQUIRE(slices.size() == 8);
  CHECK(slices[0]["pid"] == 1);
  CHECK(slices[0]["ts"] == 0);
  CHECK(slices[4]["pid"] == 2);
  CHECK(slices[4]["ts"] == 2'000'000.3); // µs
  size_t crossing = 0;
  const std::vector<json> begins = events_of(written, "s"), ends = events_of(written, "f");
  REQUIRE(begins.size() == ends.size());
  for (size_t i = 0; i < begins.size(); ++i) crossing += begins[i]["pid"] != ends[i]["pid"];
  CHECK(crossing == 3); // tick 0 and 1 of main, and the slow one
}

TEST_CASE("a process says which events are not all there, and by how much its times may be wrong") {
  TraceOfRun cut = trace_of_node(1);
  cut.left_out = 17;
  cut.error_ns = 1'001;
  std::ostringstream out;
  write_trace({trace_of_node(1), cut}, out);
  const json written = json::parse(out.str());
  bool is_told = false;
  for (const json& event : events_of(written, "M"))
    is_told = is_told || (event["name"] == "process_labels" && event["pid"] == 2 &&
                          event["args"]["labels"] == "17 older events are missing, times may be wrong by 2 µs");
  CHECK(is_told);
  CHECK(written["otherData"]["left_out_spans"] == "17");
  CHECK(written["otherData"]["forgotten_spans"] == "6");
}

} // namespace millrace::node
