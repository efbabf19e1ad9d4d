// Inputs with a policy of their own (rule 2.3), and sources that follow the others of their clock (rule 1.4).
#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "exec/report.h"
#include "harness.h"
#include "plan/pace.h"
#include "plan/plan.h"
#include "table_of.h"

namespace millrace::test::port_policy {
namespace {

// Takes the newest value, and is slow if it is told so.
struct Newest final : Handler {
  Input<Tensor> in{*this, "in", newest, keeps(1)};
  Output<Tensor> out{*this, "out", like(in)};
  void process(Tick& tick, Cpu&) {
    const TensorView value = in(tick);
    const TensorSpan copy = out.allocate(tick, dtype_of<int64_t>(), value.shape());
    *reinterpret_cast<int64_t*>(copy.data()) = *reinterpret_cast<const int64_t*>(value.data());
  }
};

// Says something on every third call, and never ends.
struct Follower final : Handler {
  Output<Tensor> out{*this, "out"};
  Param<int64_t> every{*this, "every_calls", 3, "one call in so many gives a value"};
  Param<bool> alone{*this, "alone", false, "expects a clock of its own"};
  int64_t calls = 0;
  void probe(Facts& facts) override {
    facts.follows();
    facts.live();
    facts.rate(60);
  }
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}); }
  void process(Tick& tick, Cpu&) {
    if (tick.follows() == *alone) throw std::logic_error("it is told wrongly whose clock it has");
    if (++calls % *every != 0) return tick.not_yet();
    const int64_t shape[] = {1};
    *reinterpret_cast<int64_t*>(out.allocate(tick, dtype_of<int64_t>(), shape).data()) = calls;
  }
};

const mr_plugin& plugin() {
  static const mr_handler_type* const types[] = {table_of<Newest>("n.newest"), table_of<Follower>("n.follower")};
  static const mr_plugin table = {sizeof(mr_plugin), MR_ABI_VERSION, "n", "1", types, std::size(types), 0};
  return table;
}

Setup setup() {
  Setup setup;
  setup.more = &plugin();
  return setup;
}

const plan::EdgePlan& edge_to(const plan::Plan& plan, const std::string& to) {
  const auto found =
      std::find_if(plan.edges.begin(), plan.edges.end(), [&](const plan::EdgePlan& edge) { return edge.to == to; });
  REQUIRE(found != plan.edges.end());
  return *found;
}

} // namespace

TEST_CASE("2.3: an input that takes the newest value has a queue of one where the pipeline gives no policy") {
  const Compiled own(Pipeline("t.count name=source count=5 ! n.newest name=n ! t.sink log=v"), setup());
  const plan::EdgePlan& edge = edge_to(own.plan(), "n.in");
  CHECK(edge.policy == graph::Policy::queue);
  CHECK(edge.note.starts_with("the input's own policy"));
  const Compiled said(
      Pipeline("t.count name=source count=5 ; n.newest name=n ! t.sink log=v ; source. ! n. policy=sync"), setup());
  CHECK(edge_to(said.plan(), "n.in").policy == graph::Policy::sync);
  CHECK(edge_to(said.plan(), "n.in").note.empty());
  const Compiled latest(
      Pipeline("t.count name=source count=5 ; n.newest name=n ! t.sink log=v ; source. ! n. policy=latest"), setup());
  CHECK(edge_to(latest.plan(), "n.in").policy == graph::Policy::latest);
}

TEST_CASE("2.3: the input's own policy loses nothing where the clock waits, and drops the oldest in real time") {
  Ran ran = run(Pipeline("t.count name=source count=50 ! n.newest name=n ! t.sink log=v"), setup());
  REQUIRE_MESSAGE(ran.ok, ran.error.what);
  CHECK(values(ran.seen("v")).size() == 50);
  Pipeline fast("t.count name=source count=50 ! n.newest name=n ! t.sink log=v ; source. ! t.sink log=all");
  fast.clock(graph::ClockMode::realtime, 100);
  Setup with = setup();
  with.virtual_time = true;
  with.workers = 3;
  with.costs_ns["n"] = 35 * kMs; // three and a half beats
  ran = run(std::move(fast), with);
  REQUIRE_MESSAGE(ran.ok, ran.error.what);
  const std::vector<int64_t> seen = values(ran.seen("v"));
  CHECK(values(ran.seen("all")).size() == 50); // nobody is held up
  CHECK(seen.size() < 20);
  CHECK(seen.size() > 10);
  CHECK(std::is_sorted(seen.begin(), seen.end()));
}

TEST_CASE("1.4: a source that follows the others of its clock is not waited for, chooses nothing and ends with them") {
  for (const bool realtime : {false, true}) {
    CAPTURE(realtime);
    Pipeline pipeline("t.count name=source count=30 ! t.sink log=v ; n.follower name=hand ! t.sink log=hand");
    if (realtime) pipeline.clock(graph::ClockMode::realtime, 100);
    Setup with = setup();
    with.virtual_time = realtime;
    Compiled compiled(std::move(pipeline), with);
    CHECK(compiled.plan().clocks[0].mode == (realtime ? graph::ClockMode::realtime : graph::ClockMode::free));
    const Ran ran = compiled.run();
    REQUIRE_MESSAGE(ran.ok, ran.error.what);
    CHECK(values(ran.seen("v")).size() == 30);
    std::vector<int64_t> given = values(ran.seen("hand"));
    std::erase(given, kEmpty);
    CHECK(given == std::vector<int64_t>{3, 6, 9, 12, 15, 18, 21, 24, 27, 30});
  }
}

TEST_CASE("1.4: a source that would follow others makes the ticks of a clock of its own when it has something") {
  Setup with = setup();
  with.virtual_time = true;
  with.options.ticks_max = 5;
  Compiled compiled(Pipeline("n.follower name=hand alone=true ! t.sink log=hand"), with);
  CHECK(compiled.plan().clocks[0].mode == graph::ClockMode::source);
  CHECK(compiled.plan().clocks[0].live);
  const Ran ran = compiled.run();
  REQUIRE_MESSAGE(ran.ok, ran.error.what);
  CHECK(values(ran.seen("hand")) == std::vector<int64_t>{3, 6, 9, 12, 15});
}

} // namespace millrace::test::port_policy
