// How workers wait for a device that works by itself, and rings only for who has asked.
#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <numeric>

#include "alike.h"
#include "device/sim/sim.h"
#include "device/timeline.h"

namespace millrace::test {
namespace {

constexpr int64_t kRunTicks = 40;

struct OnDevice final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  OnDevice() { capturable(); }
  void process(Tick& tick, Cuda& cuda) {
    const int64_t shape[] = {1};
    auto* to = reinterpret_cast<int64_t*>(out.allocate(tick, dtype_of<int64_t>(), shape).data());
    const auto* from = reinterpret_cast<const int64_t*>(in(tick).data());
    static_cast<device::SimQueue*>(cuda.stream())->launch([=] { *to = *from + 1; });
  }
};

// When handlers were reached that work for long behind the device.
std::vector<int64_t> reached_ns;

struct Busy final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", forward(in)};
  void process(Tick& tick, Cpu&) {
    const device::MonotonicTime time;
    reached_ns.push_back(time.now_ns());
    while (time.now_ns() < reached_ns.back() + 10 * kMs) {
    }
    out.forward(tick, in);
  }
};

const mr_plugin& workers_plugin() {
  static const mr_handler_type device = detail::Type<OnDevice>::table("w.device", "a test's", "");
  static const mr_handler_type busy = detail::Type<Busy>::table("w.busy", "a test's", "");
  static const mr_handler_type* const types[] = {&device, &busy};
  static const mr_plugin table = {sizeof(mr_plugin), MR_ABI_VERSION, "w", "1", types, 2, 0};
  return table;
}

// A source on the host, a region on the device, and what reads it on the host, one tick after another.
struct DeviceWait {
  device::SimWatcher hardware;
  std::array<std::atomic<bool>, kRunTicks + 1> watched{}; // by ticks submitted
  std::array<int64_t, kRunTicks> ended_ns{};

  explicit DeviceWait(std::function<int64_t(uint64_t)> takes_ns) {
    hardware.takes_ns = std::move(takes_ns);
    hardware.ends = [this](uint64_t replay) { ended_ns.at(replay) = device::MonotonicTime().now_ns(); };
    hardware.watched = [this](uint64_t replays) { watched.at(replays) = true; };
  }

  std::vector<int64_t> run(const std::string& reader = "", int64_t hz = 0) {
    Pipeline pipeline;
    pipeline.clock(hz ? graph::ClockMode::realtime : graph::ClockMode::free, hz, 1, 1);
    pipeline.add("source", "t.count", {{"count", std::to_string(kRunTicks)}}).device = "cpu";
    pipeline.add("body", "w.device");
    pipeline.add("sink", "t.sink", {{"log", "w"}});
    pipeline.connect("source", "body");
    if (!reader.empty()) pipeline.add("reader", reader).device = "cpu";
    if (!reader.empty()) pipeline.connect("body", "reader");
    pipeline.connect(reader.empty() ? "body" : "reader", "sink");
    Setup setup;
    setup.domains = {"cuda:0", "cpu"};
    setup.more = &workers_plugin();
    setup.gpu = [this](device::SimOptions& sim) {
      sim.adversarial = false;
      sim.watcher = hardware;
    };
    Compiled compiled(std::move(pipeline), setup);
    REQUIRE(compiled.regions().size() == 1);
    const Ran result = compiled.run();
    REQUIRE_MESSAGE(result.ok, result.error.what);
    return values(result.seen("w"));
  }
};

// The least of up to ten runs, which end with the first below the bound. What a worker has learned wrongly it does in
// each of them; a machine that is busy with other things leaves one of them alone.
int64_t least_of_runs(const std::function<int64_t()>& run, int64_t bound) {
  int64_t least = INT64_MAX;
  for (int i = 0; i < 10 && least >= bound; ++i) least = std::min(least, run());
  return least;
}

void check_all_there(const std::vector<int64_t>& seen) {
  REQUIRE(seen.size() == kRunTicks);
  for (size_t n = 0; n < seen.size(); ++n) CHECK(seen[n] == static_cast<int64_t>(n) + 1);
}

