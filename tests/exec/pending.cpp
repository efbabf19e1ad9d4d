// Handlers that owe firings, whose input has gaps: every run ends, whatever the gaps, the window and the threads
// (semantics.md 8.4).
#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <random>
#include <thread>

#include "exec/run.h"
#include "harness.h"
#include "tests/part.h"

using namespace millrace;
using namespace millrace::test;

namespace {

uint64_t scrambled(uint64_t value) {
  value ^= value >> 31;
  value *= 0x9e3779b97f4a7c15ull;
  return value ^ (value >> 29);
}

// Stretches of values and of nothing, of random lengths.
bool in_a_stretch(uint64_t seed, uint64_t length_max, uint64_t index) {
  std::mt19937_64 draw(seed);
  bool value = draw() % 2;
  for (uint64_t at = 0;; value = !value) {
    at += 1 + draw() % length_max;
    if (index < at) return value;
  }
}

// Passes a tick on, or not, by its index alone.
struct Gappy final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  Param<int64_t> seed{*this, "seed", 1, "draws the gaps"};
  Param<int64_t> one_in{*this, "one_in", 0, "one tick of so many has a value; 0: stretches by the seed"};
  Param<int64_t> gap_max{*this, "gap_max", 4, "ticks of a stretch at most", at_least(1)};
  void process(Tick& tick, Cpu&) {
    const bool passes = one_in > 0
                            ? tick.index() % static_cast<uint64_t>(*one_in) == 0
                            : in_a_stretch(static_cast<uint64_t>(*seed), static_cast<uint64_t>(*gap_max), tick.index());
    if (passes) write_one(out, tick, read_one(in(tick)));
  }
};

// Owes as many firings as it may, and publishes the oldest when it owes one more: the guide's example. What it
// publishes says how often it was reset, so that runs that drain at other ticks differ.
struct Behind : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  struct Owed {
    Tick tick;
    int64_t value;
  };
  std::deque<Owed> owed;
  int64_t resets = 0;
  const size_t most;
  explicit Behind(uint32_t count) : most(count) {
    max_pending(count);
    drains_freely();
  }
  void process(Tick& tick, Cpu&) {
    owed.push_back({tick.defer(), read_one(in(tick)) * 1000 + resets});
    if (owed.size() > most) settle_one();
  }
  void drain() override {
    while (!owed.empty()) settle_one();
  }
  void reset() override { ++resets; }
  void settle_one() {
    write_one(out, owed.front().tick, owed.front().value);
    owed.front().tick.publish();
    owed.pop_front();
  }
};
template <uint32_t kMost>
struct BehindBy final : Behind {
  BehindBy() : Behind(kMost) {}
};

struct Failing final : Behind {
  Failing() : Behind(3) {}
  void process(Tick& tick, Cpu& cpu) {
    if (tick.index() % 5 == 4) throw std::runtime_error("told to fail before it defers");
    Behind::process(tick, cpu);
  }
};

// The guide's example to the letter: it defers, and where it owes three publishes one.
struct Guide final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", forward(in)};
  std::deque<Tick> owed;
  Guide() {
    max_pending(3);
    drains_freely();
  }
  void process(Tick& tick, Cpu&) {
    out.forward(tick, in);
    owed.push_back(tick.defer());
    if (owed.size() == 3) settle_one();
  }
  void drain() override {
    while (!owed.empty()) settle_one();
  }
  void settle_one() {
    owed.front().publish();
    owed.pop_front();
  }
};

