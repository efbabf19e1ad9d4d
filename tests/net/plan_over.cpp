// Sessions that go on with messages after their plan is over: on one side first, then on both.
#include <doctest/doctest.h>

#include <array>
#include <memory>

#include "tests/net/two_nodes.h"

namespace millrace::net {
namespace {

using test::TwoNodes;

// Ends that count each call by a session.
struct CountedGiver final : test::Giver {
  using Giver::Giver;
  bool next(Parcel& parcel) override { return ++calls, Giver::next(parcel); }
  void let_go(const Parcel& parcel, bool acknowledged) override {
    ++calls;
    Giver::let_go(parcel, acknowledged);
  }
  int64_t passed_ns() const override { return ++calls, Giver::passed_ns(); }
  mutable uint64_t calls = 0;
};
struct CountedTaker final : test::Taker {
  using Taker::Taker;
  Room room(uint32_t value) override { return ++calls, Taker::room(value); }
  void arrive(const Parcel& parcel) override {
    ++calls;
    Taker::arrive(parcel);
  }
  uint64_t credit() const override { return ++calls, Taker::credit(); }
  void passed(int64_t media_ns) override {
    ++calls;
    Taker::passed(media_ns);
  }
  mutable uint64_t calls = 0;
};

// Two sides with a crossing each way, which follow one plan. Way 0 leaves side 0.
struct Following {
  explicit Following(uint32_t data_lanes = 1, uint64_t seed = 1) : nodes({data_lanes, true, seed, true}) {
    nodes.add(0, 1, 3, {});
    nodes.add(1, data_lanes, 2, {});
    for (const uint32_t way : {0u, 1u}) {
      auto giver = std::make_unique<CountedGiver>(test::Contents{}, nodes.way(way).plan.depth);
      auto taker = std::make_unique<CountedTaker>(test::Contents{}, nodes.way(way).plan.depth);
      givers[way] = giver.get();
      takers[way] = taker.get();
      nodes.way(way).giver = std::move(giver);
      nodes.way(way).taker = std::move(taker);
    }
    nodes.begin(0);
    nodes.begin(1);
    nodes.run(20 * kMillisecond);
    nodes.follow(1);
    nodes.follow(0);
  }
  // Parcels flow both ways, and there are more to come.
  void flow() {
    for (int turn = 0; turn < 5; ++turn) {
      make(4);
      nodes.run(20 * kMillisecond);
    }
    REQUIRE(nodes.session(0).is_shared());
    REQUIRE(givers[0]->acknowledged() > 3);
    REQUIRE(givers[1]->acknowledged() > 3);
    make(9);
    nodes.exchange(50);
  }
  void make(int parcels) {
    for (const uint32_t way : {0u, 1u})
      for (int i = 0; i < parcels; ++i) givers[way]->make();
  }
  // The calls of the side's ends.
  uint64_t calls(uint32_t side) const { return givers[side]->calls + takers[1 - side]->calls; }