TEST_CASE("4.2: a worker that has learned when a device ends looks by itself, and does not ask it to watch") {
  constexpr int64_t kLearning = 10;
  DeviceWait waiting([](uint64_t) { return 16 * kMs; });
  check_all_there(waiting.run());
  // If others take the processor, a tick may end later than was learned, and the device is asked. A waiter that does
  // not look by itself asks on every tick.
  CHECK(std::count(waiting.watched.begin() + kLearning, waiting.watched.end(), true) <=
        (kRunTicks - kLearning) * 3 / 4);
}

TEST_CASE("4.2: one short wait among long ones is not what a worker expects next") {
  constexpr int64_t kLearning = 10;
  DeviceWait waiting([](uint64_t replay) { return replay % 8 == 3 ? kMs : 10 * kMs; });
  check_all_there(waiting.run());
  // It would look out for the short one for a while, and then have the device watch.
  CHECK(std::count(waiting.watched.begin() + kLearning, waiting.watched.end(), true) <= (kRunTicks - kLearning) / 2);
}

TEST_CASE("4.2: what a device ends earlier or later than was learned is found before a sleeper looks in any case") {
  constexpr std::array<int64_t, 8> kTakes = {8, 8, 8, 1, 8, 30, 8, 3}; // ms
  const auto takes_ns = [&](uint64_t replay) { return kTakes[replay % kTakes.size()] * kMs; };
  const auto late_in_a_round = [&] {
    DeviceWait waiting(takes_ns);
    check_all_there(waiting.run());
    // By the median over the rounds: a stall of the machine falls into one of them.
    std::array<int64_t, kTakes.size()> late{};
    for (size_t place = 0; place < kTakes.size(); ++place) {
      std::vector<int64_t> waited; // what the next one waited before it could begin
      for (size_t tick = place; tick + 1 < kRunTicks; tick += kTakes.size())
        waited.push_back(waiting.ended_ns[tick + 1] - waiting.ended_ns[tick] - takes_ns(tick + 1));
      std::sort(waited.begin(), waited.end());
      late[place] = waited[waited.size() / 2];
    }
    // The machine itself is late for those that take as long as was learned, too.
    const int64_t of_the_machine = std::max<int64_t>(late[1], 0);
    return std::accumulate(late.begin(), late.end(), int64_t{0}) - static_cast<int64_t>(late.size()) * of_the_machine;
  };
  // One of 30 ms that nobody was told of would be found 70 ms late.
  CHECK(least_of_runs(late_in_a_round, 65 * kMs) < 65 * kMs);
}

TEST_CASE("4.2: what a worker does with what it waited for is not taken for waiting: the next is found in time") {
  const auto late_in_the_middle = [] {
    reached_ns.clear();
    DeviceWait waiting([](uint64_t) { return 12 * kMs; });
    check_all_there(waiting.run("w.busy"));
    REQUIRE(reached_ns.size() == kRunTicks);
    std::vector<int64_t> late_ns;
    for (size_t tick = 0; tick < kRunTicks; ++tick) late_ns.push_back(reached_ns[tick] - waiting.ended_ns[tick]);
    std::sort(late_ns.begin(), late_ns.end());
    return late_ns[kRunTicks / 2];
  };
  CHECK(least_of_runs(late_in_the_middle, 5 * kMs / 2) < 5 * kMs / 2); // 5 where the work is taken for waiting
}

TEST_CASE("4.5: a region that a clock starts is warmed up once before a beat, and one without a clock is not") {
  for (const int64_t hz : {50, 0}) {
    int warmed_up = 0;
    DeviceWait waiting([](uint64_t) { return kMs; });
    waiting.hardware.warmed_up = [&] { ++warmed_up; };
    check_all_there(waiting.run("", hz));
    CHECK(warmed_up <= (hz ? kRunTicks + 1 : 0));
    if (hz) CHECK(warmed_up >= 1); // who is late for a beat has no time for it
  }
}

} // namespace
} // namespace millrace::test
