// Streams over nodes: random graphs of a set of streams give what they give on one machine, whatever links do. A stream
// that fails on one node ends on all of them, or begins anew on all of them, and leaves the others as they were.
//
// MILLRACE_SEED=n tries the one graph of that seed, MILLRACE_STREAM_NODES=n another number of graphs than 200.
#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <random>

#include "clock_graphs.h"
#include "cutting.h"
#include "graph/unfold.h"
#include "observe/error_codes.h"
#include "sample.h"
#include "tests/part.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// Values of handlers outside the streams are not less than this; those of streams are the numbers of their epochs.
constexpr int64_t kFirstOutside = 1000;

struct EpochNote {
  uint64_t index;
  uint32_t epoch;
  int64_t media_ns;
  std::vector<int64_t> values;
  friend bool operator==(const EpochNote&, const EpochNote&) = default;
};
std::map<std::string, std::vector<EpochNote>> epochs_noted; // by log
std::vector<std::string> epochs_mixed;                      // what the last run saw of another epoch

// A source of so many values from each start on. Each is the number of the epoch.
struct CountsEpochs final : Handler {
  Output<Tensor> out{*this, "out"};
  Param<int64_t> count{*this, "count", 1, "values of one start"};
  Param<int64_t> rate{*this, "rate", 10, "values a second"};
  Param<int64_t> silent_every{*this, "silent_every", 0, "every k-th gives nothing"};
  int64_t next = 0;
  void probe(Facts& facts) override { facts.rate(*rate); }
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}); }
  void start() override { next = 0; }
  void process(Tick& tick, Cpu&) {
    if (next >= count) return tick.end();
    const int64_t n = next++;
    if (silent_every > 0 && n % silent_every == silent_every - 1) return;
    write_one(out, tick, tick.epoch());
    out.header(tick).pts_ns = n * 1'000'000'000 / rate;
  }
};

// Passes the number of the epoch on. All that it sees of its stream, and all that it remembers, has to be of this
// epoch.
struct JoinsEpochs final : Handler {
  Inputs<Tensor> in{*this, "in", 8, optional};
  Output<Tensor> out{*this, "out"};
  Param<std::string> name{*this, "log", "", "where it notes what it sees"};
  Param<int64_t> fail_at{*this, "fail_at", -1, "the tick that fails"};
  int64_t remembered = -1;
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}); }
  void reset() override { remembered = -1; }
  void process(Tick& tick, Cpu&) {
    EpochNote note{tick.index(), tick.epoch(), tick.media_time_ns(), {}};
    const auto look = [&](int64_t epoch) {
      if (epoch != int64_t{tick.epoch()})
        epochs_mixed.push_back(*name + " saw epoch " + std::to_string(epoch) + " on tick " +
                               std::to_string(tick.index()) + " of epoch " + std::to_string(tick.epoch()));
    };
    if (remembered >= 0) look(remembered);
    remembered = tick.epoch();
    for (uint32_t i = 0; i < in.count(); ++i) {
      note.values.push_back(in.present(tick, i) ? read_one(in(tick, i)) : kEmpty);
      if (note.values.back() != kEmpty && note.values.back() < kFirstOutside) look(note.values.back());
    }
    epochs_noted[*name].push_back(note);
    if (static_cast<int64_t>(tick.index()) == fail_at) throw std::runtime_error("told to fail");
    write_one(out, tick, tick.epoch());
  }
};

const mr_plugin& epochs_plugin() {
  static const mr_handler_type types[] = {detail::Type<CountsEpochs>::table("n.count", "Gives its epoch", ""),
                                          detail::Type<JoinsEpochs>::table("n.join", "Looks at epochs", "")};
  static const mr_handler_type* const pointers[] = {&types[0], &types[1]};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "epochs", "1", pointers, 2, 0};
  return plugin;
}

enum class SpreadFate { well, ends, begins_anew }; // of one stream, in which handlers fail

struct SpreadStreams {
  std::string text; // the pipeline as it is written
  std::vector<std::string> nodes, streams;
  std::string fails;                      // the stream whose `frail` and `weak` are told to fail; "": none
  std::map<std::string, int64_t> fail_at; // by template
  bool is_live = false;                   // under realtime rules: what is seen depends on times
};

