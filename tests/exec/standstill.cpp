// A run that is asked to stand still: what it waits for, and how it goes on when it does not come to rest.
#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "harness.h"
#include "observe/log.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// Its calls of the first two ticks return; the third one does when it is let go.
std::atomic<bool> let_go{false};

struct Long final : Handler {
  Input<Tensor> in{*this, "in"};
  void process(Tick& tick, Cpu&) {
    while (tick.index() == 2 && !let_go.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
};

const mr_plugin& long_plugin() {
  static const mr_handler_type type = detail::Type<Long>::table("l.long", "Waits in its third call", "");
  static const mr_handler_type* types[] = {&type};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "l", "1", types, 1, 0};
  return plugin;
}

} // namespace

TEST_CASE("5.2: a run that does not come to rest says what it waits for and goes on; then it is cut after all") {
  Pipeline p;
  for (const char* name : {"quick", "slow"}) {
    graph::Clock clock;
    clock.name = name;
    clock.mode = graph::ClockMode::realtime;
    clock.rate = {name == std::string("quick") ? 1000 : 100, 1};
    p.graph.clocks.push_back(clock);
  }
  p.add("fast", "t.count", {{"count", "600"}}).clock = "quick";
  p.add("h1", "t.relay");
  p.add("h2", "t.relay");
  p.add("end", "t.sink", {{"log", "fast"}});
  p.connect("fast", "h1");
  p.connect("h1", "h2");
  p.connect("h2", "end");
  p.add("slow", "t.count", {{"count", "60"}}).clock = "slow";
  p.add("long", "l.long");
  p.connect("slow", "long");

  Setup setup;
  setup.workers = 3;
  setup.more = &long_plugin();
  std::vector<std::string> told;
  LogSettings settings;
  settings.record_level = LogLevel::info;
  settings.on_record = [&](const LogRecord& record) {
    if (!record.text.starts_with("not cut again")) return;
    told.emplace_back(record.text);
    let_go.store(true);
  };
  auto log = std::make_unique<Log>(settings);
  setup.options.log = log.get();
  const Ran result = run(p, setup);
  log = nullptr; // all is heard
  REQUIRE(result.ok);
  REQUIRE(!told.empty());
  CHECK(told[0] == "not cut again, since the run does not come to rest: long is in process (tick 2)");
  CHECK(result.report.cut_again);
  const std::vector<Seen> seen = result.seen("fast");
  for (size_t i = 0; i < seen.size(); ++i) REQUIRE(seen[i].index == i);
}
