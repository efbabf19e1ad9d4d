// Random graphs give the same bytes with any number of threads, on the host and on simulated devices, whatever the
// order in which those run their work (semantics.md 2.5).
//
// MILLRACE_SEED=n tries the one graph of that seed, MILLRACE_GRAPHS=n another number of graphs.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "harness.h"
#include "reference.h"

using namespace millrace;
using namespace millrace::test;

namespace {

constexpr int64_t kTicks = 40;

int64_t from_environment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoll(text, nullptr, 10) : otherwise;
}

using Features = std::map<std::string, int>;

plan::Hop with_access(plan::Hop hop) {
  hop.price.access_us_per_byte = 0;
  return hop;
}

// A graph, where its handlers may run beside the host, and a script of live changes.
struct Sample {
  Pipeline pipeline;
  std::vector<std::string> devices; // by handler; "" stays on the host
  std::vector<std::string> sinks;
  std::vector<exec::AppliedChange> script;
  uint32_t in_flight = 0;
  Features features;
};

class Generator {
 public:
  explicit Generator(uint64_t seed) : state_(seed) { state_ = next(); } // neighbours share nothing

  Sample make() {
    sample_.in_flight = static_cast<uint32_t>(one_in(3) ? 1 + up_to(5) : 0);
    sample_.pipeline.clock(graph::ClockMode::free, 0, 1, sample_.in_flight);
    for (int64_t n = 1 + (one_in(4) ? 1 : 0), i = 0; i < n; ++i) add_source();
    for (int64_t n = 3 + up_to(7); n > 0; --n) add_handler();
    for (int64_t n = 1 + up_to(2); n > 0; --n) add_sink();
    close_loops();
    add_script();
    return std::move(sample_);
  }

 private:
  // splitmix64: the same numbers with every standard library.
  uint64_t next() {
    uint64_t x = state_ += 0x9E3779B97F4A7C15ull;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
  }
  int64_t up_to(int64_t most) { return static_cast<int64_t>(next() % static_cast<uint64_t>(most + 1)); }
  bool one_in(int64_t n) { return up_to(n - 1) == 0; }
  void feature(const std::string& name) { ++sample_.features[name]; }
  const std::string& any_output() {
    // The newest half more often than the rest: graphs are deep rather than broad.
    const auto count = static_cast<int64_t>(outputs_.size());
    const int64_t from = one_in(3) ? 0 : count / 2;
    return outputs_[static_cast<size_t>(from + up_to(count - 1 - from))];
  }

  graph::Handler& add(const std::string& type, std::map<std::string, std::string> params, bool may_leave) {
    const std::string name = type.substr(type.find('.') + 1) + std::to_string(sample_.devices.size());
    static const std::string kDomains[] = {"", "sim:0", "sim:1"};
    sample_.devices.push_back(may_leave ? kDomains[up_to(2)] : "");
    if (!sample_.devices.back().empty()) feature("device");
    return sample_.pipeline.add(name, type, params);
  }

  void add_source() {
    // The first one lasts longest: who answers later waits for more values, and must not be left without.
    const int64_t count = outputs_.empty() ? kTicks : kTicks - up_to(9);
    std::map<std::string, std::string> params = {{"count", std::to_string(count)},
                                                 {"first", std::to_string(up_to(1000))}};
    if (one_in(3)) {
      params["silent_every"] = std::to_string(2 + up_to(3));
      feature("silent");
    }
    outputs_.push_back(add("t.count", params, false).name);
    if (!params.contains("silent_every") && outputs_.size() == 1) steady_.push_back(outputs_.back());
  }

  void add_handler() {
    static const char* const kTypes[] = {"t.relay", "t.relay", "t.stateless", "t.join", "t.join",       "t.need",
                                         "t.paced", "t.late",  "t.paint",     "t.keep", "t.capturable", "t.forward"};
    std::string type = kTypes[up_to(std::size(kTypes) - 1)];
    if (type == "t.late" && steady_.empty()) type = "t.relay";
    graph::Handler& handler = add(type, params_of(type), type != "t.late" && !one_in(4));
    const std::string name = handler.name;
    if (type == "t.late") feature("pending");
    if (type == "t.paint") feature("in place");
    if (type == "t.keep") feature("keeps");
    if (type == "t.forward") feature("forward");
    if (type == "t.capturable" && !sample_.devices.back().empty()) feature("capturable");
    if (type == "t.stateless" && one_in(2)) {
      handler.concurrency = static_cast<uint32_t>(2 + up_to(2));
      sample_.devices.back() = ""; // lanes are of the host
      feature("lanes");
    }
    if (type != "t.late" && one_in(5)) {
      handler.every = static_cast<uint32_t>(2 + up_to(2));
      feature("every");
    }
    add_errors(handler, type);
    if (type == "t.need") {
      connect(any_output(), name + ".a", true);
      connect(any_output(), name + ".b", true);
    } else if (type == "t.paced") {
      connect(any_output(), name + ".in", true);
      connect(any_output(), name + ".extra", false);
    } else if (type == "t.join") {
      feature("join");
      for (int64_t n = 1 + up_to(3); n > 0; --n) connect(any_output(), name + ".in", false);
      open_.push_back(name + ".in");
    } else if (type == "t.late") { // its answers wait for more values, so there must always be one
      sample_.pipeline.connect(steady_[static_cast<size_t>(up_to(static_cast<int64_t>(steady_.size()) - 1))], name);
      steady_.push_back(name);
    } else if (type == "t.keep") {
      sample_.pipeline.connect(any_output(), name); // it reads through pointers that it kept: always a value
    } else if (type == "t.relay" && !steady_.empty() && handler.every == 1 && !falls_silent(handler) && one_in(2)) {
      sample_.pipeline.connect(steady_.back(), name);
      steady_.push_back(name);
    } else {
      connect(any_output(), name, true);
    }
    outputs_.push_back(name);
  }

