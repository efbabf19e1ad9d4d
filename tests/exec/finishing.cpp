// finish() after bodies that enqueue, and what their kernels write to the host, against the same handlers on the host
// (semantics.md 4.4).
#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "device/sim/sim.h"
#include "enqueuing_handlers.h"
#include "exec/run.h"
#include "table_of.h"
#include "tests/part.h"
#include "tests/seed.h"

namespace millrace::test::finishing {
namespace {

using namespace enqueued;

// The values that finish() saw, by handler, in the order of its calls. It looks at the bytes as well, past the host:
// they must be there.
int64_t peek(const TensorView& view) { return *static_cast<const int64_t*>(where_device_works(view.data())); }
std::mutex notes_mutex;
std::map<std::string, std::vector<Seen>> notes;
void note(const std::string& name, const Tick& tick, std::vector<int64_t> values) {
  const std::lock_guard lock(notes_mutex);
  notes[name].push_back({tick.index(), tick.media_time_ns(), std::move(values)});
}
std::map<std::string, std::vector<Seen>> take_notes() {
  const std::lock_guard lock(notes_mutex);
  return std::exchange(notes, {});
}
constexpr int64_t kDrained = -2, kStarted = -3;
Seen life(int64_t what) { return {0, 0, {what}}; }

struct Add final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  Add() { capturable(); }
  void process(Tick& tick, Cpu&) { *fresh(out, tick) = number(in(tick)) + 1; }
  void process(Tick& tick, Cuda& cuda) {
    queue(cuda).launch([to = fresh(out, tick), from = numbers(in(tick).data())] { *to = *from + 1; });
  }
};

struct Pair final : Handler {
  Input<Tensor> a{*this, "a"};
  Input<Tensor> b{*this, "b", optional};
  Output<Tensor> out{*this, "out", like(a)};
  Param<std::string> name{*this, "name", "", "of its notes"};
  Pair() { capturable(); }
  void process(Tick& tick, Cpu&) { *fresh(out, tick) = mix(number(a(tick)), b.present(tick) ? number(b(tick)) : -1); }
  void process(Tick& tick, Cuda& cuda) {
    const int64_t* other = b.present(tick) ? numbers(b(tick).data()) : nullptr;
    queue(cuda).launch(
        [to = fresh(out, tick), from = numbers(a(tick).data()), other] { *to = mix(*from, other ? *other : -1); });
  }
  void finish(Tick& tick, Cpu&) {
    note(*name, tick, {peek(a(tick)), b.present(tick) ? peek(b(tick)) : kEmpty, peek(out.view(tick))});
  }
};

struct InPlace final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", in_place(in)};
  Param<std::string> name{*this, "name", "", "of its notes"};
  InPlace() { capturable(); }
  void process(Tick& tick, Cpu&) { out.modify(tick, in).elements<int64_t>()[0] += 7; }
  void process(Tick& tick, Cuda& cuda) {
    queue(cuda).launch([at = numbers(out.modify(tick, in).data())] { *at += 7; });
  }
  void finish(Tick& tick, Cpu&) { note(*name, tick, {peek(out.view(tick))}); }
};

// Silent on even ticks, so it has to be called on each; passes its input on at every other odd one.
struct Odd final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  Param<std::string> name{*this, "name", "", "of its notes"};
  void process(Tick& tick, Cpu&) {
    if (tick.index() % 4 == 3) return out.forward(tick, in);
    if (tick.index() % 2) *fresh(out, tick) = number(in(tick)) * 3;
  }
  void process(Tick& tick, Cuda& cuda) {
    if (tick.index() % 4 == 3) return out.forward(tick, in);
    if (tick.index() % 2)
      queue(cuda).launch([to = fresh(out, tick), from = numbers(in(tick).data())] { *to = *from * 3; });
  }
  void finish(Tick& tick, Cpu&) { note(*name, tick, {peek(in(tick)), out.made(tick) ? peek(out.view(tick)) : kEmpty}); }
};

