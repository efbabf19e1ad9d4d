// Handlers of other nodes: they are prepared as far as this node knows them.
#include "plan/prepare.h"

#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <filesystem>
#include <string>

#include "exec/run.h"
#include "graph/graph.h"
#include "observe/error_codes.h"
#include "plugin/registry.h"
#include "tests/contains.h"

using namespace millrace;

namespace {

// A source that cannot be opened on this machine, or only says how many ticks it has.
struct Tape final : Handler {
  Output<Tensor> out{*this, "out"};
  Param<bool> there{*this, "there", true, "it can be opened"};
  Param<int64_t> size{*this, "size", 1, "numbers in a value; 0 is refused"};
  void probe(Facts& facts) override {
    if (!there) throw std::runtime_error("there is no tape");
    facts.tick_count(7);
  }
  void configure(const Formats& formats) override {
    if (size == 0) throw std::invalid_argument("an empty tape");
    formats.tensor(out, dtype_of<int64_t>(), {size});
  }
  void process(Tick& tick, Cpu&) { tick.end(); }
};
struct Keeps final : Handler {
  Input<Tensor> in{*this, "in", dtypes<int64_t>()};
  Param<std::string> path{*this, "path", "", "file that it writes", writes_path};
  void process(Tick&, Cpu&) {}
};

const mr_plugin& tape_plugin() {
  static const mr_handler_type types[] = {detail::Type<Tape>::table("tape.play", "", ""),
                                          detail::Type<Keeps>::table("tape.keep", "", "")};
  static const mr_handler_type* const pointers[] = {&types[0], &types[1]};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "tape", "1", pointers, 2, 0};
  return plugin;
}

// The handlers that name the node "far" run elsewhere.
struct Preparing {
  explicit Preparing(const std::string& pipeline, bool knows_nodes = true) {
    registry.add(tape_plugin(), "");
    graph = graph::parse_line(pipeline);
    for (graph::Handler& handler : graph.handlers)
      if (handler.name.starts_with("far")) handler.node = "far";
    if (knows_nodes)
      where = [](const graph::Handler& handler) {
        if (handler.name.starts_with("any")) return plan::Runs::perhaps_here;
        return handler.node == "far" ? plan::Runs::elsewhere : plan::Runs::here;
      };
  }
  plan::Prepared prepare() { return plan::prepare(graph, registry, exec::host_table(), true, nullptr, nullptr, where); }
  int refusal() {
    try {
      prepare();
    } catch (const Failure& failure) {
      return failure.error().code;
    }
    return 0;
  }
  plugin::Registry registry;
  graph::Graph graph;
  std::function<plan::Runs(const graph::Handler&)> where;
};

} // namespace

TEST_CASE("a handler of another node whose type is not known here has neither an instance nor answers") {
  const std::string pipeline = "other.play name=far_play ! tape.keep name=keep";
  Preparing preparing(pipeline);
  const plan::Prepared prepared = preparing.prepare();
  REQUIRE(prepared.facts.handlers.size() == 2);
  CHECK(prepared.facts.handlers[0].name == "far_play");
  CHECK(!prepared.facts.handlers[0].answers);
  CHECK(prepared.facts.handlers[0].accepts.empty());
  CHECK(!prepared.handlers.instances.at(0));
  CHECK(prepared.facts.handlers[1].answers == prepared.handlers.instances.at(1).get());
  CHECK(prepared.facts.handlers[1].answers);
  CHECK(Preparing(pipeline, false).refusal() == code::unknown_type);
  CHECK(Preparing("other.play name=play ! tape.keep name=far_keep").refusal() == code::unknown_type);
}

TEST_CASE("a handler of another node whose type is known here is made and narrowed, and is not opened") {
  Preparing preparing("tape.play name=far_play there=false ! tape.keep name=keep");
  const plan::Prepared prepared = preparing.prepare();
  const plan::HandlerFacts& play = prepared.facts.handlers.at(0);
  REQUIRE(play.answers);
  CHECK(play.answers == prepared.handlers.instances.at(0).get());
  CHECK(play.accepts.size() == 1);
  CHECK(play.facts.tick_count == -1);
  Preparing both("tape.play name=play ! tape.keep name=keep ; tape.play name=far_play ! tape.keep name=far_keep");
  const plan::Prepared each = both.prepare();
  CHECK(each.facts.handlers.at(0).facts.tick_count == 7);
  CHECK(each.facts.handlers.at(2).facts.tick_count == -1);
  CHECK(Preparing("tape.play name=play there=false ! tape.keep name=keep").refusal() == code::probe_failed);
}

TEST_CASE("a handler that names no node is here if this machine can run it, and else there is a reason") {
  Preparing can("tape.play name=any_play ! tape.keep name=keep");
  const plan::Prepared opened = can.prepare();
  CHECK(opened.facts.handlers.at(0).answers == opened.handlers.instances.at(0).get());
  CHECK(opened.facts.handlers.at(0).facts.tick_count == 7);
  CHECK(opened.unable.empty());

  Preparing cannot("tape.play name=any_play there=false ! tape.keep name=keep");
  const plan::Prepared closed = cannot.prepare();
  CHECK(!closed.facts.handlers.at(0).answers);
  CHECK(!closed.handlers.instances.at(0));
  CHECK(closed.unable.at("any_play") == "there is no tape");

  Preparing not_known("other.play name=any_play ! tape.keep name=keep");
  const plan::Prepared unknown = not_known.prepare();
  CHECK(!unknown.facts.handlers.at(0).answers);
  CHECK(unknown.unable.empty());
  CHECK(Preparing("tape.play name=any_play there=false ! tape.keep name=keep", false).refusal() == code::probe_failed);
}

TEST_CASE("a file of one node is not that of another node with the same path") {
  const std::string path = (std::filesystem::temp_directory_path() / "millrace-tape").string();
  const auto two_write = [&](const std::string& first, const std::string& second, bool knows_nodes) {
    return Preparing("tape.play name=play ! tape.keep name=" + first + " path=" + path +
                         " ; play. ! tape.keep name=" + second + " path=" + path,
                     knows_nodes)
        .refusal();
  };
  CHECK(two_write("keep", "also", true) == code::file_conflict);
  CHECK(two_write("keep", "far_keep", true) == 0);
  CHECK(two_write("far_keep", "far_also", true) == 0); // their own node looks
  CHECK(two_write("keep", "far_keep", false) == code::file_conflict);
}

TEST_CASE("a source says the formats that it makes, and MR0403 is its refusal in its own words") {
  Preparing good("tape.play name=play size=5 ! tape.keep name=keep");
  const plan::Prepared prepared = good.prepare();
  const auto formats = plan::formats_of_source(good.graph.handlers.at(0), prepared.facts.handlers.at(0));
  REQUIRE(formats.size() == 1);
  CHECK(formats[0].shape[0] == 5);
  CHECK(formats[0].size == sizeof(mr_format));
  Preparing bad("tape.play name=play size=0 ! tape.keep name=keep");
  const plan::Prepared refused = bad.prepare();
  try {
    plan::formats_of_source(bad.graph.handlers.at(0), refused.facts.handlers.at(0));
    FAIL("it is refused");
  } catch (const Failure& failure) {
    CHECK(failure.error().code == code::incompatible_formats);
    CHECK(contains(failure.error().what, "play (tape.play) refuses: "));
    CHECK(contains(failure.error().what, "an empty tape"));
  }
}
