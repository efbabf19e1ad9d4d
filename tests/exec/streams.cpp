// Streams of a set: each has a time, a rate and a fate of its own, and leaves the others as they were.
#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <random>

#include "graph/unfold.h"
#include "harness.h"

using namespace millrace;
using namespace millrace::test;

namespace {

constexpr int kStreams = 8;

struct StreamNote {
  uint64_t index;
  int64_t media_ns, value, at_ns;
  friend bool operator==(const StreamNote&, const StreamNote&) = default;
};
std::mutex notes_by_stream_mutex;
std::map<std::string, std::vector<StreamNote>> notes_by_stream;

// The end of a stream: notes what it gets, and when.
struct NotesAll final : Handler {
  Input<Tensor> in{*this, "in"};
  Param<std::string> name{*this, "name", "", "the stream's"};
  void process(Tick& tick, Cpu&) {
    const std::lock_guard lock(notes_by_stream_mutex);
    notes_by_stream[*name].push_back({tick.index(), tick.media_time_ns(), read_one(in(tick)), now_ns()});
  }
};

// Passes values on, but for a tick that fails, or whose value is larger than was planned.
struct Trouble final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  Param<int64_t> fail_at{*this, "fail_at", -1, "the tick that fails"};
  Param<int64_t> grow_at{*this, "grow_at", -1, "the tick whose value is too large"};
  void process(Tick& tick, Cpu&) {
    if (static_cast<int64_t>(tick.index()) == fail_at) throw std::runtime_error("told to fail");
    const int64_t shape[] = {99};
    if (static_cast<int64_t>(tick.index()) == grow_at) out.allocate(tick, dtype_of<int64_t>(), shape);
    write_one(out, tick, read_one(in(tick)));
  }
};

const mr_plugin& notes_plugin() {
  static const mr_handler_type types[] = {detail::Type<NotesAll>::table("s.notes", "Notes all", ""),
                                          detail::Type<Trouble>::table("s.trouble", "Passes numbers on, or fails", "")};
  static const mr_handler_type* const pointers[] = {&types[0], &types[1]};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "streams", "1", pointers, 2, 0};
  return plugin;
}

struct Fate {
  enum class Kind { well, fails, ends, stalls, restarts, grows };
  Kind kind = Kind::well;
  int stream = 0;
  uint64_t tick = 0; // from which on
};

struct StreamsCase {
  std::string clock;
  std::vector<int> rates, counts;
  std::vector<int64_t> costs_ns;
  std::string wall;
};

StreamsCase random_streams(std::mt19937_64& random) {
  const auto below = [&](uint64_t limit) { return static_cast<int>(random() % limit); };
  static const std::vector<std::string> clocks = {"{ mode: realtime, rate: 30 }", "{ mode: realtime, rate: 100 }",
                                                  "{ mode: free }", "{ mode: source }"};
  StreamsCase made;
  made.clock = clocks[static_cast<size_t>(below(4))];
  for (int s = 0; s < kStreams; ++s) {
    made.rates.push_back(10 + below(90));
    made.counts.push_back(5 + below(20));
    made.costs_ns.push_back((1 + below(30)) * 1'000'000);
  }
  // Under `free` a reader of all streams by latest waits for each of them, and would hold them.
  if (made.clock != clocks[2] && made.clock != clocks[3] && below(2) == 0)
    made.wall = "  wall: { type: t.sink, clock: wall, log: wall, input: { from: relay, policy: latest } }\n";
  return made;
}

