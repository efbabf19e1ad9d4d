// How runs begin and end, with real threads: started and stopped under load, interrupted, watched, changed while they
// run. MILLRACE_LONG=1 starts and stops as often as the design promises.
#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <thread>

#include "exec/run.h"
#include "harness.h"
#include "tests/part.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// A place that handlers and tests meet at.
class Meeting {
 public:
  void tell(int stage) {
    {
      const std::lock_guard lock(mutex_);
      stage_ = stage;
    }
    changed_.notify_all();
  }
  void await(int stage) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stage_ >= stage; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int stage_ = 0;
};
std::unique_ptr<Meeting> meeting;
std::atomic<int> starts{0}, stops{0};

// Gives `count` values, then blocks until it is interrupted.
struct Blocked final : Handler {
  Output<Tensor> out{*this, "out"};
  Param<int64_t> count{*this, "count", 3, "values before it blocks"};
  std::mutex mutex;
  std::condition_variable woken;
  bool interrupted = false;
  int64_t next = 0;
  Blocked() { blocking(); }
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}); }
  void process(Tick& tick, Cpu&) {
    if (next < count) return write_one(out, tick, next++);
    meeting->tell(1);
    std::unique_lock lock(mutex);
    woken.wait(lock, [&] { return interrupted; });
    tick.end();
  }
  void interrupt() override {
    const std::lock_guard lock(mutex);
    interrupted = true;
    woken.notify_all();
  }
};

// Hangs in one call until it is interrupted.
struct Hanging final : Handler {
  Input<Tensor> in{*this, "in"};
  std::mutex mutex;
  std::condition_variable woken;
  bool interrupted = false;
  void process(Tick& tick, Cpu&) {
    if (tick.index() != 2) return;
    std::unique_lock lock(mutex);
    woken.wait(lock, [&] { return interrupted; });
    throw std::runtime_error("interrupted");
  }
  void interrupt() override {
    const std::lock_guard lock(mutex);
    interrupted = true;
    woken.notify_all();
  }
};

// Owes its second and third answer until the test asks for them.
struct Owing final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  std::vector<Tick> owed;
  std::thread answerer;
  Owing() {
    max_pending(1);
    drains_freely();
    asynchronous();
  }
  void process(Tick& tick, Cpu&) {
    if (tick.index() != 1 && tick.index() != 2) return write_one(out, tick, 0);
    owed.push_back(tick.defer());
    if (tick.index() == 1) return;
    answerer = std::thread([this] {
      meeting->await(1);
      for (Tick& late : owed) {
        write_one(out, late, 1);
        late.publish();
      }
    });
  }
  void drain() override {
    if (answerer.joinable()) answerer.join();
  }
};

struct Counted final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  Param<bool> fails{*this, "fails", false, "cannot start"};
  Param<bool> spills{*this, "spills", false, "cannot drain"};
  void start() override {
    if (fails) throw std::runtime_error("no such model");
    ++starts;
  }
  void process(Tick& tick, Cpu&) { write_one(out, tick, static_cast<int64_t>(tick.index())); }
  void drain() override {
    if (spills) throw std::runtime_error("the disk is full");
  }
  void stop() override { ++stops; }
};

// A thread of its own fails during the third call.
struct Elsewhere final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  void process(Tick& tick, Cpu&) {
    if (tick.index() == 2) std::thread([this] { fail("the camera is gone"); }).join();
    write_one(out, tick, static_cast<int64_t>(tick.index()));
  }
};

const mr_plugin& life_plugin() {
  static const mr_handler_type types[] = {
      detail::Type<Blocked>::table("life.blocked", "", ""), detail::Type<Hanging>::table("life.hanging", "", ""),
      detail::Type<Owing>::table("life.owing", "", ""), detail::Type<Counted>::table("life.counted", "", ""),
      detail::Type<Elsewhere>::table("life.elsewhere", "", "")};
  static const mr_handler_type* const pointers[] = {&types[0], &types[1], &types[2], &types[3], &types[4]};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "life", "1", pointers, 5, 0};
  return plugin;
}

Setup life_setup(uint32_t workers) {
  meeting = std::make_unique<Meeting>();
  Setup setup;
  setup.workers = workers;
  setup.more = &life_plugin();
  return setup;
}

// Collects what a run says; tells the meeting once the words were said.
struct Listener {
  std::mutex mutex;
  std::string said;
  std::function<void(const std::string&)> until(const std::string& words) {
    return [this, words](const std::string& line) {
      const std::lock_guard lock(mutex);
      said += line + "\n";
      if (line.find(words) != std::string::npos) meeting->tell(1);
    };
  }
};

Pipeline counting_pipeline(const std::string& log, int64_t count) {
  Pipeline p;
  p.add("source", "t.count", {{"count", std::to_string(count)}});
  p.add("relay", "t.relay");
  p.add("sink", "t.sink", {{"log", log}});
  p.connect("source", "relay");
  p.connect("relay", "sink");
  return p;
}

} // namespace

