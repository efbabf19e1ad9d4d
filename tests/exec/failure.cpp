// A failure means the same wherever the handler's body runs: on the host, on a device where bodies run by themselves,
// and on one where they enqueue (semantics.md 2.6). The same outputs, calls, errors and counts, by each policy.
#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "enqueuing_handlers.h"
#include "table_of.h"

namespace millrace::test {
namespace {

using namespace enqueued;

// Adds 100. The last of each `fails_each` ticks fails, and so do the starts from number `bad_from` to `bad_until`.
struct Flaky final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  Param<int64_t> every{*this, "fails_each", 0, "each k-th tick fails"};
  Param<int64_t> bad_from{*this, "bad_from", 0, "the first start that fails"};
  Param<int64_t> bad_until{*this, "bad_until", 0, "the last one"};
  int64_t starts = 0;
  void start() override {
    ++starts;
    if (starts >= bad_from && starts <= bad_until) throw std::runtime_error("told not to start");
  }
  void mind(const Tick& tick) const {
    if (static_cast<int64_t>(tick.index() % static_cast<uint64_t>(*every)) == every - 1)
      throw std::runtime_error("told to fail");
  }
  void process(Tick& tick, Cpu&) {
    mind(tick);
    *fresh(out, tick) = number(in(tick)) + 100;
  }
  void process(Tick& tick, Cuda& cuda) {
    mind(tick);
    queue(cuda).launch([to = fresh(out, tick), from = numbers(in(tick).data())] { *to = *from + 100; });
  }
};

// Adds its two inputs; both must be there.
struct Sums final : Handler {
  Input<Tensor> a{*this, "a"};
  Input<Tensor> b{*this, "b", optional};
  Output<Tensor> out{*this, "out", like(a)};
  static int64_t of(int64_t a, int64_t b) { return mix(a, b); }
  void process(Tick& tick, Cpu&) { *fresh(out, tick) = of(number(a(tick)), b.present(tick) ? number(b(tick)) : -1); }
  void process(Tick& tick, Cuda& cuda) {
    const int64_t* other = b.present(tick) ? numbers(b(tick).data()) : nullptr;
    queue(cuda).launch(
        [to = fresh(out, tick), from = numbers(a(tick).data()), other] { *to = of(*from, other ? *other : -1); });
  }
};

const mr_plugin& flaky_plugin() {
  static const mr_handler_type* const types[] = {table_of<Index>("e.index"), table_of<Flaky>("e.flaky"),
                                                 table_of<Sums>("e.sums")};
  static const mr_plugin table = {sizeof(mr_plugin), MR_ABI_VERSION, "e", "1", types, std::size(types), 0};
  return table;
}

// Everything that a run says of its handlers and edges, but for times; copies have edges of their own.
struct Summary {
  bool ok = false;
  std::vector<Seen> seen;
  std::map<std::string, std::pair<uint64_t, uint64_t>> handlers; // calls, errors
  std::map<std::string, std::pair<uint64_t, uint64_t>> edges;    // delivered, empty
  friend bool operator==(const Summary&, const Summary&) = default;
};

Summary summary_of(graph::OnError on_error, const std::string& params, const std::string& domain, uint32_t workers,
                   uint64_t seed) {
  Pipeline pipeline("e.index name=source count=60 ! e.sums name=sums ! t.sink name=sink log=seen ; source. ! e.flaky " +
                    ("name=flaky " + params) + " ! sums.b ; flaky. ! sink.");
  for (graph::Handler& handler : pipeline.graph.handlers) {
    if (handler.name == "flaky") handler.on_error = on_error;
    handler.device = handler.name == "flaky" || handler.name == "sums" ? domain : "cpu";
  }
  Setup setup;
  setup.more = &flaky_plugin();
  setup.domains = {"cpu"};
  if (domain != "cpu") setup.domains.push_back(domain);
  setup.adversarial = domain != "cpu";
  setup.workers = workers;
  setup.seed = seed;
  const Ran result = run(std::move(pipeline), setup);
  Summary summary;
  summary.ok = result.ok;
  summary.seen = result.seen("seen");
  for (const HandlerReport& handler : result.report.handlers)
    summary.handlers[handler.name] = {handler.calls, handler.errors};
  for (const EdgeReport& edge : result.report.edges)
    summary.edges[edge.from + " → " + edge.to] = {edge.delivered, edge.empty};
  return summary;
}

TEST_CASE("2.6: skip, bypass and restart mean the same on the host, on sim and where bodies enqueue") {
  using Case = std::tuple<graph::OnError, const char*, size_t, uint64_t>; // what the sink has of flaky, and errors
  for (const auto& [on_error, params, there, errors] : {
           Case{graph::OnError::skip, "fails_each=7", 52, 8},
           Case{graph::OnError::bypass, "fails_each=7", 60, 8},
           Case{graph::OnError::restart, "fails_each=7", 52, 8},
           // The second start, after the first failure, fails, and so does the third: those ticks are lost as well.
           Case{graph::OnError::restart, "fails_each=7 bad_from=2 bad_until=3", 50, 8},
       }) {
    CAPTURE(params);
    CAPTURE(static_cast<int>(on_error));
    const Summary host = summary_of(on_error, params, "cpu", 1, 1);
    CHECK(host.ok);
    REQUIRE(host.seen.size() == 60);
    CHECK(static_cast<size_t>(std::count_if(host.seen.begin(), host.seen.end(),
                                            [](const Seen& seen) { return seen.values.at(1) != kEmpty; })) == there);
    CHECK(host.handlers.at("flaky").second == errors);
    for (const char* domain : {"sim:0", "cuda:0"}) {
      for (const uint32_t workers : {1u, 3u}) {
        CAPTURE(domain);
        CAPTURE(workers);
        const Summary device = summary_of(on_error, params, domain, workers, workers);
        CHECK(device.ok);
        CHECK(device.seen == host.seen);
        CHECK(device.handlers == host.handlers);
        CHECK(device.edges == host.edges);
      }
    }
  }
}

TEST_CASE("2.6: fail ends the run at the same tick on the host, on sim and where bodies enqueue") {
  for (const char* domain : {"cpu", "sim:0", "cuda:0"}) {
    CAPTURE(domain);
    const Summary run = summary_of(graph::OnError::fail, "fails_each=7", domain, 1, 1);
    CHECK_FALSE(run.ok);
    size_t there = 0;
    for (const Seen& seen : run.seen) there += seen.values.at(1) != kEmpty;
    CHECK(there == 6);
  }
}

} // namespace
} // namespace millrace::test
