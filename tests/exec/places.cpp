// Streams that are added and removed beside others that run, and what they leave: nothing (B15).
#include "exec/seats.h"

#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <filesystem>
#include <future>
#include <map>
#include <thread>

#include "exec/run.h"
#include "exec/virtual_driver.h"
#include "graph/unfold.h"
#include "harness.h"
#include "plan/pace.h"
#include "plan/plan.h"

using namespace millrace;
using namespace millrace::test;

namespace {

struct PlaceNote {
  uint64_t index;
  int64_t media_ns, value, at_ns;
  friend bool operator==(const PlaceNote&, const PlaceNote&) = default;
};
std::mutex place_mutex;
std::map<std::string, std::vector<PlaceNote>> place_notes;
std::map<std::string, int> place_drains;
std::atomic<int> handlers_there{0};

// Counts itself, so that a test sees which handlers are left.
struct CountsItself : Handler {
  CountsItself() { ++handlers_there; }
  ~CountsItself() override { --handlers_there; }
};

struct PlaceNotes final : CountsItself {
  Input<Tensor> in{*this, "in"};
  Param<std::string> name{*this, "name", "", "the stream's"};
  void process(Tick& tick, Cpu&) {
    const std::lock_guard lock(place_mutex);
    place_notes[*name].push_back({tick.index(), tick.media_time_ns(), read_one(in(tick)), now_ns()});
  }
  void drain() override {
    const std::lock_guard lock(place_mutex);
    ++place_drains[*name];
  }
};

struct PlaceSource final : CountsItself {
  Output<Tensor> out{*this, "out"};
  Param<int64_t> first{*this, "first", 0, "the first value"};
  Param<int64_t> count{*this, "count", 0, "values; 0: endless"};
  Param<bool> answers{*this, "answers", true, "else it cannot be opened"};
  Param<bool> starts{*this, "starts", true, "else it cannot be started"};
  Param<int64_t> waits_ms{*this, "waits_ms", 0, "how long a call takes, on a thread of its own"};
  Param<bool> is_live{*this, "live", false, "cannot wait"};
  Param<int64_t> silent_from_ms{*this, "silent_from_ms", 0, "it gives nothing from then on"};
  Param<int64_t> silent_until_ms{*this, "silent_until_ms", 0, "until then"};
  int64_t next = 0;
  void probe(Facts& facts) override {
    if (!answers) throw std::runtime_error("no answer");
    facts.rate(20);
    if (is_live) facts.live();
    if (waits_ms == 0) return;
    facts.waits();
    facts.live();
  }
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}); }
  void start() override {
    if (!starts) throw std::runtime_error("there is no camera");
    next = 0;
  }
  void process(Tick& tick, Cpu&) {
    if (count > 0 && next >= count) return tick.end();
    if (now_ns() >= silent_from_ms * kMs && now_ns() < silent_until_ms * kMs) return tick.not_yet();
    if (waits_ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(waits_ms));
    write_one(out, tick, first + next);
    out.header(tick).pts_ns = next++ * 50 * kMs;
  }
};

const mr_plugin& place_plugin() {
  static const mr_handler_type types[] = {detail::Type<PlaceNotes>::table("p.notes", "Notes all", ""),
                                          detail::Type<PlaceSource>::table("p.source", "Counts", "")};
  static const mr_handler_type* const pointers[] = {&types[0], &types[1]};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "places", "1", pointers, 2, 0};
  return plugin;
}

// `count` streams that are there from the start, and places for more.
graph::Graph written(const std::string& clock, int count, int max, const std::string& more = "") {
  std::string items;
  for (int s = 0; s < count; ++s)
    items += (s ? ", s" : "s") + std::to_string(s) + ": { first: " + std::to_string(100 * s) + " }";
  return graph::parse_yaml("version: 1\nstreams: { cameras: { max: " + std::to_string(max) + ", items: { " + items +
                               " } } }\nclocks: { cameras: " + clock + ", wall: { mode: realtime, rate: 10 } }\n" + R"(
handlers:
  source: { type: p.source, for_each: cameras, first: "{first}" }
  relay:  { type: t.relay, for_each: cameras, input: source }
  notes:  { type: p.notes, for_each: cameras, input: relay, name: "{stream}" }
)" + more,
                           "places.yaml");
}

