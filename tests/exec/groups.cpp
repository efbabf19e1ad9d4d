// Groups of shared handlers: what each stream sees, tick by tick, and when (B2 to B12, B15).
#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "enqueuing_handlers.h"
#include "exec/run.h"
#include "exec/seats.h"
#include "exec/virtual_driver.h"
#include "graph/unfold.h"
#include "harness.h"
#include "observe/error_codes.h"
#include "plan/group_plan.h"
#include "plan/plan.h"

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

// On a device, as part of a region.
struct CapturedModel final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  CapturedModel() { capturable(); }
  void process(Tick& tick, Cuda& cuda) {
    enqueued::queue(cuda).launch(
        [to = enqueued::fresh(out, tick), from = enqueued::numbers(in(tick).data())] { *to = *from; });
  }
};

// On a device that runs bodies by itself.
struct RecordedNotes final : NotesItems {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  RecordedNotes() { capturable(); }
  void process(Tick& tick, Cpu&) {
    note(tick, read_one(in(tick)), kEmpty);
    write_one(out, tick, read_one(in(tick)));
  }
};

// Notes the stream that a value says.
struct NotesStreams final : NotesItems {
  Input<Tensor> in{*this, "in"};
  void process(Tick& tick, Cpu&) { note(tick, static_cast<int64_t>(in(tick).header().stream), kEmpty); }
};

const mr_plugin& items_plugin() {
  static const mr_handler_type types[] = {detail::Type<ItemSink>::table("u.sink", "Notes", ""),
                                          detail::Type<EachTick>::table("u.each", "Notes each tick", ""),
                                          detail::Type<Model>::table("u.model", "Adds", ""),
                                          detail::Type<ItemCamera>::table("u.camera", "Counts", ""),
                                          detail::Type<CapturedModel>::table("u.captured", "Copies, recordable", ""),
                                          detail::Type<RecordedNotes>::table("u.recorded", "Notes, recordable", ""),
                                          detail::Type<NotesStreams>::table("u.streams", "Notes streams", "")};
  static const mr_handler_type* const pointers[] = {&types[0], &types[1], &types[2], &types[3],
                                                    &types[4], &types[5], &types[6]};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "items", "1", pointers, 7, 0};
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

TEST_CASE("3.4: small results of a firing come down from a device in one copy") {
  Setup setup = items_setup();
  setup.virtual_time = false;
  setup.domains = {"cpu", "sim:0"};
  const Ran ran = run_items(R"(
streams: { cameras: { items: { a: { first: 0 }, b: { first: 100 }, c: { first: 200 }, d: { first: 300 } } } }
clocks: { cameras: { mode: free } }
handlers:
  video: { type: u.camera, for_each: cameras, first: "{first}", count: 50 }
  model: { type: u.recorded, log: model, input: video, device: "sim:0" }
  sink:  { type: u.sink, for_each: cameras, input: model, log: sink }
)",
                            {}, setup);
  REQUIRE_MESSAGE(ran.ok, ran.error.what);
  for (int64_t stream = 0; stream < 4; ++stream) {
    const List seen = noted("sink " + std::to_string(stream));
    REQUIRE(seen.size() == 50);
    for (int64_t n = 0; n < 50; ++n) CHECK(seen[static_cast<size_t>(n)] == 100 * stream + n);
  }
  REQUIRE(ran.report.groups.size() == 1);
  CHECK(ran.report.groups[0].firings < 200);
  CHECK(copied(ran, "sim:0", "cpu") == ran.report.groups[0].firings);
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