// Publishes from a thread of its own, sooner or later.
struct Threaded final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::pair<Tick, int64_t>> owed;
  int64_t resets = 0;
  bool busy = false, closing = false;
  std::thread thread;
  Threaded() {
    max_pending(3);
    drains_freely();
    asynchronous();
  }
  void start() override {
    closing = false;
    thread = std::thread([this] { work(); });
  }
  void work() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return closing || !owed.empty(); });
      if (owed.empty()) return;
      auto [tick, value] = owed.front();
      owed.pop_front();
      busy = true;
      lock.unlock();
      if (scrambled(static_cast<uint64_t>(value)) % 3 == 0) std::this_thread::yield();
      write_one(out, tick, value);
      tick.publish();
      lock.lock();
      busy = false;
      changed.notify_all();
    }
  }
  void process(Tick& tick, Cpu&) {
    const std::lock_guard lock(mutex);
    owed.emplace_back(tick.defer(), read_one(in(tick)) * 1000 + resets);
    changed.notify_all();
  }
  void drain() override {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return owed.empty() && !busy; });
  }
  void reset() override { ++resets; }
  void stop() override {
    {
      const std::lock_guard lock(mutex);
      closing = true;
    }
    changed.notify_all();
    if (thread.joinable()) thread.join();
  }
};

// Publishes from another thread, and does not say so.
struct Undeclared final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  Undeclared() {
    max_pending(1);
    drains_freely();
  }
  void process(Tick& tick, Cpu&) {
    std::thread([later = tick.defer()]() mutable { later.publish(); }).join();
  }
};

// Leaves what it owes to drain(), which forgets it; then publishes it all the same.
std::atomic<int> refused_count{0}, published_late{0};
struct Forgetful final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  std::vector<Tick> owed;
  bool drained = false;
  Forgetful() {
    max_pending(2);
    drains_freely();
  }
  void publish_all() {
    for (Tick& tick : owed) {
      try {
        write_one(out, tick, 7);
        ++published_late;
      } catch (const std::bad_alloc&) {
      }
      try {
        tick.publish();
        ++published_late;
      } catch (const std::logic_error&) {
        ++refused_count;
      }
    }
    owed.clear();
  }
  void process(Tick& tick, Cpu&) {
    if (drained) { // of the gap before: none of these is the firing that was deferred since
      Tick now = tick.defer();
      publish_all();
      write_one(out, now, read_one(in(tick)));
      now.publish();
      drained = false;
      return;
    }
    owed.push_back(tick.defer());
  }
  void drain() override { drained = true; }
};

// Owes two firings, fails, and after its restart publishes what it owed before. One of them has memory of its own.
std::atomic<int> lent_count{0}, given_back{0}, restart_count{0};
struct StaleTicks final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  std::vector<Tick> owed;
  int64_t own = 7;
  StaleTicks() { max_pending(2); }
  void start() override { ++restart_count; }
  void process(Tick& tick, Cpu&) {
    const uint64_t at = tick.index() % 7;
    if (at == 2 || at == 3) {
      owed.push_back(tick.defer());
      if (at == 2) write_one(out, owed.back(), own);
      if (at == 3) lend(owed.back());
      return;
    }
    if (at == 4) throw std::runtime_error("told to fail while it owes two");
    for (Tick& stale : owed) {
      try {
        stale.publish();
        ++published_late;
      } catch (const std::logic_error&) {
        ++refused_count;
      }
    }
    owed.clear();
    write_one(out, tick, read_one(in(tick)));
  }
  void lend(Tick& tick) {
    out.adopt(
           tick, &own, sizeof own, [](void*) { ++given_back; }, nullptr)
        .as.tensor = {MR_DTYPE_INT, 64, 1, 1, {1}, {1}};
    ++lent_count;
  }
  void drain() override {}
};

// Owes more than it declares, and waits for calls that cannot come.
struct Greedy final : Handler {
  Input<Tensor> in{*this, "in"};
  std::vector<Tick> owed;
  Greedy() {
    max_pending(2);
    drains_freely();
  }
  void process(Tick& tick, Cpu&) { owed.push_back(tick.defer()); }
};

