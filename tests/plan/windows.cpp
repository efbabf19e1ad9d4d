// Windows, rings and their sums: the number of ticks in flight, and the lifetime of every value.
#include <doctest/doctest.h>

#include "memory/ring.h"
#include "planned.h"

using namespace millrace;
using namespace millrace::test;

namespace {

Pipeline chain(std::initializer_list<const char*> types, uint32_t in_flight = 0) {
  Pipeline p;
  p.clock(graph::ClockMode::free, 0, 1, in_flight);
  p.add("source", "t.count");
  std::string last = "source";
  for (const char* type : types) {
    const std::string name = "h" + std::to_string(p.graph.handlers.size());
    p.add(name, type);
    p.connect(last, name);
    last = name;
  }
  p.add("sink", "t.sink", {{"log", "none"}});
  p.connect(last, "sink");
  return p;
}

plan::Options even_costs(std::initializer_list<const char*> handlers, int64_t ns) {
  plan::Options options;
  for (const char* handler : handlers) options.costs_ns[handler] = ns;
  return options;
}

} // namespace

TEST_CASE("1.5: the window is the number of segments on the longest path") {
  CHECK(Planned(chain({"t.relay", "t.relay", "t.relay"})).window("source") == 1); // one worker, one segment
  const Planned cut(chain({"t.relay", "t.relay"}), machine_of(4),
                    even_costs({"h1", "h2", "source", "sink"}, 10'000'000));
  CHECK(cut.segments() == std::vector<std::string>{"source", "h1", "h2", "sink"});
  CHECK(cut.window("source") == 4);
}

TEST_CASE("1.5: the window is at most four without being asked for, and in_flight sets it") {
  const auto types = {"t.relay", "t.relay", "t.relay", "t.relay", "t.relay", "t.relay"};
  const plan::Options heavy = even_costs({"source", "h1", "h2", "h3", "h4", "h5", "h6", "sink"}, 10'000'000);
  const Planned many(chain(types), machine_of(8), heavy);
  CHECK(many.segments().size() == 8);
  CHECK(many.window("source") == 4);
  CHECK(Planned(chain(types, 7), machine_of(8), heavy).window("source") == 7);
  CHECK(Planned(chain(types, 1), machine_of(8), heavy).window("source") == 1);
}

TEST_CASE("1.5: concurrency widens the window beyond four") {
  Pipeline p = chain({"t.stateless"});
  p.graph.handlers[1].concurrency = 6;
  const Planned planned(p, machine_of(8));
  CHECK(planned.instances("h1") == 6);
  CHECK(planned.window("h1") >= 6);
}

TEST_CASE("1.5: the largest sum of max_pending on a path is added to the window") {
  CHECK(Planned(chain({"t.late"}, 3)).window("source") == 3 + 8);
  CHECK(Planned(chain({"t.late", "t.relay", "t.late"}, 3)).window("source") == 3 + 8 + 8);
  Pipeline fork = chain({"t.late"}, 3); // side by side the larger counts, not the sum
  fork.add("other", "t.late");
  fork.connect("source", "other");
  fork.connect("other", "sink.in");
  CHECK(Planned(fork).window("source") == 3 + 8);
}

TEST_CASE("1.5: a pending handler that fires on every third tick answers three times as many ticks later") {
  Pipeline p = chain({"t.late"}, 2);
  p.graph.handlers[1].every = 3;
  CHECK(Planned(p).window("source") == 2 + 24);
}

TEST_CASE("3.2: a ring has as many blocks as ticks are in flight, and a delayed reader adds its delay") {
  CHECK(Planned(chain({"t.relay"}, 3)).ring("source").length == 3);
  Pipeline p = chain({"t.paced"}, 3);
  p.connect("source", "h1.extra").delay = 5;
  const Planned planned(p);
  CHECK(planned.ring("source").length == 3 + 5);
  CHECK(planned.ring("source").reasons == std::vector<std::string>{"3 in flight", "5 by delay"});
  CHECK_FALSE(planned.ring("source").dynamic);
  CHECK(planned.slots("source") == 8); // a power of two that holds window and delay
}

TEST_CASE("3.2: what is held for longer is counted: keeps, latest and queues each add their bound and one") {
  const Planned kept(chain({"t.keep"}, 2));
  CHECK(kept.ring("source").length == 2 + 3);
  CHECK(kept.ring("source").dynamic);

  Pipeline p(
      "t.count name=source ! t.relay name=side ; source. ! t.paced name=paced ! t.sink name=sink log=none ; side. ! "
      "paced.extra policy=latest lag=3");
  p.clock(graph::ClockMode::free, 0, 1, 2);
  const Planned latest(p);
  // side is decoupled, one tick at a time: the channel holds the window and the lag and one; the reader's window; one.
  CHECK(latest.ring("side").reasons == std::vector<std::string>{"1 in flight", "9 held by latest side.out"});
  CHECK(latest.ring("side").length == 10);

  Pipeline q;
  q.clock(graph::ClockMode::free, 0, 1, 2);
  q.add("source", "t.count");
  q.add("writer", "t.sink", {{"log", "none"}});
  q.connect("source", "writer", graph::Policy::queue).depth = 5;
  const Planned queued(q);
  CHECK(queued.ring("source").length == 2 + 5 + queued.window("writer") + 1);
}

TEST_CASE("3.2: what a domain needs is the sum of its rings, and is refused before the start where it does not fit") {
  const Planned planned(chain({"t.relay", "t.join"}, 3));
  uint64_t sum = 0;
  for (const RingView& ring : planned.rings()) sum += ring.length * memory::block_bytes(ring.capacity);
  CHECK(planned.memory("cpu") == sum);
  CHECK(sum == 3 * 3 * 512); // three rings of three blocks: 256 bytes of header and, rounded up, 256 of numbers
  plan::Machine small;
  small.domains[0].bytes_limit = sum;
  CHECK(refusal(chain({"t.relay", "t.join"}, 3), small) == 0);
  small.domains[0].bytes_limit = sum - 1;
  CHECK(refusal(chain({"t.relay", "t.join"}, 3), small) == 404);
}

TEST_CASE("3.2: a ring that is copied from or to is pinned on the host") {
  Pipeline p = chain({"t.relay"}, 2);
  p.graph.handlers[1].device = "sim:0";
  const Planned planned(p, machine_of(1, {"cpu", "sim:0"}));
  REQUIRE_FALSE(planned.rings().empty());
  for (const RingView& ring : planned.rings()) CHECK(ring.pinned == (ring.domain == "cpu"));
  CHECK_FALSE(Planned(chain({"t.relay"}, 2)).ring("source").pinned);
}

TEST_CASE("3.1: memory is for the maximum of a bounded dimension, and a dimension that nobody bounds is refused") {
  Pipeline bounded;
  bounded.add("source", "p.bounded");
  CHECK(Planned(bounded).ring("source").capacity == 800);
  Pipeline unknown;
  unknown.add("source", "p.unsized");
  CHECK(refusal(unknown) == 403);
}