// Adds; looks at both in finish(), and whether it is entered twice at a time.
template <bool captured>
struct Noting : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  Param<std::string> name{*this, "name", "", "of its notes"};
  Param<int64_t> add{*this, "add", 1, "added", live};
  Param<int64_t> fail_at{*this, "fail_at", -1, "tick on which finish fails"};
  Param<int64_t> body_fails_at{*this, "body_fails_at", -1, "tick on which the body fails"};
  Param<int64_t> end_at{*this, "end_at", -1, "tick on which finish has seen enough"};
  Param<bool> tells_life{*this, "tells_life", false, "notes starts and drains"};
  Param<int64_t> lingers{*this, "lingers", 0, "turns that it gives to others while it is in a call"};
  std::atomic<int> inside{0};
  int64_t under_way = 0; // bodies called, and not finished
  static inline std::atomic<int64_t> under_way_max{0};
  Noting() {
    if (captured) capturable();
  }
  struct Entered {
    std::atomic<int>& inside;
    explicit Entered(Noting& handler) : inside(handler.inside) {
      const bool alone = ++inside == 1;
      for (int64_t turn = 0; turn < handler.lingers; ++turn) std::this_thread::yield();
      if (alone && inside == 1) return;
      --inside;
      throw std::logic_error("entered twice at a time");
    }
    ~Entered() { --inside; }
  };
  void start() override {
    if (!captured && under_way != 0) throw std::logic_error("started while bodies were not finished");
    if (tells_life) tell(kStarted);
  }
  void drain() override {
    if (tells_life) tell(kDrained);
  }
  void tell(int64_t what) {
    const std::lock_guard lock(notes_mutex);
    notes[*name].push_back(life(what));
  }
  void process(Tick& tick, Cpu&) {
    const Entered entered(*this);
    *fresh(out, tick) = number(in(tick)) + add;
  }
  void process(Tick& tick, Cuda& cuda) {
    const Entered entered(*this);
    if (!captured && body_fails_at == static_cast<int64_t>(tick.index())) throw std::runtime_error("told to fail");
    under_way_max = std::max<int64_t>(under_way_max, ++under_way);
    queue(cuda).launch([to = fresh(out, tick), from = numbers(in(tick).data()), more = *add] { *to = *from + more; });
  }
  void finish(Tick& tick, Cpu&) {
    const Entered entered(*this);
    --under_way;
    if (fail_at == static_cast<int64_t>(tick.index())) throw std::runtime_error("told to fail");
    if (end_at == static_cast<int64_t>(tick.index())) tick.end();
    note(*name, tick, {peek(in(tick)), peek(out.view(tick)), *add});
  }
};

// A picture and a tensor written to the host, and a tensor that stays on the device.
struct Mixed final : Handler {
  static constexpr uint32_t kWidth = 6, kHeight = 3;
  Input<Tensor> in{*this, "in"};
  Output<Image> picture{*this, "picture", on_cpu};
  Output<Tensor> host{*this, "host", like(in), on_cpu};
  Output<Tensor> out{*this, "out", like(in)};
  Mixed() { capturable(); }
  void configure(const Formats& formats) override { formats.image(picture, Pixel::gray8, kWidth, kHeight); }
  struct Made { // what a kernel is given: addresses, since it sees no record of the host's
    uint8_t* pixels;
    uint64_t stride;
    int64_t *host, *out;
    void fill(int64_t value) const {
      for (uint32_t y = 0; y < kHeight; ++y)
        for (uint32_t x = 0; x < kWidth; ++x) pixels[y * stride + x] = static_cast<uint8_t>(value + x * y);
      *host = value * 2;
      *out = value * 3;
    }
  };
  Made make(Tick& tick) {
    const ImageSpan span = picture.allocate(tick, Pixel::gray8, kWidth, kHeight);
    return {span.row(0), static_cast<uint64_t>(span.row(1) - span.row(0)), fresh(host, tick), fresh(out, tick)};
  }
  void process(Tick& tick, Cpu&) { make(tick).fill(number(in(tick))); }
  void process(Tick& tick, Cuda& cuda) {
    queue(cuda).launch([made = make(tick), from = numbers(in(tick).data())] { made.fill(*from); });
  }
};

struct Look final : Handler { // a picture in one number
  Input<Image> in{*this, "in"};
  Output<Tensor> out{*this, "out"};
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}); }
  static int64_t of(const ImageView& view) {
    int64_t total = view.width();
    for (uint32_t y = 0; y < view.height(); ++y)
      for (uint32_t x = 0; x < view.width(); ++x) total = mix(total, view.row(y)[x]);
    return total;
  }
  void process(Tick& tick, Cpu&) { *fresh(out, tick) = of(in(tick)); }
};