TEST_CASE("2.3: a loop may lead through two groups") {
  // `near` and `last` are of one group, and `far` is of another one, between the two.
  const Ran ran = run_items(R"(
streams: { cameras: { items: { a: { first: 0 }, b: { first: 100 } } } }
clocks: { cameras: { mode: free } }
handlers:
  video:  { type: u.camera, for_each: cameras, first: "{first}", count: 5 }
  near:   { type: u.model, input: video, add: 7 }
  middle: { type: u.model, for_each: cameras, input: near }
  far:    { type: u.model, input: middle, add: 10 }
  last:   { type: u.model, inputs: { a: near, b: { from: far, delay: 1, initial: empty } }, adds_b: true }
  sink:   { type: u.sink, for_each: cameras, input: last, log: sink }
)");
  REQUIRE_MESSAGE(ran.ok, ran.error.what);
  CHECK(noted("sink 0") == List{7, 8 + 17, 9 + 18, 10 + 19, 11 + 20});
  CHECK(noted("sink 1") == List{107, 108 + 117, 109 + 118, 110 + 119, 111 + 120});
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

TEST_CASE("B12: 3 streams of 30, 30 and 1 a second join again after a group of 4, each at its own times") { // (h)
  const Ran ran = run_items(R"(
streams: { cameras: { items: { a: { rate: 30, first: 0, count: 60 }, b: { rate: 30, first: 100, count: 60 },
                               c: { rate: 1, first: 200, count: 2 } } } }
clocks: { cameras: { mode: free }, wall: { mode: free, rate: 30 } }
handlers:
  video: { type: u.camera, for_each: cameras, rate: "{rate}", first: "{first}", count: "{count}" }
  model: { type: u.model, input: video, add: 1000 }
  wall:  { type: t.sink, clock: wall, log: wall, input: { from: model, policy: align, within: 5ms } }
)",
                            {{"model", batch_of(4)}});
  REQUIRE_MESSAGE(ran.ok, ran.error.what);
  const std::vector<Seen> seen = ran.seen("wall");
  REQUIRE(seen.size() >= 60);
  for (size_t n = 0; n < 60; ++n) {
    CAPTURE(n);
    const auto at = static_cast<int64_t>(n);
    CHECK(seen[n].values == List{1000 + at, 1100 + at, n % 30 == 0 ? 1200 + at / 30 : kNone});
  }
}

TEST_CASE("B6: a tracker that feeds the next tick of its own stream has one item at a time inside") { // (i)
  const Ran ran = run_items(R"(
streams: { cameras: { items: { a: { first: 1 }, b: { first: 100 }, c: { first: 1000 } } } }
clocks: { cameras: { mode: free } }
handlers:
  video: { type: u.camera, for_each: cameras, first: "{first}", count: 6 }
  model: { type: u.model, inputs: { a: video, b: { from: track, delay: 1, initial: empty } }, adds_b: true, log: model }
  track: { type: u.model, for_each: cameras, input: model }
  sink:  { type: u.sink, for_each: cameras, input: track, log: sink }
)");
  REQUIRE_MESSAGE(ran.ok, ran.error.what);
  CHECK(noted("sink 0") == List{1, 3, 6, 10, 15, 21});
  CHECK(noted("sink 1") == List{100, 201, 303, 406, 510, 615});
  CHECK(noted("sink 2") == List{1000, 2001, 3003, 4006, 5010, 6015});
  CHECK(noted("model 1", &ItemNote::other) == List{0, 100, 201, 303, 406, 510});
}

