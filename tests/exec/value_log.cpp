// The log of values belongs to one run, and a test that asks it for values that no handler saw fails.
#include <doctest/doctest.h>

#include <stdexcept>
#include <thread>

#include "exec/run.h"
#include "harness.h"

using namespace millrace;
using namespace millrace::test;

TEST_CASE("A log belongs to its run: one of the same name in another run, before or at the same time, is another") {
  const Pipeline p("t.count name=source count=500 ! t.relay name=relay log=seen ! t.sink name=sink log=end");
  const Ran before = run(p);
  REQUIRE(before.seen("seen").size() == 500);
  Compiled left(p, {}), right(p, {});
  left.live().start();
  right.live().start();
  for (Compiled* compiled : {&left, &right}) {
    const Ran ran = compiled->wait();
    REQUIRE(ran.ok);
    CHECK(ran.seen("seen") == before.seen("seen"));
    CHECK(ran.seen("end") == before.seen("end"));
  }
  CHECK(before.seen("seen").size() == 500);
}

TEST_CASE("A log has what every instance of a handler saw, also after a restart") {
  Pipeline p("t.count name=source count=100 ! t.stateless name=many log=many concurrency=4 ! t.sink name=sink log=end");
  Setup setup;
  setup.workers = 4;
  CHECK(run(p, setup).seen("many").size() == 100);
  Pipeline again("t.count name=source count=100 ! t.relay name=bad log=bad fail_at=50 on_error=restart");
  CHECK(run(again, setup).seen("bad").size() == 100);
}

TEST_CASE("A log that no handler writes to, or that none has written to, is an error and not an empty one") {
  const Ran ran =
      run(Pipeline("t.count name=source count=9 ! t.relay name=quiet silent_every=1 ! t.relay name=r log=r"));
  REQUIRE(ran.ok);
  CHECK_THROWS_WITH_AS(ran.seen("s"), "no handler writes to the log \"s\"", std::out_of_range);
  CHECK_THROWS_WITH_AS(ran.seen("r"), "nothing was written to the log \"r\"", std::out_of_range);
  CHECK(ran.seen_if_any("r").empty());
}
