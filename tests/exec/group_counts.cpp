// A run shows its groups: their counts in the report, their edges, items that are late, firings in the trace, and the
// lines that say why nothing moves.
#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "exec/run.h"
#include "graph/unfold.h"
#include "harness.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// Two streams at 10 per second, in phase, whose values a shared relay takes for 3 ms each.
Pipeline pair_of_streams(const std::string& batch, int count_a, int count_b,
                         const std::string& clock = "{ mode: realtime, rate: 10 }") {
  Pipeline pipeline;
  const std::string text = R"(version: 1
streams: { cameras: { items: { a: { n: )" +
                           std::to_string(count_a) + " }, b: { n: " + std::to_string(count_b) + R"( } } } }
clocks: { cameras: )" + clock +
                           R"( }
handlers:
  source: { type: t.count, for_each: cameras, count: "{n}" }
  shared: { type: t.relay, input: source)" +
                           (batch.empty() ? "" : ", batch: " + batch) + R"( }
  end:    { type: t.sink, for_each: cameras, input: shared, log: "{stream}" }
)";
  pipeline.graph = graph::unfold(graph::parse_yaml(text, "pair.yaml"));
  return pipeline;
}

Setup virtual_group(int64_t item_ns) {
  Setup setup;
  setup.workers = 2;
  setup.virtual_time = true;
  setup.costs_ns = {{"shared", item_ns}};
  return setup;
}

const EdgeReport& edge_of(const Report& report, const std::string& from, const std::string& to) {
  const auto at = std::find_if(report.edges.begin(), report.edges.end(),
                               [&](const EdgeReport& edge) { return edge.from == from && edge.to == to; });
  std::string names;
  for (const EdgeReport& edge : report.edges) names += edge.from + " " + edge.to + "\n";
  INFO(names);
  REQUIRE(at != report.edges.end());
  return *at;
}

const StreamReport& stream_of(const Report& report, const std::string& name) {
  const auto at = std::find_if(report.streams.begin(), report.streams.end(),
                               [&](const StreamReport& stream) { return stream.name == name; });
  REQUIRE(at != report.streams.end());
  return *at;
}

using FiringsOf = std::map<uint32_t, uint64_t>;

std::mutex heard_mutex;
std::condition_variable heard_changed;
bool standstill_heard = false;

// Owes the ticks 1 and 2 until the test has heard that nothing moves.
struct HoldsUntilHeard final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  std::vector<Tick> owed;
  std::thread answerer;
  HoldsUntilHeard() {
    max_pending(1);
    asynchronous();
    drains_freely();
  }
  void process(Tick& tick, Cpu&) {
    write_one(out, tick, read_one(in(tick)));
    if (tick.index() != 1 && tick.index() != 2) return;
    owed.push_back(tick.defer());
    if (tick.index() == 1) return;
    answerer = std::thread([this] {
      std::unique_lock lock(heard_mutex);
      heard_changed.wait(lock, [] { return standstill_heard; });
      for (Tick& late : owed) late.publish();
    });
  }
  void drain() override {
    if (answerer.joinable()) answerer.join();
  }
};

const mr_plugin& group_plugin() {
  static const mr_handler_type types[] = {detail::Type<HoldsUntilHeard>::table("group.stuck", "", "")};
  static const mr_handler_type* const pointers[] = {&types[0]};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "group", "1", pointers, 1, 0};
  return plugin;
}

} // namespace

