// The trace of a run: spans to the nanosecond in virtual time, one for every call with real threads, arrows along
// ticks, tracks of readers and devices.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "exec/run.h"
#include "harness.h"
#include "observe/trace.h"

using namespace millrace;
using namespace millrace::test;

namespace {

Pipeline three(int64_t count) {
  Pipeline p;
  p.add("source", "t.count", {{"count", std::to_string(count)}});
  p.add("relay", "t.relay");
  p.add("sink", "t.sink", {{"log", "trace"}});
  p.connect("source", "relay");
  p.connect("relay", "sink");
  return p;
}

nlohmann::json trace_of(Compiled& compiled) {
  REQUIRE(compiled.run().ok);
  std::ostringstream out;
  compiled.live().write_trace(out);
  return nlohmann::json::parse(out.str());
}

struct Slice {
  std::string name, track;
  int64_t tick, ts_ns, dur_ns;
  friend bool operator==(const Slice&, const Slice&) = default;
};

std::string describe(const std::vector<Slice>& slices) {
  std::string text;
  for (const Slice& s : slices)
    text += s.name + " on " + s.track + ", tick " + std::to_string(s.tick) + ": " + std::to_string(s.ts_ns) + " + " +
            std::to_string(s.dur_ns) + "\n";
  return text;
}

std::vector<Slice> slices_of(const nlohmann::json& trace) {
  std::map<int, std::string> tracks;
  std::vector<Slice> slices;
  for (const auto& event : trace["traceEvents"])
    if (event["ph"] == "M" && event["name"] == "thread_name") tracks[event["tid"]] = event["args"]["name"];
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const auto ns = [&](const char* key) { return std::llround(event[key].get<double>() * 1000); };
    const int64_t tick = event["args"].value("tick", event["args"].value("value", int64_t{-1}));
    slices.push_back({event["name"], tracks[event["tid"]], tick, ns("ts"), ns("dur")});
  }
  return slices;
}

size_t count(const nlohmann::json& trace, const std::string& phase) {
  size_t found = 0;
  for (const auto& event : trace["traceEvents"]) found += event["ph"] == phase;
  return found;
}

} // namespace

TEST_CASE("In virtual time the trace of a pipeline is known to the nanosecond") {
  Pipeline p = three(3);
  p.clock(graph::ClockMode::realtime, 100);
  Setup setup;
  setup.workers = 2;
  setup.virtual_time = true;
  setup.costs_ns = {{"relay", 4'000'000}, {"sink", 7'000'000}};
  Compiled compiled(p, setup);
  const std::vector<Slice> slices = slices_of(trace_of(compiled));
  std::vector<Slice> relays, sinks;
  for (const Slice& slice : slices) {
    if (slice.name == "relay") relays.push_back({slice.name, "", slice.tick, slice.ts_ns, slice.dur_ns});
    if (slice.name == "sink") sinks.push_back({slice.name, "", slice.tick, slice.ts_ns, slice.dur_ns});
  }
  INFO(describe(slices));
  CHECK(relays == std::vector<Slice>{{"relay", "", 0, 0, 4'000'000},
                                     {"relay", "", 1, 10'000'000, 4'000'000},
                                     {"relay", "", 2, 20'000'000, 4'000'000}});
  CHECK(sinks == std::vector<Slice>{{"sink", "", 0, 4'000'000, 7'000'000},
                                    {"sink", "", 1, 14'000'000, 7'000'000},
                                    {"sink", "", 2, 24'000'000, 7'000'000}});
}