const mr_plugin& pending_plugin() {
  static const mr_handler_type types[] = {
      detail::Type<Gappy>::table("pending.gappy", "", ""),
      detail::Type<BehindBy<1>>::table("pending.behind1", "", ""),
      detail::Type<BehindBy<2>>::table("pending.behind2", "", ""),
      detail::Type<BehindBy<3>>::table("pending.behind3", "", ""),
      detail::Type<Guide>::table("pending.guide", "", ""),
      detail::Type<Threaded>::table("pending.threaded", "", ""),
      detail::Type<Undeclared>::table("pending.undeclared", "", ""),
      detail::Type<Forgetful>::table("pending.forgetful", "", ""),
      detail::Type<Greedy>::table("pending.greedy", "", ""),
      detail::Type<Failing>::table("pending.failing", "", ""),
      detail::Type<StaleTicks>::table("pending.stale", "", ""),
  };
  static const mr_handler_type* const pointers[] = {&types[0], &types[1], &types[2], &types[3], &types[4], &types[5],
                                                    &types[6], &types[7], &types[8], &types[9], &types[10]};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "pending", "1", pointers, 11, 0};
  return plugin;
}

Setup pending_setup(uint32_t workers = 1) {
  Setup setup;
  setup.workers = workers;
  setup.domains = {"cpu", "sim:0"};
  setup.more = &pending_plugin();
  return setup;
}

// source → gappy → the handlers of these types, one after another → sink.
Pipeline gappy(const std::vector<std::string>& types, const std::map<std::string, std::string>& gaps, int64_t count,
               uint32_t in_flight = 0, int64_t rate = 0) {
  Pipeline p;
  p.clock(rate > 0 ? graph::ClockMode::realtime : graph::ClockMode::free, rate, 1, in_flight);
  p.add("source", "t.count", {{"count", std::to_string(count)}});
  p.add("gappy", "pending.gappy", gaps);
  p.connect("source", "gappy");
  std::string last = "gappy";
  for (size_t i = 0; i < types.size(); ++i) {
    const std::string name = "owes" + std::to_string(i + 1);
    p.add(name, types[i]);
    p.connect(last, name);
    last = name;
  }
  p.add("sink", "t.sink", {{"log", "gaps"}});
  p.connect(last, "sink");
  return p;
}

// source → gappy → the handlers of these types, one after another, in a pace of their own: → sink by latest, which
// reads the source too. Where the first one is `queued`, it reads by queue; a last one that is `passed_on` goes through
// another pace behind its own.
struct Subprocess {
  bool queued = false, passed_on = false;
  std::string domain = "cpu"; // of the other pace
};
Pipeline gappy_apart(const std::vector<std::string>& types, const Subprocess& apart,
                     const std::map<std::string, std::string>& gaps, int64_t count, uint32_t in_flight) {
  Pipeline p = gappy(types, gaps, count, in_flight);
  p.graph.edges.back().policy = graph::Policy::latest;
  if (apart.queued) {
    graph::Edge& first = p.graph.edges[1];
    first.policy = graph::Policy::queue;
    first.depth = 2;
  }
  if (apart.passed_on) {
    const std::string last = p.graph.edges.back().source;
    p.graph.edges.pop_back();
    p.add("relay", "t.relay").device = apart.domain;
    p.connect(last, "relay", graph::Policy::queue).depth = 8;
    p.connect("relay", "sink.in", graph::Policy::latest);
  }
  p.connect("source", "sink.in");
  return p;
}

// A run that stands still says so, and ends the test in words.
Ran run_to_its_end(const Pipeline& pipeline, Setup setup) {
  std::string said;
  std::atomic<exec::Run*> live{nullptr};
  setup.options.idle_report_ns = 20'000'000'000;
  setup.options.on_message = [&](const std::string& line) {
    if (line.find("MR0603") == std::string::npos) return; // what a handler says is no standstill
    said = line;
    if (exec::Run* run = live.load()) run->interrupt();
  };
  Compiled compiled(pipeline, setup);
  live = &compiled.live();
  Ran result = compiled.run();
  REQUIRE(said == "");
  return result;
}

} // namespace

TEST_CASE("8.4: the guide's handler that answers later ends its run at every regular gap, in every window") {
  for (const int64_t one_in : {1, 2, 3, 4, 5, 6, 7}) {
    for (const uint32_t in_flight : {1u, 2u, 3u, 4u, 8u}) {
      CAPTURE(one_in);
      CAPTURE(in_flight);
      const auto gaps = std::map<std::string, std::string>{{"one_in", std::to_string(one_in)}};
      const Ran ran = run_to_its_end(gappy({"pending.guide"}, gaps, 100, in_flight), pending_setup());
      REQUIRE(ran.ok);
      const std::vector<int64_t> seen = values(ran.seen("gaps"));
      REQUIRE(seen.size() == 100);
      for (int64_t i = 0; i < 100; ++i) REQUIRE(seen[static_cast<size_t>(i)] == (i % one_in == 0 ? i : kEmpty));
    }
  }
}

