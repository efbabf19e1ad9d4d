// The firings of a group under a clock that follows time: who is in them, in which order, and when (B2, B4, B13).
//
// MILLRACE_SEED=n tries the one case of that seed, MILLRACE_GROUPS=n another number of cases than 300.
#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <algorithm>
#include <map>
#include <random>

#include "exec/group.h"
#include "exec/run.h"
#include "exec/run_log.h"
#include "exec/run_state.h"
#include "exec/seats.h"
#include "exec/virtual_driver.h"
#include "graph/unfold.h"
#include "observe/error_codes.h"
#include "plan/group_plan.h"
#include "plan/pace.h"
#include "plan/plan.h"
#include "sample.h"
#include "tests/part.h"

using namespace millrace;
using namespace millrace::test;

namespace {

constexpr int64_t kFiringsMs = 1'200;

// A call of the group's first handler, with the firing that it was in.
struct FiringCall {
  uint64_t firing;
  uint32_t place, items, under_way; // the item's place, the items of the firing, the group's firings
  uint32_t stream, epoch;
  uint64_t index;
  int64_t value, at_ns;
  friend bool operator==(const FiringCall&, const FiringCall&) = default;
};
// A tick as the stream's last handler saw it.
struct SettledTick {
  uint32_t epoch;
  uint64_t index;
  int64_t given, result, at_ns;
  friend bool operator==(const SettledTick&, const SettledTick&) = default;
};
// Virtual time has one thread.
std::vector<FiringCall> firing_calls;
std::map<std::string, std::vector<SettledTick>> settled_ticks; // by stream

struct FiringCamera final : Handler {
  Output<Tensor> out{*this, "out"};
  Param<int64_t> first{*this, "first", 0, "the first value"};
  Param<int64_t> count{*this, "count", 0, "values; 0: endless"};
  Param<int64_t> rate{*this, "rate", 20, "values a second"};
  Param<int64_t> silent_from_ms{*this, "silent_from_ms", -1, "it gives nothing from then on"};
  Param<int64_t> silent_until_ms{*this, "silent_until_ms", -1, "until then"};
  Param<int64_t> fail_at{*this, "fail_at", -1, "the value that fails, once"};
  int64_t next = 0, shift_ns = 0;
  bool has_failed = false;
  void probe(Facts& facts) override {
    facts.rate(rate);
    facts.live();
  }
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}); }
  void process(Tick& tick, Cpu&) {
    if (count > 0 && next >= count) return tick.end();
    if (now_ns() >= silent_from_ms * kMs && now_ns() < silent_until_ms * kMs) return tick.not_yet();
    if (next == fail_at && !std::exchange(has_failed, true)) throw std::runtime_error("the camera is gone");
    write_one(out, tick, first + next++);
  }
};

// The first handler of the group: the value + 1'000'000. Fails on every k-th value.
struct FiringModel final : Handler {
  Input<Tensor> a{*this, "a"};
  Output<Tensor> out{*this, "out", like(a)};
  Param<int64_t> fail_every{*this, "fail_every", 0, "every k-th tick fails"};
  void process(Tick& tick, Cpu&) {
    const exec::SegmentRun& here = *exec::Claim::here();
    exec::GroupRun& group = *here.pace->group;
    firing_calls.push_back({here.ordinal / here.pace->plan->rows, here.row, group.firing(here.ordinal).count,
                            group.collector->forecast().under_way(), tick.stream(), tick.epoch(), tick.index(),
                            read_one(a(tick)), now_ns()});
    if (fail_every > 0 && static_cast<int64_t>(tick.index()) % fail_every == fail_every - 1)
      throw std::runtime_error("told to fail");
    write_one(out, tick, read_one(a(tick)) + 1'000'000);
  }
};

struct FiringEnd final : Handler {
  Input<Tensor> given{*this, "given", optional};
  Input<Tensor> result{*this, "result", optional};
  Param<std::string> name{*this, "name", "", "the stream's"};
  void process(Tick& tick, Cpu&) {
    settled_ticks[*name].push_back({tick.epoch(), tick.index(), given.present(tick) ? read_one(given(tick)) : kEmpty,
                                    result.present(tick) ? read_one(result(tick)) : kEmpty, now_ns()});
  }
};

