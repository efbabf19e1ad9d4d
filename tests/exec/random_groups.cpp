// Random graphs in which some handlers take the items of all streams: every stream sees what it would see if each of
// them had an instance for it (B3, B4, B5, B12).
//
// MILLRACE_SEED=n tries the one graph of that seed, MILLRACE_GROUPS=n another number of graphs than 80.
#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "enqueuing_handlers.h"
#include "exec/run.h"
#include "graph/find_groups.h"
#include "graph/unfold.h"
#include "observe/error_codes.h"
#include "plan/group_plan.h"
#include "plan/plan.h"
#include "sample.h"
#include "tests/part.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// By handler and stream, all that its calls saw, in their order.
using Sightings = std::map<std::pair<std::string, uint32_t>, std::vector<Seen>>;
std::mutex sightings_mutex;
Sightings sightings;

struct Sees : Handler {
  Param<std::string> log{*this, "log", "", "its name in the sightings"};
  void saw(const Tick& tick, std::vector<int64_t> values) {
    const std::lock_guard lock(sightings_mutex);
    sightings[{*log, tick.stream()}].push_back({tick.index(), tick.media_time_ns(), std::move(values)});
  }
};

bool is_every(int64_t period, const Tick& tick) {
  return period > 0 && static_cast<int64_t>(tick.index()) % period == period - 1;
}

// Its results depend on all that it saw of the stream before, so a mixed-up order shows.
struct Remembering : Sees {
  Param<int64_t> silent_every{*this, "silent_every", 0, "every k-th tick gives nothing"};
  Param<int64_t> fail_every{*this, "fail_every", 0, "every k-th tick fails"};
  std::map<uint32_t, int64_t> before; // by stream
  void give(const Output<Tensor>& out, Tick& tick, int64_t value) {
    if (is_every(fail_every, tick)) throw std::runtime_error("told to fail");
    int64_t& state = before[tick.stream()];
    state = mix(state, value);
    if (!is_every(silent_every, tick)) write_one(out, tick, state);
  }
};

int64_t number_or_none(const Input<Tensor>& in, Tick& tick) {
  if (!in.present(tick)) return kEmpty;
  return in(tick).element_count() == 0 ? -1 : read_one(in(tick)); // -1: an empty initial value
}

struct OneInput final : Remembering {
  Input<Tensor> a{*this, "a"};
  Output<Tensor> out{*this, "out", like(a)};
  void process(Tick& tick, Cpu&) {
    const int64_t value = number_or_none(a, tick);
    saw(tick, {value});
    give(out, tick, value);
  }
};

struct TwoInputs final : Remembering {
  Input<Tensor> a{*this, "a"};
  Input<Tensor> b{*this, "b", optional};
  Output<Tensor> out{*this, "out", like(a)};
  void process(Tick& tick, Cpu&) {
    const int64_t value = number_or_none(a, tick), other = number_or_none(b, tick);
    saw(tick, {value, other});
    give(out, tick, mix(value, other));
  }
};

struct BothInputs final : Remembering {
  Input<Tensor> a{*this, "a"};
  Input<Tensor> b{*this, "b"};
  Output<Tensor> out{*this, "out", like(a)};
  void process(Tick& tick, Cpu&) {
    const int64_t value = number_or_none(a, tick), other = number_or_none(b, tick);
    saw(tick, {value, other});
    give(out, tick, mix(value, other));
  }
};

struct AddsInPlace final : Sees {
  Input<Tensor> a{*this, "a"};
  Output<Tensor> out{*this, "out", in_place(a)};
  void process(Tick& tick, Cpu&) {
    saw(tick, {number_or_none(a, tick)});
    if (a(tick).element_count() == 0) return write_one(out, tick, 7);
    for (int64_t& element : out.modify(tick, a).elements<int64_t>()) element += 3;
  }
};

struct HandsOn final : Sees {
  Input<Tensor> a{*this, "a"};
  Output<Tensor> out{*this, "out", forward(a)};
  void process(Tick& tick, Cpu&) {
    saw(tick, {number_or_none(a, tick)});
    out.forward(tick, a);
  }
};