TEST_CASE("B8: a stream that stalls with an item inside is not waited for, nor is one that has ended") { // (j)
  // Two live cameras, 50 ms apart. A firing waits for four items, and for nothing else but streams that may give one.
  Setup setup = items_setup();
  setup.options.duration_ns = 975 * kMs;
  const Ran ran = run_items(R"(
streams: { cameras: { items: { a: { from: -1, end: -1 }, b: { from: 175, end: 625 } } } }
clocks: { cameras: { mode: realtime, rate: 20 } }
handlers:
  video: { type: u.camera, for_each: cameras, live: true, silent_from_ms: "{from}", end_ms: "{end}" }
  model: { type: u.model, input: video }
  sink:  { type: u.sink, for_each: cameras, input: model, log: sink }
)",
                            {{"model", batch_of(4, 4, 10'000 * kMs)}}, setup);
  REQUIRE_MESSAGE(ran.ok, ran.error.what);
  List at_ms = noted("sink 0", &ItemNote::at_ns);
  for (int64_t& at : at_ms) at /= kMs;
  // Each stream has room for two items. b's last one comes at 200 ms, and from 350 ms on b is not waited for.
  CHECK(at_ms ==
        List{50, 50, 150, 150, 350, 350, 350, 350, 450, 450, 550, 550, 650, 650, 750, 750, 850, 850, 950, 950});
  List b_at_ms = noted("sink 1", &ItemNote::at_ns);
  for (int64_t& at : b_at_ms) at /= kMs;
  CHECK(b_at_ms == List{50, 50, 150, 150, 350});
}

TEST_CASE("B11: a stream begins anew while two of its items are in a firing that fails") { // (k)
  const Ran ran = run_items(R"(
streams: { cameras: { on_error: restart, items: { a: { fail_at: 3, first: 10 }, b: { fail_at: -1, first: 100 } } } }
clocks: { cameras: { mode: free } }
handlers:
  video: { type: u.camera, for_each: cameras, first: "{first}", count: 6, fail_at: "{fail_at}" }
  model: { type: u.model, input: video, fail_stream: 0, fail_at: 2, on_error: skip, log: model }
  each:  { type: u.each, for_each: cameras, inputs: { a: model }, log: each }
)",
                            {{"model", batch_of(4)}}, items_setup({{"model", 30 * kMs}}));
  REQUIRE_MESSAGE(ran.ok, ran.error.what);
  CHECK(noted("each 0") ==
        List{10, 11, kNone, kNone, 10, 11, 12, 13, 14, 15}); // the third one failed, the fourth never came
  std::vector<uint32_t> epochs;
  for (const ItemNote& note : item_notes["each 0"]) epochs.push_back(note.epoch);
  CHECK(epochs == std::vector<uint32_t>{0, 0, 0, 0, 1, 1, 1, 1, 1, 1});
  CHECK(item_notes["each 0"][1].at_ns == item_notes["each 0"][2].at_ns); // they were in one firing
  CHECK(noted("each 1") == List{100, 101, 102, 103, 104, 105});
  REQUIRE(ran.report.streams.size() == 2);
  CHECK(ran.report.streams[0].restarts == 1);
  CHECK(ran.report.streams[1].restarts == 0);
}

TEST_CASE("B4: a group after a group, with a template between the two, and directly") { // (l), without rows
  const std::string text = R"(
streams: { cameras: { items: { a: { first: 1 }, b: { first: 2 }, c: { first: 3 } } } }
clocks: { cameras: { mode: free } }
handlers:
  video: { type: u.camera, for_each: cameras, first: "{first}", count: 4 }
  model: { type: u.model, input: video, add: 10, counts: true }
  boxes: { type: u.model, for_each: cameras, input: model, add: 100 }
  names: { type: u.model, input: FROM, add: 10000, counts: true }
  sink:  { type: u.sink, for_each: cameras, inputs: { a: names, b: boxes }, log: sink }
)";
  for (const bool directly : {false, true}) {
    CAPTURE(directly);
    std::string said = text;
    said.replace(said.find("FROM"), 4, directly ? "model" : "boxes");
    graph::Batch rows = batch_of(4);
    rows.of_rows = directly;
    const Batches batches = {{"model", batch_of(2)}, {"names", rows}};
    Compiled compiled(items_pipeline(said, batches), items_setup());
    CHECK(compiled.plan().groups.size() == 2);
    const Ran ran = compiled.run();
    REQUIRE_MESSAGE(ran.ok, ran.error.what);
    for (int64_t s = 0; s < 3; ++s)
      for (int64_t n = 0; n < 4; ++n) {
        CAPTURE(s);
        CAPTURE(n);
        const std::vector<ItemNote>& notes = item_notes["sink " + std::to_string(s)];
        REQUIRE(notes.size() == 4);
        const int64_t made = 1 + s + n + 10 + 1000 * (n + 1);
        CHECK(notes[static_cast<size_t>(n)].value == made + (directly ? 0 : 100) + 10'000 + 1000 * (n + 1));
        CHECK(notes[static_cast<size_t>(n)].other == made + 100);
      }
  }
}

TEST_CASE("B2: two cameras meet in a group on a device and part again; one stalls, then ends") { // (m)
  Setup setup = items_setup({{"model", 5 * kMs}});
  setup.domains = {"cpu", "sim:0"};
  setup.options.duration_ns = 1'000 * kMs;
  const Ran ran = run_items(R"(
streams: { cameras: { items: { a: { rate: 30, from: -1, end: -1 }, b: { rate: 20, from: 320, end: 620 } } } }
clocks: { cameras: { mode: realtime } }
handlers:
  video: { type: u.camera, for_each: cameras, live: true, rate: "{rate}", silent_from_ms: "{from}", end_ms: "{end}" }
  model: { type: u.model, input: video, add: 1000, device: sim:0 }
  join:  { type: u.sink, for_each: cameras, inputs: { a: video, b: model }, log: join }
)",
                            {{"model", batch_of(4)}}, setup);
  REQUIRE_MESSAGE(ran.ok, ran.error.what);
  CHECK(item_notes["join 0"].size() >= 29);
  CHECK(item_notes["join 1"].size() == 8); // the last one was read ahead
  for (const char* log : {"join 0", "join 1"})
    for (const ItemNote& note : item_notes[log]) CHECK(note.other == note.value + 1000);
}

TEST_CASE("B2: `every` counts a stream's own ticks, and items that it passes over are empty") {
  const Ran ran = run_items(R"(
streams: { cameras: { items: { a: { first: 0 }, b: { first: 100 } } } }
clocks: { cameras: { mode: free } }
handlers:
  video: { type: u.camera, for_each: cameras, first: "{first}", count: 5 }
  model: { type: u.model, input: video, every: 2, add: 7, counts: true }
  after: { type: u.model, inputs: { a: video, b: model }, adds_b: true, log: after }
  each:  { type: u.each, for_each: cameras, inputs: { a: model, b: after }, log: each }
)");
  REQUIRE_MESSAGE(ran.ok, ran.error.what);
  CHECK(noted("each 0") == List{1007, kNone, 2009, kNone, 3011});
  CHECK(noted("each 1") == List{1107, kNone, 2109, kNone, 3111});
  CHECK(noted("after 1", &ItemNote::other) == List{1107, kNone, 2109, kNone, 3111});
  CHECK(noted("each 0", &ItemNote::other) == List{1007, 1, 2011, 3, 3015});
}

TEST_CASE("B10: an item that fails is its own stream's matter, by the policy of the handler") {
  const auto ran_with = [](const std::string& policy) {
    return run_items(R"(
streams: { cameras: { items: { a: { first: 0 }, b: { first: 100 }, c: { first: 200 } } } }
clocks: { cameras: { mode: free } }
handlers:
  video: { type: u.camera, for_each: cameras, first: "{first}", count: 5 }
  model: { type: u.model, input: video, add: 1000, fail_stream: 1, fail_at: 2, on_error: )" +
                     policy + R"( }
  each:  { type: u.each, for_each: cameras, inputs: { a: model }, log: each }
)");
  };
  for (const std::string policy : {"skip", "bypass", "restart"}) {
    CAPTURE(policy);
    const Ran ran = ran_with(policy);
    REQUIRE_MESSAGE(ran.ok, ran.error.what);
    CHECK(ran.handler("model").errors == 1);
    uint64_t restarted = 0;
    for (int64_t s = 0; s < 3; ++s) {
      CAPTURE(s);
      List values = noted("each " + std::to_string(s)), expected;
      for (int64_t n = 0; n < 5; ++n) expected.push_back(100 * s + n + 1000);
      if (s == 1) expected[2] = policy == "bypass" ? 102 : kNone;
      for (int64_t& value : values) {
        if (value < 1'000'000) continue;
        value -= 1'000'000;
        ++restarted;
      }
      CHECK(values == expected);
    }
    CHECK((restarted >= 6) == (policy == "restart")); // two later items of each stream
  }
  const Ran failed = ran_with("fail");
  CHECK(!failed.ok);
  CHECK(failed.error.what.find("model (u.model) failed at tick 2") == 0);
}

TEST_CASE("B3: streams that share a clock give the items of a tick in their order") {
  const Ran ran = run_items(R"(
streams: { cameras: { clock: shared, items: { a: { first: 0 }, b: { first: 100 }, c: { first: 200 } } } }
clocks: { cameras: { mode: free } }
handlers:
  video: { type: u.camera, for_each: cameras, first: "{first}", count: 5 }
  model: { type: u.model, input: video, add: 1000, counts: true }
  sink:  { type: u.sink, for_each: cameras, inputs: { a: model, b: video }, log: sink }
)",
                            {{"model", batch_of(4)}});
  REQUIRE_MESSAGE(ran.ok, ran.error.what);
  for (int64_t s = 0; s < 3; ++s) {
    CAPTURE(s);
    const std::string log = "sink " + std::to_string(s);
    CHECK(noted(log) == List{100 * s + 2000, 100 * s + 3001, 100 * s + 4002, 100 * s + 5003, 100 * s + 6004});
    CHECK(noted(log, &ItemNote::other) == List{100 * s, 100 * s + 1, 100 * s + 2, 100 * s + 3, 100 * s + 4});
  }
}

