// Streams over nodes: random graphs of a set of streams give what they give on one machine, whatever links do, and a
// stream that fails on one node ends on all of them, and leaves the others as they were.
//
// MILLRACE_SEED=n tries the one graph of that seed, MILLRACE_STREAM_NODES=n another number of graphs than 200.
#include <doctest/doctest.h>

#include <map>
#include <optional>
#include <random>

#include "clock_graphs.h"
#include "cutting.h"
#include "graph/unfold.h"
#include "sample.h"
#include "tests/part.h"

using namespace millrace;
using namespace millrace::test;

namespace {

struct SpreadStreams {
  std::string text; // the pipeline as it is written
  std::vector<std::string> nodes, streams;
  std::string fails;                      // the stream whose `frail` and `weak` are told to fail; "": none
  std::map<std::string, int64_t> fail_at; // by template
};

// A set of up to four streams. Each template, and each stream's source, is on a node of its own choice, so that nodes
// read what others write in both directions; what is outside reads all streams, or is read by all of them.
class DrawnStreams {
 public:
  DrawnStreams(uint64_t seed, bool fails) : random_(seed) { draw(fails); }

  SpreadStreams made;

 private:
  int64_t up_to(int64_t most) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(most + 1)); }
  bool one_in(int64_t n) { return up_to(n - 1) == 0; }
  std::string one_of(const std::vector<std::string>& all) {
    return all[static_cast<size_t>(up_to(static_cast<int64_t>(all.size()) - 1))];
  }
  std::string node() { return ", node: " + one_of(made.nodes); }

  void draw(bool fails) {
    made.nodes = {"a", "b"};
    if (one_in(3)) made.nodes.emplace_back("c");
    const int64_t count = 2 + up_to(2);
    const int64_t failing = fails ? up_to(count - 1) : -1;
    const bool sources_apart = one_in(3); // each stream says where it is
    std::string items;
    for (int64_t s = 0; s < count; ++s) {
      made.streams.push_back("s" + std::to_string(s));
      const int64_t values = 8 + up_to(30);
      std::map<std::string, int64_t> fail_at = {{"frail", -1}, {"weak", -1}};
      if (s == failing) {
        fail_at["frail"] = 1 + up_to(values - 2);
        if (const int64_t at = 1 + up_to(values - 2); one_in(2) && at != fail_at["frail"]) fail_at["weak"] = at;
        made.fails = made.streams.back();
        made.fail_at = fail_at;
      }
      items += "      " + made.streams.back() + ": { count: " + std::to_string(values) +
               ", rate: " + one_of({"10", "25", "30", "100"}) + ", frail: " + std::to_string(fail_at["frail"]) +
               ", weak: " + std::to_string(fail_at["weak"]) + ", silent: " + one_of({"0", "0", "3"}) +
               (sources_apart ? node() : "") + " }\n";
    }
    handler(
        "source", "t.count",
        "count: '{count}', rate: '{rate}', silent_every: '{silent}'" + (sources_apart ? "" : std::string(", node: a")));
    templates_ = {"source"};
    if (one_in(2)) outside_ = "  still: { type: t.count, count: 20, rate: 20, clock: outer" + node() + " }\n";
    for (int64_t n = 3 + up_to(4), h = 1; h <= n; ++h) add_template("h" + std::to_string(h));
    if (fails) {
      for (const std::string name : {"frail", "weak"}) {
        const std::string more = ", fail_at: '{" + name + "}', log: '" + name + ".{stream}'";
        handler(name, "t.relay", "input: " + one_of(templates_) + more + node());
      }
      handler("after", "t.join", "inputs: { in: frail }, log: 'after.{stream}'" + node());
    }
    const std::string clock = one_in(2) ? "{ mode: free }" : "{ mode: source }";
    std::string clocks = "clocks:\n  cameras: " + clock + "\n";
    if (!outside_.empty()) clocks += "  outer: { mode: source }\n";
    for (int64_t w = up_to(2); w > 0; --w) {
      const std::string name = "wall" + std::to_string(w);
      clocks += "  " + name + ": { mode: free" + (one_in(3) ? node() : "") + " }\n";
      handlers_ += "  " + name + ": { type: t.join, clock: " + name + ", log: " + name + node() +
                   ", input: { from: " + one_of(templates_) + ", " +
                   one_of({"policy: latest", "policy: align, within: 20ms"}) + " } }\n";
    }
    made.text = "version: 1\nnodes: {";
    for (const std::string& name : made.nodes) made.text += (name == "a" ? " " : ", ") + name + ": {}";
    made.text += " }\nstreams:\n  cameras:\n    items:\n" + items + clocks + "handlers:\n" + outside_ + handlers_;
  }

  void handler(const std::string& name, const std::string& type, const std::string& rest) {
    handlers_ += "  " + name + ": { type: " + type + ", for_each: cameras, " + rest + " }\n";
  }

  void add_template(const std::string& name) {
    const std::string log = ", log: '" + name + ".{stream}'" + node();
    const bool by_one = one_in(3);
    if (by_one) {
      const std::string type = one_of({"t.relay", "t.keep", "t.late", "t.paint"});
      const std::string more = type == "t.relay" && one_in(2) ? ", silent_every: 4"
                               : type == "t.late"             ? ", after: 3"
                                                              : "";
      // What is owed in gaps of an input has tests of its own (2.4).
      handler(name, type, "input: " + (type == "t.late" ? "source" : one_of(templates_)) + more + log);
    } else {
      std::string inputs = one_of(templates_);
      for (int64_t more = up_to(2); more > 0; --more) inputs += ", " + entry();
      handler(name, "t.join", (one_in(6) ? "every: 2, " : "") + std::string("inputs: { in: [") + inputs + "] }" + log);
    }
    templates_.push_back(name);
  }

  std::string entry() {
    if (!outside_.empty() && one_in(4)) return "{ from: still, policy: latest }";
    const std::string from = one_of(templates_);
    if (one_in(5)) return "{ from: " + from + ", policy: latest }";
    if (one_in(5)) return "{ from: " + from + ", policy: queue, depth: 8 }";
    return from;
  }

  std::mt19937_64 random_;
  std::vector<std::string> templates_;
  std::string handlers_, outside_;
};

