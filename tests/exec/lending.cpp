// Blocks that a handler holds before it knows their tick and after it gave them: what a decoder works in (semantics.md
// 3.2, 3.5).
#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "harness.h"

using namespace millrace;
using namespace millrace::test;

namespace {

constexpr uint32_t kNumbers = 64; // in one value

// Writes its values ahead of their ticks, as a decoder does, keeps those that it gave as references, and looks on every
// tick whether all of them still hold what it wrote.
struct Lookahead final : Handler {
  Output<Tensor> out{*this, "out"};
  Param<int64_t> count{*this, "count", 50, "values"};
  Param<int64_t> ahead{*this, "ahead", 3, "values that are written before the first is given"};
  Param<int64_t> kept{*this, "kept", 4, "values that are read after they were given"};
  Param<bool> on_threads{*this, "on_threads", false, "each block is borrowed and given back by a thread of its own"};

  struct Held {
    mr_block block{};
    int64_t value = 0;
  };
  std::deque<Held> held; // the oldest first: `kept` that were given, then those to come
  int64_t written = 0, given = 0;
  static inline int64_t spoiled = 0, refused = 0;

  void configure(const Formats& formats) override {
    formats.tensor(out, dtype_of<int64_t>(), {kNumbers}).held = static_cast<uint32_t>(*ahead + *kept);
  }
  void start() override {
    held.clear();
    written = given = spoiled = refused = 0;
  }
  template <class F>
  void somewhere(F&& function) const {
    if (*on_threads)
      std::thread(function).join();
    else
      function();
  }
  void look() {
    for (const Held& one : held) {
      const auto* numbers = reinterpret_cast<const int64_t*>(one.block.data);
      spoiled += std::any_of(numbers, numbers + kNumbers, [&](int64_t number) { return number != one.value; });
    }
  }
  void drop_oldest() {
    somewhere([&] { out.give_back(held.front().block); });
    held.pop_front();
  }
  void process(Tick& tick, Cpu&) {
    look();
    if (given == count) return tick.end();
    if (static_cast<int64_t>(held.size()) - (written - given) > kept) drop_oldest();
    while (written < count && written - given < ahead) {
      Held one;
      bool lent = false;
      somewhere([&] { lent = out.borrow(one.block); });
      if (!lent) throw std::logic_error("the plan has fewer blocks than were declared");
      one.value = written++;
      std::fill_n(reinterpret_cast<int64_t*>(one.block.data), kNumbers, one.value);
      held.push_back(one);
    }
    if (held.size() == static_cast<size_t>(*ahead + *kept)) {
      mr_block more{};
      refused += !out.borrow(more);
    }
    const auto next = std::find_if(held.begin(), held.end(), [&](const Held& one) { return one.value == given; });
    mr_tensor& tensor = out.give(tick, next->block, kNumbers * sizeof(int64_t)).as.tensor;
    tensor = {MR_DTYPE_INT, 64, 1, 1, {kNumbers}, {1}};
    ++given;
    if (static_cast<int64_t>(held.size()) - (written - given) > kept) drop_oldest();
  }
  void stop() override {
    look();
    while (!held.empty()) drop_oldest();
  }
};

// Gives one block on every tick, as a decoder that shows a picture twice might.
struct Repeating final : Handler {
  Output<Tensor> out{*this, "out"};
  mr_block block{};
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}).held = 1; }
  void start() override {
    if (!out.borrow(block)) throw std::logic_error("nothing was lent");
  }
  void process(Tick& tick, Cpu&) { out.give(tick, block, 8).as.tensor = {MR_DTYPE_INT, 64, 1, 1, {1}, {1}}; }
  void stop() override {
    if (block.token) out.give_back(block);
    block = {};
  }
};

// Gives a block that is not borrowed, or two of them.
struct Careless final : Handler {
  Output<Tensor> out{*this, "out"};
  Param<bool> twice{*this, "twice", false, "gives two blocks on one tick"};
  std::vector<mr_block> blocks = std::vector<mr_block>(2);
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}).held = 2; }
  void process(Tick& tick, Cpu&) {
    const mr_block foreign{nullptr, 0, 0};
    if (!*twice) out.give(tick, foreign, 8);
    for (mr_block& block : blocks) {
      if (!out.borrow(block)) throw std::logic_error("nothing was lent");
      out.give(tick, block, 8).as.tensor = {MR_DTYPE_INT, 64, 1, 1, {1}, {1}};
    }
  }
  void stop() override {
    for (const mr_block& block : blocks)
      if (block.token) out.give_back(block);
    blocks.assign(2, {});
  }
};

const mr_plugin& lending_plugin() {
  static const mr_handler_type types[] = {
      detail::Type<Lookahead>::table("l.ahead", "Writes ahead and reads back", ""),
      detail::Type<Careless>::table("l.careless", "Gives what is not its own", ""),
      detail::Type<Repeating>::table("l.repeating", "Gives one block again and again", ""),
  };
  static const mr_handler_type* const pointers[] = {&types[0], &types[1], &types[2]};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "lending", "1", pointers, 3, 0};
  return plugin;
}