// On the host, or enqueued on a device.
struct Enqueues : Sees {
  Input<Tensor> a{*this, "a"};
  Output<Tensor> out{*this, "out", like(a)};
  static int64_t of(const int64_t* from) { return mix(*from, 11); }
  void process(Tick& tick, Cpu&) { *enqueued::fresh(out, tick) = of(enqueued::numbers(a(tick).data())); }
  void process(Tick& tick, Cuda& cuda) {
    enqueued::queue(cuda).launch(
        [to = enqueued::fresh(out, tick), from = enqueued::numbers(a(tick).data())] { *to = of(from); });
  }
};
struct EnqueuesAlone final : Enqueues {};
struct Captures final : Enqueues {
  Captures() { capturable(); }
};
struct FinishesItems final : Enqueues {
  FinishesItems() { capturable(); }
  void finish(Tick& tick, Cpu&) { saw(tick, {static_cast<int64_t>(a(tick).header().stream)}); }
};

struct LooksAt final : Sees {
  Input<Tensor> a{*this, "a"};
  Input<Tensor> b{*this, "b", optional};
  void process(Tick& tick, Cpu&) {
    saw(tick, {number_or_none(a, tick), number_or_none(b, tick), static_cast<int64_t>(a(tick).header().stream)});
  }
};

struct Wall final : Sees {
  Inputs<Tensor> in{*this, "in", 8, optional};
  void process(Tick& tick, Cpu&) {
    std::vector<int64_t> values;
    for (uint32_t i = 0; i < in.count(); ++i) values.push_back(in.present(tick, i) ? read_one(in(tick, i)) : kEmpty);
    saw(tick, std::move(values));
  }
};

const mr_plugin& groups_plugin() {
  static const mr_handler_type types[] = {
      detail::Type<OneInput>::table("g.one", "Needs one, remembers", ""),
      detail::Type<TwoInputs>::table("g.two", "Needs one and takes another, remembers", ""),
      detail::Type<BothInputs>::table("g.both", "Needs two, remembers", ""),
      detail::Type<AddsInPlace>::table("g.in_place", "Adds in place", ""),
      detail::Type<HandsOn>::table("g.hands_on", "Passes on its input's own buffer", ""),
      detail::Type<EnqueuesAlone>::table("g.enqueues", "Mixes, on any device", ""),
      detail::Type<Captures>::table("g.captures", "The same, recordable", ""),
      detail::Type<FinishesItems>::table("g.finishes", "The same, and looks at its results", ""),
      detail::Type<LooksAt>::table("g.looks", "Takes", ""),
      detail::Type<Wall>::table("g.wall", "Takes from all streams", ""),
  };
  static const std::vector<const mr_handler_type*> pointers = [] {
    std::vector<const mr_handler_type*> all;
    for (const mr_handler_type& type : types) all.push_back(&type);
    return all;
  }();
  static const mr_plugin plugin = {
      sizeof(mr_plugin), MR_ABI_VERSION, "groups", "1", pointers.data(), static_cast<uint32_t>(pointers.size()), 0};
  return plugin;
}

struct GroupSample {
  std::string shared, alone; // the pipeline's text, with shared handlers and with an instance for each stream
  std::map<std::string, graph::Batch> batches;        // by shared handler, tried in the order of the names
  std::map<std::string, std::string> sims, enqueuing; // by handler, where it runs in runs on devices
  Features features;
};

class GroupGenerator {
 public:
  explicit GroupGenerator(uint64_t seed) : state_(seed) { state_ = next(); }

  GroupSample make() {
    add_streams();
    for (int64_t n = 2 + up_to(5); n > 0; --n) add_handler();
    for (int64_t n = 1 + up_to(2); n > 0; --n) add_looks();
    if (one_in(4)) add_wall();
    made_.shared = text(false);
    made_.alone = text(true);
    return std::move(made_);
  }

 private:
  struct Drawn {
    std::string name, words; // all but for_each
    bool shared = false, is_item = true;
  };

  uint64_t next() { // splitmix64
    uint64_t x = state_ += 0x9E3779B97F4A7C15ull;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
  }
  int64_t up_to(int64_t most) { return static_cast<int64_t>(next() % static_cast<uint64_t>(most + 1)); }
  bool one_in(int64_t n) { return up_to(n - 1) == 0; }
  void feature(const std::string& name) { ++made_.features[name]; }
  static std::string number(int64_t value) { return std::to_string(value); }

