// Requests for live changes: the ticks that whoever asks is told, requests that are refused, and the values that hold.
#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "exec/run.h"
#include "graph/confine.h"
#include "graph/unfold.h"
#include "harness.h"
#include "observe/error.h"
#include "observe/error_codes.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// A source, a relay and a sink on a clock of their own.
void add_counted(Pipeline& p, const std::string& clock) {
  if (!clock.empty()) {
    p.clock(graph::ClockMode::free);
    p.graph.clocks.back().name = clock;
  }
  p.add(clock + "source", "t.count", {{"count", "0"}}).clock = clock;
  p.add(clock + "relay", "t.relay");
  p.add(clock + "sink", "t.sink", {{"log", clock + "asked"}});
  p.connect(clock + "source", clock + "relay");
  p.connect(clock + "relay", clock + "sink");
}

Error refused_change(Compiled& compiled, const std::string& handler, const std::string& param,
                     const std::string& value = "1") {
  try {
    compiled.live().set({{handler, param, value}});
  } catch (const Failure& failure) {
    return failure.error();
  }
  return {};
}

// The values that have changed, as "relay.add=5 from 3 on by me".
std::vector<std::string> changed_values(const exec::Run& run) {
  std::vector<std::string> words;
  for (const exec::HandlerValues& handler : run.values()) {
    CHECK(handler.is_as_planned);
    for (const exec::ChangedParam& changed : handler.changed)
      words.push_back(handler.name + "." + changed.param + "=" + changed.text + " from " +
                      std::to_string(changed.tick) + " on by " + changed.by);
  }
  return words;
}

// Passes on, and asks for changes while stream b is in the call of its tick 2.
struct Asks final : Handler {
  static inline std::function<void()> at_tick_2_of_b;
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", forward(in)};
  Param<std::string> stream{*this, "stream", "", "the handler's"};
  Param<std::string> font{*this, "font", "", "a file that it would read", reads_path, live};
  Param<int64_t> batchsize{*this, "batchsize", 1, "a number whose name begins as `batch:` does", live};
  Param<int8_t> small{*this, "small", 0, "a number that has few values", live};
  void process(Tick& tick, Cpu&) {
    if (*stream == "b" && tick.index() == 2 && at_tick_2_of_b) at_tick_2_of_b();
    out.forward(tick, in);
  }
};

const mr_plugin& asking_plugin() {
  static const mr_handler_type type = detail::Type<Asks>::table("c.asks", "Asks for changes", "");
  static const mr_handler_type* const pointers[] = {&type};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "asking", "1", pointers, 1, 0};
  return plugin;
}

Compiled two_clocks() {
  Pipeline p;
  add_counted(p, "a");
  add_counted(p, "b");
  Setup setup;
  setup.workers = 2;
  return Compiled(p, setup);
}

} // namespace

TEST_CASE("2.7: who asks for changes is told once, with the tick of each clock that takes them") {
  Compiled compiled = two_clocks();
  compiled.live().start();
  std::promise<std::vector<exec::TickOfClock>> told; // a second call would throw
  const exec::ChangesTaken tell = [&](const std::vector<exec::TickOfClock>& ticks) { told.set_value(ticks); };
  compiled.live().set({{"arelay", "add", "1000000"}, {"brelay", "add", "2000000"}, {"arelay", "add", "3000000"}}, tell);
  const std::vector<exec::TickOfClock> ticks = told.get_future().get();
  compiled.live().stop();
  REQUIRE(compiled.wait().ok);
  REQUIRE(ticks.size() == 2);
  for (const exec::TickOfClock& tick : ticks) {
    const bool is_a = tick.clock == "a";
    for (const Seen& seen : compiled.seen(tick.clock + "asked")) {
      const int64_t added = seen.index < tick.tick ? 0 : is_a ? 3'000'000 : 2'000'000;
      REQUIRE(seen.values[0] == static_cast<int64_t>(seen.index) + added);
    }
  }
}