// Adds streams one after another in virtual time, and removes each once it has given some values.
struct Visitors {
  Compiled& compiled;
  const graph::Graph& graph;
  int wanted;
  size_t stays = 3; // values
  int added = 0, removed = 0, refused = 0;
  bool is_there = false, waits = false;
  std::string name{};

  bool move() {
    if (waits) return false;
    if (is_there) {
      if (place_notes[name].size() < stays) return false;
      waits = true;
      compiled.live().remove("cameras", name, [this](const Error*) {
        ++removed;
        waits = is_there = false;
      });
      return true;
    }
    if (added == wanted) return false;
    name = "v" + std::to_string(added++);
    waits = true;
    const uint32_t clock = compiled.live().take_seat("cameras", name);
    compiled.live().add(clock, compiled.stream_for(graph, clock, name, {{"first", "7000"}}, [this](const Error* error) {
      refused += error != nullptr;
      waits = false;
      is_there = !error;
    }));
    return true;
  }
};

Setup place_setup() {
  Setup setup;
  setup.virtual_time = true;
  setup.workers = 40; // a worker for each segment: nothing waits for another stream's work
  setup.more = &place_plugin();
  setup.costs_ns["relay"] = kMs;
  return setup;
}

} // namespace

TEST_CASE("B15: streams that come and go beside eight others take nothing from them, and leave nothing") {
  const int visits = std::getenv("MILLRACE_VISITS") ? std::stoi(std::getenv("MILLRACE_VISITS")) : 1000;
  for (const std::string clock : {"{ mode: realtime, rate: 20 }", "{ mode: free }"}) {
    CAPTURE(clock);
    std::map<std::string, std::vector<PlaceNote>> alone;
    for (const int wanted : {0, visits}) {
      place_notes.clear();
      Pipeline pipeline;
      const graph::Graph graph = written(clock, 8, 9);
      pipeline.graph = graph::unfold(graph);
      Setup setup = place_setup();
      setup.options.duration_ns = 400'000 * kMs;
      setup.options.ticks_max = 8000;
      Compiled compiled(pipeline, setup);
      const int made = handlers_there;
      compiled.live().start();
      Visitors visitors{compiled, graph, wanted};
      exec::VirtualDriver driver(compiled.time());
      driver.add(compiled.live());
      driver.add([&] { return visitors.move(); });
      driver.drive();
      const Ran ran = compiled.wait();
      REQUIRE_MESSAGE(ran.ok, ran.error.what);
      CHECK(handlers_there == made);
      if (wanted == 0) {
        alone = place_notes;
        CHECK(alone.size() == 8);
        continue;
      }
      CHECK(visitors.removed == visits);
      CHECK(visitors.refused == 0);
      CHECK(place_notes["v0"].size() >= 3);
      CHECK(place_notes["v0"][0].value == 7000);
      for (const auto& [name, notes] : alone) CHECK(place_notes[name] == notes);
    }
  }
}