  void add_streams() {
    const int64_t count = 2 + up_to(4);
    head_ = "version: 1\nstreams:\n  cameras:\n    items:\n";
    for (int64_t s = 0; s < count; ++s) {
      const bool is_short = one_in(3), is_silent = one_in(3); // which gives some ticks no time of its own
      if (is_short) feature("an early end");
      if (is_silent) feature("silent");
      head_ += "      s" + number(s) + ": { first: " + number(1000 * (s + 1)) +
               ", count: " + number(is_short ? 1 + up_to(5) : 15 + up_to(10)) +
               ", rate: " + number(is_silent ? 0 : 10 + up_to(50)) +
               ", silent: " + number(is_silent ? 2 + up_to(3) : 0) + " }\n";
    }
    const bool has_outer = one_in(3);
    head_ += "clocks:\n  cameras: { mode: free" + (one_in(3) ? ", in_flight: " + number(1 + up_to(5)) : "") + " }\n";
    if (has_outer) head_ += "  outer: { mode: free }\n";
    add("source", "type: t.count, first: \"{first}\", count: \"{count}\", rate: \"{rate}\", silent_every: \"{silent}\"",
        false);
    if (one_in(4)) add("other", "type: t.count, first: 50000, count: 30, rate: \"{rate}\"", false);
    if (!has_outer) return;
    drawn_.push_back({"outer", "type: t.count, clock: outer, count: 40, rate: " + number(5 + up_to(60)), false, false});
  }

  void add(const std::string& name, const std::string& words, bool shared) {
    drawn_.push_back({name, words, shared, true});
    items_.push_back(name);
  }

  const std::string& any_item() {
    const auto count = static_cast<int64_t>(items_.size());
    return items_[static_cast<size_t>(one_in(3) ? up_to(count - 1)
                                                : count - 1 - up_to(std::min<int64_t>(count - 1, 1)))];
  }

  std::string edge(bool required) {
    if (!drawn_.empty() && one_in(6))
      for (const Drawn& drawn : drawn_)
        if (!drawn.is_item) {
          feature("latest from outside");
          return "{ from: outer, policy: latest" + std::string(one_in(3) ? ", initial: empty" : "") + " }";
        }
    const std::string from = any_item();
    const int64_t choice = up_to(7);
    if (choice < 5) return from;
    if (choice < 7) {
      feature("delay");
      return "{ from: " + from + ", delay: " + number(1 + up_to(2)) +
             (required || one_in(2) ? ", initial: empty" : "") + " }";
    }
    feature("latest");
    return "{ from: " + from + ", policy: latest" + (one_in(3) ? ", lag: " + number(1 + up_to(1)) : "") + " }";
  }

  void add_handler() {
    static const char* const kTypes[] = {"g.one",      "g.one",      "g.two",      "g.two",      "g.both",
                                         "g.in_place", "g.hands_on", "g.enqueues", "g.captures", "g.finishes"};
    const std::string type = kTypes[up_to(9)];
    const std::string name = "h" + number(static_cast<int64_t>(drawn_.size()));
    // The first input of a handler that takes items has to bring them.
    std::string words = "type: " + type + ", log: " + name + ", inputs: { a: " + any_item();
    if (type == "g.two" || type == "g.both") words += ", b: " + edge(type == "g.both");
    words += " }";
    if (one_in(5)) {
      words += ", every: " + number(2 + up_to(1));
      feature("every");
    }
    if (type == "g.one" || type == "g.two" || type == "g.both") {
      if (one_in(4)) {
        words += ", silent_every: " + number(2 + up_to(3));
        feature("silent");
      }
      if (one_in(4)) {
        const bool skips = one_in(2);
        words += ", fail_every: " + number(2 + up_to(4)) + ", on_error: " + (skips ? "skip" : "bypass");
        feature(skips ? "skip" : "bypass");
      }
    }
    const bool shared = !one_in(3);
    add(name, words, shared);
    if (shared) {
      feature("shared " + type.substr(2));
      if (one_in(2)) add_batch(name);
    }
    if (one_in(2)) made_.sims[name] = "sim:" + number(up_to(1));
    const bool enqueues = type == "g.enqueues" || type == "g.captures" || type == "g.finishes";
    if (enqueues && !one_in(3)) made_.enqueuing[name] = "cuda:0";
  }

  void add_batch(const std::string& name) {
    graph::Batch batch;
    batch.max = 1u << up_to(4);
    if (one_in(3)) {
      batch.size = static_cast<uint32_t>(1 + up_to(static_cast<int64_t>(batch.max) - 1));
      if (one_in(2)) batch.wait_ns = 1'000'000;
      feature("size");
    }
    if (one_in(3)) batch.in_flight = 2;
    if (batch.in_flight == 2) feature("two firings");
    made_.batches[name] = batch;
  }

