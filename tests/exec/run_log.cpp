// Log lines of a run: which handler wrote one in which call, and the lines about the run's own life.
#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "harness.h"
#include "observe/log.h"
#include "observe/log_lines.h"

using namespace millrace;
using namespace millrace::test;

namespace {

const mr_plugin& speakers();

// Everything down to debug, in order, as JSON. Read when it is ended.
class LogListener {
 public:
  LogListener() {
    LogSettings settings;
    settings.places = 1 << 16;
    settings.record_level = LogLevel::debug;
    settings.on_record = [this](const LogRecord& record) {
      heard_.push_back(nlohmann::json::parse(json_line(record)));
    };
    settings.on_line = [this](const std::string& line) { lines_.push_back(line); };
    log_ = std::make_unique<Log>(settings);
  }
  Setup setup(uint32_t workers = 1) {
    Setup setup;
    setup.workers = workers;
    setup.options.log = log_.get();
    setup.more = &speakers();
    return setup;
  }
  const std::vector<nlohmann::json>& heard() {
    log_ = nullptr;
    return heard_;
  }
  const std::vector<std::string>& lines() {
    log_ = nullptr;
    return lines_;
  }
  // The lines whose text begins with these words.
  std::vector<nlohmann::json> about(const std::string& beginning) {
    std::vector<nlohmann::json> found;
    for (const nlohmann::json& record : heard())
      if (record["text"].get<std::string>().starts_with(beginning)) found.push_back(record);
    return found;
  }

 private:
  std::unique_ptr<Log> log_;
  std::vector<nlohmann::json> heard_;
  std::vector<std::string> lines_;
};

// Says on every call which tick it is in, and hands its input on with a stream of its own.
struct Speaker final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  void process(Tick& tick, Cpu&) {
    log(MR_LOG_INFO, "in tick " + std::to_string(tick.index()));
    const int64_t shape[] = {1};
    out.allocate(tick, dtype_of<int64_t>(), shape).elements<int64_t>()[0] = in(tick).elements<int64_t>()[0];
    out.raw(tick).value->header.stream = 7;
  }
};

// Says the same on every call, and something of its own on another thread.
struct Parrot final : Handler {
  Input<Tensor> in{*this, "in"};
  void start() override { log(MR_LOG_DEBUG, "it begins"); }
  void process(Tick& tick, Cpu&) {
    log(MR_LOG_WARNING, "again");
    if (tick.index() == 3) std::thread([&] { log(MR_LOG_INFO, "elsewhere"); }).join();
  }
};

// Speaks while the plan is made.
struct Planner final : Handler {
  Input<Tensor> in{*this, "in"};
  void probe(Facts&) override { log(MR_LOG_WARNING, "the file is damaged"); }
  void configure(const Formats&) override {
    for (int time = 0; time < 2; ++time) log(MR_LOG_INFO, "called one by one");
  }
  void process(Tick&, Cpu&) {}
};

const mr_plugin& speakers() {
  static const mr_handler_type types[] = {
      detail::Type<Planner>::table("tell.planner", "Says something of the plan", ""),
      detail::Type<Speaker>::table("tell.speaker", "Says which tick it is in", ""),
      detail::Type<Parrot>::table("tell.parrot", "Says the same on every tick", ""),
  };
  static const mr_handler_type* const pointers[] = {&types[0], &types[1], &types[2]};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "tell", "1", pointers, 3, 0};
  return plugin;
}

bool has(const std::vector<std::string>& lines, const std::string& line) {
  return std::find(lines.begin(), lines.end(), line) != lines.end();
}

} // namespace

TEST_CASE("What a handler says in a call has the handler, its clock, the tick and the stream of its first input") {
  for (const uint32_t workers : {1u, 3u}) {
    CAPTURE(workers);
    LogListener listener;
    Pipeline p = line({"tell.speaker", "tell.speaker"}, "spoken", 200);
    p.clock(graph::ClockMode::free);
    p.graph.clocks[0].name = "main";
    p.graph.handlers[2].every = 3;
    const Ran ran = run(p, listener.setup(workers));
    REQUIRE(ran.ok);
    const auto spoken = listener.about("in tick ");
    CHECK(spoken.size() == 200 + 67);
    uint64_t next_of_first = 0;
    for (const auto& record : spoken) {
      CHECK(record["text"] == "in tick " + std::to_string(record["tick"].get<uint64_t>()));
      CHECK(record["clock"] == "main");
      if (record["handler"] == "h1") CHECK(record["tick"] == next_of_first++); // in order
      CHECK(record["stream"] == (record["handler"] == "h1" ? 0 : 7));
    }
  }
}

TEST_CASE("A decoupled handler speaks in the tick of its clock, which is not the number of its call") {
  LogListener listener;
  Pipeline p;
  p.add("source", "t.count", {{"count", "60"}, {"silent_every", "3"}});
  p.add("speaker", "tell.speaker");
  p.add("parrot", "tell.parrot"); // needs a value, so that empty ticks are not let in
  p.connect("source", "speaker", graph::Policy::queue);
  p.connect("speaker", "parrot");
  const Ran ran = run(p, listener.setup(2));
  REQUIRE(ran.ok);
  const auto spoken = listener.about("in tick ");
  CHECK(spoken.size() == 40);
  for (const auto& record : spoken)
    CHECK(record["text"] == "in tick " + std::to_string(record["tick"].get<uint64_t>()));
}