Setup lending_setup(uint32_t workers, std::vector<std::string> domains = {"cpu"}) {
  Setup setup;
  setup.workers = workers;
  setup.domains = std::move(domains);
  setup.more = &lending_plugin();
  return setup;
}

} // namespace

TEST_CASE("3.2: blocks that a handler holds are its own until it gives them back, whatever their readers do") {
  for (const bool on_threads : {false, true}) {
    for (const uint32_t workers : {1u, 2u, 4u}) {
      for (const std::string reader : {"t.paint", "t.relay", "t.keep"}) {
        INFO(reader, ", ", workers, " workers");
        Pipeline p;
        p.add("source", "l.ahead", {{"on_threads", on_threads ? "true" : "false"}});
        p.add("reader", reader);
        p.add("tap", "t.relay");
        p.add("sink", "t.sink", {{"log", "lent"}});
        p.connect("source", "reader");
        p.connect("source", "tap", graph::Policy::latest);
        p.connect("reader", "sink");
        p.connect("tap", "sink");
        const Ran result = run(p, lending_setup(workers));
        INFO(result.error.what);
        REQUIRE(result.ok);
        CHECK(Lookahead::spoiled == 0);
        CHECK(Lookahead::refused > 0); // as many were lent as were declared, and no more
        CHECK(result.report.pools.at("cpu").held_blocks == 0);
        const std::vector<Seen> log = result.seen("lent");
        REQUIRE(log.size() == 50);
      }
    }
  }
}

TEST_CASE("3.5: what a handler still reads is copied before it is written over") {
  Pipeline p("l.ahead name=source ! t.paint name=paint add=1000 ! t.sink name=sink log=painted");
  Compiled compiled(p, lending_setup(2));
  const std::vector<std::string>& notes = compiled.notes();
  CHECK(std::count(notes.begin(), notes.end(),
                   "paint copies its input before it writes: source still reads the picture that it gave") == 1);
  REQUIRE(compiled.run().ok);
  CHECK(Lookahead::spoiled == 0);
  const std::vector<int64_t> seen = values(compiled.seen("painted"));
  REQUIRE(seen.size() == 50);
  for (int64_t i = 0; i < 50; ++i) CHECK(seen[static_cast<size_t>(i)] == i + 1000);
}

TEST_CASE("3.4: a device gets a lent block by one copy, also while its handler reads on in it") {
  Pipeline p("l.ahead name=source ! t.relay name=relay device=sim:0 ! t.sink name=sink log=lent_to_device");
  for (const bool adversarial : {false, true}) {
    Setup setup = lending_setup(2, {"cpu", "sim:0"});
    setup.adversarial = adversarial;
    const Ran result = run(p, setup);
    REQUIRE(result.ok);
    CHECK(Lookahead::spoiled == 0);
    CHECK(copied(result, "cpu", "sim:0") == 50);
    CHECK(values(result.seen("lent_to_device")).size() == 50);
    for (const auto& [domain, pool] : result.report.pools) CHECK(pool.held_blocks == 0);
  }
}

TEST_CASE("3.2: a block that is a tick's value is not given to another tick") {
  Pipeline p("l.repeating name=source ! t.sink name=sink log=repeating");
  const Ran result = run(p, lending_setup(1));
  CHECK_FALSE(result.ok);
  CHECK(result.error.what.find("gives a block that is another tick's value") != std::string::npos);
  CHECK(result.report.pools.at("cpu").held_blocks == 0);
}

TEST_CASE("3.2: the plan has room for what is held beside what is in flight, and says why") {
  Pipeline p("l.ahead name=source ahead=5 kept=7 ! t.sink name=sink log=room");
  Compiled compiled(p, lending_setup(1));
  const RingView ring = compiled.ring("source");
  CHECK(ring.dynamic);
  CHECK(ring.length == compiled.window("source") + 12);
  CHECK(std::count(ring.reasons.begin(), ring.reasons.end(), "12 worked in by source") == 1);
}

TEST_CASE("3.2: a block that is not borrowed, and a second one on a tick, end the run in words; nothing is leaked") {
  for (const bool twice : {false, true}) {
    Pipeline p;
    p.add("source", "l.careless", {{"twice", twice ? "true" : "false"}});
    p.add("sink", "t.sink", {{"log", "careless"}});
    p.connect("source", "sink");
    const Ran result = run(p, lending_setup(1));
    CHECK_FALSE(result.ok);
    const std::string words = twice ? "gives a second block on one tick" : "gives a block that it did not borrow";
    CHECK(result.error.what.find(words) != std::string::npos);
    CHECK(result.report.pools.at("cpu").held_blocks == 0);
  }
}