namespace {

// Does things at times of its own, in virtual time.
struct Script {
  device::VirtualTime& time;
  std::vector<std::pair<int64_t, std::function<void()>>> steps; // by milliseconds
  size_t next = 0;
  bool move() {
    if (next == steps.size() || time.now_ns() < steps[next].first * kMs) return false;
    steps[next++].second();
    return true;
  }
};

Ran drive(Compiled& compiled, std::vector<std::pair<int64_t, std::function<void()>>> steps) {
  compiled.live().start();
  Script script{compiled.time(), std::move(steps)};
  exec::VirtualDriver driver(compiled.time());
  driver.add(compiled.live());
  driver.add([&] { return script.move(); });
  driver.drive();
  return compiled.wait();
}

struct PlaceHouse {
  graph::Graph graph;
  Compiled compiled;
  std::vector<std::string> answers;
  PlaceHouse(const std::string& clock, int count, int max, const std::string& more = "", Setup setup = place_setup())
      : graph(written(clock, count, max, more)), compiled(pipeline_of(graph), limited(setup)) {
    place_notes.clear();
  }
  static Pipeline pipeline_of(const graph::Graph& graph) {
    Pipeline pipeline;
    pipeline.graph = graph::unfold(graph);
    return pipeline;
  }
  static Setup limited(Setup setup) {
    setup.options.duration_ns = 2'000 * kMs;
    return setup;
  }
  exec::StreamDone note(const std::string& what) {
    return [this, what](const Error* error) { answers.push_back(what + (error ? ": " + error->what : "")); };
  }
  void add(const std::string& name, const Params& fields) {
    const uint32_t clock = compiled.live().take_seat("cameras", name);
    compiled.live().add(clock, compiled.stream_for(graph, clock, name, fields, note("added " + name)));
  }
  void remove(const std::string& name) { compiled.live().remove("", name, note("removed " + name)); }
  std::string refusal_of(const std::function<void()>& call) {
    try {
      call();
    } catch (const Failure& failure) {
      return format_code(failure.error().code) + " " + failure.error().what;
    }
    return "";
  }
};

} // namespace

TEST_CASE("B15: a reader of all streams has an entry for each place, which is empty where no stream is") {
  {
    PlaceHouse house("{ mode: realtime, rate: 20 }", 2, 4,
                     "  all: { type: t.sink, clock: wall, log: all, input: { from: relay, policy: latest } }\n");
    const Ran ran = drive(house.compiled, {{420,
                                            [&] {
                                              house.add("late", {{"first", "7000"}});
                                            }},
                                           {1210, [&] { house.remove("late"); }}});
    REQUIRE_MESSAGE(ran.ok, ran.error.what);
    CHECK(house.answers == std::vector<std::string>{"added late", "removed late"});
    const std::vector<Seen> seen = ran.seen("all");
    REQUIRE(seen.size() >= 19);
    CHECK(seen[2].values.size() == 4);
    CHECK(seen[3].values[2] == kEmpty);
    CHECK(seen[7].values[2] >= 7000);
    CHECK(seen[7].values[3] == kEmpty);
    CHECK(seen[7].values[1] >= 100);
    CHECK(ran.report.streams.size() == 2);   // who was removed is gone
    CHECK(place_notes["late"].size() == 17); // from the beat at 450 ms to that at 1250 ms, when the script looks
  }
}

namespace {

// Two streams; the source of the second one, s1, does not answer when the plan is made.
struct AbsentHouse : PlaceHouse {
  AbsentHouse(const std::string& clock, int max) : PlaceHouse(clock, 1, 1), absent(parted(clock, max)) {}
  static graph::Graph parted(const std::string& clock, int max) {
    graph::Graph graph =
        written(clock, 2, std::max(max, 2),
                "  all: { type: t.sink, clock: wall, log: all, input: { from: relay, policy: latest } }\n");
    graph.streams[0].on_error = graph::OnStreamError::restart;
    graph.streams[0].items[1].fields.push_back({"source.answers", "false", {}, {}});
    if (max == 0) graph.streams[0].max = 0;
    return graph;
  }
  void try_again(const Params& fields) {
    exec::NewStream stream = both.stream_for(absent, clock_of("s1"), "s1", fields, note("s1"));
    stream.was_absent = true;
    both.live().add(clock_of("s1"), std::move(stream));
  }
  uint32_t clock_of(const std::string& name) const {
    uint32_t clock = 0;
    while (both.plan().clocks[clock].name != name) ++clock;
    return clock;
  }
  std::string state_of_s1() {
    for (const StreamReport& stream : both.live().report().streams)
      if (stream.name == "s1") return stream.state + " " + stream.error;
    return "gone";
  }
  graph::Graph absent;
  static Setup few() {
    Setup setup = limited(place_setup());
    setup.options.ticks_max = 40;
    return setup;
  }
  Compiled both{pipeline_of(absent), few()};
};

} // namespace