const mr_plugin& firings_plugin() {
  static const mr_handler_type types[] = {detail::Type<FiringCamera>::table("f.camera", "Counts", ""),
                                          detail::Type<FiringModel>::table("f.model", "Adds", ""),
                                          detail::Type<FiringEnd>::table("f.end", "Notes", "")};
  static const mr_handler_type* const pointers[] = {&types[0], &types[1], &types[2]};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "firings", "1", pointers, 3, 0};
  return plugin;
}

struct FiringCase {
  std::string text;
  graph::Batch batch;
  int64_t item_ns = 0, after_ns = 0;
  int streams = 0, places = 0; // there at first, and that there may be
  bool comes_and_goes = false, fails = false;
  uint64_t seed = 0;
};

FiringCase draw_firing_case(uint64_t seed, Features& features) {
  std::mt19937_64 random(seed);
  const auto below = [&](int limit) { return static_cast<int>(random() % static_cast<uint64_t>(limit)); };
  const auto number = [](int64_t value) { return std::to_string(value); };
  FiringCase made;
  made.seed = seed;
  made.streams = 1 + below(6);
  made.comes_and_goes = below(3) == 0;
  made.places = made.streams + (made.comes_and_goes ? 2 : 0);
  const bool restarts = below(2) == 0;
  made.text = "version: 1\nstreams:\n  cameras:\n    on_error: " + std::string(restarts ? "restart" : "end") + "\n";
  if (made.comes_and_goes) made.text += "    max: " + number(made.places) + "\n";
  made.text += "    items:\n";
  for (int s = 0; s < made.streams; ++s) {
    const bool ends = below(4) == 0, stalls = below(4) == 0, fails = below(4) == 0;
    const int from = 100 + below(500);
    made.text += "      s" + number(s) + ": { first: " + number(1000 * (s + 1)) + ", rate: " + number(10 + below(50)) +
                 ", count: " + number(ends ? 1 + below(20) : 0) + ", from: " + number(stalls ? from : -1) +
                 ", until: " + number(stalls ? from + 50 + below(600) : -1) +
                 ", fail_at: " + number(fails ? 1 + below(15) : -1) + " }\n";
    if (ends) ++features["ends"];
    if (stalls) ++features["stalls"];
    if (fails) ++features[restarts ? "restarts" : "fails"];
    made.fails = made.fails || fails;
  }
  if (made.comes_and_goes) ++features["comes and goes"];
  graph::Batch& batch = made.batch;
  batch.max = 1u << below(5);
  if (below(3) == 0) {
    batch.size = static_cast<uint32_t>(1 + below(static_cast<int>(batch.max)));
    batch.wait_ns = (5 + below(100)) * kMs;
    ++features["fixed"];
  } else {
    batch.budget_ns = (10 + below(150)) * kMs;
    batch.late = below(2) == 0 ? graph::Late::keep : graph::Late::automatic;
    ++features[batch.late == graph::Late::keep ? "keeps late ones" : "drops late ones"];
  }
  batch.in_flight = static_cast<uint32_t>(1 + below(2));
  made.item_ns = (1 + below(30)) * kMs / (below(2) == 0 ? 1 : 4);
  made.after_ns = below(2) == 0 ? 0 : made.item_ns / 2;
  made.text += R"(clocks: { cameras: { mode: realtime } }
handlers:
  video: { type: f.camera, for_each: cameras, first: "{first}", rate: "{rate}", count: "{count}", fail_at: "{fail_at}",
           silent_from_ms: "{from}", silent_until_ms: "{until}" }
  model: { type: f.model, input: video, on_error: skip, fail_every: )" +
               number(below(3) == 0 ? 2 + below(6) : 0) + R"( }
  after: { type: t.relay, input: model }
  end:   { type: f.end, for_each: cameras, inputs: { given: video, result: after }, name: "{stream}" }
)";
  return made;
}

struct FiringsSeen {
  std::vector<FiringCall> calls;
  std::map<std::string, std::vector<SettledTick>> ticks;
  Result result;
  uint32_t items_max = 0, in_flight = 0;
};