  std::map<std::string, std::string> params_of(const std::string& type) {
    std::map<std::string, std::string> params;
    if (type == "t.late") params["after"] = std::to_string(up_to(8));
    const bool relay = type == "t.relay" || type == "t.stateless" || type == "t.capturable";
    if (relay || type == "t.paint") params["add"] = std::to_string(1 + up_to(99));
    if ((relay || type == "t.forward") && one_in(3)) {
      params["silent_every"] = std::to_string(2 + up_to(4));
      feature("silent");
    }
    return params;
  }

  static bool falls_silent(const graph::Handler& handler) {
    return std::any_of(handler.params.begin(), handler.params.end(),
                       [](const graph::Param& param) { return param.name != "add"; });
  }

  void add_errors(graph::Handler& handler, const std::string& type) {
    if (type != "t.relay" && type != "t.stateless" && type != "t.capturable") return;
    if (one_in(3)) {
      handler.params.push_back({"fail_every", std::to_string(2 + up_to(5)), {}, {}});
      handler.on_error = one_in(2) ? graph::OnError::skip : graph::OnError::bypass;
      feature(handler.on_error == graph::OnError::skip ? "skip" : "bypass");
    } else if (one_in(6)) {
      handler.params.push_back({"fail_at", std::to_string(5 + up_to(25)), {}, {}});
      feature("fail");
    }
  }

  void connect(const std::string& from, const std::string& to, bool required) {
    const int64_t choice = up_to(9);
    if (choice < 6) {
      sample_.pipeline.connect(from, to);
    } else if (choice == 6) {
      delay(sample_.pipeline.connect(from, to), required);
    } else if (choice < 9) {
      graph::Edge& edge = sample_.pipeline.connect(from, to, graph::Policy::latest);
      edge.lag = static_cast<uint32_t>(one_in(2) ? 0 : 1 + up_to(2));
      edge.initial_empty = one_in(3);
      feature("latest");
      if (edge.lag > 0) feature("lag");
    } else {
      queue(sample_.pipeline.connect(from, to, graph::Policy::queue));
    }
  }
  void delay(graph::Edge& edge, bool required) {
    edge.delay = static_cast<uint32_t>(1 + up_to(3));
    edge.initial_empty = required || one_in(2);
    feature(required ? "delay into a required input" : "delay into an optional input");
  }
  void queue(graph::Edge& edge) {
    edge.depth = static_cast<uint32_t>(1 + up_to(7));
    edge.full = static_cast<graph::Full>(up_to(2));
    static const char* const kNames[] = {"queue block", "queue drop_oldest", "queue drop_newest"};
    feature(kNames[static_cast<size_t>(edge.full)]);
  }

  void add_sink() {
    const std::string name = "sink" + std::to_string(sample_.sinks.size());
    add("t.sink", {{"log", name}}, false).name = name;
    for (int64_t n = 1 + up_to(3); n > 0; --n) connect(any_output(), name + ".in", false);
    sample_.sinks.push_back(name);
  }

  // A join may read what comes after it, a few ticks before.
  void close_loops() {
    for (const std::string& join : open_) {
      if (!one_in(2)) continue;
      graph::Edge& edge = sample_.pipeline.connect(outputs_.back(), join);
      edge.delay = static_cast<uint32_t>(1 + up_to(9));
      feature("loop");
    }
  }

  void add_script() {
    for (const graph::Handler& handler : sample_.pipeline.graph.handlers) {
      if (handler.type != "t.relay" || !one_in(4)) continue;
      sample_.script.push_back({static_cast<uint64_t>(up_to(30)), {handler.name, "add", std::to_string(up_to(5000))}});
      feature("live change");
    }
    std::sort(sample_.script.begin(), sample_.script.end(),
              [](const auto& a, const auto& b) { return a.tick < b.tick; });
  }

