// Firings that go wrong or come late: pending beyond the limit, failures after a deferral, restarts of short handlers,
// memory that is not the plan's.
#include <doctest/doctest.h>

#include "harness.h"
#include "tests/exec/test_handlers.h"

using namespace millrace;
using namespace millrace::test;

namespace {

Pipeline line(const std::string& type, const std::map<std::string, std::string>& params, const std::string& log,
              int64_t count) {
  Pipeline p;
  p.add("source", "t.count", {{"count", std::to_string(count)}});
  p.add("it", type, params);
  p.add("sink", "t.sink", {{"log", log}});
  p.connect("source", "it");
  p.connect("it", "sink");
  return p;
}

} // namespace

TEST_CASE(
    "2.4: a handler with a thread of its own that owes more than max_pending is busy, and waited for under free") {
  for (const uint32_t workers : {1u, 2u}) {
    Setup setup;
    setup.workers = workers;
    const Ran result = run(line("t.async", {}, "async", 300), setup);
    REQUIRE(result.ok);
    const std::vector<int64_t> seen = values(result.seen("async"));
    REQUIRE(seen.size() == 300);
    for (int64_t i = 0; i < 300; ++i) CHECK(seen[static_cast<size_t>(i)] == i);
  }
}

TEST_CASE("2.4: a handler that owes firings and is not called any more is drained before the window is full of them") {
  // Values until tick 19 and none after; then on again, from tick 100.
  for (const uint32_t workers : {1u, 2u}) {
    for (const char* after : {"8", "3"}) {
      for (const uint32_t in_flight : {1u, 4u}) {
        Setup setup;
        setup.workers = workers;
        Pipeline p;
        p.clock(graph::ClockMode::free, 0, 1, in_flight);
        p.add("source", "t.count", {{"count", "160"}});
        p.add("some", "t.window", {{"from", "20"}, {"until", "100"}});
        p.add("it", "t.late", {{"after", after}});
        p.add("next", "t.late", {{"after", after}});
        p.add("sink", "t.sink", {{"log", "gap"}});
        p.connect("source", "some");
        p.connect("some", "it");
        p.connect("it", "next");
        p.connect("next", "sink");
        p.connect("source", "sink");
        const Ran ran = run(p, setup);
        REQUIRE(ran.ok);
        const std::vector<Seen> seen = ran.seen("gap");
        REQUIRE(seen.size() == 160);
        for (int64_t i = 0; i < 160; ++i) {
          CHECK(seen[static_cast<size_t>(i)].values[0] == (i >= 20 && i < 100 ? kEmpty : i));
          CHECK(seen[static_cast<size_t>(i)].values[1] == i);
        }
      }
    }
  }
}

TEST_CASE("2.4: a handler that fails as it is drained in a gap fails at the tick that it could not wait for") {
  Pipeline p(
      "t.count name=source count=60 ! t.window name=some from=20 until=1000 ! t.late name=it fail_in_drain=true ! "
      "t.sink name=sink log=gap_fails");
  const Ran result = run(p);
  CHECK_FALSE(result.ok);
  CHECK(result.error.what.find("told to fail in drain") != std::string::npos);
  const std::vector<int64_t> seen = values(result.seen("gap_fails"));
  REQUIRE(seen.size() >= 12);
  for (size_t i = 0; i < 12; ++i) CHECK(seen[i] == static_cast<int64_t>(i));
}

TEST_CASE("2.6: a firing that fails after it was deferred is settled empty, and the others are still published") {
  Pipeline p = line("t.late", {{"after", "4"}, {"fail_at", "5"}}, "late_fail", 20);
  p.graph.handlers[1].on_error = graph::OnError::skip;
  const Ran ran = run(p);
  REQUIRE(ran.ok);
  const std::vector<int64_t> seen = values(ran.seen("late_fail"));
  REQUIRE(seen.size() == 20);
  for (int64_t i = 0; i < 20; ++i) CHECK(seen[static_cast<size_t>(i)] == (i == 5 ? kEmpty : i));
}