Pipeline unfolded(const SpreadStreams& made) {
  Pipeline pipeline;
  pipeline.graph = graph::unfold(graph::parse_yaml(made.text, "streams.yaml"));
  return pipeline;
}

Setup setup_of(uint64_t seed) {
  return seed % 3 == 0 ? measured_setup() : clocks_setup(static_cast<uint32_t>(1 + seed % 2), true);
}

} // namespace

TEST_CASE("7.13: streams over nodes give what they give on one machine, with links that are cut") {
  const int64_t only = from_environment("MILLRACE_SEED", -1);
  const int64_t wanted = only >= 0 ? 1 : from_environment("MILLRACE_STREAM_NODES", part_of(200));
  std::map<std::string, int64_t> ways;
  int64_t accepted = 0;
  for (int64_t seed = only >= 0 ? only : 1; accepted < wanted; ++seed) {
    const SpreadStreams made = DrawnStreams(static_cast<uint64_t>(seed), false).made;
    INFO("MILLRACE_SEED=", seed, "\n", made.text);
    REQUIRE(seed < 5 * wanted + 10); // most must be accepted
    const Pipeline pipeline = unfolded(made);
    std::optional<Spread> spread;
    try {
      spread.emplace(pipeline, linked_at_random(made.nodes, static_cast<uint64_t>(seed)),
                     setup_of(static_cast<uint64_t>(seed)));
    } catch (const Failure& failure) {
      const int refused = failure.error().code;
      CAPTURE(format_error(failure.error()));
      const bool also_here = refused == code_of(pipeline, clocks_setup(1, true));
      ++ways["refused with " + std::to_string(refused) + (also_here ? "" : ", on one machine not")];
      // There handlers share paces and channels, so that fewer windows have to be held.
      REQUIRE((also_here || refused / 100 == 8 || refused == code::window_too_small));
      continue;
    }
    ++accepted;
    const Ran ran = spread->run(), expected = run(pipeline, clocks_setup(1, true));
    REQUIRE(ran.error.what == "");
    REQUIRE(expected.error.what == "");
    for (const auto& [name, log] : expected.all_seen()) {
      CAPTURE(name);
      REQUIRE(ran.seen_if_any(name) == log);
    }
    ++ways[std::to_string(made.nodes.size()) + " nodes"];
    ++ways[std::to_string(made.streams.size()) + " streams"];
    ways["with parcels"] += spread->parcels() > 0;
    ways["cut again"] += ran.report.cut_again;
  }
  for (const auto& [way, count] : ways) MESSAGE(way, ": ", count);
  if (only < 0) CHECK(ways["with parcels"] > accepted / 2);
}

