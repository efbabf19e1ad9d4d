// Shared handlers that take several items of a firing in one call, and how firings are chosen in real time (B3, B9 to
// B14, B16).
#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>

#include "exec/run.h"
#include "exec/virtual_driver.h"
#include "graph/unfold.h"
#include "harness.h"
#include "observe/error_codes.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// Sinks of several streams write side by side where time is not virtual.
std::mutex rows_mutex;
std::vector<uint32_t> rows_calls; // items of each call
std::vector<uint64_t> rows_first; // the index of its first item
struct RowsSeen {
  uint64_t index;
  int64_t rows, sum, at_ns, media_ns;
};
std::map<uint32_t, std::vector<RowsSeen>> rows_seen; // by stream

// Rows of two numbers each: 1 + index % rows of them, all `first` + index.
struct RowsSource final : Handler {
  Output<Tensor> out{*this, "out"};
  Param<int64_t> first{*this, "first", 0, "the first value"};
  Param<int64_t> rows{*this, "rows", 1, "the most rows"};
  Param<int64_t> count{*this, "count", 0, "values; 0: endless"};
  void configure(const Formats& formats) override {
    formats.tensor(out, dtype_of<int64_t>(), {rows, 2}).shape_kind[0] = MR_DIM_BOUNDED;
  }
  void process(Tick& tick, Cpu&) {
    if (count > 0 && static_cast<int64_t>(tick.index()) >= count) return tick.end();
    const int64_t shape[] = {1 + static_cast<int64_t>(tick.index()) % rows, 2};
    const auto values = out.allocate(tick, dtype_of<int64_t>(), shape).elements<int64_t>();
    std::fill(values.begin(), values.end(), first + static_cast<int64_t>(tick.index()));
  }
};

// Doubles all rows of a call as one piece.
struct RowsTwice final : Handler {
  Input<Tensor> in{*this, "in", dense};
  Output<Tensor> out{*this, "out", like(in), dense};
  Param<int64_t> fails{*this, "fails", -1, "the value whose item fails"};
  Param<int64_t> throws{*this, "throws", -1, "the value whose call fails"};
  Param<bool> side_by_side{*this, "side_by_side", false, "rows of all items are as many"};
  Param<bool> asks_twice{*this, "asks_twice", false, "allocates all of them once before"};
  Param<int64_t> not_yet{*this, "not_yet", -1, "the value of which it says that it has nothing"};
  RowsTwice() { items(8); }
  void process(Items& all, Cpu&) {
    {
      const std::lock_guard lock(rows_mutex);
      rows_calls.push_back(all.size());
      rows_first.push_back(all[0].index());
    }
    const auto from = in.all(all).elements<int64_t>();
    int64_t total = 0;
    for (const Tick& item : all) total += in(item).shape()[0];
    CHECK(from.size() == static_cast<size_t>(2 * total));
    if (std::find(from.begin(), from.end(), *throws) != from.end()) throw std::runtime_error("all of it");
    if (side_by_side) {
      if (asks_twice) out.allocate_all(all, dtype_of<int64_t>(), in(all[0]).shape());
      const auto to = out.allocate_all(all, dtype_of<int64_t>(), in(all[0]).shape()).elements<int64_t>();
      for (size_t i = 0; i < to.size(); ++i) to[i] = 2 * from[i];
      return;
    }
    size_t at = 0;
    for (Tick& item : all) {
      const auto to = out.allocate(item, dtype_of<int64_t>(), in(item).shape()).elements<int64_t>();
      for (int64_t& value : to) value = 2 * from[at++];
      if (to[0] == 2 * *fails) item.fail("this one");
      if (to[0] == 2 * *not_yet) item.not_yet();
    }
  }
};

struct RowsSink final : Handler {
  Input<Tensor> in{*this, "in"};
  void process(Tick& tick, Cpu&) {
    const auto values = in(tick).elements<int64_t>();
    const std::lock_guard lock(rows_mutex);
    rows_seen[tick.stream()].push_back({tick.index(), in(tick).shape()[0],
                                        std::accumulate(values.begin(), values.end(), int64_t{0}), now_ns(),
                                        tick.media_time_ns()});
  }
};