// Streams that come and go at times of their own.
class Guests {
 public:
  Guests(const FiringCase& of, const graph::Graph& graph, Compiled& compiled)
      : of_(of), graph_(graph), compiled_(compiled), random_(of.seed + 1) {
    next_ms_ = 50 + static_cast<int64_t>(random_() % 200);
  }
  bool move() {
    try {
      return comes_or_goes();
    } catch (const Failure& failure) { // every stream may have ended
      if (failure.error().code != code::no_place) throw;
      return false;
    }
  }

 private:
  bool comes_or_goes() {
    const int64_t now_ms = compiled_.time().now_ns() / kMs;
    if (now_ms < next_ms_ || now_ms > kFiringsMs - 50 || waits_) return false; // the run is nearly over then
    next_ms_ += 30 + static_cast<int64_t>(random_() % 250);
    if (there_.size() < 2 && (there_.empty() || random_() % 2 == 0)) {
      const std::string name = "v" + std::to_string(came_++);
      const auto fields = Params{{"first", "900000"}, {"rate", "25"},  {"count", "0"},
                                 {"from", "-1"},      {"until", "-1"}, {"fail_at", "-1"}};
      const uint32_t clock = compiled_.live().take_seat("cameras", name);
      waits_ = true;
      compiled_.live().add(clock, compiled_.stream_for(graph_, clock, name, fields, [this, name](const Error* error) {
        waits_ = false;
        if (!error) there_.push_back(name);
      }));
    } else if (!there_.empty()) {
      const std::string name = there_.front();
      there_.erase(there_.begin());
      waits_ = true;
      compiled_.live().remove("cameras", name, [this](const Error*) { waits_ = false; });
    }
    return true;
  }

  const FiringCase& of_;
  const graph::Graph& graph_;
  Compiled& compiled_;
  std::mt19937_64 random_;
  int64_t next_ms_;
  std::vector<std::string> there_;
  bool waits_ = false;
  int came_ = 0;
};

FiringsSeen run_firings(const FiringCase& of) {
  graph::Graph written = graph::parse_yaml(of.text, "firings.yaml");
  for (graph::Handler& handler : written.handlers)
    if (handler.name == "model") handler.batch = of.batch;
  Pipeline pipeline;
  pipeline.graph = graph::unfold(written);
  Setup setup;
  setup.virtual_time = true;
  setup.workers = 40; // a worker for each segment
  setup.more = &firings_plugin();
  setup.options.duration_ns = kFiringsMs * kMs;
  setup.options.cost_ns = [&](const std::string& handler, uint64_t) {
    return handler == "model" ? of.item_ns : handler == "after" ? of.after_ns : 0;
  };
  firing_calls.clear();
  settled_ticks.clear();
  Compiled compiled(pipeline, setup);
  FiringsSeen seen;
  REQUIRE(compiled.plan().groups.size() == 1);
  seen.items_max = compiled.plan().groups[0].items_max;
  seen.in_flight = compiled.plan().groups[0].in_flight;
  compiled.live().start();
  Guests guests(of, written, compiled);
  exec::VirtualDriver driver(compiled.time());
  driver.add(compiled.live());
  if (of.comes_and_goes) driver.add([&] { return guests.move(); });
  driver.drive();
  seen.result = compiled.wait();
  seen.calls = std::move(firing_calls);
  seen.ticks = std::move(settled_ticks);
  return seen;
}

void check_firings(const FiringsSeen& seen, const FiringCase& of, Features& features) {
  CHECK(seen.items_max == of.batch.max);
  CHECK(seen.in_flight == of.batch.in_flight);
  std::map<uint32_t, std::pair<uint32_t, uint64_t>> last; // by stream: its epoch and tick
  for (size_t c = 0; c < seen.calls.size(); ++c) {
    const FiringCall& call = seen.calls[c];
    CHECK(call.items <= seen.items_max);
    CHECK(call.under_way <= seen.in_flight);
    CHECK(call.under_way >= 1);
    if (call.under_way == 2) ++features["two under way"];
    // A firing's calls come one after another, and firings in their order.
    const bool begins = call.place == 0;
    if (begins) CHECK(call.firing == (c == 0 ? 0 : seen.calls[c - 1].firing + 1));
    if (begins && c > 0) CHECK(seen.calls[c - 1].place + 1 == seen.calls[c - 1].items);
    if (!begins) {
      CHECK(call.firing == seen.calls[c - 1].firing);
      CHECK(call.place == seen.calls[c - 1].place + 1);
      CHECK(call.items == seen.calls[c - 1].items);
    }
    if (begins && call.items > 1) ++features["several items"];
    if (of.comes_and_goes) continue; // another stream's ticks in a place begin anew
    const std::pair<uint32_t, uint64_t> tick{call.epoch, call.index};
    if (last.contains(call.stream)) CHECK(tick > last[call.stream]);
    last[call.stream] = tick;
  }
}