// A set of up to four streams. Each template, and each stream's source, is on a node of its own choice, so that nodes
// read what others write in both directions; what is outside reads all streams, or is read by all of them.
class DrawnStreams {
 public:
  DrawnStreams(uint64_t seed, SpreadFate fate) : random_(seed), begins_anew_(fate == SpreadFate::begins_anew) {
    draw(fate != SpreadFate::well);
  }

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
        "source", begins_anew_ ? "n.count" : "t.count",
        "count: '{count}', rate: '{rate}', silent_every: '{silent}'" + (sources_apart ? "" : std::string(", node: a")));
    templates_ = {"source"};
    if (one_in(2))
      outside_ = "  still: { type: t.count, first: " + std::to_string(kFirstOutside) +
                 ", count: 20, rate: 20, clock: outer" + node() + " }\n";
    for (int64_t n = 3 + up_to(4), h = 1; h <= n; ++h) add_template("h" + std::to_string(h));
    if (fails) {
      for (const std::string name : {"frail", "weak"}) {
        const std::string more = ", fail_at: '{" + name + "}', log: '" + name + ".{stream}'";
        handler(name, begins_anew_ ? "n.join" : "t.relay", "input: " + one_of(templates_) + more + node());
      }
      handler("after", join(), "inputs: { in: frail }, log: 'after.{stream}'" + node());
    }
    made.is_live = begins_anew_ && one_in(3);
    const std::string clock = made.is_live ? "{ mode: realtime, rate: 30 }"
                              : one_in(2)  ? "{ mode: free }"
                                           : "{ mode: source }";
    std::string clocks = "clocks:\n  cameras: " + clock + "\n";
    if (!outside_.empty()) clocks += "  outer: { mode: source }\n";
    for (int64_t w = up_to(2); w > 0; --w) {
      const std::string name = "wall" + std::to_string(w);
      clocks += "  " + name + ": { mode: " + (made.is_live ? "realtime, rate: 25" : "free") +
                (one_in(3) ? node() : "") + " }\n";
      handlers_ += "  " + name + ": { type: t.join, clock: " + name + ", log: " + name + node() +
                   ", input: { from: " + one_of(templates_) + ", " +
                   one_of({"policy: latest", "policy: align, within: 20ms"}) + " } }\n";
    }
    made.text = "version: 1\nnodes: {";
    for (const std::string& name : made.nodes) made.text += (name == "a" ? " " : ", ") + name + ": {}";
    made.text += " }\nstreams:\n  cameras:\n" + std::string(begins_anew_ ? "    on_error: restart\n" : "") +
                 "    items:\n" + items + clocks + "handlers:\n" + outside_ + handlers_;
  }

  void handler(const std::string& name, const std::string& type, const std::string& rest) {
    handlers_ += "  " + name + ": { type: " + type + ", for_each: cameras, " + rest + " }\n";
  }

  const char* join() const { return begins_anew_ ? "n.join" : "t.join"; }

  // Epochs begin at any index. So a handler's results may not depend on the index if its stream begins anew.
  void add_template(const std::string& name) {
    const std::string log = ", log: '" + name + ".{stream}'" + node();
    const bool by_one = one_in(3);
    if (by_one && begins_anew_) {
      const bool late = one_in(2);
      handler(name, late ? "t.late" : "t.relay",
              late ? "input: source, after: 3" : "input: " + one_of(templates_) + node());
    } else if (by_one) {
      const std::string type = one_of({"t.relay", "t.keep", "t.late", "t.paint"});
      const std::string more = type == "t.relay" && one_in(2) ? ", silent_every: 4"
                               : type == "t.late"             ? ", after: 3"
                                                              : "";
      // Results that are owed in gaps of an input have tests of their own (2.4).
      handler(name, type, "input: " + (type == "t.late" ? "source" : one_of(templates_)) + more + log);
    } else {
      std::string inputs = one_of(templates_);
      for (int64_t more = up_to(2); more > 0; --more) inputs += ", " + entry();
      const bool skips = !begins_anew_ && one_in(6);
      handler(name, join(), (skips ? "every: 2, " : "") + std::string("inputs: { in: [") + inputs + "] }" + log);
    }
    templates_.push_back(name);
  }

  std::string entry() {
    if (!outside_.empty() && one_in(4)) return "{ from: still, policy: latest }";
    const std::string from = one_of(templates_);
    if (one_in(5)) return "{ from: " + from + ", policy: latest }";
    if (one_in(5)) return "{ from: " + from + ", policy: queue, depth: 8 }";
    if (begins_anew_ && one_in(3)) return "{ from: " + from + ", delay: " + one_of({"1", "3"}) + " }";
    return from;
  }

  std::mt19937_64 random_;
  bool begins_anew_;
  std::vector<std::string> templates_;
  std::string handlers_, outside_;
};