TEST_CASE("B11: a stream whose source did not answer begins once it does, and the other one is as without it") {
  for (const std::string clock : {"{ mode: realtime, rate: 20 }", "{ mode: free }"}) {
    CAPTURE(clock);
    AbsentHouse house(clock, 0);
    std::vector<std::string> states;
    const Ran ran = drive(house.both, {{100, [&] { states.push_back(house.state_of_s1()); }},
                                       {200,
                                        [&] {
                                          house.try_again({{"first", "100"}, {"source.starts", "false"}});
                                        }},
                                       {300,
                                        [&] {
                                          states.push_back(house.state_of_s1());
                                          house.try_again({{"first", "100"}});
                                        }},
                                       {900, [&] { states.push_back(house.state_of_s1()); }}});
    REQUIRE_MESSAGE(ran.ok, ran.error.what);
    const std::string absent = "down MR0604: source@s1 (p.source) could not be opened: no answer";
    const bool is_free = clock == "{ mode: free }"; // its 40 ticks take no time, and then it has ended
    CHECK(std::vector<std::string>(states.begin(), states.begin() + 2) == std::vector<std::string>{absent, absent});
    CHECK(states.back() == (is_free ? absent : "runs "));
    CHECK(house.answers ==
          std::vector<std::string>{"s1: source@s1 (p.source) could not start: there is no camera", "s1"});
    CHECK(place_notes["s1"][0].value == 100);
    CHECK(place_notes["s1"][0].index == 0);
    CHECK(place_notes["s0"].size() == 40);
    const std::vector<Seen> seen = ran.seen("all"); // ten a second
    REQUIRE(seen.size() > 4);
    CHECK(seen[2].values[1] == kEmpty);
    CHECK(seen[4].values[1] >= 100);
    for (const StreamReport& stream : ran.report.streams) {
      CHECK(stream.state == "ended");
      CHECK(stream.restarts == 0);
    }
    if (is_free) continue;
    CHECK(place_notes["s1"].size() == 34); // from 300 ms on
    CHECK(place_notes["s1"][0].media_ns == 300 * kMs);
  }
}

TEST_CASE("B11: a stream that is not there yet is awaited, and can be removed where others may come") {
  AbsentHouse house("{ mode: realtime, rate: 20 }", 3);
  std::vector<std::string> states;
  const Ran ran =
      drive(house.both, {{100,
                          [&] {
                            states.push_back(house.refusal_of([&] { house.both.live().take_seat("cameras", "s1"); }));
                            house.both.live().remove("", "s1", house.note("removed"));
                            states.push_back(house.state_of_s1());
                            house.try_again({{"first", "100"}}); // it was being opened meanwhile
                          }},
                         {200, [&] {
                            const uint32_t clock = house.both.live().take_seat("cameras", "s1");
                            house.both.live().add(clock, house.both.stream_for(house.absent, clock, "s1",
                                                                               {{"first", "7"}}, house.note("added")));
                          }}});
  REQUIRE_MESSAGE(ran.ok, ran.error.what);
  CHECK(states == std::vector<std::string>{"MR0303 there is a stream \"s1\" already", "gone"});
  CHECK(house.answers == std::vector<std::string>{"removed", "s1: it was removed", "added"});
  CHECK(place_notes["s1"][0].value == 7);
}