// Each tick settles once, in order, with what its own item gave.
void check_ticks(const FiringsSeen& seen, Features& features) {
  for (const auto& [name, ticks] : seen.ticks) {
    CAPTURE(name);
    for (size_t t = 0; t < ticks.size(); ++t) {
      const SettledTick& tick = ticks[t];
      if (t > 0) {
        CHECK(tick.index > ticks[t - 1].index);
        CHECK(tick.epoch >= ticks[t - 1].epoch);
        CHECK(tick.at_ns >= ticks[t - 1].at_ns);
        if (tick.epoch == ticks[t - 1].epoch) CHECK(tick.index == ticks[t - 1].index + 1);
      }
      if (tick.given == kEmpty) CHECK(tick.result == kEmpty);
      if (tick.result == kEmpty) {
        if (tick.given != kEmpty) ++features["empty results"];
        continue;
      }
      CHECK(tick.result == tick.given + 1'000'000);
      ++features["results"];
    }
  }
}

// Every item that was given fires, unless it may be dropped because it would be late.
void check_counts(const FiringsSeen& seen, const FiringCase& of, Features& features) {
  if (of.fails || of.comes_and_goes) return; // ticks after the end of a stream are void
  uint64_t given = 0, results = 0, failed = 0;
  for (const auto& [name, ticks] : seen.ticks)
    for (const SettledTick& tick : ticks) {
      given += tick.given != kEmpty;
      results += tick.result != kEmpty;
    }
  for (const HandlerReport& handler : seen.result.report.handlers) failed += handler.errors;
  CHECK(seen.calls.size() == results + failed);
  CHECK(seen.calls.size() <= given);
  const bool may_drop = !of.batch.is_fixed() && of.batch.late != graph::Late::keep;
  if (!may_drop) CHECK(seen.calls.size() == given);
  if (seen.calls.size() < given) ++features["dropped"];
}

} // namespace

TEST_CASE("B4: in time, each item settles once, at its own tick and in its stream's order, within the group's bounds") {
  const int64_t only = from_environment("MILLRACE_SEED", -1);
  const int64_t wanted = only >= 0 ? 1 : from_environment("MILLRACE_GROUPS", part_of(300));
  Features features;
  for (int64_t n = 0; n < wanted; ++n) {
    const int64_t seed = only >= 0 ? only : n + 1;
    INFO("MILLRACE_SEED=", seed);
    const FiringCase of = draw_firing_case(static_cast<uint64_t>(seed), features);
    INFO(of.text, "# max ", of.batch.max, ", size ", of.batch.size, ", in_flight ", of.batch.in_flight, ", item_ns ",
         of.item_ns);
    if (only >= 0) MESSAGE(of.text);
    const FiringsSeen seen = run_firings(of);
    const bool all_failed = !seen.result.ok && seen.result.error.notes.size() > 0 &&
                            seen.result.error.notes.back() == "every stream of its set has failed";
    REQUIRE_MESSAGE((seen.result.ok || all_failed), seen.result.error.what);
    check_firings(seen, of, features);
    check_ticks(seen, features);
    check_counts(seen, of, features);
    const FiringsSeen again = run_firings(of);
    REQUIRE(again.calls == seen.calls);
    REQUIRE(again.ticks == seen.ticks);
  }
  if (only >= 0) return;
  for (const std::string name : {"comes and goes", "ends", "fails", "restarts", "stalls", "fixed", "keeps late ones",
                                 "drops late ones", "dropped", "empty results", "several items", "two under way"}) {
    CAPTURE(name);
    CHECK(features[name] >= wanted / 100);
  }
}
