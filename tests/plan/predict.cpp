// The latency that a plan predicts: the longest path, or a lower bound where costs are missing.
#include "plan/predict.h"

#include <doctest/doctest.h>

#include "planned.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// source → left → both, source → right → both → sink
Pipeline diamond() {
  Pipeline p;
  p.add("source", "t.count");
  for (const char* name : {"left", "right"}) p.add(name, "t.relay");
  p.add("both", "t.need");
  p.add("sink", "t.sink", {{"log", "none"}});
  p.connect("source", "left");
  p.connect("source", "right");
  p.connect("left", "both.a");
  p.connect("right", "both.b");
  p.connect("both", "sink");
  return p;
}

plan::Options costs_us(std::map<std::string, int64_t> us) {
  plan::Options options;
  for (const auto& [handler, cost] : us) options.costs_ns[handler] = cost * 1000;
  return options;
}

std::string latency_line(const Planned& planned) {
  const std::string text = planned.text();
  const size_t at = text.find("latency: ");
  return at == std::string::npos ? "" : text.substr(at, text.find('\n', at) - at);
}

} // namespace

TEST_CASE("5.4: with all costs known, the latency is that of the longest path, with its copies") {
  const plan::Options options = costs_us({{"source", 10}, {"left", 1000}, {"right", 2000}, {"both", 30}, {"sink", 5}});
  const Planned planned(diamond(), machine_of(2), options);
  CHECK(planned.latency_us() == doctest::Approx(10 + 2000 + 30 + 5));
  CHECK(latency_line(planned) == "latency: 2045 µs predicted");
  Pipeline p = diamond();
  p.graph.handlers[2].device = "sim:0";
  plan::Machine machine = machine_of(2, {"cpu", "sim:0"});
  connect_host(machine, "sim:0", plan::HopPrice(100, 0));
  CHECK(Planned(p, machine, options).latency_us() == doctest::Approx(10 + 100 + 2000 + 100 + 30 + 5));
}

TEST_CASE("5.4: on one worker's segment the costs add up") {
  const plan::Options options = costs_us({{"source", 10}, {"left", 20}, {"right", 30}, {"both", 40}, {"sink", 50}});
  const Planned planned(diamond(), machine_of(1), options);
  CHECK(planned.all_segments().size() == 1);
  CHECK(planned.latency_us() == doctest::Approx(150));
}

TEST_CASE("5.4: where costs are missing the latency is not known, and the plan says how many and what the rest takes") {
  const Planned planned(diamond(), machine_of(2), costs_us({{"source", 10}, {"right", 2000}, {"sink", 5}}));
  CHECK(planned.latency_us() == 0);
  CHECK(latency_line(planned) == "latency: at least 2015 µs predicted, 2 costs not known");
  CHECK(latency_line(Planned(diamond(), machine_of(2))) == "latency: 5 costs not known");
}