TEST_CASE("2.8: a run that only waits for a stream to come stands still for no reason that has to be told") {
  graph::Graph graph = written("{ mode: free }", 2, 2);
  graph.streams[0].on_error = graph::OnStreamError::restart;
  graph.streams[0].items[0].fields.push_back({"source.count", "3", {}, {}});
  graph.streams[0].items[1].fields.push_back({"source.answers", "false", {}, {}});
  std::mutex said_mutex;
  std::string said;
  Setup setup;
  setup.workers = 2;
  setup.more = &place_plugin();
  setup.options.idle_report_ns = 20 * kMs;
  setup.options.on_message = [&](const std::string& line) {
    const std::lock_guard lock(said_mutex);
    said += line + "\n";
  };
  place_notes.clear();
  Compiled compiled(PlaceHouse::pipeline_of(graph), setup);
  compiled.live().start();
  const auto given = [] {
    const std::lock_guard lock(place_mutex);
    return place_notes["s0"].size();
  };
  while (given() < 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(200)); // ten times as long as a standstill takes to be told
  compiled.live().stop();
  const Ran ran = compiled.wait();
  CHECK_MESSAGE(ran.ok, ran.error.what);
  CHECK(place_notes["s0"].size() == 3);
  CHECK(said.find("stream s1 is not there yet: source@s1 (p.source) could not be opened: no answer") !=
        std::string::npos);
  CHECK_MESSAGE(said.find("MR0603") == std::string::npos, said);
}

TEST_CASE("B15: what is refused of streams that come and go, and leaves the place free") {
  PlaceHouse house("{ mode: realtime, rate: 20 }", 2, 3);
  std::vector<std::string> refusals;
  const Ran ran = drive(
      house.compiled, {{100,
                        [&] {
                          refusals.push_back(house.refusal_of([&] { house.add("s1", {{"first", "0"}}); }));
                          refusals.push_back(house.refusal_of([&] { house.remove("s7"); }));
                          refusals.push_back(house.refusal_of([&] { house.compiled.live().take_seat("doors", "a"); }));
                          refusals.push_back(house.refusal_of([&] {
                            const uint32_t clock = house.compiled.live().take_seat("cameras", "a");
                            const std::string why =
                                house.refusal_of([&] { house.compiled.stream_for(house.graph, clock, "a", {}, {}); });
                            refusals.push_back(why);
                            house.compiled.live().give_up_seat(clock);
                          }));
                          house.add("gone", {{"first", "0"}, {"source.starts", "false"}});
                        }},
                       {300,
                        [&] {
                          house.add("a", {{"first", "50"}, {"source.count", "3"}});
                        }},
                       {400, [&] { refusals.push_back(house.refusal_of([&] {
                                     house.add("b", {{"first", "0"}});
                                   })); }},
                       {900, [&] {
                          house.add("b", {{"first", "90"}});
                        }}});
  REQUIRE_MESSAGE(ran.ok, ran.error.what);
  CHECK(refusals == std::vector<std::string>{
                        "MR0303 there is a stream \"s1\" already",
                        "MR0321 there is no stream \"s7\"",
                        "MR0320 there is no set of streams \"doors\"",
                        "MR0322 source.first has {first}, and the stream 'a' of 'cameras' has no such field",
                        "",
                        "MR0324 \"cameras\" has no room for another stream",
                    });
  CHECK(house.answers == std::vector<std::string>{
                             "added gone: source@gone (p.source) could not start: there is no camera",
                             "added a",
                             "added b",
                         });
  CHECK(place_notes["a"].size() == 3); // it ended by itself, and its place was free
  CHECK(place_notes["b"][0].value == 90);
  CHECK(place_notes["b"].size() == 22);
}

TEST_CASE("B15: a stream whose handlers are being made is not removed, and it and later ones begin") {
  PlaceHouse house("{ mode: realtime, rate: 20 }", 1, 3);
  std::vector<std::string> refusals;
  uint32_t clock = 0;
  const auto remove = [&](const std::string& name) {
    refusals.push_back(house.refusal_of([&] { house.remove(name); }));
  };
  const Ran ran = drive(house.compiled, {{100,
                                          [&] {
                                            clock = house.compiled.live().take_seat("cameras", "a");
                                            remove("a");
                                          }},
                                         {300,
                                          [&] {
                                            remove("a");
                                            house.compiled.live().add(
                                                clock, house.compiled.stream_for(house.graph, clock, "a",
                                                                                 {{"first", "0"}}, house.note("a")));
                                            remove("a"); // it has come, and its clock has not looked yet
                                          }},
                                         {500,
                                          [&] {
                                            house.remove("a");
                                            remove("a");
                                          }},
                                         {700, [&] {
                                            clock = house.compiled.live().take_seat("cameras", "c");
                                            house.compiled.live().give_up_seat(clock);
                                            remove("c");
                                            house.add("b", {{"first", "0"}});
                                          }}});
  REQUIRE_MESSAGE(ran.ok, ran.error.what);
  CHECK(refusals == std::vector<std::string>{"MR0324 \"a\" is being added", "MR0324 \"a\" is being added",
                                             "MR0324 \"a\" is being added", "MR0324 \"a\" is being removed already",
                                             "MR0321 there is no stream \"c\""});
  CHECK(house.answers == std::vector<std::string>{"a", "removed a", "added b"});
  CHECK(place_notes["a"].size() == 5); // from 300 ms to 500 ms
  CHECK(place_notes["b"].size() > 10);
}

