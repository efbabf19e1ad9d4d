// State that the run keeps for handlers (semantics.md 4.7): the same sums on the host, on a device where bodies run by
// themselves, and on one where they enqueue, captured and not.
#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <iterator>
#include <mutex>
#include <string>
#include <vector>

#include "alike.h"
#include "enqueuing_handlers.h"
#include "observe/report.h"
#include "table_of.h"

namespace millrace::test::kept_state {
namespace {

using namespace enqueued;

struct Silent final : Handler { // never fires: it has no first call
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  State<int64_t> unused{*this};
  void process(Tick&, Cpu&) {}
};

struct ReadsInFinish final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  State<int64_t> sum{*this};
  void process(Tick& tick, Cpu&) { *fresh(out, tick) = number(in(tick)); }
  void process(Tick& tick, Cuda& cuda) {
    queue(cuda).launch([to = fresh(out, tick), from = numbers(in(tick).data())] { *to = *from; });
  }
  void finish(Tick& tick, Cpu&) { sum(tick)[0] = 1; }
};

const mr_plugin& state_plugin() {
  static const mr_handler_type* const types[] = {table_of<Index>("v.index"), table_of<enqueued::Sums>("v.sums"),
                                                 table_of<Silent>("v.silent"), table_of<ReadsInFinish>("v.finish")};
  static const mr_plugin table = {sizeof(mr_plugin), MR_ABI_VERSION, "v", "1", types, std::size(types), 0};
  return table;
}

constexpr int64_t kTicks = 40;

// The sums of one stream of the numbers from 0 on, if the state is zero again after the tick that fails.
std::vector<int64_t> sums(int64_t fail_at = -1) {
  std::vector<int64_t> values;
  int64_t sum = 0, count = 0;
  for (int64_t n = 0; n < kTicks; ++n) {
    sum += n;
    ++count;
    values.push_back(n == fail_at ? kEmpty : sum * 1000 + count);
    if (n == fail_at) sum = count = 0;
  }
  return values;
}

struct Place {
  const char* domain;
  bool adversarial;
  bool captured;
};
constexpr Place kPlaces[] = {{"cpu", false, false},
                             {"sim:0", false, false},
                             {"sim:0", true, false},
                             {"cuda:0", false, false},
                             {"cuda:0", false, true}};

// Numbers → sums, there → a sink on the host.
Ran run_sums(const Place& place, const Params& params, uint32_t in_flight, uint32_t workers = 1) {
  Pipeline pipeline;
  pipeline.clock(graph::ClockMode::free, 0, 1, in_flight);
  pipeline.add("source", "v.index", {{"count", std::to_string(kTicks)}}).device = "cpu";
  graph::Handler& handler = pipeline.add("sums", "v.sums", params);
  handler.device = place.domain;
  handler.on_error = graph::OnError::restart;
  pipeline.add("sink", "t.sink", {{"log", "v"}});
  pipeline.connect("source.out", "sums.in");
  pipeline.connect("sums.out", "sink.in");
  Setup setup;
  setup.more = &state_plugin();
  setup.domains = {"cpu"};
  if (std::string(place.domain) != "cpu") setup.domains.push_back(place.domain);
  setup.adversarial = place.adversarial;
  setup.workers = workers;
  setup.options.sync_devices = !place.captured;
  enqueued::Sums::where.clear();
  return run(std::move(pipeline), setup);
}

std::vector<int64_t> values_in(const Ran& ran) {
  std::vector<int64_t> values;
  for (const Seen& seen : ran.seen("v")) values.push_back(seen.values.at(0));
  return values;
}

bool was_launched(const Ran& ran) { return ran.report.regions.size() == 1 && ran.report.regions[0].launches > 0; }

TEST_CASE("4.7: state is zero at the start and kept from tick to tick, wherever the handler runs, captured and not") {
  for (const Place& place : kPlaces)
    for (const uint32_t in_flight : {1u, 4u}) {
      CAPTURE(place.domain);
      CAPTURE(place.captured);
      const Ran ran = run_sums(place, {}, in_flight, in_flight);
      REQUIRE_MESSAGE(ran.ok, ran.error.what);
      CHECK(values_in(ran) == sums());
      CHECK(was_launched(ran) == place.captured);
    }
}

TEST_CASE("4.7: state is at one address for the whole run, and each has bytes of its own") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.domain);
    CAPTURE(place.captured);
    REQUIRE(run_sums(place, {{"fail_at", "11"}}, 1).ok);
    REQUIRE(enqueued::Sums::where.size() == 1);
    CHECK(enqueued::Sums::where.at(0).size() == 2); // of two states, in all calls
  }
}

TEST_CASE("4.7: state is zero again after a restart, captured and not") {
  for (const Place& place : kPlaces)
    for (const int64_t fail_at : {0, 11}) {
      CAPTURE(place.domain);
      CAPTURE(place.captured);
      CAPTURE(fail_at);
      const Ran ran = run_sums(place, {{"fail_at", std::to_string(fail_at)}}, 1);
      REQUIRE_MESSAGE(ran.ok, ran.error.what);
      std::vector<int64_t> seen = values_in(ran), expected = sums(fail_at);
      // A GPU body has given its value before finish() fails.
      if (std::string(place.domain) == "cuda:0") seen[static_cast<size_t>(fail_at)] = kEmpty;
      CHECK(seen == expected);
      CHECK(was_launched(ran) == place.captured);
    }
}