namespace {

// The values that the stream's handlers saw up to the tick.
std::vector<Seen> seen_until(const std::vector<Seen>& log, int64_t tick) {
  std::vector<Seen> until;
  for (const Seen& seen : log)
    if (static_cast<int64_t>(seen.index) <= tick) until.push_back(seen);
  return until;
}

// The first tick that is to fail and has a value; none: they all lack one.
struct Strike {
  std::string name, node;
  int64_t tick = 0;
};
std::optional<Strike> strike_of(const SpreadStreams& made, const graph::Graph& graph, const Ran& sound) {
  std::optional<Strike> first;
  for (const auto& [name, tick] : made.fail_at) {
    const std::vector<Seen> until = seen_until(sound.seen_if_any(name + "." + made.fails), tick);
    const bool has_value = !until.empty() && static_cast<int64_t>(until.back().index) == tick;
    if (has_value && (!first || tick < first->tick)) first = {name, graph.find(name + "@" + made.fails)->node, tick};
  }
  return first;
}

// Each node that has handlers of the stream says how it ended, as the node on which it failed does.
void check_states(Spread& spread, const SpreadStreams& made, const Strike& strike) {
  for (size_t node = 0; node < made.nodes.size(); ++node)
    for (const StreamReport& stream : spread.report_of(node).streams) {
      CAPTURE(made.nodes[node]);
      CAPTURE(stream.name);
      const bool failed = stream.name == made.fails;
      REQUIRE(stream.state == (failed ? "failed" : "ended"));
      REQUIRE(stream.error.empty() == !failed);
      REQUIRE(stream.failed_on == (failed ? strike.node : ""));
      if (failed) REQUIRE(stream.failed_at == static_cast<uint64_t>(strike.tick));
    }
}

} // namespace

TEST_CASE("B11: [7.11] a stream that fails on one node ends on all of them, and leaves the others as they were") {
  const int64_t only = from_environment("MILLRACE_SEED", -1);
  const int64_t wanted = only >= 0 ? 1 : from_environment("MILLRACE_STREAM_NODES", part_of(200));
  std::map<std::string, int64_t> ways;
  int64_t accepted = 0;
  for (int64_t seed = only >= 0 ? only : 1; accepted < wanted; ++seed) {
    const SpreadStreams made = DrawnStreams(static_cast<uint64_t>(seed), true).made;
    INFO("MILLRACE_SEED=", seed, "\n", made.text);
    REQUIRE(seed < 5 * wanted + 10); // most must be accepted
    const Pipeline pipeline = unfolded(made);
    const Nodes nodes = linked_at_random(made.nodes, static_cast<uint64_t>(seed));
    std::optional<Spread> spread;
    try {
      spread.emplace(pipeline, nodes, setup_of(static_cast<uint64_t>(seed)));
    } catch (const Failure&) {
      continue; // as in the test above
    }
    ++accepted;
    Pipeline sound = pipeline;
    for (graph::Handler& handler : sound.graph.handlers)
      for (graph::Param& param : handler.params)
        if (param.name == "fail_at") param.text = "-1";
    const Ran ran = spread->run(), expected = run(sound, clocks_setup(1, true));
    REQUIRE(expected.error.what == "");
    REQUIRE(ran.error.what == "");
    const std::optional<Strike> strike = strike_of(made, pipeline.graph, expected);
    for (const auto& [name, log] : expected.all_seen()) {
      CAPTURE(name);
      const std::vector<Seen> seen = ran.seen_if_any(name);
      const bool is_outside = name.find('.') == std::string::npos; // the streams lead its clock
      if (!strike || !name.ends_with("." + made.fails)) {
        if (!strike || !is_outside) REQUIRE(seen == log);
        continue;
      }
      const bool is_after = name == "after." + made.fails && strike->name == "frail"; // and gets nothing on that tick
      const int64_t same_until = strike->tick - is_after;
      REQUIRE(seen_until(seen, same_until) == seen_until(log, same_until));
      // Others may have been ahead of the handler that failed.
      if (is_after || name == strike->name + "." + made.fails)
        REQUIRE(seen_until(seen, strike->tick).size() == seen.size());
    }
    if (strike) check_states(*spread, made, *strike);
    const bool at_home = strike && strike->node == pipeline.graph.find("source@" + made.fails)->node;
    ++ways[!strike ? "fails on ticks without a value" : at_home ? "failed at home" : "failed on another node"];
    ways["failed first in the other handler"] += strike && strike->name == "weak";
  }
  for (const auto& [way, count] : ways) MESSAGE(way, ": ", count);
  if (only < 0) CHECK(ways["failed on another node"] > accepted / 4);
}