TEST_CASE("Infos of a handler while the plan is made are on the terminal once, unless the run is quiet") {
  for (const bool quiet : {false, true}) {
    CAPTURE(quiet);
    LogListener listener;
    Setup setup = listener.setup();
    setup.options.quiet = quiet;
    REQUIRE(run(Pipeline("t.count name=source count=2 ! tell.planner name=planner"), setup).ok);
    CHECK(std::count(listener.lines().begin(), listener.lines().end(), "info planner: called one by one") == !quiet);
    CHECK(has(listener.lines(), "warning planner: the file is damaged"));
    CHECK(listener.about("called one by one").size() == 1); // in the log in any case
  }
}

TEST_CASE("Outside a call there is no tick, and a terminal shows a sentence once of those that the log has each time") {
  LogListener listener;
  Pipeline p("t.count name=source count=40 ! tell.parrot name=parrot");
  const Ran result = run(p, listener.setup());
  REQUIRE(result.ok);
  CHECK(result.report.log_lost == 0);
  CHECK(result.report.handlers[1].messages.size() == 3);
  CHECK(listener.about("again").size() == 40);
  CHECK(std::count(listener.lines().begin(), listener.lines().end(), "warning parrot: again") == 1);
  CHECK(has(listener.lines(), "info parrot: elsewhere"));
  CHECK_FALSE(has(listener.lines(), "debug parrot: it begins"));
  for (const char* text : {"it begins", "elsewhere"}) {
    const auto found = listener.about(text);
    REQUIRE(found.size() == 1);
    CHECK(found[0]["handler"] == "parrot");
    CHECK_FALSE(found[0].contains("tick"));
  }
}

TEST_CASE("A run tells when its clocks begin and end and how it ended, and the terminal hears nothing of that") {
  LogListener listener;
  Pipeline p = line({"t.relay"}, "failing", 100);
  p.graph.handlers[1].params.push_back({"fail_at", "20", {}, {}});
  const Ran result = run(p, listener.setup());
  REQUIRE_FALSE(result.ok);
  CHECK(listener.about("the clock begins: free").size() == 1);
  CHECK(listener.about("the clock has ended: ").size() == 1);
  CHECK(listener.about("the run is over: ").size() == 1);
  const auto error = listener.about(result.error.what);
  REQUIRE(error.size() == 1);
  CHECK(error[0]["level"] == "error");
  CHECK(error[0]["code"] == "MR0601");
  CHECK(listener.lines().empty());
}

TEST_CASE("A restart is told with the tick and the cause") {
  LogListener listener;
  Pipeline p = line({"t.relay"}, "restarted", 30);
  p.graph.handlers[1].on_error = graph::OnError::restart;
  p.graph.handlers[1].params.push_back({"fail_at", "20", {}, {}});
  const Ran ran = run(p, listener.setup());
  REQUIRE(ran.ok);
  const auto told = listener.about("restart 1: ");
  REQUIRE(told.size() == 1);
  CHECK(told[0]["handler"] == "h1");
  CHECK(told[0]["tick"] == 20);
}

TEST_CASE(
    "Values that are dropped are told when that begins and when it is over, with the edge, the cause and the count") {
  LogListener listener;
  Pipeline p = line({"t.relay"}, "dropped", 40);
  p.clock(graph::ClockMode::realtime, 100);
  p.graph.edges[0].policy = graph::Policy::queue;
  p.graph.edges[0].full = graph::Full::drop_oldest;
  Setup setup = listener.setup();
  setup.virtual_time = true;
  setup.costs_ns = {{"h1", 35 * kMs}};
  setup.workers = 2;
  const Ran result = run(p, setup);
  REQUIRE(result.ok);
  const uint64_t dropped = result.report.edges[0].dropped.at("queue_full");
  const auto told = listener.about("values of source.out are dropped (queue_full)");
  REQUIRE(told.size() == 1);
  CHECK(told[0]["handler"] == "h1");
  CHECK(listener.about(std::to_string(dropped) + " values of source.out were dropped (queue_full)").size() == 1);
}

TEST_CASE("A region that is recorded and a second cut are told") {
  LogListener listener;
  Pipeline p = line({"t.capturable", "t.capturable"}, "recorded", 5);
  for (size_t h : {1, 2}) p.graph.handlers[h].device = "sim:0";
  Setup setup = listener.setup();
  setup.domains = {"cpu", "sim:0"};
  const Ran ran = run(p, setup);
  REQUIRE(ran.ok);
  CHECK(listener.about("captured on sim:0 as one: h1, h2").size() == 1);

  LogListener other;
  Setup cut = other.setup(3);
  cut.virtual_time = true;
  cut.options.cost_ns = [](const std::string&, uint64_t) { return 1000; };
  const Ran result = run(line({"t.relay", "t.relay", "t.relay"}, "short", 200), cut);
  REQUIRE(result.report.cut_again);
  CHECK(other.about("cut again by what the first ticks took: ").size() == 1);
}