TEST_CASE("8.4: where the input has no gaps nobody is drained") {
  for (const uint32_t in_flight : {1u, 4u}) {
    const Ran ran = run_to_its_end(gappy({"pending.behind3", "pending.behind1"}, {{"one_in", "1"}}, 50, in_flight),
                                   pending_setup());
    REQUIRE(ran.ok);
    const std::vector<int64_t> seen = values(ran.seen("gaps"));
    REQUIRE(seen.size() == 50);
    for (int64_t i = 0; i < 50; ++i) REQUIRE(seen[static_cast<size_t>(i)] == i * 1'000'000); // no reset
  }
}

TEST_CASE("8.4: under free, handlers that owe firings end at any gaps, deliver all, and drain at the same ticks") {
  constexpr int64_t kTicks = 120;
  const std::vector<std::vector<std::string>> chains = {{"pending.behind1"},
                                                        {"pending.behind2"},
                                                        {"pending.behind3"},
                                                        {"pending.threaded"},
                                                        {"pending.behind2", "pending.behind3"},
                                                        {"pending.behind3", "pending.threaded", "pending.behind1"}};
  std::mt19937_64 draw(7);
  int64_t n = 0;
  for (const auto& chain : chains) {
    for (const uint32_t in_flight : {1u, 2u, 4u, 8u}) {
      if (!is_tried(n++)) continue;
      const uint64_t seed = draw() % 100'000;
      INFO("seed ", seed, ", first ", chain[0], ", of ", chain.size(), ", in_flight ", in_flight);
      const auto gaps =
          std::map<std::string, std::string>{{"seed", std::to_string(seed)}, {"gap_max", std::to_string(1 + seed % 7)}};
      std::vector<Seen> expected;
      for (const uint32_t workers : {1u, 2u, 8u}) {
        const Ran ran = run_to_its_end(gappy(chain, gaps, kTicks, in_flight), pending_setup(workers));
        REQUIRE(ran.ok);
        std::vector<Seen> seen = ran.seen("gaps");
        REQUIRE(seen.size() == kTicks);
        if (workers == 1) expected = seen;
        REQUIRE((seen == expected));
      }
      for (uint64_t i = 0; i < kTicks; ++i) // all that was owed was delivered
        REQUIRE((expected[i].values[0] != kEmpty) == in_a_stretch(seed, 1 + seed % 7, i));
    }
  }
}

TEST_CASE("8.4: a handler in a pace of its own is drained in a gap if a reader outside waits for its result") {
  constexpr int64_t kTicks = 80;
  const std::vector<std::vector<std::string>> chains = {
      {"pending.behind1"}, {"pending.behind3"}, {"pending.threaded"}, {"pending.behind2", "pending.behind1"}};
  std::mt19937_64 draw(13);
  int64_t n = 0;
  for (const auto& chain : chains) {
    for (const Subprocess& apart :
         {Subprocess{}, Subprocess{true, false}, Subprocess{false, true}, Subprocess{true, true, "sim:0"}}) {
      for (const uint32_t in_flight : {0u, 1u, 4u}) {
        if (!is_tried(n++)) continue;
        const uint64_t seed = draw() % 100'000, longest = 1 + seed % 20;
        INFO("seed ", seed, ", first ", chain[0], ", of ", chain.size(), ", in_flight ", in_flight, ", queued ",
             apart.queued, ", passed on ", apart.passed_on);
        const auto gaps =
            std::map<std::string, std::string>{{"seed", std::to_string(seed)}, {"gap_max", std::to_string(longest)}};
        const Pipeline p = gappy_apart(chain, apart, gaps, kTicks, in_flight);
        std::vector<Seen> expected;
        for (const uint32_t workers : {1u, 2u, 8u}) {
          CAPTURE(workers);
          const Ran ran = run_to_its_end(p, pending_setup(workers));
          REQUIRE(ran.ok);
          std::vector<Seen> seen = ran.seen("gaps");
          REQUIRE(seen.size() == kTicks);
          if (workers == 1) expected = seen;
          REQUIRE((seen == expected));
        }
        int64_t newest = kEmpty; // the number of the newest value, which each handler multiplies by 1000
        const int64_t scale = chain.size() == 1 ? 1000 : 1'000'000;
        for (int64_t i = 0; i < kTicks; ++i) {
          if (in_a_stretch(seed, longest, static_cast<uint64_t>(i))) newest = i;
          const int64_t value = expected[static_cast<size_t>(i)].values[0];
          REQUIRE((value == kEmpty ? kEmpty : value / scale) == newest);
        }
      }
    }
  }
}

