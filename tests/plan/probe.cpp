// Sources are probed side by side, each with a time limit, and their errors come in the order of the text.
#include "plan/probe.h"

#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "exec/run.h"
#include "graph/graph.h"
#include "plan/prepare.h"
#include "plugin/call_watch.h"
#include "plugin/registry.h"

namespace millrace::test {
namespace {

using namespace std::chrono_literals;

// The threads that probed, and how many were inside at the same time.
std::mutex probing_mutex;
std::condition_variable probing_changed;
std::set<std::thread::id> probing_threads;
int probing_now = 0, probing_most = 0;

// Lets calls go that do not heed an interrupt, at the end of their test.
std::mutex stubborn_mutex;
std::condition_variable stubborn_changed;
bool stubborn_may_go = false;
std::atomic<int> stubborn_left{0};

struct Asked final : Handler {
  Output<Tensor> out{*this, "out"};
  Param<int64_t> waits_ms{*this, "waits_ms", 0, "until it answers"};
  Param<int64_t> waits_for{*this, "waits_for", 0, "so many have to be inside at the same time before it goes on"};
  Param<std::string> fails{*this, "fails", "", "the sentence with which it fails; empty: it does not"};
  Param<bool> hangs{*this, "hangs", false, "true: it answers only when it is interrupted"};
  Param<bool> stubborn{*this, "stubborn", false, "true: it does not even then"};

  void probe(Facts& facts) override {
    {
      std::unique_lock lock(probing_mutex);
      probing_threads.insert(std::this_thread::get_id());
      probing_most = std::max(probing_most, ++probing_now);
      probing_changed.notify_all();
      if (!probing_changed.wait_for(lock, 60s, [&] { return probing_most >= *waits_for; }))
        throw std::runtime_error("it is probed alone");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(*waits_ms));
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !*hangs || interrupted_; });
    lock.unlock();
    if (*stubborn) {
      std::unique_lock waits(stubborn_mutex);
      stubborn_changed.wait(waits, [] { return stubborn_may_go; });
      ++stubborn_left;
    }
    {
      const std::lock_guard ends(probing_mutex);
      --probing_now;
    }
    if (*hangs) throw std::runtime_error("interrupted");
    if (!fails->empty()) throw std::runtime_error(*fails);
    facts.rate(25);
  }
  void interrupt() override {
    const std::lock_guard lock(mutex_);
    interrupted_ = true;
    changed_.notify_all();
  }
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}); }
  void process(Tick&, Cpu&) {}

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool interrupted_ = false;
};

const mr_plugin& probe_plugin() {
  static const mr_handler_type asked = detail::Type<Asked>::table("p.asked", "a test's", "");
  static const mr_handler_type* const types[] = {&asked};
  static const mr_plugin table = {sizeof(mr_plugin), MR_ABI_VERSION, "p", "1", types, 1, 0};
  return table;
}

// Instances of p.asked, each with parameters of its own.
using AskedParams = std::map<std::string, std::string>;
struct Askable {
  plugin::Registry registry;
  std::vector<std::unique_ptr<plugin::Instance>> instances;

  explicit Askable(const std::vector<AskedParams>& all) {
    registry.add(probe_plugin(), "");
    for (const auto& params : all) {
      instances.push_back(std::make_unique<plugin::Instance>(*registry.find("p.asked"), exec::host_table(),
                                                             "s" + std::to_string(instances.size())));
      for (const auto& [name, text] : params) instances.back()->set_param(name, text, {});
      instances.back()->bind({1});
    }
    const std::lock_guard lock(probing_mutex);
    probing_threads.clear();
    probing_most = 0;
  }
  std::vector<plan::ProbeAnswer> probe(const plan::ProbeLimits& limits = {}) {
    std::vector<std::unique_ptr<plugin::Instance>*> asked;
    for (auto& instance : instances) asked.push_back(&instance);
    mr_facts first{};
    first.size = sizeof first;
    first.rate_den = 1;
    return plan::probe_all(asked, first, limits);
  }
};

// The first leaves a busy machine the time to begin a thread.
constexpr plan::ProbeLimits kShort = {900'000'000, 100'000'000};

