// Sessions that meet before there is a plan: control alone first, crossings once both sides follow the same plan.
#include <doctest/doctest.h>

#include "tests/net/talk.h"
#include "tests/net/two_nodes.h"

namespace millrace::net {
namespace {

using test::TwoNodes;

// Two sides with a crossing each way, which have met and follow nothing.
struct MetWithoutPlan {
  explicit MetWithoutPlan(uint64_t seed = 1, uint32_t data_lanes = 1) : nodes({data_lanes, true, seed, true}) {
    nodes.add(0, 1, 3, {});
    nodes.add(1, data_lanes, 2, {});
    nodes.begin(0);
    nodes.begin(1);
    nodes.run(20 * kMillisecond);
    REQUIRE(nodes.count(0, EventType::met) == 1);
    REQUIRE(nodes.count(1, EventType::met) == 1);
  }
  void make(int parcels = 5) {
    for (size_t way : {0u, 1u}) nodes.way(way).giver->make(parcels);
  }
  bool is_refused() const { return nodes.count(0, EventType::refused) + nodes.count(1, EventType::refused) > 0; }
  TwoNodes nodes;
};

} // namespace

TEST_CASE("without a plan there is control alone, and messages go over it") {
  MetWithoutPlan met;
  met.make();
  CHECK(met.nodes.say(0, 100'000));
  CHECK(met.nodes.say(1, 10));
  met.nodes.run(2 * kSecond);
  CHECK(met.nodes.heard(1) == 1);
  CHECK(met.nodes.heard(0) == 1);
  CHECK(!met.nodes.session(0).is_connected(1));
  CHECK(!met.nodes.session(0).is_shared());
  CHECK(met.nodes.connections().size() == 1);
  CHECK(!met.is_refused());
  CHECK(met.nodes.broken() == nullptr);
}

TEST_CASE("parcels go once both sides follow the same plan, whichever was first") {
  for (const uint32_t first : {0u, 1u})
    for (const uint32_t lanes : {1u, 2u}) {
      CAPTURE(first);
      CAPTURE(lanes);
      MetWithoutPlan met(1, lanes);
      met.make();
      met.nodes.follow(first);
      met.nodes.run(3 * kSecond);
      CHECK(met.nodes.way(0).taker->arrived() + met.nodes.way(1).taker->arrived() == 0);
      CHECK(!met.nodes.session(first).is_shared());
      met.nodes.follow(1 - first);
      met.nodes.run(6 * kSecond, 50 * kMillisecond);
      CHECK(met.nodes.is_all_there());
      CHECK(met.nodes.session(0).is_shared());
      CHECK(met.nodes.session(1).is_shared());
      CHECK(met.nodes.count(0, EventType::met) == 1);
      CHECK(!met.is_refused());
      CHECK((met.nodes.last_was_refused(0) == (first == 0 ? Fault::plan : Fault::none)));
      CHECK(met.nodes.broken() == nullptr);
    }
}

TEST_CASE("if both follow at about the same time, parcels go within a tenth of a second or two") {
  MetWithoutPlan met;
  met.make();
  met.nodes.follow(1);
  met.nodes.follow(0);
  met.nodes.run(20 * kMillisecond);
  CHECK(met.nodes.is_all_there());
  MetWithoutPlan late;
  late.make();
  late.nodes.follow(0);
  late.nodes.run(10 * kMillisecond);
  late.nodes.follow(1);
  late.nodes.run(300 * kMillisecond);
  CHECK(late.nodes.is_all_there());
}

TEST_CASE("two plans do not meet; a side that forgets its plan and follows the other's does") {
  MetWithoutPlan met;
  met.make();
  met.nodes.follow(0, 1);
  met.nodes.follow(1, 2);
  met.nodes.run(3 * kSecond);
  CHECK(!met.nodes.session(0).is_shared());
  CHECK(met.nodes.last_answer() == Fault::plan);
  CHECK(met.nodes.session(0).is_up(0));
  met.nodes.forget_plan(0);
  met.nodes.run(kSecond);
  met.nodes.follow(0, 2);
  met.nodes.run(6 * kSecond, 50 * kMillisecond);
  CHECK(met.nodes.is_all_there());
  CHECK(met.nodes.count(0, EventType::met) == 1);
  CHECK(!met.is_refused());
  CHECK(met.nodes.broken() == nullptr);
}

TEST_CASE("a plan that is forgotten while its data connection is made takes the connection with it") {
  MetWithoutPlan met;
  met.nodes.follow(0);
  met.nodes.pass(kMillisecond);
  REQUIRE(met.nodes.connection(0, 1));
  met.nodes.forget_plan(0);
  CHECK(!met.nodes.connection(0, 1));
  met.nodes.run(kSecond);
  CHECK(!met.nodes.session(0).is_connected(1));
  CHECK(!met.is_refused());
}

TEST_CASE("another process meets without a plan while this side follows one, and shares it once it follows too") {
  for (const uint32_t side : {0u, 1u}) {
    CAPTURE(side);
    MetWithoutPlan met;
    met.nodes.follow(0);
    met.nodes.follow(1);
    met.make();
    met.nodes.run(kSecond);
    REQUIRE(met.nodes.is_all_there());
    met.nodes.begin(side);
    met.make();
    met.nodes.run(8 * kSecond, 50 * kMillisecond);
    CHECK(met.nodes.count(1 - side, EventType::met) == 2);
    CHECK(!met.nodes.session(side).is_shared());
    CHECK(!met.nodes.session(1 - side).is_shared());
    CHECK(met.nodes.say(1 - side, 1000));
    met.nodes.follow(side);
    met.nodes.run(8 * kSecond, 50 * kMillisecond);
    CHECK(met.nodes.is_all_there());
    CHECK(met.nodes.session(1 - side).is_shared());
    CHECK(!met.is_refused());
    CHECK(met.nodes.broken() == nullptr);
  }
}

TEST_CASE("plans come at any moment, and parcels arrive in order and each once through cuts at any byte") {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    MetWithoutPlan met(seed, 2);
    TwoNodes& nodes = met.nodes;
    bool follows[2] = {false, false};
    for (uint64_t turn = 0; turn < 120; ++turn) {
      const uint64_t drawn = test::mixed(seed * 1000 + turn);
      nodes.pass(static_cast<int64_t>(drawn % 7) * kMillisecond);
      const auto side = static_cast<uint32_t>(drawn >> 40 & 1);
      if ((drawn >> 41) % 16 == 0 && follows[side] && !nodes.session(side).is_shared()) {
        nodes.forget_plan(side);
        follows[side] = false;
      } else if ((drawn >> 45) % 16 == 0 && !follows[side]) {
        nodes.follow(side);
        follows[side] = true;
      }
      for (size_t way : {0u, 1u}) nodes.way(way).giver->make(drawn >> 8 & 1 ? drawn % 3 : 0);
      nodes.exchange(1 + drawn % 3000);
      if (drawn % 7 == 0) nodes.cut_both(static_cast<uint32_t>(drawn >> 11 & 3) % 3);
      if (drawn % 11 == 0) nodes.cut(drawn >> 12 & 1, static_cast<uint32_t>(drawn >> 13 & 3) % 3);
      if (drawn % 3) nodes.take_in_all();
    }
    for (const uint32_t side : {0u, 1u})
      if (!follows[side]) nodes.follow(side);
    nodes.run(15 * kSecond, 50 * kMillisecond);
    CHECK(nodes.is_all_there());
    CHECK(nodes.broken() == nullptr);
    CHECK(!met.is_refused());
    for (size_t way : {0u, 1u}) CHECK(nodes.way(way).taker->arrived() == nodes.way(way).giver->made());
  }
}

} // namespace millrace::net
