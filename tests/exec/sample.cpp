// Drawing graphs, running them and comparing; see sample.h.
#include "sample.h"

#include <algorithm>
#include <cstdlib>

#include "exec/run.h"
#include "observe/error_codes.h"

namespace millrace::test {

namespace {

constexpr int64_t kSampleTicks = 40;

class Generator {
 public:
  Generator(uint64_t seed, Values values) : state_(seed), large_(values == Values::large) {
    state_ = next(); // neighbours share nothing
  }

  Sample make() {
    if (large_) sample_.domains.push_back("sim:2");
    sample_.pipeline.clock(graph::ClockMode::free, 0, 1, static_cast<uint32_t>(one_in(3) ? 1 + up_to(5) : 0));
    for (int64_t n = 1 + (one_in(large_ ? 2 : 4) ? 1 : 0), i = 0; i < n; ++i) add_source();
    for (int64_t n = 3 + up_to(7); n > 0; --n) add_handler();
    for (int64_t n = 1 + up_to(2); n > 0; --n) add_sink();
    close_loops();
    add_script();
    if (large_) add_logs();
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
    static const std::string kDomains[] = {"", "sim:0", "sim:1", "sim:2"};
    sample_.devices.push_back(may_leave ? kDomains[up_to(large_ ? 3 : 2)] : "");
    if (!sample_.devices.back().empty()) feature("device");
    return sample_.pipeline.add(name, type, params);
  }

  void add_source() {
    // The first one lasts longest: who answers later waits for more values, and must not be left without.
    const int64_t count = outputs_.empty() ? kSampleTicks : kSampleTicks - up_to(9);
    std::map<std::string, std::string> params = {{"count", std::to_string(count)},
                                                 {"first", std::to_string(up_to(1000))}};
    if (large_) params["size"] = std::to_string(1 + up_to(kElementsMax - 1));
    if (large_ && !outputs_.empty()) {
      params.erase("first");
      outputs_.push_back(add("t.foreign", params, false).name);
      feature("foreign");
      return;
    }
    if (one_in(3)) {
      params["silent_every"] = std::to_string(2 + up_to(3));
      feature("silent");
    }
    outputs_.push_back(add("t.count", params, false).name);
    if (!params.contains("silent_every") && outputs_.size() == 1) steady_.push_back(outputs_.back());
  }

