// Groups of shared handlers: what each stream sees, tick by tick, and when (B2 to B12, B15).
#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "exec/virtual_driver.h"
#include "graph/unfold.h"
#include "harness.h"

using namespace millrace;
using namespace millrace::test;

namespace {

struct ItemNote {
  uint64_t index;
  uint32_t epoch;
  int64_t media_ns, value, other, at_ns;
};
std::mutex items_mutex;
std::map<std::string, std::vector<ItemNote>> item_notes; // by log and stream: "notes 0"

int64_t read_or_none(const Input<Tensor>& in, Tick& tick) {
  if (!in.present(tick)) return kEmpty;
  return in(tick).element_count() == 0 ? 0 : read_one(in(tick)); // 0: an empty initial value
}

struct NotesItems : Handler {
  Param<std::string> log{*this, "log", "", "where it notes"};
  void note(const Tick& tick, int64_t value, int64_t other) {
    const std::lock_guard lock(items_mutex);
    item_notes[*log + " " + std::to_string(tick.stream())].push_back(
        {tick.index(), tick.epoch(), tick.media_time_ns(), value, other, now_ns()});
  }
};

// Takes one value, and another one where it is there.
struct ItemSink final : NotesItems {
  Input<Tensor> a{*this, "a"};
  Input<Tensor> b{*this, "b", optional};
  void process(Tick& tick, Cpu&) { note(tick, read_or_none(a, tick), read_or_none(b, tick)); }
};

// Is called on every tick.
struct EachTick final : NotesItems {
  Input<Tensor> a{*this, "a", optional};
  Input<Tensor> b{*this, "b", optional};
  void process(Tick& tick, Cpu&) { note(tick, read_or_none(a, tick), read_or_none(b, tick)); }
};

// a + add, and 1000 for each of the stream's calls with `counts`. Fails on one tick of one stream.
struct Model final : NotesItems {
  Input<Tensor> a{*this, "a"};
  Input<Tensor> b{*this, "b", optional};
  Output<Tensor> out{*this, "out", like(a)};
  Param<int64_t> add{*this, "add", 0, "is added"};
  Param<bool> counts{*this, "counts", false, "adds 1000 for each call of the stream"};
  Param<bool> adds_b{*this, "adds_b", false, "adds b"};
  Param<int64_t> fail_stream{*this, "fail_stream", -1, "the stream that fails"};
  Param<int64_t> fail_at{*this, "fail_at", -1, "its tick that fails"};
  std::map<uint32_t, int64_t> calls;
  int64_t starts = 0;
  void start() override { ++starts; }
  void process(Tick& tick, Cpu&) {
    const int64_t value = read_one(a(tick)), other = read_or_none(b, tick);
    note(tick, value, other);
    if (tick.stream() == fail_stream && static_cast<int64_t>(tick.index()) == fail_at)
      throw std::runtime_error("told to fail");
    const int64_t of_calls = counts ? 1000 * ++calls[tick.stream()] : 0;
    write_one(out, tick, value + add + of_calls + (adds_b && other != kEmpty ? other : 0) + 1'000'000 * (starts - 1));
  }
};

// A camera: `first`, `first` + 1, … It gives nothing from `silent_from_ms` on, and ends or fails at a value.
struct ItemCamera final : Handler {
  Output<Tensor> out{*this, "out"};
  Param<int64_t> first{*this, "first", 0, "the first value"};
  Param<int64_t> count{*this, "count", 0, "values; 0: endless"};
  Param<int64_t> rate{*this, "rate", 20, "values a second"};
  Param<int64_t> fail_at{*this, "fail_at", -1, "the value that fails, once"};
  Param<int64_t> silent_from_ms{*this, "silent_from_ms", -1, "it gives nothing from then on"};
  Param<int64_t> end_ms{*this, "end_ms", -1, "it ends then"};
  Param<bool> is_live{*this, "live", false, "cannot wait"};
  int64_t next = 0;
  bool has_failed = false;
  void probe(Facts& facts) override {
    facts.rate(rate);
    if (is_live) facts.live();
  }
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}); }
  void start() override { next = 0; }
  void process(Tick& tick, Cpu&) {
    if ((count > 0 && next >= count) || (end_ms >= 0 && now_ns() >= end_ms * kMs)) return tick.end();
    if (silent_from_ms >= 0 && now_ns() >= silent_from_ms * kMs) return tick.not_yet();
    if (next == fail_at && !std::exchange(has_failed, true)) throw std::runtime_error("the camera is gone");
    write_one(out, tick, first + next);
    out.header(tick).pts_ns = next++ * 1'000'000'000 / rate;
  }
};

const mr_plugin& items_plugin() {
  static const mr_handler_type types[] = {detail::Type<ItemSink>::table("u.sink", "Notes", ""),
                                          detail::Type<EachTick>::table("u.each", "Notes each tick", ""),
                                          detail::Type<Model>::table("u.model", "Adds", ""),
                                          detail::Type<ItemCamera>::table("u.camera", "Counts", "")};
  static const mr_handler_type* const pointers[] = {&types[0], &types[1], &types[2], &types[3]};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "items", "1", pointers, 4, 0};
  return plugin;
}

graph::Batch batch_of(uint32_t max, uint32_t size = 0, int64_t wait_ns = -1) {
  graph::Batch batch;
  batch.max = max;
  batch.size = size;
  batch.wait_ns = wait_ns;
  return batch;
}
using Batches = std::map<std::string, graph::Batch>; // by handler

graph::Graph written_items(const std::string& text, const Batches& batches) {
  graph::Graph written = graph::parse_yaml("version: 1\n" + text, "items.yaml");
  for (graph::Handler& handler : written.handlers)
    if (const auto at = batches.find(handler.name); at != batches.end()) handler.batch = at->second;
  return written;
}