Pipeline unfolded(const SpreadStreams& made) {
  Pipeline pipeline;
  pipeline.graph = graph::unfold(graph::parse_yaml(made.text, "streams.yaml"));
  return pipeline;
}

Setup on_one_machine() {
  Setup setup = clocks_setup(1, true);
  setup.more = &epochs_plugin();
  return setup;
}

Setup setup_of(uint64_t seed) {
  Setup setup = seed % 3 == 0 ? measured_setup() : clocks_setup(static_cast<uint32_t>(1 + seed % 2), true);
  setup.more = &epochs_plugin();
  return setup;
}

using SpreadWays = std::map<std::string, int64_t>;

// A graph that nodes have taken, and the same without anything that fails.
struct SpreadTrial {
  const SpreadStreams& made;
  const Pipeline &pipeline, &sound;
  Spread& spread;
  SpreadWays& ways;
};

// Has each of so many random graphs tried. Returns how many those were.
int64_t try_spread_graphs(SpreadFate fate, SpreadWays& ways, const std::function<void(const SpreadTrial&)>& attempt) {
  const int64_t only = from_environment("MILLRACE_SEED", -1);
  const int64_t wanted = only >= 0 ? 1 : from_environment("MILLRACE_STREAM_NODES", part_of(200));
  int64_t accepted = 0;
  for (int64_t seed = only >= 0 ? only : 1; accepted < wanted; ++seed) {
    const SpreadStreams made = DrawnStreams(static_cast<uint64_t>(seed), fate).made;
    INFO("MILLRACE_SEED=", seed, "\n", made.text);
    REQUIRE((only >= 0 || seed < 5 * wanted + 10)); // most must be accepted
    const Pipeline pipeline = unfolded(made);
    std::optional<Spread> spread;
    Nodes nodes = linked_at_random(made.nodes, static_cast<uint64_t>(seed));
    // Longer than a stream waits before it begins anew, now and then.
    nodes.tells_after_ns = [random = std::mt19937_64(static_cast<uint64_t>(seed))](size_t, size_t) mutable {
      return static_cast<int64_t>(random() % 3 == 0 ? 0 : random() % 300'000'000);
    };
    if (made.is_live)
      nodes.link = [link = nodes.link](size_t from, size_t to) {
        Link cut = link(from, to);
        cut.away_after_ns = 50'000'000;
        return cut;
      };
    try {
      spread.emplace(pipeline, nodes, setup_of(static_cast<uint64_t>(seed)));
    } catch (const Failure& failure) {
      const int refused = failure.error().code;
      CAPTURE(format_error(failure.error()));
      const bool also_here = refused == code_of(pipeline, on_one_machine());
      ++ways["refused with " + std::to_string(refused) + (also_here ? "" : ", on one machine not")];
      // There handlers share paces and channels, so that fewer windows have to be held.
      REQUIRE((also_here || refused / 100 == 8 || refused == code::window_too_small));
      if (only >= 0) break;
      continue;
    }
    ++accepted;
    Pipeline sound = pipeline;
    for (graph::Handler& handler : sound.graph.handlers)
      for (graph::Param& param : handler.params)
        if (param.name == "fail_at") param.text = "-1";
    attempt({made, pipeline, sound, *spread, ways});
  }
  for (const auto& [way, count] : ways) MESSAGE(way, ": ", count);
  return only < 0 ? accepted : 0;
}

} // namespace

TEST_CASE("7.13: streams over nodes give what they give on one machine, with links that are cut") {
  SpreadWays ways;
  const int64_t accepted = try_spread_graphs(SpreadFate::well, ways, [](const SpreadTrial& trial) {
    const Ran ran = trial.spread.run(), expected = run(trial.pipeline, on_one_machine());
    REQUIRE(ran.error.what == "");
    REQUIRE(expected.error.what == "");
    for (const auto& [name, log] : expected.all_seen()) {
      CAPTURE(name);
      REQUIRE(ran.seen_if_any(name) == log);
    }
    ++trial.ways[std::to_string(trial.made.nodes.size()) + " nodes"];
    ++trial.ways[std::to_string(trial.made.streams.size()) + " streams"];
    trial.ways["with parcels"] += trial.spread.parcels() > 0;
    trial.ways["cut again"] += ran.report.cut_again;
  });
  if (accepted > 0) CHECK(ways["with parcels"] > accepted / 2);
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
  SpreadWays ways;
  const int64_t accepted = try_spread_graphs(SpreadFate::ends, ways, [](const SpreadTrial& trial) {
    const SpreadStreams& made = trial.made;
    const Ran ran = trial.spread.run(), expected = run(trial.sound, on_one_machine());
    REQUIRE(expected.error.what == "");
    REQUIRE(ran.error.what == "");
    const std::optional<Strike> strike = strike_of(made, trial.pipeline.graph, expected);
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
      // Others may have been ahead of the handler that failed, or may not have heard of it.
      const bool hears_at_once = trial.pipeline.graph.find("after@" + made.fails)->node == strike->node;
      if ((is_after && hears_at_once) || name == strike->name + "." + made.fails)
        REQUIRE(seen_until(seen, strike->tick).size() == seen.size());
    }
    if (strike) check_states(trial.spread, made, *strike);
    const bool at_home = strike && strike->node == trial.pipeline.graph.find("source@" + made.fails)->node;
    ++trial.ways[!strike ? "fails on ticks without a value" : at_home ? "failed at home" : "failed on another node"];
    trial.ways["failed first in the other handler"] += strike && strike->name == "weak";
  });
  if (accepted > 0) CHECK(ways["failed on another node"] > accepted / 4);
}