  void add_looks() {
    const std::string name = "looks" + number(static_cast<int64_t>(drawn_.size()));
    const bool shared = one_in(3);
    if (shared) feature("a shared sink");
    std::string words = "type: g.looks, log: " + name + ", inputs: { a: " + any_item();
    if (one_in(2)) words += ", b: " + edge(false);
    drawn_.push_back({name, words + " }", shared, true});
  }

  void add_wall() {
    feature("a wall");
    wall_ = "  wall: { type: g.wall, log: wall, clock: wall, input: { from: " + any_item() + ", policy: latest } }\n";
    head_ += "  wall: { mode: free, rate: " + number(10 + up_to(30)) + " }\n";
  }

  std::string text(bool alone) const {
    std::string text = head_ + "handlers:\n";
    for (const Drawn& drawn : drawn_)
      text += "  " + drawn.name + ": { " +
              (drawn.is_item && (alone || !drawn.shared) ? std::string("for_each: cameras, ") : "") + drawn.words +
              " }\n";
    return text + wall_;
  }

  uint64_t state_;
  std::string head_, wall_;
  std::vector<Drawn> drawn_;
  std::vector<std::string> items_;
  GroupSample made_;
};

struct GroupOutcome {
  int refused = 0;
  bool ok = true;
  std::string error, stuck;
  Sightings seen;
  std::vector<uint64_t> ticks; // by stream
  uint64_t groups = 0;
};

struct GroupWay {
  uint32_t workers = 1;
  enum class Where { host, sims, enqueued } where = Where::host;
  bool adversary = false;
  bool measured = false;
  uint64_t seed = 2;
};

GroupOutcome try_groups(const GroupSample& sample, bool alone, const GroupWay& way) {
  GroupOutcome outcome;
  exec::Run* live = nullptr;
  std::mutex mutex;
  sightings.clear();
  try {
    graph::Graph written = graph::parse_yaml(alone ? sample.alone : sample.shared, "groups.yaml");
    std::set<std::string> batched;
    if (!alone)
      for (const auto& [name, groups] : graph::find_groups(written, nullptr)) {
        const auto at = sample.batches.find(groups.name);
        if (at == sample.batches.end() || !batched.insert(groups.name).second) continue;
        for (graph::Handler& handler : written.handlers)
          if (handler.name == groups.name) handler.batch = at->second;
      }
    Setup setup;
    setup.workers = way.workers;
    setup.more = &groups_plugin();
    setup.seed = way.seed;
    setup.adversarial = way.adversary;
    setup.virtual_time = way.measured;
    setup.options.spin_ns = 5'000;
    if (way.measured)
      setup.options.cost_ns = [](const std::string& name, uint64_t tick) {
        return drawn_cost_ns(graph::written_name(name), tick);
      };
    setup.options.on_message = [&](const std::string& line) {
      if (line.find("told to fail") != std::string::npos) return;
      const std::lock_guard lock(mutex);
      outcome.stuck += line + "\n";
      if (live) live->interrupt();
    };
    if (way.where != GroupWay::Where::host) {
      const bool sims = way.where == GroupWay::Where::sims;
      setup.domains =
          sims ? std::vector<std::string>{"cpu", "sim:0", "sim:1"} : std::vector<std::string>{"cpu", "cuda:0"};
      const auto& places = sims ? sample.sims : sample.enqueuing;
      for (graph::Handler& handler : written.handlers) {
        const auto at = places.find(handler.name);
        handler.device = at == places.end() ? "cpu" : at->second;
      }
    }
    Pipeline pipeline;
    pipeline.graph = graph::unfold(written);
    Compiled compiled(pipeline, setup);
    outcome.groups = compiled.plan().groups.size();
    {
      const std::lock_guard lock(mutex);
      live = &compiled.live();
    }
    const Ran ran = compiled.run();
    outcome.ok = ran.ok;
    outcome.error = ran.error.what;
    for (const StreamReport& stream : ran.report.streams) outcome.ticks.push_back(stream.ticks);
  } catch (const Failure& failure) {
    outcome.refused = failure.error().code;
    outcome.error = failure.what();
  }
  outcome.seen = std::move(sightings);
  return outcome;
}

std::string call_words(const std::vector<Seen>& log, size_t at) {
  if (at >= log.size()) return "nothing";
  std::string text = "tick " + std::to_string(log[at].index) + " (";
  for (const int64_t value : log[at].values) text += value == kEmpty ? " -" : " " + std::to_string(value);
  return text + " )";
}