TEST_CASE("B4: one stream's items, those of all in a list, and a shared sink") {
  const Ran ran = run_items(R"(
streams: { cameras: { items: { a: { first: 0, rate: 10 }, b: { first: 100, rate: 20 } } } }
clocks: { cameras: { mode: free }, wall: { mode: free, rate: 10 } }
handlers:
  video: { type: u.camera, for_each: cameras, first: "{first}", rate: "{rate}", count: 6 }
  model: { type: u.model, input: video, add: 1000 }
  one:   { type: u.sink, input: model@b, log: one }
  other: { type: u.sink, for_each: cameras, inputs: { a: video, b: { from: model@b, policy: latest } }, log: other }
  wall:  { type: t.sink, clock: wall, log: wall, input: { from: model, policy: latest } }
  all:   { type: u.sink, inputs: { a: model, b: video }, log: all }
)");
  REQUIRE_MESSAGE(ran.ok, ran.error.what);
  CHECK(noted("one 1") == List{1100, 1101, 1102, 1103, 1104, 1105});
  CHECK(noted("other 0", &ItemNote::other) == List{1100, 1102, 1104, 1105, 1105, 1105});
  CHECK(noted("other 1", &ItemNote::other) == noted("one 1"));
  CHECK(noted("all 0") == List{1000, 1001, 1002, 1003, 1004, 1005});
  CHECK(noted("all 1", &ItemNote::other) == List{100, 101, 102, 103, 104, 105});
  const std::vector<Seen> wall = ran.seen("wall");
  REQUIRE(wall.size() >= 6);
  const std::vector<int64_t> of_b = {1100, 1102, 1104, 1105, 1105, 1105};
  for (size_t n = 0; n < 6; ++n) CHECK(wall[n].values == List{1000 + static_cast<int64_t>(n), of_b[n]});
}

