// Run time over machines whose clocks go at their own rates: it is as right as it says, and costs no beat.
#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "net/heartbeat.h"
#include "node/run_time.h"
#include "observe/random.h"
#include "tests/chance.h"
#include "tests/exec/spread.h"
#include "tests/net/sim/process.h"
#include "tests/seed.h"

namespace millrace::node {
namespace {

namespace rig = millrace::test;

constexpr int64_t kRunNs = 300 * net::kSecond;

// ---- machines ------------------------------------------------------------------------------------------------------

class MachineClock final : public device::Timeline {
 public:
  MachineClock(const device::VirtualTime& time, net::sim::Clock clock) : time_(time), clock_(clock) {}
  int64_t now_ns() const override { return clock_.at(time_.now_ns()); }

 private:
  const device::VirtualTime& time_;
  net::sim::Clock clock_;
};

// A machine with the run time that its node goes by.
struct Machine {
  Machine(const device::VirtualTime& virtual_time, net::sim::Clock like) : clock(virtual_time, like), time(clock) {}
  MachineClock clock;
  RunTime time;
  net::Heartbeat heartbeat; // to the coordinator
};

// Machines in one virtual time. The first one coordinates, and the others ping it over lines that take all their time
// on one of the two ways: each offset is then as wrong as its error says. For machine 1 that is the way there.
class Machines {
 public:
  Machines(device::VirtualTime& time, const std::vector<net::sim::Clock>& clocks) : time_(time) {
    for (const net::sim::Clock& clock : clocks) all_.push_back(std::make_unique<Machine>(time, clock));
    for (size_t m = 1; m < all_.size(); ++m) {
      all_[m]->heartbeat.begin(all_[m]->clock.now_ns());
      look(m);
    }
  }
  Machine& operator[](size_t machine) { return *all_[machine]; }
  size_t size() const { return all_.size(); }

  // The run begins 100 ms after the offsets are known.
  void begin() {
    const auto is_known = [](const std::unique_ptr<Machine>& machine) {
      return machine->heartbeat.offset(machine->clock.now_ns()).known;
    };
    while (!std::all_of(all_.begin() + 1, all_.end(), is_known)) time_.step();
    const int64_t zero_ns = all_[0]->clock.now_ns() + 100 * kMs;
    all_[0]->time.begin(zero_ns, {0, 0});
    for (size_t m = 1; m < all_.size(); ++m) all_[m]->time.begin(zero_ns, offset(*all_[m]));
  }

  // No ping is answered from here to there.
  int64_t silent_from_ns = INT64_MAX, silent_to_ns = INT64_MAX;

 private:
  static RunTime::Offset offset(const Machine& machine) {
    const net::Heartbeat::Offset found = machine.heartbeat.offset(machine.clock.now_ns());
    return {found.offset_ns, found.error_ns};
  }

  // As a node does it, twenty times a second.
  void look(size_t m) {
    Machine& machine = *all_[m];
    const int64_t now_ns = machine.clock.now_ns();
    if (machine.heartbeat.ping_due(now_ns)) {
      machine.heartbeat.pinged(now_ns);
      ping(machine);
    }
    if (machine.heartbeat.presence(now_ns) != net::Presence::away) machine.time.follow(offset(machine));
    time_.schedule(time_.now_ns() + 50 * kMs, [this, m] { look(m); });
  }