Pipeline items_pipeline(const std::string& text, const Batches& batches = {}) {
  Pipeline pipeline;
  pipeline.graph = graph::unfold(written_items(text, batches));
  item_notes.clear();
  return pipeline;
}

Setup items_setup(std::map<std::string, int64_t> costs_ns = {}) {
  Setup setup;
  setup.virtual_time = true;
  setup.workers = 4;
  setup.more = &items_plugin();
  setup.costs_ns = std::move(costs_ns);
  return setup;
}

Ran run_items(const std::string& text, const Batches& batches = {}, const Setup& setup = items_setup()) {
  return run(items_pipeline(text, batches), setup);
}

std::vector<int64_t> noted(const std::string& log, int64_t ItemNote::*what = &ItemNote::value) {
  std::vector<int64_t> list;
  for (const ItemNote& note : item_notes[log]) list.push_back(note.*what);
  return list;
}

using List = std::vector<int64_t>;
constexpr int64_t kNone = kEmpty;

} // namespace

TEST_CASE("B1: a shared handler and the values that it makes say the stream of each item, on devices too") {
  for (const std::string device : {"cpu", "sim:0"}) {
    CAPTURE(device);
    Setup setup = items_setup();
    setup.virtual_time = false;
    setup.domains = {"cpu", "sim:0"};
    const Ran ran = run_items(R"(
streams: { cameras: { items: { a: { first: 0 }, b: { first: 100 } } } }
clocks: { cameras: { mode: free } }
handlers:
  video: { type: u.camera, for_each: cameras, first: "{first}", count: 3 }
  model: { type: u.model, input: video, log: model, device: ")" +
                                  device + R"(" }
  count: { type: u.model, input: model, log: count, counts: true, device: cpu }
  sink:  { type: u.sink, for_each: cameras, input: count, log: sink }
)",
                              {}, setup);
    REQUIRE_MESSAGE(ran.ok, ran.error.what);
    CHECK(noted("model 0") == List{0, 1, 2});
    CHECK(noted("model 1") == List{100, 101, 102});
    CHECK(noted("sink 0") == List{1000, 2001, 3002});
    CHECK(noted("sink 1") == List{1100, 2101, 3102});
  }
}

TEST_CASE("B4: a way that leads out of a group and back into it is refused") {
  const auto code = [](const std::string& handlers) {
    return code_of(items_pipeline("streams: { cameras: { items: { a: {}, b: {} } } }\nhandlers:\n"
                                  "  video: { type: u.camera, for_each: cameras, count: 3 }\n" +
                                  handlers),
                   items_setup());
  };
  // `far` and `near` are of one group, and `middle` is of none.
  const std::string near = "  near: { type: u.model, input: video }\n";
  const std::string far = "  far: { type: u.model, inputs: { a: near, b: middle } }\n";
  CHECK(code(near + "  middle: { type: u.model, for_each: cameras, input: near }\n" + far) == code::bad_group);
  CHECK(code(near + "  middle: { type: u.model, for_each: cameras, input: { from: near, policy: latest } }\n" + far) ==
        code::bad_group);
  CHECK(code(near + "  middle: { type: u.model, for_each: cameras, input: video }\n" + far) == 0);
  CHECK(code(near +
             "  middle: { type: u.model, for_each: cameras, input: { from: near, delay: 1, initial: empty } }\n" +
             far) == 0);
  CHECK(code(near + "  far: { type: u.model, inputs: { a: near, b: { from: near, policy: latest } } }\n") ==
        code::bad_group);
}

TEST_CASE("2.3: handlers of a group may read its results of earlier ticks") {
  const Ran ran = run_items(R"(
streams: { cameras: { items: { a: { first: 0 }, b: { first: 100 } } } }
clocks: { cameras: { mode: free } }
handlers:
  video: { type: u.camera, for_each: cameras, first: "{first}", count: 5 }
  near:  { type: u.model, input: video, add: 7 }
  far:   { type: u.model, inputs: { a: near, b: { from: near, delay: 2 } }, adds_b: true }
  sink:  { type: u.sink, for_each: cameras, input: far, log: sink }
)");
  REQUIRE_MESSAGE(ran.ok, ran.error.what);
  CHECK(noted("sink 0") == List{7, 8, 9 + 7, 10 + 8, 11 + 9});
  CHECK(noted("sink 1") == List{107, 108, 109 + 107, 110 + 108, 111 + 109});
}

TEST_CASE("B12: under free a size is a most, so that streams that meet again do not wait for each other") {
  // s1's ticks wait for those of `outer`, and those wait for s0's, whose items would wait for s1's.
  const Ran ran = run_items(R"(
streams: { cameras: { items: { s0: { rate: 30 }, s1: { rate: 10 } } } }
clocks: { cameras: { mode: free }, outer: { mode: free } }
handlers:
  video: { type: u.camera, for_each: cameras, rate: "{rate}", count: 20 }
  outer: { type: u.camera, clock: outer, rate: 60, count: 100 }
  model: { type: u.model, input: video }
  sink:  { type: u.sink, inputs: { a: model, b: { from: outer, policy: latest, initial: empty } }, log: sink }
)",
                            {{"model", batch_of(16, 16)}});
  REQUIRE_MESSAGE(ran.ok, ran.error.what);
  CHECK(noted("sink 0").size() == 20);
  CHECK(noted("sink 1", &ItemNote::other) ==
        List{0, 6, 12, 18, 24, 30, 36, 42, 48, 54, 60, 66, 72, 78, 84, 90, 96, 99, 99, 99});
}