TEST_CASE("With trace_all every call is in the trace, and calls of one worker do not overlap") {
  for (const uint32_t workers : {1u, 2u}) {
    Setup setup;
    setup.workers = workers;
    setup.options.trace_all = true;
    Compiled compiled(three(2000), setup);
    const nlohmann::json trace = trace_of(compiled);
    std::map<std::string, std::vector<Slice>> by_name, by_track;
    for (const Slice& slice : slices_of(trace)) {
      by_name[slice.name].push_back(slice);
      by_track[slice.track].push_back(slice);
    }
    CHECK(by_name["relay"].size() == 2000);
    CHECK(by_name["sink"].size() == 2000);
    CHECK(count(trace, "i") == 2000);
    std::vector<bool> seen(2000, false);
    for (const Slice& slice : by_name["relay"]) seen[static_cast<size_t>(slice.tick)] = true;
    CHECK(std::find(seen.begin(), seen.end(), false) == seen.end());
    for (const auto& [track, slices] : by_track)
      for (size_t i = 1; i < slices.size(); ++i)
        // Both ends are rounded to a nanosecond.
        CHECK(slices[i].ts_ns + 2 >= slices[i - 1].ts_ns + slices[i - 1].dur_ns);
    CHECK(trace["otherData"]["forgotten_spans"] == "0");
  }
}

TEST_CASE("Without being asked for, the trace has the calls that are timed") {
  Compiled compiled(three(5000), {});
  const std::vector<Slice> slices = slices_of(trace_of(compiled));
  size_t relays = 0;
  for (const Slice& slice : slices) relays += slice.name == "relay";
  CHECK(relays >= 5000 / 64);
  CHECK(relays <= 5000);
}

TEST_CASE("Arrows follow a tick from one track to the next, two ends each") {
  Pipeline p = three(500);
  p.graph.handlers[1].device = "sim:0";
  Setup setup;
  setup.domains = {"cpu", "sim:0"};
  setup.options.trace_all = true;
  Compiled compiled(p, setup);
  const nlohmann::json trace = trace_of(compiled);
  std::map<std::string, std::map<std::string, size_t>> by_track;
  for (const Slice& slice : slices_of(trace)) ++by_track[slice.track][slice.name];
  CHECK(by_track["sim:0 compute"]["relay"] == 500);
  CHECK(by_track["sim:0 copies in"].size() == 1);
  CHECK(by_track["sim:0 copies out"].size() == 1);
  CHECK(count(trace, "s") == count(trace, "f"));
  // Host, copy in, body, copy out, host: at least three changes of track a tick.
  CHECK(count(trace, "s") >= 3 * 500);
}

TEST_CASE("A full ring forgets its oldest spans and says how many") {
  TraceRing ring("worker 0", 8, true);
  for (uint32_t i = 0; i < 21; ++i) ring.add({i * 10, i * 10 + 3, i / 3, i, TraceKind::copy});
  const std::vector<TraceSpan> spans = ring.spans();
  // Three of a tick and one entry that says which: the last eight hold the ticks 5 and 6.
  CHECK(ring.forgotten() == 20);
  REQUIRE(spans.size() == 6);
  for (uint32_t i = 0; i < 6; ++i) {
    CHECK(spans[i].begin == (15 + i) * 10);
    CHECK(spans[i].end == (15 + i) * 10 + 3);
    CHECK(spans[i].trace_id == (15 + i) / 3);
    CHECK(spans[i].step == 15 + i);
    CHECK(spans[i].kind == TraceKind::copy);
  }
}

TEST_CASE("Of a tick whose beginning is forgotten no call is told, since nobody knows whose they are") {
  TraceRing ring("worker 0", 4, false);
  for (uint32_t i = 0; i < 9; ++i) ring.add({i, i + 1, 7, i, TraceKind::call});
  CHECK(ring.spans().empty());
  ring.add({20, 21, 8, 0, TraceKind::call});
  CHECK(ring.spans().size() == 1);
}

TEST_CASE("Trace time is a line through its two readings") {
  TraceClock clock;
  clock.begin(1000, 500);
  clock.end(5000, 2500);
  CHECK(clock.ns(1000) == 0);
  CHECK(clock.ns(3000) == 1000);
  CHECK(clock.ns(5000) == 2000);
}