  void ping(Machine& machine) {
    const bool is_silent = time_.now_ns() >= silent_from_ns && time_.now_ns() < silent_to_ns;
    if (is_silent || chance(random_, 50)) return;
    const int64_t trip_ns = 2 * kMs + random_.spread(10'000, 30 * kMs), stays_ns = random_.between(0, 2 * kMs);
    const bool is_slow_there = &machine == all_[1].get();
    const int64_t there_ns = is_slow_there ? trip_ns : 0, back_ns = trip_ns - there_ns;
    const int64_t t1 = machine.clock.now_ns();
    time_.schedule(time_.now_ns() + there_ns, [=, this, &machine] {
      const int64_t t2 = all_[0]->clock.now_ns();
      time_.schedule(time_.now_ns() + stays_ns, [=, this, &machine] {
        const int64_t t3 = all_[0]->clock.now_ns();
        time_.schedule(time_.now_ns() + back_ns, [=, &machine] {
          machine.heartbeat.heard(machine.clock.now_ns());
          machine.heartbeat.answered({t1, t2, t3}, machine.clock.now_ns());
        });
      });
    });
  }

  device::VirtualTime& time_;
  Random random_{random_seed()};
  std::vector<std::unique_ptr<Machine>> all_;
};

// ---- handlers ------------------------------------------------------------------------------------------------------

// When something happened: by the coordinator's time, and by that of the node where it did.
struct Moment {
  int64_t shared_ns, own_ns, error_ns;
};
struct Pair {
  int64_t left, right; // indices; -1: none
};
// The handlers of the one run that there is note this.
struct Notes {
  Machines* machines = nullptr;
  std::map<std::string, std::vector<Moment>> moments; // by camera or screen, by index
  std::vector<Pair> pairs;
};
Notes notes;

// Notes its calls by the clock of the machine that it is on.
struct OnMachine : Handler {
  Param<int64_t> machine{*this, "machine", 0, "where it is"};
  Param<std::string> log{*this, "log", "", "what its calls are noted as"};
  void note() {
    const RunTime& own = (*notes.machines)[static_cast<size_t>(*machine)].time;
    notes.moments[*log].push_back({(*notes.machines)[0].time.now_ns(), own.now_ns(), own.error_ns()});
  }
};

struct Camera final : OnMachine {
  Output<Tensor> out{*this, "out"};
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}); }
  void process(Tick& tick, Cpu&) {
    note();
    rig::write_one(out, tick, static_cast<int64_t>(tick.index()));
  }
};

struct Screen final : OnMachine {
  Input<Tensor> in{*this, "in"};
  void process(Tick& tick, Cpu&) {
    REQUIRE(rig::read_one(in(tick)) == static_cast<int64_t>(notes.moments[*log].size())); // it misses no tick
    note();
  }
};

struct Both final : Handler {
  Input<Tensor> left{*this, "left"};
  Input<Tensor> right{*this, "right", optional};
  void process(Tick& tick, Cpu&) {
    notes.pairs.push_back({rig::read_one(left(tick)), right.present(tick) ? rig::read_one(right(tick)) : -1});
  }
};

const mr_plugin& drifting_plugin() {
  static const mr_handler_type types[] = {detail::Type<Camera>::table("d.camera", "Notes its calls", ""),
                                          detail::Type<Screen>::table("d.screen", "Notes its calls", ""),
                                          detail::Type<Both>::table("d.both", "Notes its pairs", "")};
  static const mr_handler_type* const pointers[] = {&types[0], &types[1], &types[2]};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "drifting", "1", pointers, 3, 0};
  return plugin;
}

constexpr int64_t kLeftHz = 30, kRightHz = 25, kWithinNs = 10 * kMs;

// Two cameras on machines 1 and 2, whose pictures meet on machine 0; a screen on machine 2 shows the left one.
rig::Pipeline two_cameras() {
  rig::Pipeline p;
  graph::Clock left, right;
  left.name = "left";
  right.name = "right";
  left.mode = right.mode = graph::ClockMode::realtime;
  left.rate = {kLeftHz, 1};
  right.rate = {kRightHz, 1};
  p.graph.clocks = {left, right};
  const auto add = [&](const char* name, const char* type, const char* machine, const rig::Params& params) {
    graph::Handler& handler = p.add(name, type, params);
    handler.node = machine;
    return &handler;
  };
  add("a", "d.camera", "left", {{"machine", "1"}, {"log", "a"}})->clock = "left";
  add("b", "d.camera", "right", {{"machine", "2"}, {"log", "b"}})->clock = "right";
  add("both", "d.both", "hub", {});
  add("screen", "d.screen", "right", {{"machine", "2"}, {"log", "screen"}});
  p.connect("a", "both.left");
  p.connect("b", "both.right", graph::Policy::align).within_ns = kWithinNs;
  p.connect("a", "screen");
  return p;
}

// Each of 300 s of run time has as many calls as the rate says, each at its beat.
void check_beats(const std::vector<Moment>& calls, int64_t hz) {
  CHECK(std::abs(static_cast<int64_t>(calls.size()) - kRunNs / net::kSecond * hz) <= 1);
  int64_t latest_ns = 0;
  for (size_t i = 0; i < calls.size(); ++i)
    latest_ns = std::max(latest_ns, calls[i].own_ns - static_cast<int64_t>(i) * net::kSecond / hz);
  CHECK(latest_ns <= 2);
}

