// Firings that go wrong or come late: pending beyond the limit, failures after a deferral, restarts of short handlers,
// memory that is not the plan's.
#include <doctest/doctest.h>

#include "harness.h"

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
    const exec::Result result = run(line("t.async", {}, "async", 300), setup);
    REQUIRE(result.ok);
    const std::vector<int64_t> seen = values(take_log("async"));
    REQUIRE(seen.size() == 300);
    for (int64_t i = 0; i < 300; ++i) CHECK(seen[static_cast<size_t>(i)] == i);
  }
}

TEST_CASE("2.6: a firing that fails after it was deferred is settled empty, and the others are still published") {
  Pipeline p = line("t.late", {{"after", "4"}, {"fail_at", "5"}}, "late_fail", 20);
  p.graph.handlers[1].on_error = graph::OnError::skip;
  REQUIRE(run(p).ok);
  const std::vector<int64_t> seen = values(take_log("late_fail"));
  REQUIRE(seen.size() == 20);
  for (int64_t i = 0; i < 20; ++i) CHECK(seen[static_cast<size_t>(i)] == (i == 5 ? kEmpty : i));
}

TEST_CASE("2.6: a handler whose calls are short is restarted like any other") {
  Pipeline p = line("t.restarting", {{"fail_at", "100"}}, "restart_short", 200);
  p.graph.handlers[1].on_error = graph::OnError::restart;
  REQUIRE(run(p).ok);
  const std::vector<int64_t> seen = values(take_log("restart_short"));
  REQUIRE(seen.size() == 200);
  for (int64_t i = 0; i < 200; ++i)
    CHECK(seen[static_cast<size_t>(i)] == (i == 100 ? kEmpty : i * 100 + (i < 100 ? 1 : 2)));
}

TEST_CASE("3.2: adopted memory is never written over, and is given back once for each value before its handler stops") {
  Pipeline p;
  p.add("source", "t.foreign", {{"count", "25"}});
  p.add("paint", "t.paint", {{"add", "1"}});
  p.add("sink", "t.sink", {{"log", "foreign"}});
  p.connect("source", "paint");
  p.connect("paint", "sink");
  for (const std::string device : {"cpu", "sim:0"}) {
    p.graph.handlers[1].device = device;
    Setup setup;
    setup.domains = {"cpu", "sim:0"};
    REQUIRE(run(p, setup).ok);
    CHECK(values(take_log("foreign")) == std::vector<int64_t>(25, 8));
    CHECK(foreign_released() == 25);
  }
}