// Boxes by its kernel; what they come to, and which of them are passed on, by finish(): none on every third tick.
struct Judge final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Records<Box>> boxes{*this, "boxes", count_max(kFewMax), on_cpu};
  Output<Tensor> out{*this, "out", on_cpu};
  Param<int64_t> fail_at{*this, "fail_at", -1, "tick on which finish fails"};
  Judge() { capturable(); }
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}); }
  void process(Tick& tick, Cpu&) {
    Box* to = boxes.allocate(tick, kFewMax).data();
    boxes.shrink(tick, fill(to, number(in(tick))));
  }
  void process(Tick& tick, Cuda& cuda) {
    queue(cuda).launch([to = boxes.allocate(tick, kFewMax).data(), count = Cuda::count_of(boxes.raw(tick)),
                        from = numbers(in(tick).data())] { *count = fill(to, *from); });
  }
  void finish(Tick& tick, Cpu&) {
    if (fail_at == static_cast<int64_t>(tick.index())) throw std::runtime_error("told to fail");
    const std::span<const Box> made = boxes.view(tick);
    if (tick.index() % 3) *fresh(out, tick) = Total::of(made.data(), made.size());
    if (made.size() > 2) boxes.shrink(tick, 2);
  }
};

struct TakesHost final : Handler {
  Input<Tensor> in{*this, "in", on_cpu};
  void process(Tick&, Cuda&) {}
};

struct PublishesLate final : Handler { // in finish(), what is on the device
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  void process(Tick&, Cuda&) {}
  void finish(Tick& tick, Cpu&) { fresh(out, tick); }
};

const mr_plugin& plugin() {
  static const mr_handler_type* const types[] = {table_of<Index>("f.index"),
                                                 table_of<Add>("f.add"),
                                                 table_of<Pair>("f.pair"),
                                                 table_of<InPlace>("f.paint"),
                                                 table_of<Odd>("f.odd"),
                                                 table_of<Noting<true>>("f.note"),
                                                 table_of<Noting<false>>("f.notestream"),
                                                 table_of<HostFew>("f.few"),
                                                 table_of<Total>("f.total"),
                                                 table_of<Mixed>("f.mixed"),
                                                 table_of<Look>("f.look"),
                                                 table_of<Judge>("f.judge"),
                                                 table_of<TakesHost>("f.takeshost"),
                                                 table_of<PublishesLate>("f.late")};
  static const mr_plugin table = {sizeof(mr_plugin), MR_ABI_VERSION, "f", "1", types, std::size(types), 0};
  return table;
}

Setup on_device(uint64_t seed = 1) {
  Setup setup;
  setup.domains = {"cuda:0", "cpu"};
  setup.more = &plugin();
  setup.seed = seed;
  return setup;
}
Setup on_host() {
  Setup setup;
  setup.more = &plugin();
  return setup;
}

// index on the host → what `middle` says, each with its notes → a sink on the host.
Pipeline chain(const std::vector<std::string>& middle, const std::map<std::string, std::string>& params = {}) {
  Pipeline pipeline = test::chain("f", middle, 40);
  pipeline.graph.handlers[0].device = "cpu";
  for (graph::Handler& handler : pipeline.graph.handlers) {
    const bool notes_it = handler.name[0] == 'h' && handler.type != "f.add" && handler.type != "f.late";
    if (notes_it) handler.params.push_back({"name", handler.name, {}, {}});
    if (handler.type.rfind("f.note", 0) == 0)
      for (const auto& [key, value] : params) handler.params.push_back({key, value, {}, {}});
  }
  return pipeline;
}

struct Outcome {
  Result result;
  std::vector<Seen> sink;
  std::map<std::string, std::vector<Seen>> notes;
};
Outcome outcome(Pipeline pipeline, const Setup& setup) {
  Outcome outcome;
  const Ran ran = run(std::move(pipeline), setup);
  outcome.result = ran;
  outcome.sink = ran.all_seen()["f"]; // empty where there is no sink on the host
  outcome.notes = take_notes();
  return outcome;
}

// On streams because the handler says so, captured, and on streams because the capture fails.
const std::vector<std::string> kWays = {"notestream", "note", "note and no capture"};
Setup setup_of(const std::string& way) {
  Setup setup = on_device();
  setup.gpu_faults.fail_record = way == kWays[2] ? 1 : 0;
  return setup;
}
std::string type_of(const std::string& way) { return way == kWays[0] ? "notestream" : "note"; }

