// Ticks, slots and firing on small graphs, one thread and several.
#include <doctest/doctest.h>

#include <mutex>
#include <numeric>

#include "harness.h"

using namespace millrace;
using namespace millrace::test;

namespace {

std::vector<int64_t> consecutive(int64_t from, int64_t count) {
  std::vector<int64_t> list(static_cast<size_t>(count));
  std::iota(list.begin(), list.end(), from);
  return list;
}

Pipeline relay_chain(const std::string& log, int relays, int64_t count) {
  Pipeline p;
  p.add("source", "t.count", {{"count", std::to_string(count)}});
  std::string last = "source";
  for (int i = 0; i < relays; ++i) {
    const std::string name = "r" + std::to_string(i);
    p.add(name, "t.relay", {{"add", "1"}});
    p.connect(last, name);
    last = name;
  }
  p.add("sink", "t.sink", {{"log", log}});
  p.connect(last, "sink");
  return p;
}

} // namespace

TEST_CASE("2.2: a chain carries every value through every handler, in order") {
  for (const uint32_t workers : {1u, 2u, 8u}) {
    CAPTURE(workers);
    Setup setup;
    setup.workers = workers;
    const Ran result = run(relay_chain("chain", 5, 1000), setup);
    REQUIRE(result.ok);
    CHECK(result.report.ticks_run == 1000);
    const std::vector<Seen> log = result.seen("chain");
    CHECK(values(log) == consecutive(5, 1000));
    for (size_t i = 0; i < log.size(); ++i) CHECK(log[i].index == i);
  }
}

TEST_CASE("1.1: indices count the admitted ticks without gaps") {
  Pipeline p = relay_chain("indices", 1, 50);
  const Ran ran = run(p);
  REQUIRE(ran.ok);
  const std::vector<Seen> log = ran.seen("indices");
  REQUIRE(log.size() == 50);
  for (size_t i = 0; i < log.size(); ++i) CHECK(log[i].index == i);
}

TEST_CASE("2.1: a silent output settles empty, so a join cannot starve") {
  Pipeline p(
      "t.count name=source count=9 ! t.relay name=quiet silent_every=3 ; source. ! t.sink name=sink log=silent ; "
      "quiet. ! sink.in");
  const Ran ran = run(p);
  REQUIRE(ran.ok);
  CHECK(values(ran.seen("silent"), 1) == std::vector<int64_t>{0, 1, kEmpty, 3, 4, kEmpty, 6, 7, kEmpty});
}

TEST_CASE("2.2: a handler with an empty required input does not fire, and its outputs settle empty") {
  Pipeline p(
      "t.count name=source count=6 ! t.relay name=quiet silent_every=2 ; t.need name=both ! t.sink name=sink "
      "log=need ; source. ! both.a ; quiet. ! both.b");
  const Ran result = run(p);
  REQUIRE(result.ok);
  CHECK(values(result.seen("need")) == std::vector<int64_t>{0, kEmpty, 2002, kEmpty, 4004, kEmpty});
  CHECK(result.handler("both").calls == 3);
}

TEST_CASE("2.1: every: fires on indices that are multiples, and is empty between") {
  Pipeline p("t.count name=source count=7 ! t.relay name=third every=3 ! t.sink name=sink log=every");
  const Ran ran = run(p);
  REQUIRE(ran.ok);
  CHECK(values(ran.seen("every")) == std::vector<int64_t>{0, kEmpty, kEmpty, 3, kEmpty, kEmpty, 6});
}

TEST_CASE("2.3: delay reads k ticks before, and its initial value before that") {
  Pipeline p(
      "t.count name=source count=5 first=10 ! t.paced name=paced ! t.sink name=sink log=delay ; source. ! "
      "paced.extra delay=2");
  const Ran ran = run(p);
  REQUIRE(ran.ok);
  CHECK(values(ran.seen("delay")) == std::vector<int64_t>{10999, 11999, 12010, 13011, 14012});
}