TEST_CASE("B15: a shared handler is no place for a stream") {
  PlaceHouse house("{ mode: realtime, rate: 20 }", 1, 2, "  shared: { type: t.relay, input: relay }\n");
  const Ran ran =
      drive(house.compiled, {{100,
                              [&] {
                                house.add("a", {{"first", "0"}});
                              }},
                             {300, [&] {
                                try {
                                  house.compiled.live().take_seat("cameras", "b");
                                  FAIL("there was a place");
                                } catch (const Failure& failure) {
                                  CHECK(failure.error().notes == std::vector<std::string>{"it has 2 places"});
                                  CHECK(failure.error().edit == "max: 3, in the pipeline");
                                }
                              }}});
  REQUIRE_MESSAGE(ran.ok, ran.error.what);
  CHECK(ran.report.streams.size() == 2);
}

TEST_CASE("B15: a run fails if all streams of a set have, those before in the same places too") {
  for (const bool is_well : {false, true}) {
    CAPTURE(is_well);
    PlaceHouse house("{ mode: realtime, rate: 20 }", 1, 2);
    house.graph.streams[0].items[0].fields.push_back({"relay.fail_at", "25", {}, {}});
    Compiled compiled(PlaceHouse::pipeline_of(house.graph), PlaceHouse::limited(place_setup()));
    const auto add = [&](const std::string& name, const std::string& fail_at) {
      const uint32_t clock = compiled.live().take_seat("cameras", name);
      compiled.live().add(
          clock,
          compiled.stream_for(house.graph, clock, name,
                              {{"first", "0"}, {"source.count", "4"}, {"relay.fail_at", fail_at}}, house.note(name)));
    };
    const Ran ran = drive(compiled, {{100, [&] { add("a", is_well ? "-1" : "2"); }},
                                     {600, [&] { add("b", "5"); }}}); // they have the same place, where indices go on
    CHECK(house.answers == std::vector<std::string>{"a", "b"});
    CHECK(place_notes["a"].size() == (is_well ? 4 : 2));
    CHECK(ran.ok == is_well);
    if (!is_well) CHECK(ran.error.notes == std::vector<std::string>{"every stream of its set has failed"});
  }
}