TEST_CASE("4.4: finish is called after the fence of its tick, in order, and sees what it sees on the host") {
  for (const std::string& way : kWays) {
    CAPTURE(way);
    const std::vector<std::string> middle = {"add", type_of(way), "paint", type_of(way), "odd"};
    const Outcome host = outcome(chain(middle), on_host());
    REQUIRE(host.result.ok);
    REQUIRE(host.notes.at("h1").size() == 40);
    REQUIRE(host.notes.at("h1")[11].values == std::vector<int64_t>{12, 13, 1});
    const Outcome device = outcome(chain(middle), setup_of(way));
    REQUIRE_MESSAGE(device.result.ok, device.result.error.what);
    CHECK(device.sink == host.sink);
    CHECK(device.notes == host.notes);
    REQUIRE(device.result.report.handlers[2].name == "h1");
    CHECK(device.result.report.handlers[2].calls == 40);
    CHECK(device.result.report.handlers[2].finish_sampled == 40);
  }
}

TEST_CASE("4.4: what finishes is captured with others, and the plan shows where it does") {
  Compiled compiled(chain({"add", "note", "add"}), on_device());
  REQUIRE(compiled.regions().size() == 1);
  CHECK(compiled.regions()[0].steps.size() == 4); // three, and the way down
  const std::string text = compiled.text();
  CHECK(text.find("+ finish h1\n") != std::string::npos);
  const Result result = compiled.run();
  REQUIRE(result.ok);
  CHECK(result.report.regions[0].launches == 40);
  CHECK(compiled.seen("f").size() == 40);
  CHECK(take_notes().at("h1").size() == 40);
}

TEST_CASE("3.5: a handler that writes in place over what a finish sees comes after it, in a region of its own") {
  Compiled compiled(chain({"note", "paint"}), on_device());
  CHECK_FALSE(compiled.owns_memory("h1")); // in place all the same
  CHECK(compiled.waits_for("h1", "finish h0"));
  CHECK(compiled.regions().size() == 2);
  REQUIRE(compiled.run().ok);
  const std::vector<int64_t> seen = values(compiled.seen("f"));
  REQUIRE(seen.size() == 40);
  CHECK(seen[11] == 11 + 1 + 7);
  const auto told = take_notes();
  REQUIRE(told.at("h0").size() == 40);
  CHECK(told.at("h0")[11].values == std::vector<int64_t>{11, 12, 1}); // not painted yet
  CHECK(told.at("h1")[11].values == std::vector<int64_t>{19});
}

TEST_CASE("4.4: bodies of later ticks are submitted while a finish is waited for") {
  Pipeline pipeline = chain({"notestream"});
  pipeline.clock(graph::ClockMode::free, 0, 1, 4);
  Compiled compiled(std::move(pipeline), on_device());
  CHECK(compiled.window("h0") == 4);
  Noting<false>::under_way_max = 0;
  REQUIRE(compiled.run().ok);
  CHECK(Noting<false>::under_way_max > 1);
  CHECK(Noting<false>::under_way_max <= 4);
  CHECK(compiled.seen("f").size() == 40);
  CHECK(take_notes().at("h0").size() == 40);
}

TEST_CASE("2.6: a finish that fails is minded by its policy; what the body published stays") {
  for (const std::string& way : kWays) {
    CAPTURE(way);
    Pipeline pipeline = chain({type_of(way), "add"}, {{"fail_at", "5"}});
    pipeline.graph.handlers[1].on_error = graph::OnError::skip;
    const Outcome device = outcome(std::move(pipeline), setup_of(way));
    REQUIRE(device.result.ok);
    REQUIRE(device.sink.size() == 40);
    CHECK(values(device.sink)[5] == 7);
    CHECK(device.notes.at("h0").size() == 39);
    REQUIRE(device.result.report.handlers[1].name == "h0");
    CHECK(device.result.report.handlers[1].errors == 1);
    CHECK(device.result.report.handlers[1].calls == 40);
  }
}

TEST_CASE("2.6: a finish that fails ends the run at its tick, earlier ones are finished, and later ones are not") {
  for (const std::string& way : kWays) {
    CAPTURE(way);
    const Outcome device = outcome(chain({type_of(way), "add"}, {{"fail_at", "5"}}), setup_of(way));
    CHECK_FALSE(device.result.ok);
    CHECK(device.result.error.code == 601);
    CHECK(device.result.error.what == "h0 (f." + type_of(way) + ") failed at tick 5: told to fail");
    CHECK(device.notes.at("h0").size() == 5);
  }
}