TEST_CASE("8.4: a result that is read by delay, by lag, in a loop or by a decoupled handler comes in a gap too") {
  constexpr int64_t kTicks = 60;
  const std::vector<std::string> ways = {"delay", "lag", "loop", "behind", "lag behind", "after"};
  std::mt19937_64 draw(17);
  int64_t n = 0;
  for (const std::string& way : ways) {
    for (const uint32_t most : {1u, 3u}) {
      for (const uint32_t ticks : {1u, 3u, 5u}) {
        for (const uint32_t in_flight : {1u, 4u, 8u}) {
          if (!is_tried(n++)) continue;
          const uint64_t seed = draw() % 100'000;
          INFO(way, ", ticks ", ticks, ", owes ", most, ", in_flight ", in_flight, ", seed ", seed);
          const std::string owes = "owes1";
          Pipeline p = gappy({"pending.behind" + std::to_string(most)},
                             {{"seed", std::to_string(seed)}, {"gap_max", "9"}}, kTicks, in_flight);
          p.graph.edges.pop_back();
          p.connect("source", "sink.in");
          if (way == "delay") {
            p.connect(owes, "sink.in").delay = ticks;
          } else if (way == "lag") {
            p.connect(owes, "sink.in", graph::Policy::latest).lag = ticks;
          } else if (way == "loop") {
            p.graph.edges[1].target = "both"; // gappy → both → owes → both
            p.graph.edges[1].target_port = "a";
            p.add("both", "t.need");
            p.connect(owes, "both.b").delay = most + ticks;
            p.graph.edges.back().initial_empty = true;
            p.connect("both", owes);
            p.connect(owes, "sink.in");
          } else if (way == "behind") {
            p.add("slow", "t.paced");
            p.connect("source", "slow.in");
            p.connect(owes, "slow.extra", graph::Policy::latest).lag = ticks;
            p.connect("slow", "sink.in", graph::Policy::latest);
          } else if (way == "after") { // whose writer waits for room until it has come to its tick
            p.add("slow", "t.paced", {{"log", "slow"}});
            p.connect(owes, "slow.in", graph::Policy::queue).depth = 4;
            p.connect("source", "slow.extra", graph::Policy::latest).lag = ticks - 1;
          } else {
            p.graph.edges[1].policy = graph::Policy::queue;
            p.add("slow", "t.paced", {{"log", "slow"}});
            p.connect("gappy", "slow.in", graph::Policy::queue).depth = 4;
            p.connect(owes, "both.b");
            p.add("both", "t.need", {{"log", "both"}});
            p.connect("slow", "both.a");
            p.connect(owes, "slow.extra", graph::Policy::latest).lag = ticks;
          }
          std::map<std::string, std::vector<Seen>> expected;
          for (const uint32_t workers : {1u, 2u, 8u}) {
            CAPTURE(workers);
            const Ran ran = run_to_its_end(p, pending_setup(workers));
            REQUIRE(ran.ok);
            const std::map<std::string, std::vector<Seen>> seen = ran.all_seen();
            REQUIRE(seen.at("gaps").size() == kTicks);
            if (workers == 1) expected = seen;
            REQUIRE((seen == expected));
          }
          if (way != "delay" && way != "lag") continue;
          int64_t newest = kEmpty;
          for (int64_t i = 0; i < kTicks; ++i) {
            const int64_t at = i - ticks;
            const bool there = at >= 0 && in_a_stretch(seed, 9, static_cast<uint64_t>(at));
            if (there || way == "delay") newest = there ? at : kEmpty;
            const int64_t value = expected.at("gaps")[static_cast<size_t>(i)].values[1];
            REQUIRE((value == kEmpty ? kEmpty : value / 1000) == newest);
          }
        }
      }
    }
  }
}