TEST_CASE("B15: a stream that is down, and begins anew some time, can be removed at once") {
  PlaceHouse house("{ mode: realtime, rate: 20 }", 1, 2,
                   "  all: { type: t.sink, clock: wall, log: all, input: { from: relay, policy: latest } }\n");
  house.graph.streams[0].on_error = graph::OnStreamError::restart;
  place_drains.clear();
  Compiled compiled(PlaceHouse::pipeline_of(house.graph), PlaceHouse::limited(place_setup()));
  const auto add = [&](const std::string& name, const Params& fields) {
    const uint32_t clock = compiled.live().take_seat("cameras", name);
    compiled.live().add(clock, compiled.stream_for(house.graph, clock, name, fields, house.note("added " + name)));
  };
  const auto remove = [&](const std::string& name) { compiled.live().remove("", name, house.note("removed " + name)); };
  const Ran ran = drive(compiled, {{100,
                                    [&] {
                                      add("a", {{"first", "0"}, {"relay.fail_at", "2"}});
                                    }},
                                   {240, [&] { remove("a"); }}, // it has failed at 200 ms, and would be back at 300 ms
                                   {260, [&] { CHECK(house.answers.back() == "removed a"); }},
                                   {400,
                                    [&] {
                                      add("b", {{"first", "0"}});
                                    }},
                                   {700, [&] { remove("s0"), remove("b"); }},
                                   {900,
                                    [&] {
                                      add("gone", {{"first", "0"}, {"source.starts", "false"}});
                                    }},
                                   {1'100, [&] {
                                      add("c", {{"first", "0"}});
                                    }}});
  REQUIRE_MESSAGE(ran.ok, ran.error.what);
  CHECK(house.answers ==
        std::vector<std::string>{"added a", "removed a", "added b", "removed s0", "removed b",
                                 "added gone: source@gone (p.source) could not start: there is no camera",
                                 "added c"}); // none of them has ended the run
  CHECK(place_notes["a"].size() == 2);
  CHECK(place_notes["c"].size() > 10);
  // Each stream's handlers are drained once, when it leaves: that of `a` only after it was down.
  for (const char* left : {"s0", "a", "b", "c"}) CHECK(place_drains[left] == 1);
  CHECK(ran.seen("all").size() >= 19);
}

TEST_CASE("B15: a set is over when its streams have ended, whatever room it has") {
  for (const std::string clock : {"{ mode: realtime, rate: 20 }", "{ mode: free }"}) {
    PlaceHouse house(clock, 2, 4);
    for (graph::Handler& handler : house.graph.handlers)
      if (handler.name == "source") handler.params.push_back({"count", "5", {}, {}});
    Setup setup = place_setup();
    Compiled compiled(PlaceHouse::pipeline_of(house.graph), setup);
    const Ran ran = compiled.run();
    REQUIRE_MESSAGE(ran.ok, ran.error.what);
    CHECK(place_notes["s1"].size() == 5);
    REQUIRE(ran.report.streams.size() == 2);
    CHECK(ran.report.streams[1].state == "ended");
    CHECK(ran.report.streams[1].ticks == 5);
  }
}

TEST_CASE("B15: a stream that comes has the values of the pipeline, whatever was changed for the one before it") {
  PlaceHouse house("{ mode: realtime, rate: 10 }", 1, 2);
  const Ran ran = drive(
      house.compiled,
      {{100,
        [&] {
          house.add("a", {{"first", "0"}});
        }},
       {300,
        [&] {
          house.compiled.live().set({{"relay@a", "add", "5000"}});
        }},
       {600, [&] { house.remove("a"); }},
       {700,
        [&] {
          house.add("b", {{"first", "0"}});
        }},
       {900, [&] {
          CHECK(house.refusal_of([&] { house.compiled.live().set({{"relay@a", "add", "1"}}); }).starts_with("MR0301"));
        }}});
  REQUIRE_MESSAGE(ran.ok, ran.error.what);
  CHECK(place_notes["a"].front().value == 0);
  CHECK(place_notes["a"].back().value > 5000);
  REQUIRE(!place_notes["b"].empty());
  for (const PlaceNote& note : place_notes["b"]) CHECK(note.value < 100);
  CHECK(ran.report.streams[1].name == "b");
}

TEST_CASE("B15: drops and latencies are those of the stream that is there, and not of the one before it") {
  Setup setup = place_setup();
  setup.costs_ns["relay@+1"] = kMs;
  PlaceHouse house("{ mode: realtime, rate: 10 }", 1, 2, "", setup); // a source gives twice as many values
  const Ran ran = drive(house.compiled, {{100,
                                          [&] {
                                            house.add("a", {{"first", "0"}});
                                          }},
                                         {1200, [&] { house.remove("a"); }},
                                         {1300, [&] {
                                            house.add("b", {{"first", "0"}});
                                          }}});
  REQUIRE_MESSAGE(ran.ok, ran.error.what);
  REQUIRE(ran.report.streams.size() == 2);
  const StreamReport &stayed = ran.report.streams[0], &came = ran.report.streams[1];
  CHECK(came.name == "b");
  CHECK(came.ticks < 8);
  CHECK(came.dropped.at("rate") > 0);
  CHECK(came.dropped.at("rate") <= came.ticks);
  CHECK(came.sampled > 0);
  CHECK(came.sampled <= came.ticks);
  CHECK(came.p50_us > 900);
  CHECK(came.sampled_us < 1100 * static_cast<double>(came.ticks));
  CHECK(stayed.dropped.at("rate") > came.dropped.at("rate"));
}

