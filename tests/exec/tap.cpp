// Taps of outputs: they show what an output is on a tick, and the run is as it would be without them
// (semantics.md 3.5).
#include "exec/tap.h"

#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "enqueuing_handlers.h"
#include "exec/run.h"
#include "graph/unfold.h"
#include "harness.h"
#include "observe/error.h"
#include "observe/error_codes.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// Called in the call of a source, before it gives the value of that tick.
std::function<void(uint64_t tick)> on_tick;

struct TapSource final : Handler {
  Output<Tensor> out{*this, "out"};
  Param<int64_t> count{*this, "count", 0, "values; 0: endless"};
  int64_t next = 0;
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}); }
  void start() override { next = 0; }
  void process(Tick& tick, Cpu&) {
    if (count > 0 && next >= count) return tick.end();
    if (on_tick) on_tick(tick.index());
    write_one(out, tick, next++);
  }
};

// Twice each of the items of a call.
struct TapTwice final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  TapTwice() { items(8); }
  void process(Items& all, Cpu&) {
    for (Tick& item : all) write_one(out, item, 2 * read_one(in(item)));
  }
};

struct TapTwo final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> left{*this, "left", like(in)};
  Output<Tensor> right{*this, "right", like(in)};
  void process(Tick& tick, Cpu&) {
    write_one(left, tick, 1);
    write_one(right, tick, 2);
  }
};

struct TapEnqueues final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  void process(Tick& tick, Cpu&) { write_one(out, tick, read_one(in(tick))); }
  void process(Tick& tick, Cuda& cuda) {
    enqueued::queue(cuda).launch(
        [to = enqueued::fresh(out, tick), from = enqueued::numbers(in(tick).data())] { *to = *from; });
  }
};

const mr_plugin& tap_plugin() {
  static const mr_handler_type types[] = {detail::Type<TapSource>::table("tap.source", "Asks the test", ""),
                                          detail::Type<TapTwice>::table("tap.twice", "Doubles", ""),
                                          detail::Type<TapTwo>::table("tap.two", "Has two outputs", ""),
                                          detail::Type<TapEnqueues>::table("tap.enqueues", "Passes on", "")};
  static const mr_handler_type* const pointers[] = {&types[0], &types[1], &types[2], &types[3]};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "taps", "1", pointers, 4, 0};
  return plugin;
}

Setup tap_setup() {
  Setup setup;
  setup.more = &tap_plugin();
  on_tick = nullptr;
  return setup;
}

// By tick; kEmpty where the output had no value.
using Shown = std::map<uint64_t, int64_t>;

int64_t number_in(const exec::TapSample& sample) {
  if (std::holds_alternative<std::monostate>(sample.shown)) return kEmpty;
  const auto& tensor = std::get<exec::ShownTensor>(sample.shown);
  CHECK(tensor.min == tensor.max);
  return static_cast<int64_t>(tensor.max);
}

// Taps of outputs that are armed again as soon as their samples were taken.
class Watch {
 public:
  Watch(Compiled& compiled, const std::vector<std::string>& outputs, int64_t patience_ns = 0) {
    for (const std::string& output : outputs) {
      exec::TapOptions options;
      options.patience_ns = patience_ns;
      taps_[output] = compiled.live().tap(output, options);
    }
  }
  void look() {
    for (auto& [output, tap] : taps_) {
      if (std::optional<exec::TapSample> sample = tap->take()) shown_[output][sample->tick] = number_in(*sample);
      tap->arm();
    }
  }
  const Shown& shown(const std::string& output) const { return shown_.at(output); }
  size_t samples(const std::string& output) const { return shown_.contains(output) ? shown_.at(output).size() : 0; }

 private:
  std::map<std::string, std::shared_ptr<exec::Tap>> taps_;
  std::map<std::string, Shown> shown_;
};

// One tick after the other, so that a tap that is armed in the source's call shows this very tick.
Pipeline one_by_one(const std::string& one_line) {
  Pipeline p(one_line);
  p.clock(graph::ClockMode::free, 0, 1, 1);
  return p;
}