TEST_CASE("8.4: a handler in a pace of its own is not drained if no reader outside waits for its result") {
  for (const bool realtime : {false, true}) {
    CAPTURE(realtime);
    Pipeline p = gappy_apart({"pending.behind3"}, {true, false}, {{"one_in", "9"}}, 90, 2);
    if (realtime) {
      p.graph.clocks.clear();
      p.clock(graph::ClockMode::realtime, 100, 1, 2);
    } else { // its reader is of that pace
      p.graph.edges.pop_back();
      p.graph.edges.back().policy = graph::Policy::sync;
      p.graph.handlers.back().type = "t.relay";
    }
    Setup setup = pending_setup(1);
    setup.virtual_time = realtime;
    const Ran ran = run_to_its_end(p, setup);
    REQUIRE(ran.ok);
    const std::vector<Seen> log = ran.seen("gaps");
    REQUIRE(log.size() >= 10);
    for (const Seen& seen : log)
      if (seen.values[0] != kEmpty) REQUIRE(seen.values[0] % 1000 == 0); // no reset
  }
}

TEST_CASE("2.3: a reader by delay of a pending result comes after the handler that owes it, on any number of threads") {
  constexpr int64_t kTicks = 40;
  for (const char* type : {"pending.behind1", "pending.behind2", "pending.behind3"}) {
    for (const uint32_t delay : {1u, 2u, 3u, 5u}) {
      for (const bool passed_on : {false, true}) { // a handler between
        for (const uint32_t workers : {1u, 2u, 8u}) {
          INFO(std::string(type), ", delay ", delay, ", passed on ", passed_on, ", workers ", workers);
          Pipeline p;
          p.clock(graph::ClockMode::free, 0, 1, 1);
          p.add("source", "t.count", {{"count", std::to_string(kTicks)}});
          p.add("reader", "t.sink", {{"log", "delayed"}}); // first, so that nothing but the edge orders it
          p.add("after", "t.relay").device = workers == 2 ? "sim:0" : "cpu";
          p.add("owes", type);
          p.connect("source", "reader.in");
          p.connect("source", "owes");
          if (passed_on) p.connect("owes", "after");
          p.connect(passed_on ? "after" : "owes", "reader.in").delay = delay;
          p.graph.edges.back().initial_empty = true;
          if (!passed_on) p.connect("source", "after");
          const Ran ran = run_to_its_end(p, pending_setup(workers));
          REQUIRE(ran.ok);
          const std::vector<Seen> log = ran.seen("delayed");
          REQUIRE(log.size() == kTicks);
          for (int64_t i = 0; i < kTicks; ++i) {
            const Seen& seen = log[static_cast<size_t>(i)];
            CHECK(seen.values[0] == i);
            if (i >= delay) CHECK(seen.values[1] == (i - delay) * 1000);
          }
        }
      }
    }
  }
}

TEST_CASE("8.4: under realtime, handlers that owe firings and whose input has gaps do not stop the clock") {
  std::mt19937_64 draw(11);
  for (const char* type : {"pending.behind3", "pending.guide", "pending.threaded"}) {
    for (const uint32_t in_flight : {1u, 2u, 4u}) {
      const uint64_t seed = draw() % 100'000;
      INFO("seed ", seed, ", ", std::string(type), ", in_flight ", in_flight);
      const Pipeline p = gappy({type}, {{"seed", std::to_string(seed)}, {"gap_max", "6"}}, 200, in_flight, 100);
      Setup setup = pending_setup(1);
      setup.virtual_time = true;
      const Ran result = run_to_its_end(p, setup);
      REQUIRE(result.ok);
      REQUIRE(result.seen("gaps").size() == 200);
      // Virtual time does not wait for a thread that the run does not know.
      if (std::string(type) != "pending.threaded") CHECK(result.report.ticks_late == 0);
    }
  }
}