// The right picture whose time is next to that of the left one; -1 if none is within the limit.
int64_t nearest_right(int64_t left) {
  const auto apart_ns = [&](int64_t right) {
    return std::abs(left * net::kSecond / kLeftHz - right * net::kSecond / kRightHz);
  };
  const int64_t before = left * kRightHz / kLeftHz;
  const int64_t nearest = apart_ns(before) <= apart_ns(before + 1) ? before : before + 1;
  return apart_ns(nearest) <= kWithinNs ? nearest : -1;
}

// Returns the largest error of the times of a pair.
int64_t check_pairs(const std::vector<Moment>& a, const std::vector<Moment>& b) {
  REQUIRE(notes.pairs.size() + 2 >= a.size());
  size_t whole = 0;
  int64_t largest_error_ns = 0;
  for (const auto& [left, right] : notes.pairs) {
    if (static_cast<size_t>(left) + 4 > a.size()) break; // the end of the other camera may come first
    REQUIRE(right == nearest_right(left));
    if (right < 0) continue;
    ++whole;
    const Moment &taken = a[static_cast<size_t>(left)], &other = b[static_cast<size_t>(right)];
    const int64_t media_ns = left * net::kSecond / kLeftHz - right * net::kSecond / kRightHz;
    REQUIRE(std::abs(taken.shared_ns - other.shared_ns - media_ns) <= taken.error_ns + other.error_ns + 4);
    largest_error_ns = std::max(largest_error_ns, taken.error_ns + other.error_ns);
  }
  CHECK(whole >= notes.pairs.size() / 2 - 3);
  return largest_error_ns;
}

// The edge says by how much the times may be wrong that it compares. Besides those that it pairs it compares the next.
void check_align(const Report& report, int64_t paired_error_ns) {
  const auto edge = std::find_if(report.edges.begin(), report.edges.end(),
                                 [](const EdgeReport& one) { return one.policy == "align"; });
  REQUIRE(edge != report.edges.end());
  CHECK(edge->within_us == static_cast<double>(kWithinNs) / 1000);
  const double paired_us = static_cast<double>(paired_error_ns) / 1000;
  CHECK(edge->clock_error_us >= paired_us - 0.01);
  CHECK(edge->clock_error_us <= paired_us + 100); // errors grow by 401 ppm, and a period is 40 ms
  CHECK(edge->is_too_fine() == (paired_error_ns > kWithinNs));
}

int64_t quantile(std::vector<int64_t> sorted, double at) {
  return sorted[std::min(sorted.size() - 1, static_cast<size_t>(at * static_cast<double>(sorted.size())))];
}

// The screen's latency as its node measures it is the true one, but for the error that it says and the histogram's 3 %.
void check_latency(const PathReport& path, const std::vector<Moment>& from, const std::vector<Moment>& to) {
  REQUIRE(to.size() + 2 >= from.size());
  std::vector<int64_t> latencies;
  int64_t largest_error_ns = 0;
  for (size_t i = 0; i < to.size(); ++i) {
    latencies.push_back(to[i].shared_ns - from[i].shared_ns);
    largest_error_ns = std::max(largest_error_ns, from[i].error_ns + to[i].error_ns);
  }
  CHECK(path.home == "left");
  CHECK(std::abs(path.clock_error_us * 1000 - static_cast<double>(largest_error_ns)) <= 2);
  std::sort(latencies.begin(), latencies.end());
  CHECK(path.sampled == to.size());
  for (const auto& [measured_us, true_ns] : {std::pair{path.p50_us, quantile(latencies, 0.5)},
                                             {path.p99_us, quantile(latencies, 0.99)},
                                             {path.max_us, latencies.back()}}) {
    CAPTURE(true_ns);
    CAPTURE(measured_us);
    CHECK(std::abs(measured_us * 1000 - static_cast<double>(true_ns)) <=
          path.clock_error_us * 1000 + 0.032 * measured_us * 1000 + 2);
  }
}