const mr_plugin& rows_plugin() {
  static const mr_handler_type types[] = {detail::Type<RowsSource>::table("r.source", "Rows", ""),
                                          detail::Type<RowsTwice>::table("r.twice", "Doubles", ""),
                                          detail::Type<RowsSink>::table("r.sink", "Notes", "")};
  static const mr_handler_type* const pointers[] = {&types[0], &types[1], &types[2]};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "rows", "1", pointers, 3, 0};
  return plugin;
}

Pipeline rows_pipeline(const std::string& text) {
  Pipeline pipeline;
  pipeline.graph = graph::unfold(graph::parse_yaml("version: 1\n" + text, "rows.yaml"));
  rows_calls.clear();
  rows_first.clear();
  rows_seen.clear();
  return pipeline;
}

Setup rows_setup() {
  Setup setup;
  setup.virtual_time = true;
  setup.workers = 4;
  setup.more = &rows_plugin();
  return setup;
}

std::string eight_streams() {
  std::string items;
  for (int s = 0; s < 8; ++s)
    items += (s > 0 ? ", " : "") + ("s" + std::to_string(s)) + ": { first: " + std::to_string(100 * s) + " }";
  return "streams: { all: { items: { " + items + " } } }\n";
}

std::string rows_text(const std::string& twice, const std::string& source = "count: 6, rows: 3",
                      const std::string& clock = "mode: free") {
  return eight_streams() + "clocks: { all: { " + clock + " } }\nhandlers:\n" +
         "  source: { type: r.source, for_each: all, first: \"{first}\", " + source + " }\n" +
         "  twice:  { type: r.twice, input: source" + twice + " }\n" +
         "  sink:   { type: r.sink, for_each: all, input: twice }\n";
}

// The sum that a tick's rows have after they were doubled.
int64_t rows_sum(uint32_t stream, uint64_t index, int64_t rows) {
  return 4 * rows * (100 * stream + static_cast<int64_t>(index));
}

void check_rows(uint32_t stream, uint64_t count, uint64_t without = UINT64_MAX) {
  CAPTURE(stream);
  size_t at = 0;
  for (uint64_t index = 0; index < count; ++index) {
    if (index == without) continue;
    REQUIRE(at < rows_seen[stream].size());
    const RowsSeen& seen = rows_seen[stream][at++];
    const int64_t rows = 1 + static_cast<int64_t>(index) % 3;
    CHECK(seen.index == index);
    CHECK(seen.rows == rows);
    CHECK(seen.sum == rows_sum(stream, index, rows));
  }
  CHECK(rows_seen[stream].size() == at);
}

} // namespace

TEST_CASE("B3: an item body takes the items of a firing, and the rows of a dense input lie in one piece") {
  const Ran ran = run(rows_pipeline(rows_text("")), rows_setup());
  REQUIRE_MESSAGE(ran.ok, ran.error.what);
  for (uint32_t s = 0; s < 8; ++s) check_rows(s, 6);
  CHECK(std::accumulate(rows_calls.begin(), rows_calls.end(), 0u) == 48);
  CHECK(*std::max_element(rows_calls.begin(), rows_calls.end()) > 1);
  CHECK(*std::max_element(rows_calls.begin(), rows_calls.end()) <= 8); // items(8), though a firing may have more
}

TEST_CASE("B3: the rows of all items are allocated in one piece, and streams keep theirs") {
  for (const std::string more : {"", ", asks_twice: true"}) {
    CAPTURE(more);
    const Ran ran = run(rows_pipeline(rows_text(", side_by_side: true" + more, "count: 40, rows: 1")), rows_setup());
    REQUIRE_MESSAGE(ran.ok, ran.error.what);
    for (uint32_t s = 0; s < 8; ++s) {
      REQUIRE(rows_seen[s].size() == 40);
      for (const RowsSeen& seen : rows_seen[s]) CHECK(seen.sum == rows_sum(s, seen.index, 1));
    }
    CHECK(ran.report.pools.at("cpu").held_blocks == 0);
  }
}