  uint64_t state_;
  Sample sample_;
  std::vector<std::string> outputs_, open_, steady_; // steady: with a value at every tick
};

// The graph as a pipeline file, with the places of the runs on devices and the script.
std::string describe(const Sample& sample) {
  Pipeline pipeline = sample.pipeline;
  for (size_t h = 0; h < sample.devices.size(); ++h) pipeline.graph.handlers[h].device = sample.devices[h];
  std::string text = graph::to_yaml(pipeline.graph);
  for (const exec::AppliedChange& change : sample.script)
    text += "# tick " + std::to_string(change.tick) + ": " + change.change.handler + "." + change.change.param + "=" +
            change.change.text + "\n";
  return text;
}

// What a run left behind, as far as the rule promises it.
struct Outcome {
  int refused = 0; // the code of compile's refusal
  bool ok = true;
  std::string error;
  std::string stuck;             // who waits for whom, where nothing moved any more
  uint64_t ends_at = UINT64_MAX; // the tick that failed
  bool cut_again = false;
  std::map<std::string, std::vector<Seen>> logs;
};

// How a sample is run.
struct Way {
  uint32_t workers = 1;
  bool on_devices = false;
  std::optional<uint64_t> adversary = {}; // the seed of adversarial devices
  bool measured = false;                  // in virtual time, with costs that the plan does not know
  std::vector<plan::Hop> hops = {};       // beside those between the host and the devices
};

// Between the two devices, and what they read in place of the host's memory and each other's.
const std::vector<plan::Hop> kPeerCopies = {copy_hop("sim:0", "sim:1", 1), copy_hop("sim:1", "sim:0", 1)};
const std::vector<plan::Hop> kAccess = {access_hop("sim:0", "sim:1"), access_hop("sim:1", "sim:0"),
                                        with_access(copy_hop("cpu", "sim:0", 1)),
                                        with_access(copy_hop("cpu", "sim:1", 1))};

// From a microsecond to two milliseconds a call, by the handler's name alone.
int64_t drawn_cost_ns(const std::string& handler, uint64_t) {
  return int64_t{1000} << (std::hash<std::string>{}(handler) % 12);
}

uint64_t failing_tick(const std::string& what) {
  const std::string key = "failed at tick ";
  const size_t at = what.find(key);
  return at == std::string::npos ? 0 : std::strtoull(what.c_str() + at + key.size(), nullptr, 10);
}

Outcome try_run(const Sample& sample, const Way& way) {
  Outcome outcome;
  Pipeline pipeline = sample.pipeline;
  Setup setup;
  setup.workers = way.workers;
  setup.virtual_time = way.measured;
  if (way.measured) setup.options.cost_ns = drawn_cost_ns;
  setup.options.script = sample.script;
  setup.options.spin_ns = 5'000;
  if (way.on_devices) {
    setup.domains = {"cpu", "sim:0", "sim:1"};
    for (size_t h = 0; h < sample.devices.size(); ++h)
      pipeline.graph.handlers[h].device = sample.devices[h].empty() ? "cpu" : sample.devices[h];
  }
  setup.hops = way.hops;
  setup.adversarial = way.adversary.has_value();
  setup.seed = way.adversary.value_or(0);
  exec::Run* live = nullptr;
  std::mutex mutex;
  setup.options.on_message = [&](const std::string& line) {
    const std::lock_guard lock(mutex);
    outcome.stuck += line + "\n";
    if (live) live->interrupt();
  };
  try {
    Compiled compiled(pipeline, setup);
    {
      const std::lock_guard lock(mutex);
      live = &compiled.live();
    }
    const exec::Result result = compiled.run();
    outcome.ok = result.ok;
    outcome.cut_again = result.report.cut_again;
    outcome.error = result.error.what;
    if (!result.ok) outcome.ends_at = failing_tick(result.error.what);
  } catch (const Failure& failure) {
    outcome.refused = failure.error().code;
    outcome.error = failure.what();
  }
  for (const std::string& sink : sample.sinks) {
    std::vector<Seen> log = take_log(sink);
    std::erase_if(log, [&](const Seen& seen) { return seen.index >= outcome.ends_at; });
    outcome.logs[sink] = std::move(log);
  }
  return outcome;
}

