// Threads of a run shared between its workers and libraries that compute a call with several.
#include "plan/share_threads.h"

#include <doctest/doctest.h>

#include "graph/graph.h"
#include "planned.h"
#include "plugin/registry.h"

using namespace millrace;
using namespace millrace::test;

namespace {

struct Shared {
  graph::Graph graph;
  plan::SharedThreads threads;

  Shared(const std::string& libraries, uint32_t given, const std::string& elsewhere = "")
      : graph(Pipeline("t.count" + libraries + " ! t.sink log=none").graph) {
    plugin::Registry registry;
    registry.add(test_plugin(), "");
    registry.add(plan_plugin(), "");
    threads = plan::share_threads(graph, registry, given,
                                  [&](const graph::Handler& handler) { return handler.name != elsewhere; });
  }
  // The thread counts of the libraries' handlers; those without a number are "".
  Names counts() const {
    Names counts;
    for (const graph::Handler& handler : graph.handlers) {
      if (handler.type != "p.library") continue;
      counts.emplace_back();
      for (const graph::Param& param : handler.params)
        if (param.name == "threads") counts.back() += param.text;
    }
    return counts;
  }
};

const std::string kLibrary = " ! p.library";

} // namespace

TEST_CASE("libraries and the rest of a graph have equal shares of the threads, and no more run than were given") {
  struct Case {
    size_t libraries;
    uint32_t given;
    std::string share;
    uint32_t workers, of_libraries;
  };
  for (const Case& one : std::vector<Case>{{0, 4, "", 4, 0},
                                           {1, 1, "1", 1, 0},
                                           {1, 2, "1", 2, 0},
                                           {1, 4, "2", 3, 1},
                                           {1, 16, "8", 9, 7},
                                           {3, 16, "4", 7, 9},
                                           {9, 8, "1", 8, 0}}) {
    CAPTURE(one.libraries);
    CAPTURE(one.given);
    std::string line;
    for (size_t n = 0; n < one.libraries; ++n) line += kLibrary;
    const Shared shared(line, one.given);
    CHECK(shared.counts() == Names(one.libraries, one.share));
    CHECK(shared.threads.workers == one.workers);
    CHECK(shared.threads.of_libraries == one.of_libraries);
  }
}

TEST_CASE("a number of threads that is given stays, counts, and 0 is none") {
  const Shared shared(kLibrary + " threads=5" + kLibrary + " threads=0" + kLibrary, 12);
  CHECK(shared.counts() == Names{"5", "2", "2"}); // of the eight that the first leaves
  CHECK(shared.threads.of_libraries == 4 + 1 + 1);
  CHECK(shared.threads.workers == 6);
  const Shared greedy(kLibrary + " threads=64", 4);
  CHECK(greedy.threads.workers == 1);
  CHECK(greedy.threads.of_libraries == 63);
  CHECK(Shared(kLibrary + " threads=many", 4).counts() == Names{"many"}); // is refused when the parameter is set
}

TEST_CASE("handlers of other nodes have no share of this machine's threads") {
  const Shared shared(kLibrary + " name=here" + kLibrary + " name=there", 8, "there");
  CHECK(shared.counts() == Names{"4", ""});
  CHECK(shared.threads.workers == 5);
}

TEST_CASE("a handler of a stream that comes has the threads of the one in whose place it is, or its own") {
  plugin::Registry registry;
  registry.add(plan_plugin(), "");
  const plugin::RegisteredType& library = *registry.find("p.library");
  const graph::Handler planned = Shared(kLibrary, 16).graph.handlers[1];
  const auto threads_of = [&](graph::Handler handler) {
    plan::take_share(library, planned, handler);
    REQUIRE(handler.params.size() == 1);
    CHECK(handler.params[0].name == "threads");
    return handler.params[0].text;
  };
  graph::Handler handler;
  CHECK(threads_of(handler) == "8");
  handler.params = {{"threads", "0", {}, {}}};
  CHECK(threads_of(handler) == "8");
  handler.params[0].text = "3";
  CHECK(threads_of(handler) == "3");
}

TEST_CASE("a plan says how many threads are the libraries'") {
  plan::Machine machine = machine_of(3);
  const Pipeline pipeline("t.count" + kLibrary + " ! t.sink log=none");
  CHECK(Planned(pipeline, machine).text().find("of libraries") == std::string::npos);
  machine.library_threads = 2;
  CHECK(Planned(pipeline, machine).text().find("threads, and 2 of libraries\n") != std::string::npos);
}
