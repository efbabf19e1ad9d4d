// The collector by hand: one case for each rule of its order, its allowances, its streams and what it drops.
#include "batch/collector.h"

#include <doctest/doctest.h>

#include "batch/controller.h"
#include "batch/plain_rules.h"
#include "tests/batch/rig.h"

namespace millrace::batch {
namespace {

using test::add_streams;
using test::dropped_words;
using test::even_curve;
using test::words;

Group group_of(uint32_t streams, int64_t budget_ns, uint32_t in_flight = 1) {
  return {streams, in_flight, budget_ns, Order::deadline};
}

TEST_CASE("B3: a firing has at most as many items as the rule asks for, and what is left waits for the next") {
  FreeRule rule(2);
  Collector collector(group_of(3, 10 * kMs), ServiceCurve(even_curve()), rule);
  add_streams(collector, 3, {kMs, 0, 4});
  for (uint32_t s = 0; s < 3; ++s) CHECK(collector.give(s, 7, 0));
  const Firing* first = collector.next(0).firing;
  CHECK(words(first) == "0:7 1:7");
  CHECK(first->bucket_items == 2);
  CHECK(words(collector.next(0).firing) == "none"); // one firing in flight
  collector.firing_ended(first->slot, kMs);
  CHECK(words(collector.next(kMs).firing) == "2:7");
}

TEST_CASE("B5: the items of a stream leave in their order, several in one firing") {
  FreeRule rule(8);
  Collector collector(group_of(2, 10 * kMs), ServiceCurve(even_curve()), rule);
  add_streams(collector, 2, {kMs, 0, 4});
  CHECK(collector.give(1, 0, 0));
  CHECK(collector.give(1, 1, 0));
  CHECK(collector.give(0, 0, 0));
  CHECK(collector.give(1, 2, 0));
  CHECK(words(collector.next(0).firing) == "0:0 1:0 1:1 1:2");
}

TEST_CASE("B6: an allowance bounds what waits and what is under way, and is free again when the firing ends") {
  FreeRule rule(1);
  Collector collector(group_of(1, 10 * kMs), ServiceCurve(even_curve()), rule);
  add_streams(collector, 1, {kMs, 0, 2});
  CHECK(collector.give(0, 0, 0));
  const Firing* firing = collector.next(0).firing;
  CHECK(collector.give(0, 1, 0));
  CHECK_FALSE(collector.give(0, 2, 0));
  CHECK(collector.inside(0) == 2);
  collector.firing_ended(firing->slot, kMs);
  CHECK(collector.give(0, 2, kMs));
}

TEST_CASE("B6: an allowance is the items of a budget and one more, at most eight") {
  CHECK(allowance_of(33 * kMs, 33 * kMs) == 2);
  CHECK(allowance_of(33 * kMs, 34 * kMs) == 3);
  CHECK(allowance_of(kMs, 100 * kMs) == kAllowanceMost);
  CHECK(allowance_of(1000 * kMs, 0) == 1);
}

TEST_CASE("B7: items go by deadline, ties by stream, whoever gave them first") {
  FreeRule rule(8);
  Collector collector(group_of(3, 10 * kMs), ServiceCurve(even_curve()), rule);
  add_streams(collector, 3, {kMs, 0, 4});
  CHECK(collector.give(2, 0, 1));
  CHECK(collector.give(1, 0, 2));
  CHECK(collector.give(0, 0, 2));
  CHECK(words(collector.next(2).firing) == "2:0 0:0 1:0");
}

TEST_CASE("B7: a priority is time: new items of a preferred stream go before others, and not before old ones") {
  FreeRule rule(8);
  Collector collector(group_of(2, 100 * kMs), ServiceCurve(even_curve()), rule);
  collector.stream_added(0, {10 * kMs, 0, 8}, 0);
  collector.stream_added(1, {10 * kMs, 30, 8}, 0); // 30 ms ahead
  CHECK(collector.give(0, 0, 0));
  CHECK(collector.give(0, 1, 20 * kMs));
  CHECK(collector.give(1, 0, 40 * kMs));
  CHECK(words(collector.next(40 * kMs).firing) == "0:0 1:0 0:1");
}

TEST_CASE("B8: streams that are overdue, ended or full are not waited for") {
  FixedRule rule(2, 100 * kMs);
  Collector collector(group_of(2, kMs), ServiceCurve(even_curve()), rule);
  add_streams(collector, 2, {10 * kMs, 0, 1});
  const auto gives_alone = [&](uint64_t ordinal, int64_t now) {
    CHECK(collector.give(0, ordinal, now));
    const Step& step = collector.next(now);
    if (step.firing == nullptr) return false;
    collector.firing_ended(step.firing->slot, now);
    return true;
  };
  SUBCASE("a stream whose item is due is waited for until it is overdue by twice its period") {
    CHECK_FALSE(gives_alone(0, 29 * kMs));
    CHECK(collector.next(29 * kMs).look_again_ns == 30 * kMs);
    CHECK(words(collector.next(30 * kMs).firing) == "0:0");
  }
  SUBCASE("overdue, until it gives again") {
    CHECK(gives_alone(0, 30 * kMs));
    CHECK(collector.give(1, 0, 31 * kMs));
    CHECK(collector.give(0, 1, 31 * kMs));
    const Firing* both = collector.next(31 * kMs).firing;
    CHECK(words(both) == "0:1 1:0");
    collector.firing_ended(both->slot, 31 * kMs);
    CHECK_FALSE(gives_alone(2, 32 * kMs));
  }
  SUBCASE("ended; its own item fires all the same") {
    CHECK(collector.give(1, 0, 0));
    CHECK(words(collector.next(0).firing) == "none");
    collector.stream_ended(1);
    collector.stream_ended(0);
    CHECK(words(collector.next(0).firing) == "1:0");
  }
  SUBCASE("full: it can give nothing until its item is settled") {
    Group two = group_of(2, kMs, 2);
    Collector pair(two, ServiceCurve(even_curve()), rule);
    pair.stream_added(0, {10 * kMs, 0, 2}, 0);
    pair.stream_added(1, {10 * kMs, 0, 1}, 0);
    CHECK(pair.give(1, 0, 0));
    CHECK(pair.give(0, 0, 0));
    CHECK(words(pair.next(0).firing) == "0:0 1:0");
    CHECK(pair.give(0, 1, 0)); // now both have used their allowance
    CHECK(words(pair.next(0).firing) == "0:1");
  }
}

TEST_CASE("B8: a stream that may come later than the wait ends is not waited for") {
  FixedRule rule(2, 5 * kMs);
  Collector collector(group_of(2, kMs), ServiceCurve(even_curve()), rule);
  add_streams(collector, 2, {10 * kMs, 0, 2});
  CHECK(collector.give(0, 0, 0)); // both streams are expected at 10 ms again, and the wait ends at 5 ms
  CHECK(words(collector.next(0).firing) == "0:0");
  CHECK(collector.give(1, 0, 6 * kMs));
  const Step& step = collector.next(6 * kMs); // stream 0 is expected at 10 ms, one firing is under way
  CHECK(words(step.firing) == "none");
  collector.firing_ended(0, 7 * kMs);
  CHECK(collector.next(7 * kMs).look_again_ns == 11 * kMs);
}

TEST_CASE(
    "B9: an item that would be done too late is dropped before it costs anything, and is kept where that is said") {
  Budget budget{10 * kMs, 0.8, true};
  SUBCASE("dropped") {
    Controller rule(budget, 100, 10 * kMs);
    Collector collector(group_of(2, 10 * kMs), ServiceCurve(even_curve()), rule);
    add_streams(collector, 2, {10 * kMs, 0, 4});
    CHECK(collector.give(0, 0, 0));
    CHECK(collector.give(1, 0, 9 * kMs));
    const Step& step = collector.next(9'900'000); // one item takes 0.3 ms and the margin is 0.2 ms
    CHECK(dropped_words(step) == "0:0 late");
    CHECK(words(step.firing) == "1:0");
    CHECK(collector.inside(0) == 0);
  }
  SUBCASE("kept") {
    budget.drop_late = false;
    Controller rule(budget, 100, 10 * kMs);
    Collector collector(group_of(1, 10 * kMs), ServiceCurve(even_curve()), rule);
    add_streams(collector, 1, {10 * kMs, 0, 4});
    CHECK(collector.give(0, 0, 0));
    CHECK(words(collector.next(20 * kMs).firing) == "0:0");
  }
  SUBCASE("kept where one item alone takes longer than the budget, or all would be dropped") {
    budget.budget_ns = kMs / 3;
    Controller rule(budget, 100, 10 * kMs);
    Collector collector(group_of(1, kMs / 3), ServiceCurve(even_curve()), rule);
    CHECK(rule.least_budget_ns(collector.forecast()) > budget.budget_ns);
    add_streams(collector, 1, {10 * kMs, 0, 4});
    CHECK(collector.give(0, 0, 0));
    CHECK(words(collector.next(20 * kMs).firing) == "0:0");
  }
}

TEST_CASE("B9: an item that a preferred one went before is dropped by its own deadline, not by its place in the line") {
  Controller rule({10 * kMs, 0.8, true}, 100, 10 * kMs);
  Collector collector(group_of(2, 10 * kMs), ServiceCurve(even_curve()), rule);
  collector.stream_added(0, {10 * kMs, 90, 4}, 0);
  collector.stream_added(1, {10 * kMs, 0, 4}, 0);
  CHECK(collector.give(1, 0, 0));
  CHECK(collector.give(0, 0, 9 * kMs)); // both stand at 10 ms; this one may be done until 19 ms
  const Step& step = collector.next(9'900'000);
  CHECK(words(step.firing) == "0:0");
  CHECK(dropped_words(step) == "1:0 late");
}

TEST_CASE(
    "B11: what a failed stream has waiting is dropped, what it has under way ends with its firing, and its place is "
    "free then") {
  FreeRule rule(1);
  Collector collector(group_of(2, 10 * kMs), ServiceCurve(even_curve()), rule);
  add_streams(collector, 2, {kMs, 0, 4});
  CHECK(collector.give(0, 0, 0));
  const Firing* firing = collector.next(0).firing;
  CHECK(collector.give(0, 1, 1));
  CHECK(collector.give(1, 0, 2));
  CHECK(collector.give(0, 2, 3));
  collector.stream_failed(0);
  CHECK(dropped_words(collector.next(4)) == "0:1 failed 0:2 failed");
  CHECK(collector.inside(0) == 1);
  CHECK(collector.rows_waiting() == 1);
  collector.firing_ended(firing->slot, kMs);
  collector.stream_removed(0);
  collector.stream_added(0, {kMs, 0, 1}, kMs);
  CHECK(collector.give(0, 0, kMs));
  CHECK(words(collector.next(kMs).firing) == "1:0");
}

TEST_CASE("B12: under free the line is (media time, stream)") {
  FreeRule rule(8);
  Collector collector({3, 1, 0, Order::media_time}, ServiceCurve(even_curve()), rule);
  add_streams(collector, 3, {0, 0, kAllowanceFree});
  CHECK(collector.give(2, 0, 0, 1, 40));
  CHECK(collector.give(1, 0, 0, 1, 33));
  CHECK(collector.give(0, 0, 0, 1, 40));
  CHECK(collector.give(1, 1, 0, 1, 66));
  CHECK(words(collector.next(0).firing) == "1:0 0:0 2:0 1:1");
}

TEST_CASE("B14: an item of several rows takes as many places and is never split") {
  FreeRule rule(4);
  Collector collector(group_of(3, 10 * kMs), ServiceCurve(even_curve()), rule);
  add_streams(collector, 3, {kMs, 0, 4});
  CHECK(collector.give(0, 0, 0, 3));
  CHECK(collector.give(1, 0, 1, 2)); // does not fit beside it, and nothing of a later item goes before it
  CHECK(collector.give(2, 0, 2, 1));
  const Firing* firing = collector.next(2).firing;
  CHECK(words(firing) == "0:0");
  CHECK(firing->rows == 3);
  CHECK(firing->bucket_items == 4);
  collector.firing_ended(firing->slot, kMs);
  CHECK(words(collector.next(kMs).firing) == "1:0 2:0");
}

TEST_CASE("B14: an item of more rows than the rule asks for fires alone, in the bucket that it needs") {
  FreeRule rule(2);
  Collector collector(group_of(1, 10 * kMs), ServiceCurve(even_curve()), rule);
  add_streams(collector, 1, {kMs, 0, 4});
  CHECK(collector.give(0, 0, 0, 5));
  const Firing* firing = collector.next(0).firing;
  CHECK(firing->items.size() == 1);
  CHECK(firing->bucket_items == 8);
}

TEST_CASE("B16: a new budget is that of items that are given from then on") {
  FreeRule rule(8);
  Collector collector(group_of(2, 100 * kMs), ServiceCurve(even_curve()), rule);
  add_streams(collector, 2, {kMs, 0, 4});
  CHECK(collector.give(0, 0, 0));
  collector.set_budget(10 * kMs);
  CHECK(collector.give(0, 1, 1)); // it leaves after the stream's first item, although its deadline is earlier
  CHECK(collector.give(1, 0, 2));
  CHECK(words(collector.next(2).firing) == "1:0 0:0 0:1");
}

} // namespace
} // namespace millrace::batch