TEST_CASE("2.8: runs that are started and stopped at once all end, also while another thread takes the processor") {
  const char* long_form = std::getenv("MILLRACE_LONG");
  const int rounds = long_form && std::string(long_form) == "1" ? 10'000 : static_cast<int>(part_of(300));
  const std::jthread hog([](const std::stop_token& done) {
    while (!done.stop_requested()) {
    }
  });
  Setup setup = life_setup(3);
  setup.options.spin_ns = 1'000;
  Pipeline p = counting_pipeline("hog", 0);
  p.add("writer", "t.sink", {{"log", "hog"}});
  p.connect("relay", "writer", graph::Policy::queue);
  size_t seen = 0;
  for (int round = 0; round < rounds; ++round) {
    Compiled compiled(p, setup);
    compiled.live().start();
    while (round % 3 == 0 && compiled.live().ticks() == 0) std::this_thread::yield();
    const bool drains = round % 5 != 4;
    drains ? compiled.live().stop() : compiled.live().interrupt();
    const Ran result = compiled.wait();
    REQUIRE(result.ok);
    if (drains) REQUIRE(result.seen_if_any("hog").size() == 2 * result.report.ticks_run);
    seen += result.seen_if_any("hog").size();
  }
  CHECK(seen > 0);
}

TEST_CASE("2.8: stop() drains: all that was admitted reaches the sink, in order") {
  for (const uint32_t workers : {1u, 3u}) {
    Setup setup = life_setup(workers);
    Compiled compiled(counting_pipeline("stop", 0), setup);
    compiled.live().start();
    while (compiled.live().ticks() < 1000) std::this_thread::yield();
    compiled.live().stop();
    const Ran result = compiled.wait();
    REQUIRE(result.ok);
    const std::vector<Seen> log = result.seen("stop");
    CHECK(log.size() == result.report.ticks_run);
    for (size_t i = 0; i < log.size(); ++i) REQUIRE(log[i].values[0] == static_cast<int64_t>(i));
  }
}

TEST_CASE("1.4: a source that blocks is interrupted by stop(), and what it gave before reaches the sink") {
  Setup setup = life_setup(2);
  Pipeline p("life.blocked name=source count=3 ! t.sink name=sink log=blocked");
  Compiled compiled(p, setup);
  compiled.live().start();
  meeting->await(1); // it blocks
  compiled.live().stop();
  REQUIRE(compiled.live().wait().ok);
  const std::vector<int64_t> seen = values(compiled.seen("blocked"));
  for (size_t i = 0; i < seen.size(); ++i) CHECK(seen[i] == static_cast<int64_t>(i));
  CHECK(seen.size() <= 3);
}

TEST_CASE("2.6: a handler over its budget is named, then interrupted, and the run ends with its failure") {
  Setup setup = life_setup(2);
  Listener listener;
  setup.options.on_message = listener.until("MR0602");
  setup.options.budget_ns = 10 * kMs;
  setup.options.grace_ns = 500 * kMs; // twice as long in its call behind the interrupt ends the process
  Pipeline p("t.count name=source count=100 ! life.hanging name=hangs");
  const Ran result = run(p, setup);
  CHECK_FALSE(result.ok);
  CHECK(result.error.code == 601);
  CHECK(result.error.what == "hangs (life.hanging) failed at tick 2: interrupted");
  CHECK(listener.said.find("hangs (life.hanging) is in process for longer than its budget of 0.0 s (tick 2)") !=
        std::string::npos);
}

TEST_CASE("2.8: when nothing moves it is told who waits for whom, and the run goes on when it can") {
  Setup setup = life_setup(2);
  Listener listener;
  setup.options.on_message = listener.until("waits for owes");
  setup.options.idle_report_ns = 20 * kMs;
  Pipeline p("t.count name=source count=20 ! life.owing name=owes ! t.sink name=sink log=owing");
  const Ran result = run(p, setup); // owes answers tick 1 once the report was heard
  REQUIRE(result.ok);
  CHECK(values(result.seen("owing")).size() == 20);
  CHECK(listener.said.find("MR0603") != std::string::npos);
  CHECK(listener.said.find("sink waits for owes (tick 1)") != std::string::npos);
}

TEST_CASE("2.8: where one handler cannot start none is left started, and the code is MR0605") {
  Setup setup = life_setup(2);
  Pipeline p(
      "t.count name=source count=5 ! life.counted name=first ! life.counted name=second ! "
      "life.counted name=third fails=true");
  Compiled compiled(p, setup);
  starts = stops = 0;
  int code = 0;
  try {
    compiled.live().start();
  } catch (const Failure& failure) {
    code = failure.error().code;
    CHECK(failure.error().what == "third (life.counted) could not start: no such model");
  }
  CHECK(code == 605);
  CHECK(starts == 2);
  CHECK(stops >= 2);
}

TEST_CASE("2.8: a handler that cannot drain fails the run after everything has arrived") {
  Setup setup = life_setup(2);
  Pipeline p("t.count name=source count=5 ! life.counted name=spills spills=true ! t.sink name=sink log=spill");
  const Ran result = run(p, setup);
  CHECK_FALSE(result.ok);
  CHECK(result.error.code == 601);
  CHECK(result.error.what.find("the disk is full") != std::string::npos);
  CHECK(result.seen("spill").size() == 5);
}

