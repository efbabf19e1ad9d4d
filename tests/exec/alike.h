// Pipelines of a family of handlers, for tests that run them on a device and on the host and want the same.
#pragma once

#include <doctest/doctest.h>

#include <array>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "harness.h"
#include "tests/part.h"

namespace millrace::test {

// The handlers of a family have types that begin alike: FAMILY.index is a source, FAMILY.pair has the inputs a and b,
// all others the input in. What the sink sees is in the log of the family's name.
inline Pipeline chain(const std::string& family, const std::vector<std::string>& middle, int64_t count) {
  Pipeline pipeline;
  pipeline.add("source", family + ".index", {{"count", std::to_string(count)}});
  std::string last = "source";
  for (size_t m = 0; m < middle.size(); ++m) {
    const std::string name = "h" + std::to_string(m);
    pipeline.add(name, family + "." + middle[m]);
    pipeline.connect(last + ".out", name + (middle[m] == "pair" ? ".a" : ".in"));
    last = name;
  }
  pipeline.add("sink", "t.sink", {{"log", family}});
  pipeline.connect(last + ".out", "sink.in");
  return pipeline;
}

// index → few → two readers of its records, both of whose results the sink sees; each where `places` says.
inline Pipeline few_and_totals(const std::string& family, const std::array<std::string, 3>& places) {
  Pipeline pipeline;
  pipeline.clock(graph::ClockMode::free, 0, 1, 3);
  pipeline.add("source", family + ".index", {{"count", "50"}});
  pipeline.add("few", family + ".few").device = places[0];
  pipeline.add("one", family + ".total").device = places[1];
  pipeline.add("other", family + ".total").device = places[2];
  pipeline.add("sink", "t.sink", {{"log", family}});
  pipeline.connect("source.out", "few.in");
  for (const char* reader : {"one", "other"}) {
    pipeline.connect("few.out", std::string(reader) + ".in");
    pipeline.connect(std::string(reader) + ".out", "sink.in");
  }
  return pipeline;
}

// Calls `check` with each way to place those three.
inline void for_all_places(const std::vector<std::string>& places,
                           const std::function<void(const std::array<std::string, 3>&)>& check) {
  int64_t n = 0;
  for (const std::string& few : places)
    for (const std::string& one : places)
      for (const std::string& other : places)
        if (is_tried(n++)) check({few, one, other});
}

// A graph in which each handler reads earlier ones; each but the sink is in one of `places`, where there are any.
inline Pipeline random_graph(const std::string& family, const std::vector<std::string>& types, int64_t ticks,
                             uint64_t seed, const std::vector<std::string>& places) {
  std::mt19937_64 random(seed);
  const auto up_to = [&](uint64_t most) { return random() % (most + 1); };
  Pipeline pipeline;
  pipeline.clock(graph::ClockMode::free, 0, 1, static_cast<uint32_t>(up_to(4)));
  pipeline.add("h0", family + ".index", {{"count", std::to_string(ticks)}});
  const uint64_t count = 3 + up_to(9);
  const auto any = [&](uint64_t before) { return "h" + std::to_string(up_to(before - 1)) + ".out"; };
  for (uint64_t h = 1; h <= count; ++h) {
    const std::string name = "h" + std::to_string(h), type = types[up_to(types.size() - 1)];
    pipeline.add(name, family + "." + type);
    pipeline.connect(any(h), name + (type == "pair" ? ".a" : ".in"));
    if (type == "pair") pipeline.connect(any(h), name + ".b");
  }
  pipeline.add("sink", "t.sink", {{"log", family}});
  for (int reads = 0; reads < 3; ++reads) pipeline.connect(any(count + 1), "sink.in");
  for (graph::Handler& handler : pipeline.graph.handlers)
    if (handler.name != "sink" && !places.empty()) handler.device = places[up_to(places.size() - 1)];
  return pipeline;
}

// The values that the family's sink saw in a run that went well.
inline std::vector<Seen> seen_by(Pipeline pipeline, const Setup& setup, const std::string& family) {
  const Ran result = run(std::move(pipeline), setup);
  REQUIRE_MESSAGE(result.ok, result.error.what);
  return result.seen(family);
}

} // namespace millrace::test