TEST_CASE("8.7: sources are probed side by side, 16 at a time, though others wait for their turn") {
  Askable sources(std::vector<AskedParams>(64, {{"waits_ms", "20"}, {"waits_for", "16"}}));
  const std::vector<plan::ProbeAnswer> answers = sources.probe();
  for (const plan::ProbeAnswer& answer : answers) {
    CHECK(answer.error.empty());
    CHECK(answer.facts.rate_num == 25);
  }
  CHECK(probing_most == 16);
}

TEST_CASE("8.7: a source that is the only one is probed by the thread that asks") {
  Askable source(std::vector<AskedParams>(1));
  CHECK(source.probe()[0].error.empty());
  CHECK(probing_threads == std::set{std::this_thread::get_id()});
}

TEST_CASE("8.7: a source that does not answer costs its time and is interrupted; others keep their answers") {
  Askable sources({{}, {{"hangs", "true"}}, {{"fails", "no such camera"}}, {{"waits_ms", "20"}}});
  const std::vector<plan::ProbeAnswer> answers = sources.probe(kShort);
  CHECK(answers[0].error.empty());
  CHECK(answers[1].error == "it did not answer within 1 s");
  CHECK(answers[2].error == "no such camera");
  CHECK(answers[3].error.empty());
  for (const auto& instance : sources.instances) CHECK(instance);
}

TEST_CASE("8.7: a source that ignores even the interrupt is given up, and may return when all else is gone") {
  const int left = stubborn_left;
  stubborn_may_go = false;
  {
    plugin::CallWatch watch({});
    Askable sources({{{"stubborn", "true"}}, {}});
    for (auto& instance : sources.instances) instance->watch = &watch;
    const std::vector<plan::ProbeAnswer> answers = sources.probe(kShort);
    CHECK(answers[0].error == "it did not answer within 1 s, and did not return when it was interrupted");
    CHECK(answers[1].error.empty());
    CHECK_FALSE(sources.instances[0]); // its call has it for ever
    CHECK(sources.instances[1]);
    CHECK(watch.words().empty());
    CHECK(plan::any_probe_goes_on());
  }
  {
    const std::lock_guard lock(stubborn_mutex);
    stubborn_may_go = true;
  }
  stubborn_changed.notify_all();
  while (stubborn_left == left) std::this_thread::yield();
}

TEST_CASE("8.7: no answer is waited for once nobody wants it, whatever the source does about it") {
  for (const char* how : {"hangs", "stubborn"}) {
    const int left = stubborn_left;
    stubborn_may_go = false;
    std::atomic<bool> over{false};
    Askable source(std::vector<AskedParams>{{{how, "true"}}});
    std::thread ends([&] {
      std::this_thread::sleep_for(50ms);
      over = true;
    });
    constexpr int64_t kHourNs = 3'600'000'000'000; // who waits for it meets the test's time limit
    const std::vector<plan::ProbeAnswer> answers =
        source.probe({.patience_ns = kHourNs, .grace_ns = kHourNs, .of_one = true, .over = &over});
    CHECK_FALSE(answers[0].error.empty());
    ends.join();
    stubborn_may_go = true;
    stubborn_changed.notify_all();
    while (how == std::string("stubborn") && stubborn_left == left) std::this_thread::yield();
  }
}

TEST_CASE("8.7: the errors of all sources come in the order of the text, whichever was met first") {
  for (int round = 0; round < 5; ++round) {
    graph::Graph graph = graph::parse_line(
        "p.asked name=a fails=first waits_ms=60 ! null.sink ; p.asked name=b ! null.sink ; "
        "p.asked name=c fails=second ! null.sink ; p.asked name=d fails=third waits_ms=30 ! null.sink");
    plugin::Registry registry;
    registry.add(probe_plugin(), "");
    std::vector<Error> kept;
    CHECK_THROWS_AS(plan::prepare(graph, registry, exec::host_table(), true, nullptr, &kept), MistakesKept);
    REQUIRE(kept.size() == 3);
    CHECK(kept[0].what == "a (p.asked) could not be opened: first");
    CHECK(kept[1].what == "c (p.asked) could not be opened: second");
    CHECK(kept[2].what == "d (p.asked) could not be opened: third");
    try {
      plan::prepare(graph, registry, exec::host_table());
      FAIL("a source cannot be opened");
    } catch (const Failure& failure) {
      CHECK(failure.error().what == kept[0].what);
    }
  }
}

} // namespace
} // namespace millrace::test