  void add_handler() {
    static const char* const kTypes[] = {"t.relay", "t.relay", "t.stateless", "t.join", "t.join",       "t.need",
                                         "t.paced", "t.late",  "t.paint",     "t.keep", "t.capturable", "t.forward",
                                         "t.paint", "t.paint", "t.paint"}; // the last three among large values
    std::string type = kTypes[up_to(static_cast<int64_t>(std::size(kTypes)) - (large_ ? 1 : 4))];
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
    if (type == "t.join" && large_) params["size"] = std::to_string(1 + up_to(kElementsMax - 1));
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
    const std::string name = "sink" + std::to_string(sinks_++);
    add("t.sink", {{"log", name}}, false).name = name;
    for (int64_t n = 1 + up_to(3); n > 0; --n) connect(any_output(), name + ".in", false);
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

  // Everybody who sees something writes it down.
  void add_logs() {
    for (graph::Handler& handler : sample_.pipeline.graph.handlers) {
      if (handler.type == "t.count" || handler.type == "t.foreign" || handler.type == "t.sink") continue;
      handler.params.push_back({"log", handler.name, {}, {}});
    }
  }

  uint64_t state_;
  bool large_;
  int sinks_ = 0;
  Sample sample_;
  std::vector<std::string> outputs_, open_, steady_; // steady: with a value at every tick
};

std::vector<std::string> logs_of(const Sample& sample) {
  std::vector<std::string> names;
  for (const graph::Handler& handler : sample.pipeline.graph.handlers)
    for (const graph::Param& param : handler.params)
      if (param.name == "log") names.push_back(param.text);
  return names;
}

uint64_t failing_tick(const std::string& what) {
  const std::string key = "failed at tick ";
  const size_t at = what.find(key);
  return at == std::string::npos ? 0 : std::strtoull(what.c_str() + at + key.size(), nullptr, 10);
}

// Takes the values that were seen before the tick that failed.
void take_logs(const Sample& sample, std::map<std::string, std::vector<Seen>>& seen, Outcome& outcome) {
  for (const std::string& name : logs_of(sample)) {
    std::vector<Seen> log = outcome.refused == 0 ? std::move(seen.at(name)) : std::vector<Seen>();
    std::erase_if(log, [&](const Seen& one) { return one.index >= outcome.ends_at; });
    // Lanes write theirs in any order.
    std::stable_sort(log.begin(), log.end(), [](const Seen& a, const Seen& b) { return a.index < b.index; });
    outcome.logs[name] = std::move(log);
  }
}

} // namespace

int64_t drawn_cost_ns(const std::string& handler, uint64_t) {
  return int64_t{1000} << (std::hash<std::string>{}(handler) % 12);
}

int64_t from_environment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoll(text, nullptr, 10) : otherwise;
}

Sample draw_sample(uint64_t seed, Values values) { return Generator(seed, values).make(); }

std::string describe(const Sample& sample) {
  Pipeline pipeline = sample.pipeline;
  for (size_t h = 0; h < sample.devices.size(); ++h) pipeline.graph.handlers[h].device = sample.devices[h];
  std::string text = graph::to_yaml(pipeline.graph);
  for (const exec::AppliedChange& change : sample.script)
    text += "# tick " + std::to_string(change.tick) + ": " + change.change.handler + "." + change.change.param + "=" +
            change.change.text + "\n";
  return text;
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
  setup.faults = way.faults;
  if (way.faults.hang_command > 0) { // nobody waits for seconds
    setup.options.idle_report_ns = 500'000'000;
    setup.options.device_patience_ns = 20'000'000;
  }
  if (way.on_devices) {
    setup.domains = sample.domains;
    for (size_t h = 0; h < sample.devices.size(); ++h)
      pipeline.graph.handlers[h].device = sample.devices[h].empty() ? "cpu" : sample.devices[h];
  }
  setup.hops = way.hops;
  if (way.quick)
    for (const graph::Handler& handler : sample.pipeline.graph.handlers) setup.costs_ns[handler.name] = 1'000;
  setup.adversarial = way.adversary.has_value();
  setup.seed = way.adversary.value_or(0);
  exec::Run* live = nullptr;
  std::mutex mutex;
  setup.options.on_message = [&](const std::string& line) {
    if (line.starts_with("error ") && !line.starts_with("error MR")) return; // a handler's, told and passed over
    const std::lock_guard lock(mutex);
    if (line.starts_with("error ")) return; // a handler that was told to fail
    outcome.stuck += line + "\n";
    if (live) live->interrupt();
  };
  std::map<std::string, std::vector<Seen>> seen;
  try {
    Compiled compiled(pipeline, setup);
    {
      const std::lock_guard lock(mutex);
      live = &compiled.live();
    }
    const Ran result = compiled.run();
    seen = result.all_seen();
    outcome.ok = result.ok;
    outcome.report = result.report;
    outcome.plan = compiled.plan();
    outcome.lost_a_device = compiled.lost_a_device();
    outcome.code = result.error.code;
    outcome.error = result.error.what;
    if (!result.ok && !outcome.lost_a_device) outcome.ends_at = failing_tick(result.error.what);
  } catch (const Failure& failure) {
    outcome.refused = failure.error().code;
    outcome.error = failure.what();
  }
  take_logs(sample, seen, outcome);
  return outcome;
}

Outcome try_run(const Sample& sample, const Way& way, const Nodes& nodes) {
  return try_run(sample, way, [&](const Pipeline& pipeline, const Setup& setup, uint64_t& parcels) {
    Spread spread(pipeline, nodes, setup);
    const Ran ran = spread.run();
    parcels = spread.parcels();
    return ran;
  });
}

Outcome try_run(const Sample& sample, const Way& way, const RunOverNodes& run) {
  Outcome outcome;
  Pipeline pipeline = sample.pipeline;
  Setup setup;
  setup.workers = way.workers;
  setup.seed = way.adversary.value_or(0);
  setup.options.script = sample.script;
  if (way.measured) setup.options.cost_ns = drawn_cost_ns;
  if (way.on_devices) {
    setup.domains = sample.domains;
    for (size_t h = 0; h < sample.devices.size(); ++h)
      pipeline.graph.handlers[h].device = sample.devices[h].empty() ? "cpu" : sample.devices[h];
  }
  std::map<std::string, std::vector<Seen>> seen;
  try {
    const Ran ran = run(pipeline, setup, outcome.parcels);
    seen = ran.all_seen();
    outcome.ok = ran.ok;
    outcome.report = ran.report;
    outcome.code = ran.error.code;
    outcome.error = ran.error.what;
    if (ran.error.code == code::no_progress) outcome.stuck = ran.error.what;
    if (!ran.ok) outcome.ends_at = failing_tick(ran.error.what);
  } catch (const Failure& failure) {
    outcome.refused = failure.error().code;
    outcome.error = failure.what();
  }
  take_logs(sample, seen, outcome);
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

std::string difference_to_the_rules(const Sample& sample, const Expected& expected, Outcome outcome) {
  Outcome rules;
  rules.ok = expected.ends_at == UINT64_MAX;
  rules.error = "the failure at tick " + std::to_string(expected.ends_at);
  rules.ends_at = expected.ends_at;
  rules.logs = expected.logs;
  for (const std::string& name : logs_of(sample)) rules.logs[name];
  for (auto& [sink, log] : outcome.logs)
    for (Seen& seen : log) seen.media_time_ns = 0;
  return difference(rules, outcome);
}

} // namespace millrace::test