TEST_CASE("B10: an item that fails fails alone, and an exception fails all items of its call") {
  const Ran one = run(rows_pipeline(rows_text(", on_error: skip, fails: 203")), rows_setup());
  REQUIRE_MESSAGE(one.ok, one.error.what);
  for (uint32_t s = 0; s < 8; ++s) check_rows(s, 6, s == 2 ? 3 : UINT64_MAX);
  CHECK(one.handler("twice").errors == 1);
  CHECK(one.handler("twice").first_error.find("this one") != std::string::npos);

  const Ran nothing = run(rows_pipeline(rows_text(", on_error: skip, not_yet: 203")), rows_setup());
  REQUIRE_MESSAGE(nothing.ok, nothing.error.what);
  for (uint32_t s = 0; s < 8; ++s) check_rows(s, 6, s == 2 ? 3 : UINT64_MAX);
  CHECK(nothing.handler("twice").first_error == "it has inputs and says that it has nothing");

  const Ran call = run(rows_pipeline(rows_text(", on_error: skip, throws: 203")), rows_setup());
  REQUIRE_MESSAGE(call.ok, call.error.what);
  size_t seen = 0;
  for (const auto& [stream, ticks] : rows_seen) seen += ticks.size();
  CHECK(call.handler("twice").errors == 1);
  CHECK(seen < 47); // more than one item was in that call
  CHECK(seen >= 40);

  const Ran ended = run(rows_pipeline(rows_text(", fails: 203")), rows_setup());
  CHECK_FALSE(ended.ok);
  CHECK(ended.error.what.find("this one") != std::string::npos);
}

TEST_CASE("B14: an item counts as many places as it has rows, and is never split") {
  const std::string text = eight_streams() +
                           "clocks: { all: { mode: free } }\nhandlers:\n"
                           "  source: { type: r.source, for_each: all, first: \"{first}\", count: 6, rows: 3 }\n"
                           "  twice:  { type: r.twice, input: source, batch: { max: 4, of: rows } }\n"
                           "  sink:   { type: r.sink, for_each: all, input: twice }\n";
  Compiled compiled(rows_pipeline(text), rows_setup());
  const Ran ran = compiled.run();
  REQUIRE_MESSAGE(ran.ok, ran.error.what);
  for (uint32_t s = 0; s < 8; ++s) check_rows(s, 6);
  // The ticks of all streams go side by side. Of the third there are 3 rows each, so that no two fit into 4 places.
  for (size_t c = 0; c < rows_calls.size(); ++c)
    if (rows_first[c] % 3 == 2) CHECK(rows_calls[c] <= 2); // beside one of a single row at most
  CHECK(*std::max_element(rows_calls.begin(), rows_calls.end()) > 1);
}