TEST_CASE("2.6: a finish that fails has its handler started again, once nothing of it is under way") {
  for (const std::string& way : kWays) {
    CAPTURE(way);
    Pipeline pipeline = chain({type_of(way), "add"}, {{"fail_at", "5"}, {"tells_life", "1"}});
    pipeline.graph.handlers[1].on_error = graph::OnError::restart;
    const Outcome device = outcome(std::move(pipeline), setup_of(way));
    REQUIRE(device.result.ok);
    const std::vector<Seen>& told = device.notes.at("h0");
    REQUIRE(told.size() == 39 + 3);
    CHECK(told.front() == life(kStarted));
    CHECK(told.back() == life(kDrained)); // behind the last finish
    CHECK(std::count(told.begin(), told.end(), life(kStarted)) == 2);
    std::vector<uint64_t> ticks; // each once, in order
    for (const Seen& seen : told)
      if (seen.values.size() > 1) ticks.push_back(seen.index);
    CHECK(std::is_sorted(ticks.begin(), ticks.end()));
    CHECK(std::set<uint64_t>(ticks.begin(), ticks.end()).size() == 39);
    CHECK(device.sink.size() == 40);
  }
}

TEST_CASE("2.6: a body that fails has its handler started again once earlier ticks are finished") {
  Pipeline pipeline = chain({"notestream", "add"}, {{"body_fails_at", "5"}, {"tells_life", "1"}});
  pipeline.graph.handlers[1].on_error = graph::OnError::restart;
  const Outcome device = outcome(std::move(pipeline), on_device());
  REQUIRE_MESSAGE(device.result.ok, device.result.error.what);
  const std::vector<Seen>& told = device.notes.at("h0");
  CHECK(std::count(told.begin(), told.end(), life(kStarted)) == 2);
  CHECK(told.size() == 39 + 3); // finishes of all ticks but that one
  CHECK(device.sink.size() == 40);
  CHECK(device.result.report.handlers[1].errors == 1);
}

TEST_CASE("2.7: a finish sees the live parameters of its own tick") {
  for (const std::string& way : kWays) {
    CAPTURE(way);
    const Pipeline pipeline = chain({type_of(way), "add"});
    Setup setup = setup_of(way), host = on_host();
    setup.options.script = {{13, {"h0", "add", "1000"}}, {20, {"h0", "add", "2"}}};
    host.options.script = setup.options.script;
    const Outcome device = outcome(pipeline, setup);
    REQUIRE(device.result.ok);
    CHECK(device.notes.at("h0")[13].values == std::vector<int64_t>{13, 1013, 1000});
    CHECK(device.notes == outcome(pipeline, host).notes);
  }
}

TEST_CASE("4.4: a finish that has seen enough ends the run as at a signal: what was admitted is finished") {
  for (const std::string& way : kWays) {
    CAPTURE(way);
    const Outcome device = outcome(chain({type_of(way), "add"}, {{"end_at", "9"}}), setup_of(way));
    REQUIRE(device.result.ok);
    CHECK(device.result.report.ticks_run < 40);
    CHECK(device.notes.at("h0").size() == device.result.report.ticks_run);
    CHECK(device.sink.size() == device.result.report.ticks_run);
  }
}

TEST_CASE("4.9: nothing that a lost device left is finished, and the run ends") {
  for (const uint64_t launch : {1, 2, 9}) {
    CAPTURE(launch);
    Setup setup = on_device();
    setup.gpu_faults.fail_replay = launch;
    const Outcome device = outcome(chain({"note", "add"}), setup);
    CHECK_FALSE(device.result.ok);
    CHECK(device.result.error.code == 703);
    const auto seen = device.notes.find("h0");
    const size_t finished = seen == device.notes.end() ? 0 : seen->second.size();
    CHECK(finished < launch);
    for (size_t n = 0; n < finished; ++n)
      CHECK(seen->second[n].values == std::vector<int64_t>{static_cast<int64_t>(n), static_cast<int64_t>(n) + 1, 1});
  }
}