TEST_CASE("2.7: a change of a template is one of all its streams that go on, each at a tick of its own") {
  Pipeline p;
  p.graph = graph::unfold(graph::parse_yaml(R"(version: 1
streams: { cameras: { items: { a: { fail: -1 }, b: { fail: -1 }, c: { fail: 2 } } } }
handlers:
  source: { type: t.count, for_each: cameras, count: 0 }
  relay:  { type: t.relay, for_each: cameras, input: source, fail_at: "{fail}" }
  sink:   { type: t.sink, for_each: cameras, input: relay, log: "{stream}" }
)",
                                            "change.yaml"));
  Setup setup;
  setup.workers = 2;
  Compiled compiled(p, setup);
  compiled.live().start();
  while (compiled.live().report().streams[2].state != "failed") std::this_thread::yield();
  std::promise<std::vector<exec::TickOfClock>> all, one;
  compiled.live().set({{"relay", "add", "1000000"}},
                      [&](const std::vector<exec::TickOfClock>& ticks) { all.set_value(ticks); });
  const std::vector<exec::TickOfClock> of_all = all.get_future().get();
  compiled.live().set({{"relay@b", "add", "2000000"}},
                      [&](const std::vector<exec::TickOfClock>& ticks) { one.set_value(ticks); });
  const std::vector<exec::TickOfClock> of_one = one.get_future().get();
  CHECK(refused_change(compiled, "rela", "add").nearest == "relay");
  CHECK(refused_change(compiled, "relay@d", "add").code == code::unknown_handler);
  compiled.live().stop();
  REQUIRE(compiled.wait().ok);
  REQUIRE(of_all.size() == 2);
  REQUIRE(of_one.size() == 1);
  CHECK(of_one[0].clock == "b");
  for (const exec::TickOfClock& tick : of_all)
    for (const Seen& seen : compiled.seen(tick.clock)) {
      const bool is_later = tick.clock == "b" && seen.index >= of_one[0].tick;
      const int64_t added = seen.index < tick.tick ? 0 : is_later ? 2'000'000 : 1'000'000;
      REQUIRE(seen.values[0] == static_cast<int64_t>(seen.index) + added);
    }
}

TEST_CASE("2.7: who asks for changes that no tick takes any more is told so") {
  Pipeline p;
  add_counted(p, "");
  Setup setup;
  setup.options.ticks_max = 3;
  Compiled compiled(p, setup);
  compiled.live().start();
  while (!compiled.live().finished()) std::this_thread::yield();
  std::vector<exec::TickOfClock> told;
  compiled.live().set({{"relay", "add", "1"}}, [&](const std::vector<exec::TickOfClock>& ticks) { told = ticks; });
  REQUIRE(compiled.wait().ok);
  REQUIRE(told.size() == 1);
  CHECK(told[0].tick == exec::kNoTickTook);
}

TEST_CASE("2.7: who asks for changes of several clocks is told which ended or failed before they took them") {
  for (const std::string fate : {"fails", "ends", "all end"}) {
    CAPTURE(fate);
    std::string text = R"(version: 1
streams: { cameras: { items: { a: { count: 9, fail: -1 }, b: { count: COUNT, fail: FAIL } } } }
clocks: { cameras: { mode: realtime, rate: 100 } }
handlers:
  source: { type: t.count, for_each: cameras, count: "{count}" }
  asks:   { type: c.asks, for_each: cameras, input: source, stream: "{stream}" }
  relay:  { type: t.relay, for_each: cameras, input: asks, fail_at: "{fail}" }
  sink:   { type: t.sink, for_each: cameras, input: relay, log: "{stream}" }
)";
    text.replace(text.find("COUNT"), 5, fate == "ends" ? "3" : "9");
    text.replace(text.find("FAIL"), 4, fate == "fails" ? "2" : "-1");
    Pipeline p;
    p.graph = graph::unfold(graph::parse_yaml(text, "fates.yaml"));
    Setup setup;
    setup.virtual_time = true;
    setup.more = &asking_plugin();
    if (fate == "all end") setup.options.ticks_max = 3;
    Compiled compiled(p, setup);
    std::map<std::string, uint64_t> told;
    int times = 0;
    Asks::at_tick_2_of_b = [&] {
      compiled.live().set({{"relay", "add", "1000"}}, [&](const std::vector<exec::TickOfClock>& ticks) {
        for (const exec::TickOfClock& tick : ticks) told[tick.clock] = tick.tick;
        ++times;
      });
    };
    REQUIRE(compiled.run().ok);
    Asks::at_tick_2_of_b = nullptr;
    CHECK(times == 1);
    CHECK(told ==
          std::map<std::string, uint64_t>{{"a", fate == "all end" ? exec::kNoTickTook : 3}, {"b", exec::kNoTickTook}});
    CHECK(compiled.seen("a").back().values[0] == (fate == "all end" ? 2 : 1008));
  }
}