TEST_CASE("4.7: a handler that never fires has state that nobody clears, and does no harm") {
  Setup setup;
  setup.more = &state_plugin();
  CHECK(run(Pipeline("v.index count=9 ! v.silent ! t.sink log=v"), setup).ok);
}

TEST_CASE("4.7: state belongs to process(): finish() is refused it") {
  for (const std::string device : {"cpu", "sim:0", "cuda:0"}) {
    CAPTURE(device);
    Setup setup;
    setup.more = &state_plugin();
    setup.domains = {"cpu"};
    if (device != "cpu") setup.domains.push_back(device);
    Pipeline pipeline("v.index name=source count=9 ! v.finish name=f ! t.sink log=v");
    pipeline.graph.handlers[0].device = "cpu";
    pipeline.graph.handlers[1].device = device;
    const Ran ran = run(std::move(pipeline), setup);
    CHECK_FALSE(ran.ok);
    CHECK(ran.error.what.find("a state belongs to process()") != std::string::npos);
  }
}

} // namespace
} // namespace millrace::test::kept_state

// Handlers are told where they start (rule 4.14): on the host, on simulated devices, and where bodies enqueue.
namespace millrace::test::starting {
namespace {

using namespace enqueued;

std::mutex told_mutex;
std::vector<std::string> told; // one line for each start

struct Told final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  Param<int64_t> fail_at{*this, "fail_at", -1, "the tick on which it fails once"};
  bool has_failed = false;

  void start(const DeviceInfo& device) override {
    const char* const kinds[] = {"cpu", "cuda", "sim"};
    const std::lock_guard lock(told_mutex);
    told.push_back(std::string(kinds[static_cast<uint32_t>(device.kind)]) + " " + std::to_string(device.ordinal) + " " +
                   std::string(device.name));
  }
  void fail_once(const Tick& tick) {
    if (has_failed || static_cast<int64_t>(tick.index()) != *fail_at) return;
    has_failed = true;
    throw std::runtime_error("once");
  }
  void process(Tick& tick, Cpu&) {
    fail_once(tick);
    *fresh(out, tick) = number(in(tick));
  }
  void process(Tick& tick, Cuda& cuda) {
    fail_once(tick);
    queue(cuda).launch([to = fresh(out, tick), from = numbers(in(tick).data())] { *to = *from; });
  }
};

struct Plain final : Handler { // as handlers were before they could be told
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  void start() override {
    const std::lock_guard lock(told_mutex);
    told.emplace_back("plain");
  }
  void process(Tick& tick, Cpu&) { *fresh(out, tick) = number(in(tick)); }
};

// A table that a plugin without the function brings.
mr_handler_type without_start_on() {
  mr_handler_type table = detail::Type<Plain>::table("w.old", "a test's", "");
  table.start_on = nullptr;
  return table;
}

const mr_plugin& starting_plugin() {
  static const mr_handler_type index = detail::Type<Index>::table("w.index", "a test's", "");
  static const mr_handler_type is_told = detail::Type<Told>::table("w.told", "a test's", "");
  static const mr_handler_type plain = detail::Type<Plain>::table("w.plain", "a test's", "");
  static const mr_handler_type old = without_start_on();
  static const mr_handler_type* const types[] = {&index, &is_told, &plain, &old};
  static const mr_plugin table = {sizeof(mr_plugin), MR_ABI_VERSION, "w", "1", types, std::size(types), 0};
  return table;
}

// The lines of the starts of a handler on that device, which gives numbers on to a sink.
std::vector<std::string> told_on(const std::string& handler, const std::string& device, int64_t fail_at = -1) {
  Pipeline pipeline = chain("w", {handler}, 9);
  pipeline.clock(graph::ClockMode::free, 0, 1, 1);
  pipeline.graph.handlers[0].device = "cpu";
  pipeline.graph.handlers[1].device = device;
  pipeline.graph.handlers[1].on_error = graph::OnError::restart;
  if (fail_at >= 0) pipeline.graph.handlers[1].params.push_back({"fail_at", std::to_string(fail_at), {}, {}});
  Setup setup;
  setup.more = &starting_plugin();
  setup.domains = {"cpu"};
  if (device != "cpu") setup.domains.push_back(device);
  told.clear();
  const Ran ran = run(std::move(pipeline), setup);
  CHECK_MESSAGE(ran.ok, ran.error.what);
  CHECK(ran.seen("w").size() == 9);
  return told;
}

using Lines = std::vector<std::string>;

TEST_CASE("4.14: a handler is told the device that it starts on, and again in a restart") {
  for (const auto& [device, line] : {std::pair{"cpu", "cpu 0 cpu"}, std::pair{"sim:0", "sim 0 sim:0"},
                                     std::pair{"sim:1", "sim 1 sim:1"}, std::pair{"cuda:0", "cuda 0 cuda:0"}}) {
    CAPTURE(device);
    CHECK(told_on("told", device) == Lines{line});
    CHECK(told_on("told", device, 4) == Lines{line, line});
  }
}

TEST_CASE(
    "4.14: a handler that is not told its device is started as before, also if its table ends in no such function") {
  for (const char* const device : {"cpu", "sim:0"}) {
    CAPTURE(device);
    CHECK(told_on("plain", device) == Lines{"plain"});
    CHECK(told_on("old", device) == Lines{"plain"});
  }
}

} // namespace
} // namespace millrace::test::starting