TEST_CASE(
    "B13: in real time a group fires as few items as the load allows, within the budget, and drops what is late") {
  Setup setup = rows_setup();
  setup.options.duration_ns = 3'000 * kMs;
  setup.options.cost_ns = [](const std::string&, uint64_t) { return int64_t{0}; };
  // One by one it does 454 items a second, eight at a time 2,222.
  setup.options.items_cost_ns = [](const std::string&, uint32_t items) { return (20 + 2 * int64_t{items}) * kMs / 10; };
  const auto run_at = [&](int rate) {
    const Ran ran = run(rows_pipeline(rows_text(", batch: { budget: 40ms, max: 8 }", "rows: 1",
                                                "mode: realtime, rate: " + std::to_string(rate))),
                        setup);
    REQUIRE_MESSAGE(ran.ok, ran.error.what);
    return ran;
  };
  const auto latest_ms = [](int64_t from_ns) {
    int64_t latest = 0;
    for (const auto& [stream, ticks] : rows_seen)
      for (const RowsSeen& seen : ticks)
        if (seen.media_ns > from_ns) latest = std::max(latest, (seen.at_ns - seen.media_ns) / kMs);
    return latest;
  };
  const auto mean = [] {
    const size_t half = rows_calls.size() / 2; // the second half of the run
    return std::accumulate(rows_calls.begin() + static_cast<std::ptrdiff_t>(half), rows_calls.end(), 0.0) /
           static_cast<double>(rows_calls.size() - half);
  };
  run_at(20); // 160 items a second
  CHECK(latest_ms(0) <= 40);
  size_t seen = 0;
  for (const auto& [stream, ticks] : rows_seen) seen += ticks.size();
  CHECK(seen >= 8 * 59);

  run_at(150); // 1,200 items a second: more than one by one
  CHECK(latest_ms(1'500 * kMs) <= 40);
  CHECK(mean() > 2);

  const Ran late = run_at(400); // 3,200 items a second: more than it can do
  CHECK(latest_ms(1'500 * kMs) <= 40);
  CHECK(mean() > 7);
  REQUIRE(late.report.groups.size() == 1);
}

TEST_CASE("B7: items of a stream with a priority go before others that are as old") {
  Setup setup = rows_setup();
  setup.options.duration_ns = 1'000 * kMs;
  setup.options.cost_ns = [](const std::string&, uint64_t) { return int64_t{0}; };
  setup.options.items_cost_ns = [](const std::string&, uint32_t items) { return (20 + 2 * int64_t{items}) * kMs / 10; };
  const auto mean_ms = [](uint32_t stream) {
    double sum = 0;
    for (const RowsSeen& seen : rows_seen[stream]) sum += static_cast<double>(seen.at_ns - seen.media_ns) / 1e6;
    return sum / static_cast<double>(rows_seen[stream].size());
  };
  std::string text = rows_text(", batch: { budget: 40ms, max: 2 }", "rows: 1", "mode: realtime, rate: 50");
  REQUIRE(run(rows_pipeline(text), setup).ok);
  CHECK(mean_ms(0) < mean_ms(6)); // ties go by the order of the streams
  text.replace(text.find("s6: { first: 600 }"), 18, "s6: { first: 600, priority: 50 }");
  REQUIRE(run(rows_pipeline(text), setup).ok);
  CHECK(mean_ms(6) < mean_ms(1));   // it shares the first firing of each beat with the first stream
  CHECK(rows_seen[0].size() >= 48); // and the others are not left out
}

TEST_CASE("B16: a budget changes between two firings") {
  Setup setup = rows_setup();
  setup.options.duration_ns = 2'000 * kMs;
  setup.options.cost_ns = [](const std::string&, uint64_t) { return int64_t{0}; };
  setup.options.items_cost_ns = [](const std::string&, uint32_t items) { return (20 + 2 * int64_t{items}) * kMs / 10; };
  Compiled compiled(
      rows_pipeline(rows_text(", batch: { budget: 100ms, max: 8 }", "rows: 1", "mode: realtime, rate: 150")), setup);
  const auto code_of_change = [&](const std::string& param, const std::string& text) {
    try {
      compiled.live().set({{"twice", param, text}});
      return 0;
    } catch (const Failure& failure) {
      return failure.error().code;
    }
  };
  CHECK(code_of_change("batch.size", "4") == code::parameter_not_live); // it learns
  CHECK(code_of_change("batch.budgte", "4ms") == code::unknown_parameter);
  CHECK(code_of_change("batch.budget", "many") != 0);
  CHECK(code_of_change("batch.budget", "20ms") == 0);
  const Ran ran = compiled.run();
  REQUIRE_MESSAGE(ran.ok, ran.error.what);
  REQUIRE(ran.report.groups.size() == 1);
  CHECK(ran.report.groups[0].budget_ms == doctest::Approx(20));
  int64_t latest = 0;
  for (const auto& [stream, ticks] : rows_seen)
    for (const RowsSeen& seen : ticks)
      if (seen.media_ns > 1'000 * kMs) latest = std::max(latest, (seen.at_ns - seen.media_ns) / kMs);
  CHECK(latest <= 20);
}

TEST_CASE("6: calibration measures calls by their number of items") {
  Setup setup = rows_setup();
  setup.virtual_time = false;
  setup.options.measure_bodies = true;
  const Ran ran = run(rows_pipeline(rows_text("", "count: 200, rows: 1")), setup);
  REQUIRE_MESSAGE(ran.ok, ran.error.what);
  const auto& by_items = ran.handler("twice").by_items;
  REQUIRE(by_items.size() >= 3);
  CHECK(by_items[0].items == 1);
  CHECK(by_items[1].items == 2);
  CHECK(by_items[2].items == 4);
  for (const auto& of : by_items) CHECK(of.sampled > 0);
}