std::string difference(const GroupOutcome& expected, const GroupOutcome& outcome) {
  if (!outcome.stuck.empty()) return "it hangs:\n" + outcome.stuck;
  if (expected.refused != outcome.refused) return "refused: " + outcome.error;
  if (expected.ok != outcome.ok) return "ended with “" + outcome.error + "”";
  for (const auto& [key, log] : expected.seen) {
    const auto at = outcome.seen.find(key);
    const std::vector<Seen>& seen = at == outcome.seen.end() ? std::vector<Seen>() : at->second;
    for (size_t i = 0; i < std::max(log.size(), seen.size()); ++i)
      if (i >= log.size() || i >= seen.size() || !(log[i] == seen[i]))
        return key.first + " of stream " + std::to_string(key.second) + ", call " + std::to_string(i) + ": expected " +
               call_words(log, i) + ", saw " + call_words(seen, i);
  }
  if (outcome.seen.size() != expected.seen.size()) return "more was seen";
  return expected.ticks == outcome.ticks ? "" : "the streams have other numbers of ticks";
}

std::string describe(const GroupSample& sample) {
  std::string text = sample.shared;
  for (const auto& [name, batch] : sample.batches)
    text += "# " + name + ": batch size " + std::to_string(batch.size) + ", wait " + std::to_string(batch.wait_ns) +
            ", max " + std::to_string(batch.max) + ", in_flight " + std::to_string(batch.in_flight) +
            ", where it names the group\n";
  return text;
}

} // namespace

TEST_CASE("B12: random graphs give each stream the same, with shared handlers and with an instance for each stream") {
  using Where = GroupWay::Where;
  const int64_t only = from_environment("MILLRACE_SEED", -1);
  const int64_t wanted = only >= 0 ? 1 : from_environment("MILLRACE_GROUPS", part_of(80));
  Features features;
  int64_t accepted = 0, tried = 0;
  for (int64_t seed = only >= 0 ? only : 1; accepted < wanted; ++seed, ++tried) {
    REQUIRE(tried < wanted * 4);
    INFO("MILLRACE_SEED=", seed);
    const GroupSample sample = GroupGenerator(static_cast<uint64_t>(seed)).make();
    INFO(describe(sample));
    if (only >= 0) MESSAGE(describe(sample));
    const GroupOutcome expected = try_groups(sample, true, {});
    REQUIRE(expected.stuck == "");
    const GroupOutcome first = try_groups(sample, false, {});
    if (expected.refused || first.refused || first.groups == 0) {
      // A group owes items, so clocks that wait for each other may need a rate (8.3).
      const bool is_way_back = first.refused == code::bad_group, needs_rate = first.refused == code::window_too_small;
      INFO("refused: ", first.error);
      REQUIRE((is_way_back || needs_rate || first.refused == expected.refused));
      ++features[is_way_back ? "a way back" : first.refused ? "refused" : "no group"];
      if (only >= 0) return;
      continue;
    }
    ++accepted;
    for (const auto& [name, count] : sample.features) features[name] += count;
    REQUIRE(difference(expected, first) == "");
    for (const uint32_t workers : {2u, 4u}) {
      CAPTURE(workers);
      REQUIRE(difference(expected, try_groups(sample, false, {workers})) == "");
    }
    {
      INFO("in virtual time");
      REQUIRE(difference(expected, try_groups(sample, false, {2, Where::host, false, true, 3})) == "");
    }
    for (const bool adversary : {false, true}) {
      INFO("on simulated devices, adversary: ", adversary);
      REQUIRE(difference(expected, try_groups(sample, false, {2, Where::sims, adversary, false, 5})) == "");
    }
    if (sample.enqueuing.empty()) continue;
    ++features["enqueued"];
    INFO("enqueued");
    REQUIRE(difference(expected, try_groups(sample, false, {2, Where::enqueued, false, false, 6})) == "");
  }
  if (only >= 0) return;
  for (const std::string name : {"an early end",
                                 "silent",
                                 "latest from outside",
                                 "latest",
                                 "delay",
                                 "every",
                                 "skip",
                                 "bypass",
                                 "shared one",
                                 "shared two",
                                 "shared both",
                                 "shared in_place",
                                 "shared hands_on",
                                 "shared enqueues",
                                 "a shared sink",
                                 "a wall",
                                 "size",
                                 "two firings",
                                 "enqueued",
                                 "a way back"}) {
    CAPTURE(name);
    CHECK(features[name] >= wanted / 30);
  }
}