TEST_CASE("B8: a stream whose live source is overdue by twice its period is told as stalled, until it gives a value") {
  graph::Graph graph = written("{ mode: source }", 2, 2);
  for (const char* param : {"silent_from_ms", "silent_until_ms"})
    graph.handlers[0].params.push_back({param, "{" + std::string(param) + "}", {}, {}});
  graph.handlers[0].params.push_back({"live", "true", {}, {}});
  for (const char* param : {"silent_from_ms", "silent_until_ms"})
    for (graph::Stream& stream : graph.streams[0].items)
      stream.fields.push_back({param,
                               stream.name == "s0"                      ? "0"
                               : param == std::string("silent_from_ms") ? "500"
                                                                        : "900",
                               {},
                               {}});
  Setup setup = place_setup();
  setup.options.duration_ns = 1'500 * kMs;
  Compiled compiled(PlaceHouse::pipeline_of(graph), setup);
  std::vector<std::string> states;
  const auto note = [&] {
    std::string all;
    for (const StreamReport& stream : compiled.live().report().streams) all += stream.state + " ";
    states.push_back(all);
  };
  const Ran ran = drive(compiled, {{20, note}, {480, note}, {580, note}, {680, note}, {880, note}, {1'100, note}});
  REQUIRE_MESSAGE(ran.ok, ran.error.what);
  CHECK(states == std::vector<std::string>{"runs runs ", "runs runs ", "runs runs ", "runs stalled ", "runs stalled ",
                                           "runs runs "});
  CHECK(ran.report.streams[1].state == "ended");
}

namespace {

size_t entries_of(const std::string& folder) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

} // namespace

TEST_CASE("B15: in threads, with sources that block: no thread, file or handler is left") {
  Setup setup;
  setup.workers = 2;
  setup.more = &place_plugin();
  graph::Graph graph = written("{ mode: source }", 2, 3);
  for (graph::Handler& handler : graph.handlers)
    if (handler.name == "source") handler.params.push_back({"waits_ms", "1", {}, {}});
  place_notes.clear();
  Compiled compiled(PlaceHouse::pipeline_of(graph), setup);
  const int made = handlers_there;
  compiled.live().start();
  size_t threads = 0, files = 0;
  for (int visit = 0; visit < 60; ++visit) {
    const std::string name = "v" + std::to_string(visit);
    std::promise<bool> begun, gone;
    {
      const uint32_t clock = compiled.live().take_seat("cameras", name);
      compiled.live().add(clock, compiled.stream_for(graph, clock, name, {{"first", "7"}},
                                                     [&](const Error* error) { begun.set_value(!error); }));
    }
    REQUIRE(begun.get_future().get());
    for (size_t seen = 0; seen < 2;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      const std::lock_guard lock(place_mutex);
      seen = place_notes[name].size();
    }
    compiled.live().remove("cameras", name, [&](const Error*) { gone.set_value(true); });
    REQUIRE(gone.get_future().get());
    if (visit == 2) threads = entries_of("/proc/self/task"), files = entries_of("/proc/self/fd");
  }
  CHECK(entries_of("/proc/self/task") == threads);
  CHECK(entries_of("/proc/self/fd") == files);
  CHECK(handlers_there == made);
  compiled.live().stop();
  const Ran ran = compiled.wait();
  REQUIRE_MESSAGE(ran.ok, ran.error.what);
  CHECK(ran.report.streams.size() == 2);
  CHECK(place_notes["s0"].size() > 60);
}