// Looks at all run times each millisecond.
class Watch {
 public:
  Watch(device::VirtualTime& time, Machines& machines) : time_(time), machines_(machines) { look(); }
  int64_t largest_error_ns = 0, largest_difference_ns = 0;
  uint64_t looks = 0;

 private:
  struct Seen {
    int64_t machine_ns, run_ns, error_ns;
  };
  void look() {
    std::vector<Seen> seen;
    for (size_t m = 0; m < machines_.size(); ++m)
      seen.push_back({machines_[m].clock.now_ns(), machines_[m].time.now_ns(), machines_[m].time.error_ns()});
    for (size_t m = 0; m < seen.size(); ++m) {
      for (size_t other = 0; other < m; ++other) {
        const int64_t apart_ns = std::abs(seen[m].run_ns - seen[other].run_ns);
        REQUIRE(apart_ns <= seen[m].error_ns + seen[other].error_ns);
        largest_difference_ns = std::max(largest_difference_ns, apart_ns);
      }
      largest_error_ns = std::max(largest_error_ns, seen[m].error_ns);
      if (last_.empty()) continue;
      const int64_t went_ns = seen[m].run_ns - last_[m].run_ns, step_ns = seen[m].machine_ns - last_[m].machine_ns;
      REQUIRE(went_ns >= 0);
      REQUIRE(std::abs(went_ns - step_ns) <= step_ns * RunTime::kSlewPpm / 1'000'000 + 1);
    }
    last_ = std::move(seen);
    ++looks;
    time_.schedule(time_.now_ns() + kMs, [this] { look(); });
  }

  device::VirtualTime& time_;
  Machines& machines_;
  std::vector<Seen> last_;
};

} // namespace

TEST_CASE(
    "7.12: with clocks that drift, run time is as right as it says, and beats, latency and pairs are right by it") {
  const std::vector<std::vector<net::sim::Clock>> histories = {
      {{0, -200}, {100'000 * net::kSecond, 200}, {-100'000 * net::kSecond, 200}},
      {{100'000 * net::kSecond, 200}, {0, -200}, {3 * net::kSecond, -200}},
      {{0, 0}, {-100'000 * net::kSecond, 200}, {100'000 * net::kSecond, -200}},
  };
  for (const std::vector<net::sim::Clock>& clocks : histories) {
    CAPTURE(clocks[1].drift_ppm - clocks[0].drift_ppm);
    device::VirtualTime time;
    Machines machines(time, clocks);
    machines.silent_from_ns = 100 * net::kSecond;
    machines.silent_to_ns = 110 * net::kSecond;
    machines.begin();
    notes = {&machines, {}, {}};
    Watch watch(time, machines);

    rig::Nodes nodes;
    nodes.names = {"hub", "left", "right"};
    nodes.own_times = {&machines[0].time, &machines[1].time, &machines[2].time};
    Random random(random_seed());
    nodes.link = [&](size_t, size_t) { return rig::Link{random.between(2 * kMs, 12 * kMs), 0, {}}; };
    rig::Setup setup;
    setup.time = &time;
    setup.more = &drifting_plugin();
    setup.options.begin_ns = 0;
    setup.options.duration_ns = kRunNs;
    rig::Spread spread(two_cameras(), nodes, setup);
    const rig::Ran ran = spread.run();
    REQUIRE(ran.error.what == "");

    CHECK(watch.looks > 300'000);
    CHECK(watch.largest_difference_ns > kMs); // else there was nothing to see: unfollowed it would be 120 ms
    CHECK(watch.largest_error_ns < 25 * kMs);
    check_beats(notes.moments["a"], kLeftHz);
    check_beats(notes.moments["b"], kRightHz);
    for (size_t node = 0; node < 3; ++node) {
      CHECK(spread.report_of(node).ticks_late == 0);
      CHECK(spread.report_of(node).ticks_skipped == 0);
    }
    check_align(spread.report_of(0), check_pairs(notes.moments["a"], notes.moments["b"]));
    const std::vector<PathReport> paths = spread.report_of(2).paths;
    const auto path = std::find_if(paths.begin(), paths.end(), [](const auto& one) { return one.sink == "screen"; });
    REQUIRE(path != paths.end());
    check_latency(*path, notes.moments["a"], notes.moments["screen"]);
  }
}

} // namespace millrace::node
