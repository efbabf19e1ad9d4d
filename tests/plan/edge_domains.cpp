// `domain:` of an edge: its value is delivered there, so its reader runs there, or the plan is refused.
#include <doctest/doctest.h>

#include "planned.h"

using namespace millrace;
using namespace millrace::test;

namespace {

const plan::Machine two_workers = machine_of(2, {"cpu", "sim:0", "sim:1"});

// source → "a" → sink; the edge into "a" requires `domain`.
Pipeline chain_with_domain(const std::string& type, const std::string& domain) {
  Pipeline p;
  p.add("source", "t.count");
  p.add("a", type);
  p.add("sink", "t.sink", {{"log", "none"}});
  p.connect("source", "a").domain = domain;
  p.connect("a", "sink");
  return p;
}

} // namespace

TEST_CASE("5.6: an edge's domain: has its reader there, whatever the order of --devices") {
  const Planned planned(chain_with_domain("t.relay", "sim:1"), two_workers);
  CHECK(planned.place("a") == "sim:1");
  CHECK(planned.reason("a") == "pinned by domain: of source.out → a.in");
  CHECK(planned.hops() == std::vector<std::string>{"cpu → sim:1", "sim:1 → cpu"});
  CHECK_FALSE(planned.has_note("domain:"));
  CHECK(Planned(chain_with_domain("t.relay", "cpu"), machine_of(1, {"sim:0", "cpu"})).place("a") == "cpu");
}

TEST_CASE("5.6: an edge's domain: holds for sinks, and after queue and latest") {
  Pipeline p = chain_with_domain("t.relay", "");
  p.graph.edges[1].domain = "sim:0";
  CHECK(Planned(p, two_workers).place("sink") == "sim:0");
  for (const graph::Policy policy : {graph::Policy::queue, graph::Policy::latest}) {
    Pipeline behind = chain_with_domain("t.relay", "sim:0");
    behind.graph.edges[0].policy = policy;
    CHECK(Planned(behind, two_workers).place("a") == "sim:0");
  }
}

TEST_CASE("5.6: an edge's domain: counts more than any price") {
  Pipeline p = chain_with_domain("p.priced", "");
  for (graph::Handler& handler : p.graph.handlers)
    if (handler.name == "a") handler.params = {{"cpu_us", "5000", {}, {}}, {"gpu_us", "20", {}, {}}};
  CHECK(Planned(p, two_workers).place("a") != "cpu");
  p.graph.edges[0].domain = "cpu";
  CHECK(Planned(p, two_workers).place("a") == "cpu");
}

TEST_CASE("5.6: a domain: that agrees with device: is no contradiction") {
  Pipeline p = chain_with_domain("t.relay", "sim:0");
  p.graph.handlers[1].device = "sim:0";
  CHECK(Planned(p, two_workers).reason("a") == "pinned by device:");
}

TEST_CASE("5.6: a domain: against device: is refused with MR0408, which names both and the place of each") {
  Pipeline p = chain_with_domain("t.relay", "sim:0");
  p.graph.handlers[1].device = "cpu";
  p.graph.handlers[1].place = {"p.yaml", 4, 3};
  p.graph.edges[0].place = {"p.yaml", 4, 30};
  const Error error = error_of(p, two_workers);
  CHECK(error.code == 408);
  CHECK(error.place.column == 30);
  CHECK(error.notes == std::vector<std::string>{"a has device: cpu, at p.yaml:4:3",
                                                "source.out → a.in requires sim:0, at p.yaml:4:30"});
  CHECK(error.edit == "domain: cpu");
}

TEST_CASE("5.6: edges that require two domains of one reader are refused with MR0408, which names both") {
  Pipeline p;
  p.add("source", "t.count");
  p.add("both", "t.need");
  p.connect("source", "both.a").domain = "sim:0";
  p.connect("source", "both.b").domain = "sim:1";
  const Error error = error_of(p, two_workers);
  CHECK(error.code == 408);
  CHECK(error.notes ==
        std::vector<std::string>{"source.out → both.a requires sim:0", "source.out → both.b requires sim:1"});
  p.graph.edges[1].domain = "sim:0";
  CHECK(Planned(p, two_workers).place("both") == "sim:0");
}

TEST_CASE("5.6: a domain: that is not there, or where the reader cannot run, is refused with MR0408") {
  const Error missing = error_of(chain_with_domain("t.relay", "sim:7"), two_workers);
  CHECK(missing.code == 408);
  CHECK(missing.what == "the edge source.out → a.in requires sim:7, which is not available");
  CHECK(missing.notes == std::vector<std::string>{"available: cpu, sim:0, sim:1"});
  const Error unable = error_of(chain_with_domain("p.blocking", "sim:0"), two_workers);
  CHECK(unable.code == 408);
  CHECK(unable.notes == std::vector<std::string>{"it blocks", "source.out → a.in requires sim:0"});
  CHECK(error_of(chain_with_domain("p.blocking", "cpu"), two_workers).code == 0);
}