// Runs it with taps that are armed for each tick. Returns what they show.
std::unique_ptr<Watch> watch_all(Compiled& compiled, const std::vector<std::string>& outputs) {
  auto watch = std::make_unique<Watch>(compiled, outputs);
  on_tick = [&](uint64_t) { watch->look(); };
  CHECK(compiled.run().ok);
  on_tick = nullptr;
  watch->look();
  return watch;
}

Shown expected(uint64_t count, const std::function<int64_t(int64_t)>& value) {
  Shown shown;
  for (uint64_t tick = 0; tick < count; ++tick) shown[tick] = value(static_cast<int64_t>(tick));
  return shown;
}

Error error_of(Compiled& compiled, const std::string& output) {
  try {
    compiled.live().tap(output, {});
  } catch (const Failure& failure) {
    return failure.error();
  }
  return {};
}

} // namespace

TEST_CASE("3.5: a tap shows each stage of a chain that writes in place, and changes neither plan nor values") {
  const std::string text =
      "tap.source name=source count=40 ! t.paint name=one add=1 ! t.paint name=ten add=10 ! t.forward name=same ! "
      "t.sink name=sink log=seen";
  const Setup setup = tap_setup();
  Compiled plain(one_by_one(text), setup), tapped(one_by_one(text), setup);
  CHECK(plain.run().ok);
  const auto watch = watch_all(tapped, {"source.out", "one.out", "ten.out", "same"});
  CHECK(tapped.share_memory("source", "ten"));
  CHECK(watch->shown("source.out") == expected(40, [](int64_t n) { return n; }));
  CHECK(watch->shown("one.out") == expected(40, [](int64_t n) { return n + 1; }));
  CHECK(watch->shown("ten.out") == expected(40, [](int64_t n) { return n + 11; }));
  CHECK(watch->shown("same") == expected(40, [](int64_t n) { return n + 11; }));
  CHECK(tapped.text() == plain.text());
  CHECK(tapped.seen("seen") == plain.seen("seen"));
}

TEST_CASE("3.5: so it does on a simulated device, whose memory the host cannot read") {
  for (const bool adversarial : {false, true})
    for (uint64_t seed = 1; seed < 6; ++seed) {
      CAPTURE(adversarial);
      CAPTURE(seed);
      Setup setup = tap_setup();
      setup.domains = {"cpu", "sim:0"};
      setup.adversarial = adversarial;
      setup.seed = seed;
      Compiled compiled(one_by_one("tap.source name=source count=12 ! t.relay name=up device=sim:0 silent_every=5 ! "
                                   "t.paint name=one add=1 device=sim:0 ! t.paint name=ten add=10 device=sim:0 ! "
                                   "t.relay name=down ! t.sink name=sink log=seen"),
                        setup);
      const auto watch = watch_all(compiled, {"up", "one", "ten", "down"});
      CHECK(compiled.share_memory("up", "ten"));
      const auto but_for_silent = [](int64_t add) {
        return expected(12, [add](int64_t n) { return n % 5 == 4 ? kEmpty : n + add; });
      };
      CHECK(watch->shown("up") == but_for_silent(0));
      CHECK(watch->shown("one") == but_for_silent(1));
      CHECK(watch->shown("ten") == but_for_silent(11));
      CHECK(watch->shown("down") == but_for_silent(11));
    }
}

TEST_CASE("a tap shows results that are published later, bypassed outputs, and the items of a firing") {
  const Setup setup = tap_setup();
  Compiled later(one_by_one("tap.source name=source count=20 ! t.late name=late after=0 ! t.sink name=sink log=late"),
                 setup);
  CHECK(watch_all(later, {"late"})->shown("late").at(7) == 7);
  Compiled bypassed(
      one_by_one("tap.source name=source count=12 ! t.relay name=bad add=100 fail_every=3 on_error=bypass "
                 "! t.sink name=sink log=by"),
      setup);
  CHECK(watch_all(bypassed, {"bad"})->shown("bad") == expected(12, [](int64_t n) { return n % 3 == 2 ? n : n + 100; }));
  Pipeline streams;
  streams.graph = graph::unfold(graph::parse_yaml(R"(version: 1
streams: { all: { items: { a: {}, b: {} } } }
clocks: { all: { mode: free, in_flight: 1 } }
handlers:
  source: { type: tap.source, for_each: all, count: 20 }
  twice:  { type: tap.twice, input: source }
  sink:   { type: t.sink, for_each: all, input: twice, log: items }
)",
                                                  "items.yaml"));
  Compiled items(streams, setup);
  const auto watch = watch_all(items, {"twice", "source@b"});
  CHECK(watch->samples("twice") > 0);
  for (const auto& [tick, value] : watch->shown("twice")) CHECK(value == 2 * static_cast<int64_t>(tick));
  for (const auto& [tick, value] : watch->shown("source@b")) CHECK(value == static_cast<int64_t>(tick));
}