TEST_CASE("8.4: a handler that is skipped on a failure at its full debt is drained, and the run goes on") {
  for (const uint32_t in_flight : {1u, 2u, 4u}) {
    Pipeline p = gappy({"pending.failing"}, {{"one_in", "1"}}, 60, in_flight);
    p.graph.handlers[2].on_error = graph::OnError::skip;
    const Ran ran = run_to_its_end(p, pending_setup());
    REQUIRE(ran.ok);
    const std::vector<int64_t> seen = values(ran.seen("gaps"));
    REQUIRE(seen.size() == 60);
    for (int64_t i = 0; i < 60; ++i) REQUIRE((seen[static_cast<size_t>(i)] == kEmpty) == (i % 5 == 4));
  }
}

TEST_CASE("8.4: what drain leaves owed is settled empty, and its later publication is refused") {
  refused_count = published_late = 0;
  // Two values, a gap, and so on: each gap drains, and the next call publishes what was left.
  Pipeline p = gappy({"pending.forgetful"}, {{"one_in", "9"}}, 90);
  const Ran ran = run_to_its_end(p, pending_setup());
  REQUIRE(ran.ok);
  CHECK(published_late == 0);
  CHECK(refused_count > 2);
  const std::vector<int64_t> seen = values(ran.seen("gaps"));
  REQUIRE(seen.size() == 90);
  for (int64_t i = 0; i < 90; ++i) CHECK((seen[static_cast<size_t>(i)] == kEmpty || seen[static_cast<size_t>(i)] == i));
}

TEST_CASE("2.6: a restart settles owed firings empty, and their later publication is refused") {
  for (const uint32_t workers : {1u, 3u}) {
    refused_count = published_late = lent_count = given_back = restart_count = 0;
    Pipeline p;
    p.add("source", "t.count", {{"count", "700"}});
    p.add("stale", "pending.stale").on_error = graph::OnError::restart;
    p.add("sink", "t.sink", {{"log", "stale"}});
    p.add("other", "t.sink", {{"log", "other"}});
    p.connect("source", "stale");
    p.connect("stale", "sink");
    p.connect("stale", "other.in", graph::Policy::latest); // so the ring counts who holds its blocks
    const Ran ran = run_to_its_end(p, pending_setup(workers));
    REQUIRE(ran.ok);
    const std::vector<int64_t> seen = values(ran.seen("stale"));
    REQUIRE(seen.size() == 700);
    for (int64_t i = 0; i < 700; ++i) CHECK(seen[static_cast<size_t>(i)] == (i % 7 >= 2 && i % 7 <= 4 ? kEmpty : i));
    CHECK(restart_count == 101);
    CHECK(refused_count == 200);
    CHECK(published_late == 0);
    CHECK(lent_count == 100);
    CHECK(given_back == 100);
  }
}

TEST_CASE("8.4: who publishes from a thread of its own without having declared it is told so") {
  const Ran result = run_to_its_end(gappy({"pending.undeclared"}, {{"one_in", "1"}}, 20), pending_setup());
  CHECK_FALSE(result.ok);
  CHECK(result.error.what.find("owes1 (pending.undeclared) failed at tick 0: it publishes from another thread") == 0);
}

TEST_CASE("8.4: a handler that owes more than max_pending after a call fails, instead of waiting for a call for ever") {
  Pipeline p("t.count name=source count=20 ! pending.greedy name=greedy");
  const Ran result = run_to_its_end(p, pending_setup());
  CHECK_FALSE(result.ok);
  CHECK(result.error.what ==
        "greedy (pending.greedy) failed at tick 2: it owes 3 firings after a call, and max_pending says 2");
}