// On a device with a thread of its own, and several workers.
TEST_CASE("2.4: a handler is in its body or in its finish, never in both") {
  for (const std::string& way : kWays) {
    CAPTURE(way);
    Setup setup = setup_of(way);
    setup.workers = 3;
    setup.gpu = [](device::SimOptions& sim) {
      sim.adversarial = false;
      sim.watcher.watched = [](uint64_t) {};
    };
    Pipeline pipeline = chain({type_of(way), "add"}, {{"lingers", "100"}});
    pipeline.clock(graph::ClockMode::free, 0, 1, 4);
    const Outcome device = outcome(std::move(pipeline), setup);
    REQUIRE_MESSAGE(device.result.ok, device.result.error.what);
    REQUIRE(device.sink.size() == 40);
    CHECK(device.notes.at("h0").size() == 40);
  }
}

TEST_CASE("4.4: a run that is stopped from outside finishes what was admitted, and then drains") {
  Pipeline pipeline = chain({"note"}, {{"tells_life", "1"}});
  pipeline.graph.handlers[0].params[0].text = "1000000000";
  Setup setup = on_device();
  setup.workers = 2;
  Compiled compiled(std::move(pipeline), setup);
  compiled.live().start();
  while (compiled.live().ticks() < 20) std::this_thread::yield();
  compiled.live().stop();
  const Result result = compiled.live().wait();
  REQUIRE(result.ok);
  const std::vector<Seen> told = take_notes().at("h0");
  CHECK(told.size() == result.report.ticks_run + 2);
  CHECK(told.back() == life(kDrained));
  CHECK(compiled.seen("f").size() == result.report.ticks_run);
}

TEST_CASE("4.4: a sink on a device finishes on the host") {
  Pipeline pipeline = chain({"notestream"});
  pipeline.graph.edges.pop_back();
  pipeline.graph.handlers.pop_back();
  const Outcome device = outcome(std::move(pipeline), on_device());
  REQUIRE(device.result.ok);
  CHECK(device.notes.at("h0").size() == 40);
  REQUIRE(device.result.report.paths.size() == 1);
  CHECK(device.result.report.paths[0].sampled >= 1); // of 40 ticks the first, and as many as are long enough
  CHECK(device.result.report.paths[0].sampled <= 40);
}

TEST_CASE("4.4: finish cannot publish what is on the device") {
  const Outcome device = outcome(chain({"add", "late"}), on_device());
  CHECK_FALSE(device.result.ok);
  CHECK(device.result.error.what.find("the output out is on a device: its body says what it holds") !=
        std::string::npos);
}

TEST_CASE("4.4: an output declared cpu is written to the host by its kernel, copied nowhere, with its count") {
  const std::vector<Seen> host = seen_by(few_and_totals("f", {}), on_host(), "f");
  REQUIRE(host.size() == 50);
  for_all_places({"cpu", "cuda:0", "cuda:1", "sim:0"}, [&](const std::array<std::string, 3>& places) {
    if (places[0] == "sim:0") return; // not there
    CAPTURE(places[0] + " → " + places[1] + ", " + places[2]);
    Setup setup = on_device();
    setup.domains = {"cpu", "cuda:0", "cuda:1", "sim:0"};
    setup.workers = 3;
    setup.gpu_faults.fail_record = places[1] == places[2] ? 0 : 1;
    Compiled compiled(few_and_totals("f", places), setup);
    const Result result = compiled.run();
    REQUIRE_MESSAGE(result.ok, result.error.what);
    CHECK(compiled.seen("f") == host);
    for (const TransferReport& transfer : result.report.transfers) {
      if (transfer.edge.rfind("few.out", 0) != 0) continue;
      CHECK(transfer.from == "cpu"); // up to a reader on a device, never down
      CHECK(transfer.to != "cpu");
    }
  });
}