TEST_CASE("what a tap shows is what the tick's readers saw, with one thread, two and eight") {
  for (const uint32_t workers : {1u, 2u, 8u}) {
    CAPTURE(workers);
    Setup setup = tap_setup();
    setup.workers = workers;
    setup.domains = {"cpu", "sim:0"};
    Compiled compiled(
        Pipeline("t.count name=source count=5000 ! t.relay name=one add=1 ! t.stateless name=two add=2 log=two ! "
                 "t.paint name=three add=3 ! t.async name=four ! t.relay name=five device=sim:0 ! "
                 "t.sink name=sink log=seen"),
        setup);
    Watch watch(compiled, {"source", "one", "two", "three", "four", "five"}, INT64_MAX);
    compiled.live().start();
    while (!compiled.live().finished()) {
      watch.look();
      std::this_thread::yield();
    }
    const Ran ran = compiled.wait();
    REQUIRE_MESSAGE(ran.ok, ran.error.what);
    watch.look();
    CHECK(ran.seen("seen").size() == 5'000);
    const std::map<std::string, int64_t> added = {{"source", 0}, {"one", 1},  {"two", 3},
                                                  {"three", 6},  {"four", 6}, {"five", 6}};
    for (const auto& [output, add] : added) {
      CAPTURE(output);
      REQUIRE(watch.samples(output) > 0);
      for (const auto& [tick, value] : watch.shown(output)) CHECK(value == static_cast<int64_t>(tick) + add);
    }
  }
}

TEST_CASE("taps come and go from several threads while the run goes on, and some outlive it") {
  Setup setup = tap_setup();
  setup.workers = 2;
  std::vector<std::shared_ptr<exec::Tap>> left(4);
  {
    Compiled compiled(Pipeline("t.count name=source count=0 ! t.relay name=one ! t.paint name=two add=1 ! "
                               "t.sink name=sink log=seen"),
                      setup);
    compiled.live().start();
    std::vector<std::thread> clients;
    for (size_t c = 0; c < left.size(); ++c)
      clients.emplace_back([&, c] {
        const std::string output = c % 2 ? "two.out" : "one.out";
        for (int round = 0; round < 100; ++round) {
          std::atomic<bool> taken{false};
          exec::TapOptions options;
          options.on_taken = [&] { taken = true; };
          const auto tap = compiled.live().tap(output, options);
          tap->arm();
          if (round % 3 == 0) continue; // it goes while it is armed
          while (!taken) std::this_thread::yield();
          const std::optional<exec::TapSample> sample = tap->take();
          REQUIRE(sample);
          CHECK(number_in(*sample) == static_cast<int64_t>(sample->tick) + (c % 2));
        }
        left[c] = compiled.live().tap(output, {});
        left[c]->arm();
      });
    for (std::thread& client : clients) client.join();
    compiled.live().stop();
    CHECK(compiled.wait().ok);
  }
  for (const auto& tap : left) {
    tap->take();
    tap->arm(); // of a run that is gone
    CHECK_FALSE(tap->has_taken());
  }
}

TEST_CASE("a tap takes one sample and no more until it is armed again") {
  const Setup setup = tap_setup();
  Compiled compiled(one_by_one("tap.source name=source count=50 ! t.sink name=sink log=seen"), setup);
  int taken = 0;
  exec::TapOptions options;
  options.on_taken = [&] { ++taken; };
  const auto tap = compiled.live().tap("source", options);
  CHECK_FALSE(tap->take());
  tap->arm();
  tap->arm();
  on_tick = [&](uint64_t tick) {
    if (tick == 20) tap->arm(); // its sample is still there
    if (tick != 30) return;
    CHECK(tap->take()->tick == 0);
    tap->arm();
  };
  CHECK(compiled.run().ok);
  CHECK(tap->take()->tick == 30);
  CHECK(taken == 2);
}

TEST_CASE("an output that is silent for a while is shown once it has a value, or as empty when the patience is over") {
  Setup setup = tap_setup();
  setup.virtual_time = true;
  Pipeline p("tap.source name=source count=60 ! t.window name=some from=10 until=40 ! t.sink name=sink log=seen");
  p.clock(graph::ClockMode::realtime, 100); // 10 ms a tick
  for (const int64_t patience_ms : {int64_t{50}, int64_t{1000}}) {
    Compiled compiled(p, setup);
    exec::TapOptions options;
    options.patience_ns = patience_ms * 1'000'000;
    const auto tap = compiled.live().tap("some", options);
    on_tick = [&](uint64_t tick) {
      if (tick == 10) tap->arm();
    };
    CHECK(compiled.run().ok);
    const std::optional<exec::TapSample> sample = tap->take();
    REQUIRE(sample);
    CHECK(sample->tick == (patience_ms == 50 ? 15 : 40));
    CHECK(number_in(*sample) == (patience_ms == 50 ? kEmpty : 40));
    CHECK(sample->media_ns == static_cast<int64_t>(sample->tick) * 10'000'000);
  }
}

TEST_CASE("a tick that follows a late one is not shown, but for a tap that has waited for its patience") {
  Setup setup = tap_setup();
  setup.virtual_time = true;
  setup.options.cost_ns = [](const std::string& handler, uint64_t tick) {
    return handler == "slow" && tick < 30 ? 25 * kMs : 1; // two of three beats are late until then
  };
  Pipeline p("tap.source name=source count=60 ! t.relay name=slow ! t.sink name=sink log=seen");
  p.clock(graph::ClockMode::realtime, 100, 1, 1);
  for (const int64_t patience_ms : {int64_t{250}, int64_t{100'000}}) {
    CAPTURE(patience_ms);
    Compiled compiled(p, setup);
    Watch watch(compiled, {"slow"}, patience_ms * 1'000'000);
    on_tick = [&](uint64_t) { watch.look(); };
    const Ran ran = compiled.run();
    CHECK(ran.ok);
    on_tick = nullptr;
    watch.look();
    CHECK(ran.report.ticks_late > 30);
    size_t early = 0;
    for (const auto& [tick, value] : watch.shown("slow")) early += tick > 0 && tick < 30;
    // 30 ticks of 30 ms are 0.9 s.
    CHECK(early == (patience_ms == 250 ? 3 : 0));
    CHECK(watch.samples("slow") > 25); // all of the later ones
  }
}

TEST_CASE("outputs that are not there are refused with the nearest name, and those that cannot be shown with why") {
  Setup setup = tap_setup();
  setup.domains = {"cpu", "cuda:0", "sim:0"};
  Compiled compiled(
      Pipeline(
          "t.count name=source count=3 ! tap.two name=pair ; pair.left ! t.relay name=relay ! "
          "t.sink name=sink log=seen ; pair.right ! t.capturable name=recorded device=sim:0 ! "
          "t.capturable name=too device=sim:0 ! sink.in ; pair.right ! tap.enqueues name=gpu device=cuda:0 ! sink.in"),
      setup);
  CHECK(error_of(compiled, "rely.out").code == code::unknown_handler);
  CHECK(error_of(compiled, "rely.out").nearest == "relay");
  CHECK(error_of(compiled, "relay.outt").code == code::unknown_port);
  CHECK(error_of(compiled, "relay.outt").nearest == "out");
  CHECK(error_of(compiled, "pair").code == code::ambiguous_port);
  CHECK(error_of(compiled, "sink").code == code::output_not_shown);
  REQUIRE(compiled.captured("recorded"));
  const Error recorded = error_of(compiled, "recorded.out");
  CHECK(recorded.code == code::output_not_shown);
  CHECK(recorded.what.find("not shown yet") != std::string::npos);
  const Error gpu = error_of(compiled, "gpu.out");
  CHECK(gpu.code == code::output_not_shown);
  CHECK(gpu.what == "gpu.out cannot be shown: it is on cuda:0, which is not shown yet");
  CHECK(error_of(compiled, "pair.left").code == 0);
  CHECK(error_of(compiled, "relay").code == 0);
}