TEST_CASE("2.3: a delayed required input repeats the last value where the slot is empty") {
  Pipeline p(
      "t.count name=source count=7 first=1 ! t.relay name=quiet silent_every=3 ; t.need name=both ! t.sink "
      "name=sink log=repeat ; source. ! both.a ; quiet. ! both.b delay=1 initial=empty");
  const Ran ran = run(p);
  REQUIRE(ran.ok);
  // quiet gives 1 2 - 4 5 - 7; delayed: (empty value = 0) 1 2 2 4 5 5
  CHECK(values(ran.seen("repeat")) == std::vector<int64_t>{1000, 2001, 3002, 4002, 5004, 6005, 7005});
}

TEST_CASE("2.3: latest under free is the newest value at or before this tick minus lag") {
  for (const uint32_t workers : {1u, 2u, 4u}) {
    CAPTURE(workers);
    Pipeline p(
        "t.count name=source count=8 ! t.relay name=third every=3 ; source. ! t.paced name=paced ! t.sink name=sink "
        "log=latest ; third. ! paced.extra policy=latest lag=1");
    Setup setup;
    setup.workers = workers;
    const Ran ran = run(p, setup);
    REQUIRE(ran.ok);
    CHECK(values(ran.seen("latest")) == std::vector<int64_t>{999, 1000, 2000, 3000, 4003, 5003, 6003, 7006});
  }
}

TEST_CASE("2.3: latest before the first value does not fire a required input") {
  Pipeline p(
      "t.count name=source count=4 ! t.relay name=fifth silent_every=0 every=1 ; source. ! t.relay name=quiet "
      "silent_every=1 ; t.need name=both ! t.sink name=sink log=none ; source. ! both.a ; quiet. ! both.b "
      "policy=latest ; fifth. ! sink.in");
  const Ran ran = run(p);
  REQUIRE(ran.ok);
  CHECK(values(ran.seen("none")) == std::vector<int64_t>(4, kEmpty));
}

TEST_CASE("2.4: a pending handler publishes later, and every tick settles in order") {
  for (const uint32_t workers : {1u, 2u}) {
    Pipeline p(
        "t.count name=source count=40 ! t.late name=late after=8 ; source. ! t.paced name=paced ; late. ! "
        "paced.extra ; paced. ! t.sink name=sink log=late");
    Setup setup;
    setup.workers = workers;
    const Ran ran = run(p, setup);
    REQUIRE(ran.ok);
    std::vector<int64_t> expected;
    for (int64_t i = 0; i < 40; ++i) expected.push_back(i * 1000 + i);
    CHECK(values(ran.seen("late")) == expected);
  }
}

TEST_CASE("3.3: a kept input stays valid for as many values as were declared") {
  Pipeline p("t.count name=source count=6 silent_every=4 ! t.keep name=keep ! t.sink name=sink log=keep");
  const Ran ran = run(p);
  REQUIRE(ran.ok);
  CHECK(values(ran.seen("keep")) == std::vector<int64_t>{0, 1, 3, kEmpty, 7, 11});
}

TEST_CASE("2.6: fail stops the run at the tick, earlier ticks finish, and the cause is named") {
  Pipeline p("t.count name=source count=100 ! t.relay name=bad fail_at=17 ! t.sink name=sink log=fail");
  const Ran result = run(p);
  CHECK_FALSE(result.ok);
  CHECK(result.error.code == 601);
  CHECK(result.error.what == "bad (t.relay) failed at tick 17: told to fail");
  std::vector<int64_t> seen = values(result.seen("fail"));
  REQUIRE(seen.size() >= 17);
  seen.resize(17);
  CHECK(seen == consecutive(0, 17));
}

TEST_CASE("2.6: skip settles the failed tick empty and goes on") {
  Pipeline p("t.count name=source count=6 ! t.relay name=bad fail_every=3 on_error=skip ! t.sink name=sink log=skip");
  const Ran result = run(p);
  CHECK(result.ok);
  CHECK(values(result.seen("skip")) == std::vector<int64_t>{0, 1, kEmpty, 3, 4, kEmpty});
  CHECK(result.report.handlers[1].errors == 2);
}