TEST_CASE("3.2: items that were dealt with hold no block of their streams") {
  for (const uint32_t workers : {1u, 2u, 4u}) {
    Setup setup = items_setup();
    setup.virtual_time = false;
    setup.workers = workers;
    const Ran ran = run_items(R"(
streams: { cameras: { items: { s0: { count: 3, rate: 55, silent: 0 }, s1: { count: 15, rate: 0, silent: 3 },
                               s2: { count: 24, rate: 38, silent: 0 } } } }
clocks: { cameras: { mode: free }, wall: { mode: free, rate: 13 } }
handlers:
  video: { type: t.count, for_each: cameras, count: "{count}", rate: "{rate}", silent_every: "{silent}" }
  model: { type: t.need, inputs: { a: video, b: { from: video, delay: 3, initial: empty } }, every: 2 }
  relay: { type: t.relay, for_each: cameras, input: model }
  sink:  { type: u.sink, for_each: cameras, inputs: { a: model, b: video }, log: sink }
  wall:  { type: t.sink, clock: wall, log: wall, input: { from: relay, policy: latest } }
)",
                              {{"model", batch_of(2)}}, setup);
    REQUIRE_MESSAGE(ran.ok, ran.error.what);
    CHECK(noted("sink 2").size() == 12);
  }
}