std::map<std::string, std::vector<StreamNote>> told_in(const StreamsCase& made, const Fate& fate, Result& result) {
  const bool restarts = fate.kind == Fate::Kind::restarts || fate.kind == Fate::Kind::grows;
  std::string text =
      "version: 1\nstreams:\n  cameras:\n    on_error: " + std::string(restarts ? "restart" : "end") + "\n    items:\n";
  for (int s = 0; s < kStreams; ++s) {
    const bool is_struck = s == fate.stream;
    const uint64_t count = is_struck && fate.kind == Fate::Kind::ends
                               ? fate.tick
                               : static_cast<uint64_t>(made.counts[static_cast<size_t>(s)]);
    const bool fails = fate.kind == Fate::Kind::fails || fate.kind == Fate::Kind::restarts;
    const std::string fail_at = is_struck && fails ? std::to_string(fate.tick) : "-1";
    const std::string grow_at = is_struck && fate.kind == Fate::Kind::grows ? std::to_string(fate.tick) : "-1";
    text += "      s" + std::to_string(s) + ": { rate: " + std::to_string(made.rates[static_cast<size_t>(s)]) +
            ", count: " + std::to_string(count) + ", fail_at: " + fail_at + ", grow_at: " + grow_at + " }\n";
  }
  text += "clocks:\n  cameras: " + made.clock + "\n  wall: { mode: realtime, rate: 25 }\nhandlers:\n";
  text += R"(  source: { type: t.count, for_each: cameras, count: "{count}", rate: "{rate}" }
  relay:  { type: s.trouble, for_each: cameras, input: source, fail_at: "{fail_at}", grow_at: "{grow_at}" }
  notes:  { type: s.notes, for_each: cameras, input: relay, name: "{stream}" }
)" + made.wall;
  if (made.wall.empty()) text.replace(text.find("  wall: {"), text.find("handlers:") - text.find("  wall: {"), "");
  Pipeline pipeline;
  pipeline.graph = graph::unfold(graph::parse_yaml(text, "streams.yaml"));
  Setup setup;
  setup.workers = 4 * kStreams; // a worker for each segment: nothing waits for another stream's work
  setup.virtual_time = true;
  setup.more = &notes_plugin();
  for (int s = 0; s < kStreams; ++s)
    setup.costs_ns["relay@s" + std::to_string(s)] = made.costs_ns[static_cast<size_t>(s)];
  setup.options.cost_ns = [costs = setup.costs_ns, fate](const std::string& handler, uint64_t index) {
    const auto at = costs.find(handler);
    const bool stalls =
        fate.kind == Fate::Kind::stalls && index >= fate.tick && handler == "relay@s" + std::to_string(fate.stream);
    return (at == costs.end() ? 0 : at->second) + (stalls ? int64_t{2'000'000'000} : 0);
  };
  notes_by_stream.clear();
  result = run(pipeline, setup);
  return notes_by_stream;
}

} // namespace

TEST_CASE("B11: a stream that stalls, ends, fails, begins anew or grows leaves the others as they were") {
  const uint64_t seeds = std::getenv("MILLRACE_STREAMS") ? std::stoull(std::getenv("MILLRACE_STREAMS")) : 100;
  uint64_t differed = 0, began_anew = 0;
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const StreamsCase made = random_streams(random);
    Fate fate;
    fate.kind = static_cast<Fate::Kind>(1 + random() % 5);
    fate.stream = static_cast<int>(random() % kStreams);
    fate.tick = 1 + random() % static_cast<uint64_t>(made.counts[static_cast<size_t>(fate.stream)] -
                                                     1); // a count of 0 is endless
    Result well, struck;
    auto expected = told_in(made, {}, well);
    auto told = told_in(made, fate, struck);
    REQUIRE_MESSAGE(well.ok, well.error.what);
    REQUIRE_MESSAGE(struck.ok, struck.error.what);
    const std::string name = "s" + std::to_string(fate.stream);
    differed += expected[name] != told[name];
    expected.erase(name);
    told.erase(name);
    CHECK(expected == told);
    REQUIRE(struck.report.streams.size() == kStreams);
    const bool is_hit = struck.report.handlers[1].errors > 0; // a beat may have been skipped, and its tick with it
    for (const StreamReport& stream : struck.report.streams) {
      const bool failed = is_hit && stream.name == name;
      CHECK(stream.set == "cameras");
      const bool restarts = fate.kind == Fate::Kind::restarts || fate.kind == Fate::Kind::grows;
      // One whose source had come to its end by then does not begin anew.
      began_anew += stream.restarts;
      CHECK(stream.restarts <= (failed && restarts ? 1 : 0));
      CHECK(stream.state == (failed && stream.restarts == 0 ? "failed" : "ended"));
      CHECK(stream.error.empty() == (stream.state == "ended"));
    }
  }
  CHECK(differed > seeds / 2); // the fates did strike
  CHECK(began_anew > seeds / 5);
}