std::string difference(const Outcome& a, const Outcome& b) {
  if (!b.stuck.empty()) return "it hangs:\n" + b.stuck;
  if (a.refused != b.refused) return "refused: " + b.error;
  if (a.ok != b.ok || a.ends_at != b.ends_at) return "ended with “" + b.error + "” instead of “" + a.error + "”";
  for (const auto& [sink, expected] : a.logs) {
    const std::vector<Seen>& seen = b.logs.at(sink);
    for (size_t i = 0; i < std::max(seen.size(), expected.size()); ++i) {
      if (i < seen.size() && i < expected.size() && seen[i] == expected[i]) continue;
      std::string text = sink + ", call " + std::to_string(i);
      for (const auto* log : {&expected, &seen}) {
        text += log == &expected ? ": expected" : ", saw";
        if (i >= log->size()) {
          text += " nothing";
          continue;
        }
        text += " tick " + std::to_string((*log)[i].index) + " (";
        for (const int64_t value : (*log)[i].values) text += value == kEmpty ? " -" : " " + std::to_string(value);
        text += " )";
      }
      return text;
    }
  }
  return "";
}

// Whether a run did what the rules say; its media time is the executor's own.
std::string difference_to_the_rules(const Sample& sample, Outcome outcome) {
  const Expected expected = run_by_the_rules(sample.pipeline.graph, sample.script);
  Outcome rules;
  rules.ok = expected.ends_at == UINT64_MAX;
  rules.error = "the failure at tick " + std::to_string(expected.ends_at);
  rules.ends_at = expected.ends_at;
  rules.logs = expected.logs;
  for (const std::string& sink : sample.sinks) rules.logs[sink];
  for (auto& [sink, log] : outcome.logs)
    for (Seen& seen : log) seen.media_time_ns = 0;
  return difference(rules, outcome);
}

} // namespace

TEST_CASE(
    "2.5: under free, random graphs give what the rules say, with any threads, devices and order of device work") {
  const int64_t only = from_environment("MILLRACE_SEED", -1);
  const int64_t wanted = only >= 0 ? 1 : from_environment("MILLRACE_GRAPHS", 100);
  Features features;
  int64_t accepted = 0, tried = 0;
  for (int64_t seed = only >= 0 ? only : 1; accepted < wanted; ++seed, ++tried) {
    REQUIRE(tried < wanted * 3); // most must be accepted
    INFO("MILLRACE_SEED=", seed);
    const Sample sample = Generator(static_cast<uint64_t>(seed)).make();
    INFO(describe(sample));
    if (only >= 0) MESSAGE(describe(sample)); // also where the process does not outlive the run
    const Outcome expected = try_run(sample, {});
    if (expected.refused) {
      INFO("refused with ", expected.refused);
      REQUIRE(expected.refused / 100 == 4);
      ++features["refused"];
      if (only >= 0) return;
      continue;
    }
    ++accepted;
    REQUIRE(expected.stuck == "");
    REQUIRE(difference_to_the_rules(sample, expected) == "");
    for (const auto& [name, count] : sample.features) features[name] += count;
    if (!expected.ok) ++features["failed run"];
    for (const uint32_t workers : {2u, 8u}) {
      CAPTURE(workers);
      REQUIRE(difference(expected, try_run(sample, {workers})) == "");
    }
    for (const uint32_t workers : {1u, 2u, 8u}) {
      INFO("on devices, workers ", workers);
      REQUIRE(difference(expected, try_run(sample, {workers, true})) == "");
    }
    for (const bool on_devices : {false, true}) {
      INFO("cut once more, on devices: ", on_devices);
      const Outcome outcome = try_run(sample, {3, on_devices, {}, true});
      REQUIRE(difference(expected, outcome) == "");
      if (outcome.cut_again) ++features["cut once more"];
    }
    for (const uint64_t adversary : {1u, 2u, 3u}) {
      INFO("on devices, adversary ", adversary);
      REQUIRE(difference(expected, try_run(sample, {adversary == 1 ? 1u : 2u, true, adversary})) == "");
    }
    for (const auto* hops : {&kPeerCopies, &kAccess}) {
      INFO("on devices that ", std::string(hops == &kAccess ? "read in place" : "copy from each other"));
      REQUIRE(difference(expected, try_run(sample, {2, true, {}, false, *hops})) == "");
      REQUIRE(difference(expected, try_run(sample, {1, true, 4, false, *hops})) == "");
    }
  }
  if (only >= 0) return;
  for (const std::string name : {"join",
                                 "every",
                                 "latest",
                                 "lag",
                                 "delay into a required input",
                                 "delay into an optional input",
                                 "loop",
                                 "queue block",
                                 "queue drop_oldest",
                                 "queue drop_newest",
                                 "silent",
                                 "pending",
                                 "keeps",
                                 "in place",
                                 "forward",
                                 "lanes",
                                 "skip",
                                 "bypass",
                                 "fail",
                                 "failed run",
                                 "device",
                                 "capturable",
                                 "cut once more",
                                 "live change"}) {
    CAPTURE(name);
    CHECK(features[name] >= wanted / 10);
  }
}