namespace {

// The notes of a run's handlers, by log.
std::map<std::string, std::vector<EpochNote>> epochs_of(const std::function<Ran()>& run, Ran& ran) {
  epochs_noted.clear();
  epochs_mixed.clear();
  ran = run();
  REQUIRE(ran.error.what == "");
  CHECK(epochs_mixed == std::vector<std::string>{});
  return epochs_noted;
}

// The stream as its home reports it.
StreamReport report_at_home(const SpreadTrial& trial, const std::string& stream) {
  const std::string home = trial.pipeline.graph.find("source@" + stream)->node;
  const auto node =
      static_cast<size_t>(std::find(trial.made.nodes.begin(), trial.made.nodes.end(), home) - trial.made.nodes.begin());
  const std::vector<StreamReport> all = trial.spread.report_of(node).streams;
  const auto at = std::find_if(all.begin(), all.end(), [&](const StreamReport& one) { return one.name == stream; });
  REQUIRE(at != all.end());
  return *at;
}

} // namespace

TEST_CASE(
    "B11: [7.11] a stream that fails on one node begins anew on all of them, and leaves the others as they were") {
  SpreadWays ways;
  const int64_t accepted = try_spread_graphs(SpreadFate::begins_anew, ways, [](const SpreadTrial& trial) {
    const SpreadStreams& made = trial.made;
    Ran ran, expected;
    const auto told = epochs_of([&] { return trial.spread.run(); }, ran);
    const auto sound = epochs_of([&] { return run(trial.sound, on_one_machine()); }, expected);
    const StreamReport struck = report_at_home(trial, made.fails);
    for (const auto& [name, notes] : sound) {
      CAPTURE(name);
      const auto at = told.find(name);
      if (at == told.end() && made.is_live) continue; // no tick came in time
      REQUIRE(at != told.end());
      const std::vector<EpochNote>& seen = at->second;
      if (!made.is_live && !name.ends_with("." + made.fails)) {
        REQUIRE(seen == notes);
        continue;
      }
      int64_t of_last_epoch = 0;
      for (size_t i = 0; i < seen.size(); ++i) {
        of_last_epoch += seen[i].epoch == struck.restarts;
        if (i == 0) continue;
        REQUIRE(seen[i].index > seen[i - 1].index);
        REQUIRE(seen[i].media_ns > seen[i - 1].media_ns);
        REQUIRE(seen[i].epoch >= seen[i - 1].epoch);
      }
      if (struck.state == "ended" && !made.is_live)
        REQUIRE(of_last_epoch == std::ssize(notes)); // the source gave all it has
    }
    for (size_t node = 0; node < made.nodes.size(); ++node)
      for (const StreamReport& stream : trial.spread.report_of(node).streams) {
        CAPTURE(stream.name);
        REQUIRE(stream.state == (stream.name == made.fails ? struck.state : "ended"));
        if (!stream.error.empty()) REQUIRE(stream.failed_on == struck.failed_on);
      }
    ++trial.ways[struck.restarts > 0 ? "began anew" : "did not begin anew, since its source had ended or none failed"];
    trial.ways["began anew under realtime rules"] += struck.restarts > 0 && made.is_live;
    trial.ways["began anew twice"] += struck.restarts > 1;
    trial.ways["with parcels"] += trial.spread.parcels() > 0;
  });
  if (accepted > 0) CHECK(ways["began anew"] > accepted / 3);
  if (accepted > 0) CHECK(ways["began anew under realtime rules"] > accepted / 20);
}