TEST_CASE("4.4: pictures, tensors and records declared cpu are captured, in pinned memory of the host") {
  const auto make = [](const std::string& place) {
    Pipeline pipeline;
    pipeline.clock(graph::ClockMode::free, 0, 1, 3);
    pipeline.add("source", "f.index", {{"count", "40"}}).device = "cpu";
    pipeline.add("mixed", "f.mixed").device = place;
    pipeline.add("few", "f.few").device = place;
    pipeline.add("look", "f.look").device = "cpu";
    pipeline.add("total", "f.total").device = "cpu";
    pipeline.add("sink", "t.sink", {{"log", "f"}});
    for (const char* reader : {"mixed.in", "few.in"}) pipeline.connect("source.out", reader);
    pipeline.connect("mixed.picture", "look.in");
    pipeline.connect("few.out", "total.in");
    for (const char* made : {"look.out", "mixed.host", "mixed.out", "total.out"}) pipeline.connect(made, "sink.in");
    return pipeline;
  };
  const std::vector<Seen> host = seen_by(make("cpu"), on_host(), "f");
  REQUIRE(host.size() == 40);
  for (const uint64_t no_capture : {0, 1}) {
    Setup setup = on_device();
    setup.workers = 2;
    setup.gpu_faults.fail_record = no_capture;
    Compiled compiled(make("cuda:0"), setup);
    REQUIRE(compiled.regions().size() == 1);
    CHECK(compiled.regions()[0].steps.size() == 3); // two handlers, and mixed.out's way down
    for (const auto& [handler, output] : {std::pair{"mixed", "picture"}, {"mixed", "host"}, {"few", "out"}}) {
      CHECK(compiled.ring(handler, output).domain == "cpu");
      CHECK(compiled.ring(handler, output).pinned);
    }
    CHECK(compiled.ring("mixed", "out").domain == "cuda:0");
    const std::string text = compiled.text();
    CHECK(text.find("gray8 6×3 in host memory, int64[1] in host memory, int64[1], captured in region 0") !=
          std::string::npos);
    const Result result = compiled.run();
    REQUIRE(result.ok);
    CHECK(compiled.seen("f") == host);
    CHECK(copied(result, "cuda:0", "cpu") == 40); // mixed.out alone
    CHECK(result.report.regions[0].launches == (no_capture ? 0 : 40));
  }
}

TEST_CASE("4.9: what a lost device was to write to the host is never read") {
  const std::vector<Seen> host = seen_by(few_and_totals("f", {}), on_host(), "f");
  for (const uint64_t launch : {1, 9}) {
    Setup setup = on_device();
    setup.gpu_faults.fail_replay = launch;
    const Ran result = run(few_and_totals("f", {"cuda:0", "cpu", "cpu"}), setup);
    CHECK_FALSE(result.ok);
    CHECK(result.error.code == 703);
    for (const Seen& seen : result.seen_if_any("f"))
      for (const int64_t value : seen.values) CHECK((value == kEmpty || value == host[seen.index].values[0]));
  }
}

TEST_CASE("4.4: finish publishes on outputs declared cpu what readers get, wherever they are") {
  const auto make = [](const std::array<std::string, 3>& places) {
    Pipeline pipeline;
    pipeline.clock(graph::ClockMode::free, 0, 1, 3);
    pipeline.add("source", "f.index", {{"count", "50"}}).device = "cpu";
    pipeline.add("judge", "f.judge").device = places[0];
    pipeline.add("total", "f.total").device = places[1];
    pipeline.add("add", "f.add").device = places[2];
    pipeline.add("slow", "f.add").device = "cpu";
    pipeline.add("sink", "t.sink", {{"log", "f"}});
    pipeline.connect("source.out", "judge.in");
    pipeline.connect("judge.boxes", "total.in");
    pipeline.connect("judge.out", "add.in");
    pipeline.connect("judge.out", "slow.in", graph::Policy::queue).depth = 3;
    for (const char* made : {"total.out", "add.out", "judge.out", "slow.out"}) pipeline.connect(made, "sink.in");
    return pipeline;
  };
  const std::vector<Seen> host = seen_by(make({}), on_host(), "f");
  REQUIRE(host.size() == 50);
  CHECK(host[3].values[2] == kEmpty);
  CHECK(host[4].values[2] != kEmpty);
  for_all_places({"cpu", "cuda:0"}, [&](const std::array<std::string, 3>& places) {
    CAPTURE(places[0] + " → " + places[1] + ", " + places[2]);
    Setup setup = on_device();
    setup.domains = {"cpu", "cuda:0"};
    setup.workers = 2;
    const Ran result = run(make(places), setup);
    REQUIRE_MESSAGE(result.ok, result.error.what);
    CHECK(result.seen("f") == host);
    for (const RegionReport& region : result.report.regions) // also where the body leaves an output to finish()
      if (region.handlers[0] == "judge") CHECK(region.launches == 50);
    if (places[0] == "cuda:0") CHECK_FALSE(result.report.regions.empty());
    setup.gpu_faults.fail_record = 1;
    CHECK(seen_by(make(places), setup, "f") == host);
  });
  Pipeline fails = make({"cuda:0", "cuda:0", "cpu"});
  fails.graph.handlers[1].params.push_back({"fail_at", "4", {}, {}});
  fails.graph.handlers[1].on_error = graph::OnError::skip;
  Setup setup = on_device();
  const std::vector<Seen> failed = seen_by(std::move(fails), setup, "f");
  REQUIRE(failed.size() == 50);
  CHECK(failed[4].values == std::vector<int64_t>(4, kEmpty));
  CHECK(failed[5] == host[5]);
}