TEST_CASE("B17: a group's firings, items, waits and times are counted, and its edges have the written names") {
  const Ran ran = run(pair_of_streams("{ size: 2, wait: 150ms }", 4, 5), virtual_group(3 * kMs));
  REQUIRE(ran.ok);
  REQUIRE(ran.report.groups.size() == 1);
  const GroupReport& group = ran.report.groups[0];
  CHECK(group.name == "shared");
  CHECK(group.set == "cameras");
  CHECK(group.handlers == std::vector<std::string>{"shared"});
  CHECK(group.rule == "fixed");
  CHECK(group.budget_ms == 100);
  CHECK(group.items == 9);
  CHECK(group.firings == 5);
  CHECK(group.firings_of == FiringsOf{{1, 1}, {2, 4}}); // the fifth of `b` is alone, and fires once `b` has ended
  CHECK(group.places == 9);
  CHECK(group.places_filled == 9);
  CHECK(group.waiting_sum_us == doctest::Approx(100'000));
  REQUIRE(group.buckets.size() == 2);
  CHECK(group.buckets[0].items == 1);
  CHECK(group.buckets[0].firings == 1);
  CHECK(group.buckets[0].sum_us == doctest::Approx(3000));
  CHECK(group.buckets[1].items == 2);
  CHECK(group.buckets[1].firings == 4);
  CHECK(group.buckets[1].sum_us == doctest::Approx(4 * 6000));
  CHECK(group.buckets[1].p50_us == doctest::Approx(6000).epsilon(0.04));
  REQUIRE(group.late.size() == 1); // that one: it waited for as long as its budget is
  CHECK(group.late[0].stream == "b");
  CHECK(group.late[0].settled == 1);
  CHECK(group.limit == 0); // such a rule has none

  CHECK(edge_of(ran.report, "source.out", "shared.in").delivered == 9);
  CHECK(edge_of(ran.report, "source.out", "shared.in").empty == 0);
  CHECK(edge_of(ran.report, "shared.out", "end.in[0]").delivered == 9);
  CHECK(ran.report.edges.size() == 2);
  CHECK(ran.handler("shared").calls == 9);
}

TEST_CASE("B17: items wait from when they are given until they fire") {
  // Three at a time: two of a tick wait 100 ms for the next tick's first, then one for the two of the tick after.
  const Ran ran = run(pair_of_streams("{ size: 3, wait: 150ms }", 3, 3), virtual_group(3 * kMs));
  REQUIRE(ran.ok);
  const GroupReport& group = ran.report.groups.at(0);
  CHECK(group.firings_of == FiringsOf{{3, 2}});
  CHECK(group.waiting_sum_us == doctest::Approx(300'000));
  CHECK(group.waiting_p99_us == doctest::Approx(100'000).epsilon(0.04));
}

TEST_CASE("B9: items that are late are counted on their streams' edges, dropped or not") {
  // One item takes 15 of 20 ms, so the second of each tick is late.
  const auto run_late = [](const std::string& late) {
    return run(pair_of_streams("{ budget: 20ms, late: " + late + " }", 5, 5), virtual_group(15 * kMs));
  };
  const Ran dropped_ones = run_late("drop");
  REQUIRE(dropped_ones.ok);
  const GroupReport& group = dropped_ones.report.groups.at(0);
  CHECK(group.rule == "learnt");
  CHECK(group.limit == 1);
  CHECK(group.limit_set_by == "load");
  CHECK(group.rate > 0);
  CHECK(group.items == 5);
  REQUIRE(group.late.size() == 1);
  CHECK(group.late[0].stream == "b");
  CHECK(group.late[0].dropped == 5);
  CHECK(group.late[0].settled == 0);
  const EdgeReport& in = edge_of(dropped_ones.report, "source.out", "shared.in");
  CHECK(in.delivered == 5);
  CHECK(in.empty == 5);
  CHECK(dropped(in, "late") == 5);
  CHECK(stream_of(dropped_ones.report, "b").dropped == std::map<std::string, uint64_t>{{"late", 5}});
  CHECK(stream_of(dropped_ones.report, "a").dropped.empty());
  CHECK(edge_of(dropped_ones.report, "shared.out", "end.in[0]").delivered == 5);
  CHECK(edge_of(dropped_ones.report, "shared.out", "end.in[0]").empty == 5);

  const Ran kept = run_late("keep");
  REQUIRE(kept.ok);
  REQUIRE(kept.report.groups.at(0).late.size() == 1);
  CHECK(kept.report.groups[0].late[0].stream == "b");
  CHECK(kept.report.groups[0].late[0].settled == 5);
  CHECK(kept.report.groups[0].late[0].dropped == 0);
  CHECK(kept.report.groups[0].items == 10);
  CHECK(edge_of(kept.report, "source.out", "shared.in").delivered == 10);
}

TEST_CASE("B12: without a budget no item is late, whatever the rule") {
  for (const std::string batch : {"", "{ size: 2, wait: 5ms }"}) {
    const Ran ran = run(pair_of_streams(batch, 4, 4, "{ mode: free }"), virtual_group(3 * kMs));
    REQUIRE(ran.ok);
    CHECK(ran.report.groups.at(0).rule == "free");
    CHECK(ran.report.groups[0].budget_ms == 0);
    CHECK(ran.report.groups[0].items == 8);
    CHECK(ran.report.groups[0].late.empty());
  }
}

TEST_CASE("A group has a track in the trace, with a slice from a firing's begin until its items are dealt out") {
  Compiled compiled(pair_of_streams("{ size: 2, wait: 150ms }", 2, 3), virtual_group(3 * kMs));
  REQUIRE(compiled.run().ok);
  std::ostringstream out;
  compiled.live().write_trace(out);
  const auto trace = nlohmann::json::parse(out.str());
  nlohmann::json track;
  for (const auto& event : trace["traceEvents"])
    if (event["name"] == "thread_name" && event["args"]["name"] == "firings of shared") track = event["tid"];
  REQUIRE(track.is_number());
  std::vector<nlohmann::json> firings;
  for (const auto& event : trace["traceEvents"])
    if (event["ph"] == "X" && event["tid"] == track) firings.push_back(event);
  REQUIRE(firings.size() == 3);
  const auto item = [](const char* clock, int tick) { return nlohmann::json{{"tick", tick}, {"clock", clock}}; };
  CHECK(firings[0]["name"] == "2 items");
  CHECK(firings[0]["cat"] == "group");
  CHECK(firings[0]["ts"] == 0);
  CHECK(firings[0]["dur"] == 6000);
  CHECK(firings[0]["args"]["firing"] == 0);
  CHECK(firings[0]["args"]["items"] == nlohmann::json{item("a", 0), item("b", 0)});
  CHECK(firings[1]["ts"] == 100'000);
  CHECK(firings[1]["args"]["items"] == nlohmann::json{item("a", 1), item("b", 1)});
  CHECK(firings[2]["name"] == "1 item");
  CHECK(firings[2]["ts"] == 300'000); // once `b` has ended
  CHECK(firings[2]["dur"] == 3000);
  CHECK(firings[2]["args"]["firing"] == 2);
  CHECK(firings[2]["args"]["items"] == nlohmann::json::array({item("b", 2)}));
}

TEST_CASE("2.8: a group that waits is named with what it waits for, and a stream's way into it with the stream") {
  standstill_heard = false;
  std::string said;
  Setup setup;
  setup.workers = 2;
  setup.more = &group_plugin();
  setup.options.idle_report_ns = 50 * kMs;
  setup.options.on_message = [&](const std::string& line) {
    const std::lock_guard lock(heard_mutex);
    said += line + "\n";
    standstill_heard = said.find("shared waits for") != std::string::npos;
    heard_changed.notify_all();
  };
  Pipeline pipeline;
  pipeline.graph = graph::unfold(graph::parse_yaml(R"(version: 1
streams: { cameras: { items: { a: {} } } }
handlers:
  source: { type: t.count, for_each: cameras, count: 12 }
  shared: { type: t.need, inputs: { a: source, b: { from: stuck, delay: 2, initial: empty } } }
  stuck:  { type: group.stuck, for_each: cameras, input: shared }
  end:    { type: t.sink, for_each: cameras, input: stuck, log: end }
)",
                                                   "stuck.yaml"));
  const Ran ran = run(pipeline, setup);
  INFO(said);
  REQUIRE(ran.ok);
  CHECK(said.find("stuck@a has not published what it owes (tick 1)") != std::string::npos);
  CHECK(said.find("  give shared of a waits for stuck@a (tick 3)") != std::string::npos);
  CHECK(said.find("  shared waits for items of cameras (firing 3)") != std::string::npos);
}