TEST_CASE("2.7: changes that all lanes of their handlers have taken in are not kept") {
  Compiled compiled = two_clocks();
  compiled.live().start();
  for (int i = 0; i < 200; ++i) {
    std::promise<void> taken;
    compiled.live().set({{"arelay", "add", std::to_string(i)}, {"brelay", "add", std::to_string(i)}},
                        [&](const std::vector<exec::TickOfClock>&) { taken.set_value(); });
    taken.get_future().get();
  }
  compiled.live().stop();
  REQUIRE(compiled.wait().ok);
  CHECK(compiled.live().changes().size() < 20); // of 400: those of ticks that were in flight at the last admission
  CHECK(compiled.seen("aasked").back().values[0] == static_cast<int64_t>(compiled.seen("aasked").back().index) + 199);
}

TEST_CASE("2.7: a run says which values its handlers work with, from which tick on, and who asked for them") {
  Pipeline p;
  add_counted(p, "");
  Setup setup;
  setup.workers = 2;
  Compiled compiled(p, setup);
  exec::Run& run = compiled.live();
  run.start();
  CHECK(changed_values(run).empty());
  for (const char* text : {"5", "6"}) {
    std::atomic<uint64_t> taken{UINT64_MAX};
    run.set({{"relay", "add", text, "me"}},
            [&](const std::vector<exec::TickOfClock>& ticks) { taken = ticks[0].tick; });
    while (taken == UINT64_MAX) std::this_thread::yield();
    const std::string wanted = std::string("relay.add=") + text + " from " + std::to_string(taken) + " on by me";
    CHECK(changed_values(run) == std::vector<std::string>{wanted});
  }
  run.stop();
  REQUIRE(compiled.wait().ok);

  setup.options.script = {{3, {"relay", "add", "7"}}};
  setup.options.ticks_max = 20;
  Compiled again(p, setup);
  again.live().start();
  REQUIRE(again.wait().ok);
  CHECK(changed_values(again.live()) == std::vector<std::string>{"relay.add=7 from 3 on by the script"});
}

TEST_CASE("2.7: a value that the handler's own type cannot hold leaves the one before") {
  Pipeline p("t.count name=source count=0 ! c.asks name=asks ! t.sink name=sink log=small");
  std::atomic<int> refusals{0};
  Setup setup;
  setup.more = &asking_plugin();
  setup.options.on_message = [&](const std::string& message) {
    refusals += message.find("a change was refused") != std::string::npos;
  };
  Compiled compiled(p, setup);
  exec::Run& run = compiled.live();
  run.start();
  const auto set = [&](const char* text) {
    std::promise<void> taken;
    run.set({{"asks", "small", text}}, [&](const std::vector<exec::TickOfClock>&) { taken.set_value(); });
    taken.get_future().get();
  };
  const auto await_refusals = [&](int wanted) {
    while (refusals < wanted) std::this_thread::yield();
  };
  set("1000");
  await_refusals(1);
  CHECK(changed_values(run).empty());
  set("5");
  const std::vector<std::string> five = changed_values(run);
  REQUIRE(five.size() == 1);
  CHECK(five[0].find("asks.small=5 from ") == 0);
  set("1000");
  await_refusals(2);
  CHECK(changed_values(run) == five);
  // Several on one tick, and more before they are taken: what is refused never stands.
  run.set({{"asks", "small", "1000"}, {"asks", "small", "1001"}});
  run.set({{"asks", "small", "1002"}});
  await_refusals(5);
  CHECK(changed_values(run) == five);
  run.set({{"asks", "small", "1000"}, {"asks", "small", "6"}});
  await_refusals(6);
  CHECK(changed_values(run)[0].find("asks.small=6 from ") == 0);
  run.stop();
  CHECK(compiled.wait().ok);
}