TEST_CASE("4.4: an input declared cpu is nothing for kernels, nor is a bypass that would need one after them") {
  const auto why_not = [](Pipeline pipeline) {
    try {
      Compiled compiled(std::move(pipeline), on_device());
    } catch (const Failure& failure) {
      REQUIRE(failure.error().notes.size() == 1);
      return failure.error().notes[0];
    }
    return std::string("it can");
  };
  Pipeline takes = chain({});
  takes.add("takes", "f.takeshost").device = "cuda:0";
  takes.connect("source.out", "takes.in");
  CHECK(why_not(std::move(takes)) == "its port in is declared cpu");
  Pipeline bypassed = chain({});
  graph::Handler& judge = bypassed.add("judge", "f.judge");
  judge.device = "cuda:0";
  judge.on_error = graph::OnError::bypass;
  bypassed.connect("source.out", "judge.in");
  CHECK(why_not(std::move(bypassed)) ==
        "if its finish fails, its port boxes, declared cpu, cannot repeat what is on the device");
}

TEST_CASE("3.2: a device's silent outputs take no block from a ring whose blocks are held") {
  for (const std::string type : {"odd", "judge"}) {
    CAPTURE(type);
    Pipeline pipeline;
    pipeline.add("source", "f.index", {{"count", "200"}}).device = "cpu";
    pipeline.add("h", "f." + type);
    pipeline.add("behind", "f.add").device = "cpu";
    pipeline.add("sink", "t.sink", {{"log", "f"}});
    pipeline.connect("source.out", "h.in");
    pipeline.connect("h.out", "behind.in", graph::Policy::queue).depth = 2;
    pipeline.connect("behind.out", "sink.in");
    Compiled compiled(std::move(pipeline), on_device());
    REQUIRE(compiled.ring("h", "out").dynamic);
    const Result result = compiled.run();
    REQUIRE(result.ok);
    const std::vector<int64_t> seen = values(compiled.seen("f"));
    take_notes();
    CHECK(std::count(seen.begin(), seen.end(), kEmpty) == (type == "odd" ? 100 : 67));
    for (const auto& [domain, pool] : result.report.pools) CHECK(pool.held_blocks == 0);
  }
}

TEST_CASE("4.4: random graphs give and finish the same on devices whose bodies enqueue as on the host") {
  const uint64_t base = random_seed();
  for (uint64_t n = 0; n < static_cast<uint64_t>(part_of(60)); ++n) {
    const uint64_t seed = base + n;
    CAPTURE(seed);
    const auto make = [&](const std::vector<std::string>& places) {
      Pipeline pipeline =
          test::random_graph("f", {"add", "pair", "paint", "odd", "note", "notestream"}, 40, seed, places);
      for (graph::Handler& handler : pipeline.graph.handlers)
        if (handler.name != "h0" && handler.name != "sink" && handler.type != "f.add")
          handler.params.push_back({"name", handler.name, {}, {}});
      return pipeline;
    };
    const Outcome host = outcome(make({}), on_host());
    REQUIRE(host.result.ok);
    Setup setup = on_device(seed);
    setup.domains = {"cpu", "cuda:0", "cuda:1", "sim:0"};
    setup.workers = 1 + static_cast<uint32_t>(seed % 3);
    std::vector<std::string> places = {"cuda:0"};
    if (n % 3) places.insert(places.end(), {"cpu", "cuda:0"});
    if (n % 3 == 2) places.insert(places.end(), {"cuda:1"});
    const Outcome device = outcome(make(places), setup);
    REQUIRE_MESSAGE(device.result.ok, device.result.error.what);
    REQUIRE(device.sink == host.sink);
    REQUIRE(device.notes == host.notes);
  }
}

} // namespace
} // namespace millrace::test::finishing