  TwoNodes nodes;
  std::array<CountedGiver*, 2> givers{};
  std::array<CountedTaker*, 2> takers{};
};

} // namespace

TEST_CASE("a side that ends its plan goes on with messages, and its run is not called any more") {
  for (const uint32_t side : {0u, 1u})
    for (const uint32_t lanes : {1u, 2u}) {
      CAPTURE(side);
      CAPTURE(lanes);
      Following both(lanes);
      TwoNodes& nodes = both.nodes;
      both.flow();
      nodes.end_plan(side);
      const uint64_t calls = both.calls(side);
      both.make(5);
      nodes.take_in_all();
      CHECK(nodes.say(0, 100'000));
      CHECK(nodes.say(1, 10));
      nodes.run(3 * kSecond);
      CHECK(nodes.heard(0) == 1);
      CHECK(nodes.heard(1) == 1);
      CHECK(both.calls(side) == calls);
      for (uint32_t lane = 1; lane <= lanes; ++lane) {
        CHECK(!nodes.session(0).is_connected(lane));
        CHECK(!nodes.session(1).is_connected(lane));
      }
      CHECK(nodes.session(0).is_up(0));
      CHECK(nodes.count(0, EventType::met) + nodes.count(1, EventType::met) == 2);
      CHECK(nodes.count(0, EventType::refused) + nodes.count(1, EventType::refused) == 0);
      CHECK((nodes.last_was_refused(0) == (side == 1 ? Fault::plan : Fault::none)));
      CHECK(nodes.broken() == nullptr);
    }
}

TEST_CASE("a side that ends its plan is told later of crossings that it has no more, and does not mind") {
  for (const uint32_t side : {0u, 1u}) {
    CAPTURE(side);
    Following both;
    both.flow();
    TwoNodes& nodes = both.nodes;
    nodes.settle();
    nodes.take_in_all(); // the other side has credit to tell
    nodes.pass(kSecond / 2);
    const size_t before = nodes.connection(1 - side, 0)->pipes[1 - side].size();
    nodes.send(1 - side, 0, SIZE_MAX);
    REQUIRE(nodes.connection(1 - side, 0)->pipes[1 - side].size() > before);
    nodes.end_plan(side);
    nodes.run(kSecond);
    CHECK(nodes.count(side, EventType::refused) == 0);
    CHECK(nodes.count(0, EventType::back) == 0);
    CHECK(nodes.say(1 - side, 10));
    nodes.run(kSecond);
    CHECK(nodes.heard(side) == 1);
  }
}

TEST_CASE("both sides leave a link, one after the other, when their plan is over") {
  for (const uint32_t first : {0u, 1u}) {
    CAPTURE(first);
    Following both;
    both.flow();
    TwoNodes& nodes = both.nodes;
    nodes.end_plan(first);
    nodes.session(first).leave();
    nodes.run(kSecond);
    CHECK(nodes.count(0, EventType::drained) == 1); // the side that goes on learns how much had arrived
    CHECK(nodes.count(1, EventType::drained) == 1);
    nodes.end_plan(1 - first);
    nodes.session(1 - first).leave();
    nodes.run(kSecond);
    CHECK(nodes.broken() == nullptr);
  }
}

TEST_CASE("a plan that ends before the other side follows it is over, and that side is refused its data alone") {
  Following both;
  TwoNodes& nodes = both.nodes;
  nodes.end_plan(1);
  CHECK(both.calls(1) == 0);
  nodes.run(3 * kSecond);
  CHECK(!nodes.session(0).is_shared());
  CHECK(nodes.last_was_refused(0) == Fault::plan);
  CHECK(both.calls(1) == 0);
  CHECK(nodes.say(0, 10));
  nodes.run(kSecond);
  CHECK(nodes.heard(1) == 1);
}

TEST_CASE("another process of the peer meets a side whose plan is over, and gets no data from it") {
  for (const uint32_t side : {0u, 1u}) {
    CAPTURE(side);
    Following both;
    both.flow();
    TwoNodes& nodes = both.nodes;
    nodes.end_plan(side);
    const uint64_t calls = both.calls(side);
    nodes.begin(1 - side);
    nodes.follow(1 - side);
    nodes.run(8 * kSecond, 50 * kMillisecond);
    CHECK(nodes.count(side, EventType::met) == 2);
    CHECK(!nodes.session(side).is_shared());
    CHECK(!nodes.session(1 - side).is_shared());
    CHECK(nodes.say(side, 10));
    nodes.run(kSecond);
    CHECK(nodes.heard(1 - side) == 1);
    CHECK(both.calls(side) == calls);
  }
}

TEST_CASE("plans end at any moment through cuts at any byte, messages go on, and the link is left in order") {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    Following both(2, seed);
    TwoNodes& nodes = both.nodes;
    std::array<bool, 2> is_over{};
    std::array<uint64_t, 2> calls{};
    const auto end = [&](uint32_t side) {
      nodes.end_plan(side);
      is_over[side] = true;
      calls[side] = both.calls(side);
    };
    for (uint64_t turn = 0; turn < 120; ++turn) {
      const uint64_t drawn = test::mixed(seed * 1000 + turn);
      nodes.pass(static_cast<int64_t>(drawn % 7) * kMillisecond);
      const auto side = static_cast<uint32_t>(drawn >> 40 & 1);
      if (drawn >> 41 & 1 && turn > 20 && (drawn >> 42) % 24 == 0 && !is_over[side]) end(side);
      both.make(static_cast<int>(drawn >> 8 & 1));
      nodes.exchange(1 + drawn % 3000);
      if (drawn % 7 == 0) nodes.cut_both(static_cast<uint32_t>(drawn >> 11 & 3) % 3);
      if (drawn % 11 == 0) nodes.cut(drawn >> 12 & 1, static_cast<uint32_t>(drawn >> 13 & 3) % 3);
      if (drawn % 3) nodes.take_in_all();
    }
    for (const uint32_t side : {0u, 1u})
      if (!is_over[side]) end(side);
    nodes.run(5 * kSecond, 50 * kMillisecond);
    CHECK(nodes.say(0, 1000));
    CHECK(nodes.say(1, 1000));
    nodes.run(kSecond, 50 * kMillisecond);
    CHECK(nodes.is_all_heard());
    for (const uint32_t side : {0u, 1u}) {
      CHECK(both.calls(side) == calls[side]);
      nodes.session(side).leave();
    }
    nodes.run(5 * kSecond, 50 * kMillisecond);
    for (const uint32_t side : {0u, 1u}) {
      CHECK(nodes.count(side, EventType::drained) == 1);
      CHECK(nodes.count(side, EventType::refused) == 0);
    }
    CHECK(nodes.broken() == nullptr);
  }
}

TEST_CASE("the other side learns how much had arrived when a plan ended, also by the next control connection") {
  for (const uint32_t side : {0u, 1u}) {
    CAPTURE(side);
    Following both;
    both.flow();
    TwoNodes& nodes = both.nodes;
    const uint32_t way = 1 - side; // leaves the other side
    const auto taken = [&] { return nodes.session(way).outgoing(static_cast<uint16_t>(way))->counts(); };
    for (int turn = 0; turn < 3 && taken().acknowledged == taken().sent; ++turn) {
      both.make(1);
      nodes.exchange(100'000); // they arrive, and nobody says so yet
    }
    REQUIRE(taken().acknowledged < taken().sent);
    nodes.end_plan(side);
    nodes.cut_both(0);
    nodes.run(3 * kSecond, 50 * kMillisecond);
    CHECK(taken().acknowledged == taken().sent);
    CHECK(nodes.broken() == nullptr);
  }
}

TEST_CASE("another process of a side that has left is met") {
  for (const uint32_t side : {0u, 1u}) {
    CAPTURE(side);
    TwoNodes nodes({1, true, 1, true});
    nodes.begin(0);
    nodes.begin(1);
    nodes.run(kSecond);
    nodes.session(side).leave();
    nodes.run(kSecond);
    REQUIRE(nodes.count(1 - side, EventType::drained) == 1);
    nodes.begin(side);
    nodes.run(8 * kSecond, 50 * kMillisecond);
    CHECK(nodes.count(1 - side, EventType::met) == 2);
    CHECK(nodes.say(1 - side, 10));
    nodes.run(kSecond);
    CHECK(nodes.heard(side) == 1);
  }
}

} // namespace millrace::net