TEST_CASE("2.7: a refused change names what is near, what can change, and who would have to be asked") {
  Pipeline p;
  add_counted(p, "");
  Compiled compiled(p, {});
  const Error handler = refused_change(compiled, "rely", "add");
  CHECK(handler.code == 301);
  CHECK(handler.nearest == "relay");
  REQUIRE(handler.notes.size() == 1);
  CHECK(handler.notes[0] == "there are: relay, sink, source");
  const Error param = refused_change(compiled, "relay", "ad");
  CHECK(param.code == 310);
  CHECK(param.nearest == "add");
  REQUIRE(param.notes.size() == 1);
  CHECK(param.notes[0] == "these can be changed while it runs: add");
  const Error value = refused_change(compiled, "relay", "add", "one");
  CHECK(value.code == 311);
  CHECK(value.edit == "relay.add=0");
  const Error fixed = refused_change(compiled, "source", "count");
  CHECK(fixed.code == 316);
  REQUIRE(fixed.notes.size() == 1);
  CHECK(fixed.notes[0] == "`millrace inspect t.count` says which parameters are live");
}

TEST_CASE(
    "2.7: the home of a clock takes changes of handlers elsewhere; another node refuses them, and says the home") {
  Pipeline p;
  add_counted(p, "");
  for (const char* name : {"edge", "gpu"}) {
    graph::Node node;
    node.name = name;
    p.graph.nodes.push_back(node);
  }
  p.graph.handlers[0].node = p.graph.handlers[2].node = "edge";
  p.graph.handlers[1].node = "gpu";
  Setup setup;
  setup.nodes = {"edge", "gpu"};
  const std::string what = "add of relay cannot be changed on this node";
  for (const uint32_t node : {0U, 1U}) {
    setup.node = node;
    Compiled compiled(p, setup);
    const Error refused = refused_change(compiled, "relay", "add");
    CHECK(refused.code == (node == 0 ? 0 : 316));
    if (node == 0) continue;
    CHECK(refused.what == what);
    REQUIRE(refused.notes.size() == 1);
    CHECK(refused.notes[0] == "its clock begins its ticks on node \"edge\"");
  }
}

TEST_CASE("a live parameter whose name begins with \"batch\" is the handler's own") {
  Pipeline p("t.count name=source count=0 ! c.asks name=asks ! t.sink name=sink log=batchsize");
  Setup setup;
  setup.more = &asking_plugin();
  Compiled compiled(p, setup);
  compiled.live().start();
  CHECK(refused_change(compiled, "asks", "batchsize", "2").code == 0);
  CHECK(refused_change(compiled, "asks", "batchsizes", "2").nearest == "batchsize");
  CHECK(refused_change(compiled, "asks", "batch", "2").code == code::parameter_not_live);
  CHECK(refused_change(compiled, "asks", "batch.size", "2").code == code::parameter_not_live);
  compiled.live().stop();
  CHECK(compiled.wait().ok);
}

TEST_CASE("a live value names no file outside of the folder that the run is confined to") {
  const graph::Confine confine(std::filesystem::temp_directory_path().string());
  Pipeline p("t.count name=source count=0 ! c.asks name=asks ! t.sink name=sink log=confined");
  Setup setup;
  setup.more = &asking_plugin();
  setup.options.confine = &confine;
  Compiled compiled(p, setup);
  compiled.live().start();
  for (const char* path : {"/etc/hosts", "../../../../../../etc/hosts", "http://127.0.0.1/a.ttf", "/dev/null"})
    CHECK(refused_change(compiled, "asks", "font", path).code == code::outside_folder);
  CHECK(refused_change(compiled, "asks", "font", confine.folder() + "/a.ttf").code == 0);
  CHECK(refused_change(compiled, "asks", "font", "").code == 0);
  compiled.live().stop();
  CHECK(compiled.wait().ok);
}