TEST_CASE("2.4: what a pending firing had allocated goes back where it is never published") {
  Pipeline p(
      "t.count name=source count=7 ! t.late name=it never=true ; t.relay name=behind ; it. ! behind. policy=queue "
      "depth=4");
  Compiled compiled(p, {});
  REQUIRE(compiled.ring("it").dynamic);
  const Ran result = compiled.run();
  REQUIRE(result.ok);
  CHECK(result.report.pools.at("cpu").held_blocks == 0);
}

TEST_CASE("2.6: a handler whose calls are short is restarted like any other") {
  Pipeline p = line("t.restarting", {{"fail_at", "100"}}, "restart_short", 200);
  p.graph.handlers[1].on_error = graph::OnError::restart;
  const Ran ran = run(p);
  REQUIRE(ran.ok);
  const std::vector<int64_t> seen = values(ran.seen("restart_short"));
  REQUIRE(seen.size() == 200);
  for (int64_t i = 0; i < 200; ++i)
    CHECK(seen[static_cast<size_t>(i)] == (i == 100 ? kEmpty : i * 100 + (i < 100 ? 1 : 2)));
}

TEST_CASE("2.6: a start that fails is tried again, and its handler is not called before, on the host as on a device") {
  for (const std::string domain : {"cpu", "sim:0"}) {
    CAPTURE(domain);
    Pipeline p = line("t.restarting", {{"fail_at", "2"}, {"no_start", "2"}}, "start_fails", 6);
    p.graph.handlers[1].on_error = graph::OnError::restart;
    p.graph.handlers[1].device = domain;
    Setup setup;
    setup.domains = {"cpu", "sim:0"};
    const Ran ran = run(p, setup);
    REQUIRE(ran.ok);
    CHECK(values(ran.seen("start_fails")) == std::vector<int64_t>{1, 101, kEmpty, kEmpty, 403, 503});
  }
}

TEST_CASE(
    "3.2: an input that is passed on against the plan is copied: it has a shorter life than the output's readers") {
  Pipeline p(
      "t.count name=first count=400 ! t.relay name=second add=1000 ; t.pick name=pick ; t.sink name=sink log=pick ; "
      "first. ! pick.first ; second. ! pick.second ! sink. delay=7 initial=empty");
  const Ran ran = run(p);
  REQUIRE(ran.ok);
  const std::vector<int64_t> seen = values(ran.seen("pick"));
  REQUIRE(seen.size() == 400);
  for (int64_t i = 7; i < 400; ++i) CHECK(seen[static_cast<size_t>(i)] == 1000 + i - 7);
}

TEST_CASE("3.5: a value that may be its input's own buffer is written in place only where nobody else reads that") {
  for (const bool preview : {false, true}) {
    for (const uint32_t workers : {1u, 2u}) {
      Pipeline p(
          "t.count name=source count=300 ! t.repeat name=repeat ! t.paint name=paint add=1000 ! "
          "t.sink name=sink log=repeat");
      if (preview) {
        p.add("preview", "t.sink", {{"log", "preview"}});
        p.connect("source", "preview").delay = 2;
      }
      Setup setup;
      setup.workers = workers;
      const Ran ran = run(p, setup);
      REQUIRE(ran.ok);
      const std::vector<int64_t> seen = values(ran.seen("repeat"));
      REQUIRE(seen.size() == 300);
      for (int64_t i = 0; i < 300; ++i) CHECK(seen[static_cast<size_t>(i)] == 1000 + i);
      if (!preview) continue;
      const std::vector<int64_t> before = values(ran.seen("preview"));
      REQUIRE(before.size() == 300);
      for (int64_t i = 2; i < 300; ++i) CHECK(before[static_cast<size_t>(i)] == i - 2);
    }
  }
}

TEST_CASE("3.2: adopted memory is never written over, and is given back once for each value before its handler stops") {
  Pipeline p("t.foreign name=source count=25 ! t.paint name=paint add=1 ! t.sink name=sink log=foreign");
  for (const std::string device : {"cpu", "sim:0"}) {
    p.graph.handlers[1].device = device;
    Setup setup;
    setup.domains = {"cpu", "sim:0"};
    const Ran ran = run(p, setup);
    REQUIRE(ran.ok);
    CHECK(values(ran.seen("foreign")) == std::vector<int64_t>(25, 8));
    CHECK(foreign_released() == 25);
  }
}