TEST_CASE("2.6: a failure that the policy passes over is told once, as an error, and counted in the report") {
  for (const graph::OnError policy : {graph::OnError::skip, graph::OnError::bypass, graph::OnError::restart}) {
    Pipeline p;
    p.add("source", "t.count", {{"count", "9"}});
    p.add("bad", "t.relay", {{"fail_every", "3"}}).on_error = policy;
    p.add("sink", "t.sink", {{"log", "passed over"}});
    p.connect("source", "bad");
    p.connect("bad", "sink");
    Setup setup;
    std::vector<std::string> told;
    std::mutex mutex;
    setup.options.on_message = [&](const std::string& line) {
      const std::lock_guard lock(mutex);
      told.push_back(line);
    };
    const Ran result = run(p, setup);
    CHECK(result.ok);
    REQUIRE(told.size() == 1);
    CHECK(told[0].starts_with("error bad: "));
    const auto& messages = result.report.handlers[1].messages;
    REQUIRE(messages.size() == 1);
    CHECK(messages[0].level == MR_LOG_ERROR);
    CHECK("error bad: " + messages[0].sentence == told[0]);
    CHECK(messages[0].times == result.report.handlers[1].errors);
    CHECK(messages[0].times >= 2);
  }
}

TEST_CASE("2.6: bypass repeats the input where the handler fails") {
  Pipeline p(
      "t.count name=source count=6 ! t.relay name=bad fail_every=3 add=100 on_error=bypass ! t.sink name=sink "
      "log=bypass");
  const Ran ran = run(p);
  CHECK(ran.ok);
  CHECK(values(ran.seen("bypass")) == std::vector<int64_t>{100, 101, 2, 103, 104, 5});
}

TEST_CASE("2.6: restart starts the handler again; a failed tick is not run again") {
  Pipeline p(
      "t.count name=source count=5 ! t.restarting name=bad fail_at=2 on_error=restart ! t.sink name=sink "
      "log=restart");
  const Ran ran = run(p);
  CHECK(ran.ok);
  CHECK(values(ran.seen("restart")) == std::vector<int64_t>{1, 101, kEmpty, 302, 402});
}

TEST_CASE("2.4: a stateless handler runs as several instances, and the slots keep the order") {
  Pipeline p("t.count name=source count=500 ! t.stateless name=many add=7 concurrency=4 ! t.sink name=sink log=lanes");
  Setup setup;
  setup.workers = 4;
  Compiled compiled(p, setup);
  CHECK(compiled.instances("many") == 4);
  REQUIRE(compiled.run().ok);
  CHECK(values(compiled.seen("lanes")) == consecutive(7, 500));
}

TEST_CASE("2.7: live changes made together take effect on one tick and can be replayed as a script") {
  Pipeline p("t.count name=source count=30 ! t.relay name=a ! t.relay name=b ! t.sink name=sink log=live");
  Setup setup;
  setup.options.script = {{11, {"a", "add", "1000"}}, {11, {"b", "add", "5"}}};
  const Ran ran = run(p, setup);
  REQUIRE(ran.ok);
  const std::vector<int64_t> seen = values(ran.seen("live"));
  REQUIRE(seen.size() == 30);
  for (int64_t i = 0; i < 30; ++i) CHECK(seen[static_cast<size_t>(i)] == (i < 11 ? i : i + 1005));
}

TEST_CASE("3.5: an in-place writer shares the buffer where it comes last, and copies where a reader comes later") {
  Pipeline p(
      "t.count name=source count=5 ! t.relay name=preview ; source. ! t.paint name=paint add=100 ; preview. ! "
      "t.sink name=sink log=paint ; paint. ! sink.in");
  {
    Compiled compiled(p, {});
    REQUIRE(compiled.run().ok);
    CHECK(compiled.share_memory("paint", "source"));
    const std::vector<Seen> log = compiled.seen("paint");
    CHECK(values(log, 0) == consecutive(0, 5));
    CHECK(values(log, 1) == consecutive(100, 5));
  }
  p.connect("source", "sink.in"); // now the sink reads both the picture and what is drawn on it
  Compiled compiled(p, {});
  REQUIRE(compiled.run().ok);
  CHECK_FALSE(compiled.share_memory("paint", "source"));
  const std::vector<Seen> log = compiled.seen("paint");
  CHECK(values(log, 1) == consecutive(100, 5));
  CHECK(values(log, 2) == consecutive(0, 5));
}
