// Streams that are added and removed beside others that run, and what they leave: nothing (B15).
#include "exec/places.h"

#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <map>

#include "exec/virtual_driver.h"
#include "graph/unfold.h"
#include "harness.h"

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
};

struct PlaceSource final : CountsItself {
  Output<Tensor> out{*this, "out"};
  Param<int64_t> first{*this, "first", 0, "the first value"};
  Param<int64_t> count{*this, "count", 0, "values; 0: endless"};
  Param<bool> starts{*this, "starts", true, "else it cannot be started"};
  int64_t next = 0;
  void probe(Facts& facts) override { facts.rate(20); }
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}); }
  void start() override {
    if (!starts) throw std::runtime_error("there is no camera");
    next = 0;
  }
  void process(Tick& tick, Cpu&) {
    if (count > 0 && next >= count) return tick.end();
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
    const uint32_t clock = compiled.live().take_place("cameras", name);
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