TEST_CASE("B15: streams that come and go give items while they are there, and leave the others as they were") {
  const std::string text = R"(
streams: { cameras: { max: 3, items: { s0: { first: 0 }, s1: { first: 100 } } } }
clocks: { cameras: { mode: realtime, rate: 20 } }
handlers:
  video: { type: u.camera, for_each: cameras, first: "{first}" }
  model: { type: u.model, input: video, add: 1000, log: model }
  sink:  { type: u.sink, for_each: cameras, inputs: { a: model, b: video }, log: sink }
)";
  const graph::Graph graph = written_items(text, {{"model", batch_of(4)}});
  std::map<std::string, std::vector<ItemNote>> alone;
  for (const bool has_visitors : {false, true}) {
    CAPTURE(has_visitors);
    Setup setup = items_setup({{"model", 3 * kMs}});
    setup.options.duration_ns = 2'000 * kMs;
    Compiled compiled(items_pipeline(text, {{"model", batch_of(4)}}), setup);
    compiled.live().start();
    std::vector<std::string> answers;
    struct Moment {
      int64_t ms;
      std::string name;
      bool comes;
    };
    std::vector<Moment> moments;
    for (int64_t n = 0; has_visitors && n < 4; ++n) {
      moments.push_back({120 + 400 * n, "v" + std::to_string(n), true});
      moments.push_back({355 + 400 * n, "v" + std::to_string(n), false});
    }
    size_t next = 0;
    exec::VirtualDriver driver(compiled.time());
    driver.add(compiled.live());
    driver.add([&] {
      if (next == moments.size() || compiled.time().now_ns() < moments[next].ms * kMs) return false;
      const Moment& moment = moments[next++];
      const auto note = [&answers, &moment](const Error* error) {
        answers.push_back(moment.name + (moment.comes ? " came" : " left") + (error ? ": " + error->what : ""));
      };
      if (moment.comes) {
        const uint32_t clock = compiled.live().take_seat("cameras", moment.name);
        compiled.live().add(clock, compiled.stream_for(graph, clock, moment.name, {{"first", "7000"}}, note));
      } else {
        compiled.live().remove("cameras", moment.name, note);
      }
      return true;
    });
    driver.drive();
    const Ran ran = compiled.wait();
    REQUIRE_MESSAGE(ran.ok, ran.error.what);
    if (!has_visitors) {
      alone = item_notes;
      CHECK(noted("sink 0").size() == 40);
      continue;
    }
    CHECK(answers == std::vector<std::string>{"v0 came", "v0 left", "v1 came", "v1 left", "v2 came", "v2 left",
                                              "v3 came", "v3 left"});
    for (const char* log : {"sink 0", "sink 1"}) {
      CHECK(noted(log) == [&] {
        List values;
        for (const ItemNote& note : alone[log]) values.push_back(note.value);
        return values;
      }());
    }
    const List visits = noted("sink 2");
    CHECK(visits.size() >= 4 * 4);
    CHECK(std::count(visits.begin(), visits.end(), 8000) == 4); // the first value of each of them
    for (const ItemNote& note : item_notes["sink 2"]) CHECK(note.value == note.other + 1000);
  }
}

TEST_CASE("B1: values that leave a captured region of a group say the stream of their item") {
  Setup setup = items_setup();
  setup.virtual_time = false;
  setup.domains = {"cpu", "cuda:0"};
  const Ran ran = run_items(R"(
streams: { cameras: { items: { a: { first: 0 }, b: { first: 100 } } } }
clocks: { cameras: { mode: free } }
handlers:
  video: { type: u.camera, for_each: cameras, first: "{first}", count: 20 }
  model: { type: u.captured, input: video, device: cuda:0 }
  sink:  { type: u.streams, input: model, log: sink }
)",
                            {{"model", batch_of(4)}}, setup);
  REQUIRE_MESSAGE(ran.ok, ran.error.what);
  REQUIRE(ran.report.regions.size() == 1);
  CHECK(ran.report.regions[0].launches > 0);
  CHECK(noted("sink 0") == List(20, 0));
  CHECK(noted("sink 1") == List(20, 1));
}

TEST_CASE("B1: bodies that follow one another on a device are told the stream of their item") {
  Setup setup = items_setup();
  setup.virtual_time = false;
  setup.domains = {"cpu", "sim:0"};
  const Ran ran = run_items(R"(
streams: { cameras: { items: { a: { first: 0 }, b: { first: 100 } } } }
clocks: { cameras: { mode: free } }
handlers:
  video: { type: u.camera, for_each: cameras, first: "{first}", count: 5 }
  one:   { type: u.recorded, input: video, device: sim:0, log: one }
  two:   { type: u.recorded, input: one, device: sim:0, log: two }
  sink:  { type: u.sink, for_each: cameras, inputs: { a: two }, log: sink }
)",
                            {{"one", batch_of(4)}}, setup);
  REQUIRE_MESSAGE(ran.ok, ran.error.what);
  for (const char* log : {"one 0", "two 0", "sink 0"}) CHECK(noted(log) == List{0, 1, 2, 3, 4});
  for (const char* log : {"one 1", "two 1", "sink 1"}) CHECK(noted(log) == List{100, 101, 102, 103, 104});
}