TEST_CASE("2.6: a failure in a thread of the handler's own ends the run, or is told and counted, as on_error says") {
  for (const graph::OnError policy : {graph::OnError::fail, graph::OnError::skip}) {
    Listener listener;
    Setup setup = life_setup(2);
    setup.options.on_message = listener.until("the camera is gone");
    Pipeline p;
    p.add("source", "t.count", {{"count", "100"}});
    p.add("own", "life.elsewhere").on_error = policy;
    p.add("sink", "t.sink", {{"log", "elsewhere"}});
    p.connect("source", "own");
    p.connect("own", "sink");
    const Ran result = run(p, setup);
    const size_t seen = result.seen("elsewhere").size();
    CHECK(result.report.handlers[1].errors == 1);
    if (policy == graph::OnError::skip) {
      CHECK(result.ok);
      CHECK(seen == 100);
      CHECK(listener.said.find("the camera is gone") != std::string::npos);
    } else {
      CHECK(result.error.code == 601);
      CHECK(result.error.what.find("the camera is gone") != std::string::npos);
      CHECK(seen >= 3); // what was in flight is finished
      CHECK(seen < 100);
    }
  }
}

TEST_CASE("2.7: what another thread changes while it runs is recorded, and the record replays to the same values") {
  Setup setup = life_setup(3);
  setup.options.keep_changes = true;
  Pipeline p = counting_pipeline("changed", 0);
  Compiled compiled(p, setup);
  compiled.live().start();
  std::thread other([&] {
    for (int i = 1; i <= 5; ++i) {
      const uint64_t seen = compiled.live().ticks();
      compiled.live().set({{"relay", "add", std::to_string(i * 1'000'000)}});
      while (compiled.live().ticks() < seen + 200) std::this_thread::yield();
    }
    compiled.live().stop();
  });
  other.join();
  const Ran result = compiled.wait();
  REQUIRE(result.ok);
  const std::vector<Seen> live = result.seen("changed");
  CHECK(live.back().values[0] == 5'000'000 + static_cast<int64_t>(live.back().index));
  const std::vector<exec::AppliedChange> record = compiled.live().changes();
  REQUIRE(record.size() == 5);

  Setup again = life_setup(1);
  again.options.script = record;
  again.options.ticks_max = result.report.ticks_run;
  const Ran ran = run(p, again);
  REQUIRE(ran.ok);
  CHECK(ran.seen("changed") == live);
}

TEST_CASE("2.7: a change of a handler, a parameter or a value that is not there is refused, and nothing changes") {
  Setup setup = life_setup(1);
  Compiled compiled(counting_pipeline("refused", 3), setup);
  const auto code = [&](const std::string& handler, const std::string& param, const std::string& text) {
    try {
      compiled.live().set({{"relay", "add", "5"}, {handler, param, text}});
    } catch (const Failure& failure) {
      return failure.error().code;
    }
    return 0;
  };
  CHECK(code("nobody", "add", "1") == 301);
  CHECK(code("relay", "ad", "1") == 310);
  CHECK(code("relay", "add", "one") == 311);
  REQUIRE(compiled.run().ok);
  CHECK(values(compiled.seen("refused")) == std::vector<int64_t>{0, 1, 2});
}

TEST_CASE("two runs in one process know nothing of each other") {
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  const Setup setup = life_setup(2);
  for (const char* log : {"left", "right"}) {
    threads.emplace_back([&, log = std::string(log)] {
      Pipeline p = counting_pipeline(log, 3000);
      if (log == "left") p.graph.handlers[1].params.push_back({"fail_at", "1500", {}, {}});
      const Ran result = run(p, setup);
      const std::vector<Seen> seen = result.seen(log);
      const bool failed = log == "left" && !result.ok && result.report.ticks_run < 3000;
      const bool finished = log == "right" && result.ok && seen.size() == 3000;
      if (failed || finished) ++right;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == 2);
}

TEST_CASE("2.8: a handler that has seen enough ends the run: what is in flight finishes, and there is no error") {
  for (const char* at : {"3", "400"}) { // before and after its calls go the fast way
    for (const uint32_t workers : {1u, 2u}) {
      Pipeline p;
      p.add("source", "t.count", {{"count", "100000000"}});
      p.add("it", "t.enough", {{"at", at}});
      p.add("sink", "t.sink", {{"log", "enough"}});
      p.connect("source", "it");
      p.connect("it", "sink");
      Setup setup;
      setup.workers = workers;
      const Ran result = run(p, setup);
      CHECK(result.ok);
      const std::vector<int64_t> seen = values(result.seen("enough"));
      const auto end = static_cast<size_t>(std::stoi(at));
      REQUIRE(seen.size() > end);
      CHECK(seen.size() < 1000 + end); // a window more at the most
      for (size_t i = 0; i < seen.size(); ++i) CHECK(seen[i] == (i == end ? kEmpty : static_cast<int64_t>(i)));
    }
  }
}