TEST_CASE("B11: no handler of a stream is called on a tick after the one that failed") {
  std::mt19937_64 random(1);
  StreamsCase made = random_streams(random);
  made.clock = "{ mode: free }";
  made.wall = "";
  made.counts.assign(kStreams, 20);
  for (const uint64_t tick : {0, 1, 7}) {
    Result result;
    auto told = told_in(made, {Fate::Kind::fails, 3, tick}, result);
    CHECK(result.ok);
    CHECK(told["s3"].size() == tick);
    CHECK(told["s4"].size() == 20);
    CHECK(result.report.handlers.size() == 3); // by the names of the pipeline
    CHECK(result.report.handlers[1].name == "relay");
    CHECK(result.report.handlers[1].errors == 1);
    CHECK(result.report.edges.size() == 2);
    CHECK(result.report.edges[0].delivered == 7 * 20 + tick + 1);
  }
}

TEST_CASE("B11: the run fails if a stream does and its set says so, or if all streams of a set do") {
  const auto text = [](const std::string& on_error, const std::string& second) {
    return "version: 1\nstreams: { cameras: { on_error: " + on_error +
           ", items: { a: { fail_at: 2 }, b: { fail_at: " + second + R"( } } } }
handlers:
  source: { type: t.count, for_each: cameras, count: 9 }
  relay:  { type: t.relay, for_each: cameras, input: source, fail_at: "{fail_at}" }
  sink:   { type: t.sink, for_each: cameras, input: relay, log: "{stream}" }
)";
  };
  const auto ran = [&](const std::string& on_error, const std::string& second) {
    Pipeline pipeline;
    pipeline.graph = graph::unfold(graph::parse_yaml(text(on_error, second), "fails.yaml"));
    Setup setup;
    setup.virtual_time = true;
    return run(pipeline, setup);
  };
  CHECK(ran("end", "-1").ok);
  CHECK(ran("end", "-1").seen("b").size() == 9);
  const Ran failed = ran("fail", "-1");
  CHECK(!failed.ok);
  CHECK(failed.error.what.find("relay@a (t.relay) failed at tick 2") == 0);
  const Ran all = ran("end", "4");
  CHECK(!all.ok);
  CHECK(all.error.notes.back() == "every stream of its set has failed");
  CHECK(all.report.streams[1].error.find("failed at tick 4") != std::string::npos);
}

TEST_CASE("B17: the report names an edge from one stream's instance as it was written, and others without streams") {
  Pipeline pipeline;
  pipeline.graph = graph::unfold(graph::parse_yaml(R"(version: 1
streams: { cameras: { items: { a: {}, b: {}, c: {} } } }
clocks: { cameras: { mode: free }, wall: { mode: free } }
handlers:
  source: { type: t.count, for_each: cameras, count: 3 }
  relay:  { type: t.relay, for_each: cameras, input: source }
  other:  { type: t.relay, for_each: cameras, input: { from: source@b, policy: latest } }
  save:   { type: t.sink, input: relay@b, log: saved }
  wall:
    type: t.sink
    clock: wall
    log: wall
    input: [{ from: other, policy: latest }, { from: relay@c, policy: latest }]
)",
                                                   "edges.yaml"));
  Setup setup;
  setup.virtual_time = true;
  const Ran ran = run(pipeline, setup);
  REQUIRE_MESSAGE(ran.ok, ran.error.what);
  std::vector<std::string> edges;
  for (const EdgeReport& edge : ran.report.edges) edges.push_back(edge.from + " → " + edge.to);
  std::sort(edges.begin(), edges.end());
  CHECK(edges == std::vector<std::string>{"other.out → wall.in", "relay@b.out → save.in[0]", "relay@c.out → wall.in[3]",
                                          "source.out → relay.in", "source@b.out → other.in"});
}
