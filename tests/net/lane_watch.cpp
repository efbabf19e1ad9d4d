// Bytes that vanish in a data connection: found within the limit, and never where the line or the reader is slow.
#include "net/lane_watch.h"

#include <doctest/doctest.h>

#include "tests/net/two_nodes.h"

namespace millrace::net {
namespace {

using test::Contents;
using test::TwoNodes;

// The 7th connection, over which 100 bytes were written at 1 s.
LaneWatch watch_of_100() {
  LaneWatch watch;
  watch.begin(7);
  watch.sent(100, kSecond);
  return watch;
}

// PINGs are answered at once, and the answers say this from `from_ns` on. Returns the time of the cut, or that of the
// last answer.
int64_t cut_ns(LaneWatch& watch, const LaneCount& count, int64_t from_ns, int64_t until_ns) {
  int64_t now = from_ns;
  for (; now < until_ns; now += kPingEveryNs)
    if (watch.heard(count, now, now) == Fault::vanished) break;
  return now;
}

// Parcels of 1,000 bytes from the side that dials, and a connection that is up.
struct Link {
  explicit Link(uint32_t depth = 4, uint32_t from = 0) {
    Contents contents;
    contents.bytes_max = 1000;
    contents.is_exact = true;
    nodes.add(from, 1, depth, contents);
    nodes.begin(0);
    nodes.begin(1);
    nodes.run(kSecond);
    REQUIRE(nodes.session(from).is_up(1));
  }
  uint32_t cuts() const { return nodes.count(0, EventType::close) + nodes.count(1, EventType::close); }

  TwoNodes nodes{{}};
};

} // namespace

TEST_CASE("bytes that do not come have vanished after 10 s in which no others came") {
  LaneWatch watch = watch_of_100();
  CHECK(cut_ns(watch, {7, 60}, 2 * kSecond, 60 * kSecond) == 2 * kSecond + kLaneSilentNs);
  LaneWatch none = watch_of_100();
  CHECK(cut_ns(none, {7, 0}, 2 * kSecond, 60 * kSecond) == kSecond + kLaneSilentNs);
}

TEST_CASE("a connection all of whose bytes have come is never cut, and one that was idle has its time from the write") {
  LaneWatch watch = watch_of_100();
  CHECK(cut_ns(watch, {7, 100}, 2 * kSecond, 3600 * kSecond) == 3600 * kSecond);
  watch.sent(1, 3600 * kSecond);
  CHECK(cut_ns(watch, {7, 100}, 3600 * kSecond, 3700 * kSecond) == 3600 * kSecond + kLaneSilentNs);
}

TEST_CASE("a count that moves by a byte within 10 s keeps the connection") {
  LaneWatch watch = watch_of_100();
  int64_t now = kSecond;
  for (uint64_t bytes = 1; bytes <= 100; ++bytes) {
    CHECK(cut_ns(watch, {7, bytes}, now, now + kLaneSilentNs) == now + kLaneSilentNs);
    now += kLaneSilentNs;
  }
}

TEST_CASE("an answer that waited for long says what was, and not what is") {
  LaneWatch watch = watch_of_100();
  for (int64_t asked = 2 * kSecond; asked < kSecond + kLaneSilentNs; asked += kPingEveryNs)
    CHECK(watch.heard({7, 60}, asked, 60 * kSecond) == Fault::none);
  CHECK(watch.heard({7, 60}, 60 * kSecond + kLaneSilentNs, 60 * kSecond + kLaneSilentNs) == Fault::vanished);
}

TEST_CASE("the peer chooses the time of a PING, and no time that it can choose cuts a connection sooner") {
  LaneWatch watch = watch_of_100();
  for (const int64_t asked : {INT64_MIN, int64_t{0}, INT64_MAX})
    CHECK(watch.heard({7, 0}, asked, kSecond + kLaneSilentNs - 1) == Fault::none);
  CHECK(watch.heard({7, 0}, INT64_MAX, kSecond + kLaneSilentNs) == Fault::vanished);
}

TEST_CASE("a count of another connection is not taken for one of this") {
  LaneWatch watch = watch_of_100();
  CHECK(watch.heard({6, 1'000'000}, kSecond, kSecond) == Fault::none);
  CHECK(watch.heard({7, 100}, kSecond, kSecond) == Fault::none);
  CHECK(watch.heard({6, 5}, kSecond, kSecond) == Fault::none);
  CHECK(cut_ns(watch, {7, 100}, kSecond, 60 * kSecond) == 60 * kSecond);
}

TEST_CASE("a connection that the peer no longer has is let go after a second") {
  LaneWatch watch = watch_of_100();
  CHECK(watch.heard({7, 100}, kSecond, kSecond) == Fault::none);
  CHECK(cut_ns(watch, {0, 0}, 2 * kSecond, 60 * kSecond) == 2 * kSecond + kLaneGoneNs);
}

TEST_CASE("more bytes than were written, or fewer than before, cannot be") {
  LaneWatch watch = watch_of_100();
  CHECK(watch.heard({7, 101}, kSecond, kSecond) == Fault::received);
  CHECK(watch.heard({7, 50}, kSecond, kSecond) == Fault::none);
  CHECK(watch.heard({7, 49}, kSecond, kSecond) == Fault::state_falls);
  watch.begin(8);
  CHECK(watch.count().connection == 8);
  CHECK(watch.count().bytes == 0);
  CHECK(watch.heard({8, 1}, kSecond, kSecond) == Fault::received);
}

// ---- in a link -----------------------------------------------------------------------------------------------------

TEST_CASE("a data connection whose tail vanishes is cut alone within the limit, and all arrives") {
  for (const uint32_t from : {0u, 1u}) {
    CAPTURE(from);
    Link link(4, from);
    TwoNodes& nodes = link.nodes;
    for (int n = 0; n < 20; ++n) nodes.way(0).giver->make();
    nodes.send(from, 1, SIZE_MAX);
    REQUIRE(nodes.connection(from, 1)->pipes[from].size() > 4000);
    nodes.connection(from, 1)->pipes[from].resize(500);
    nodes.run(kLaneSilentNs - kSecond);
    REQUIRE(nodes.way(0).taker->arrived() == 0);
    REQUIRE(link.cuts() == 0);
    nodes.run(2 * kSecond);
    CHECK(nodes.way(0).taker->arrived() == 20);
    CHECK(nodes.is_all_there());
    CHECK(nodes.last_refused(from) == Fault::vanished);
    CHECK(nodes.count(from, EventType::close) == 1);
    CHECK(nodes.count(1 - from, EventType::refused) == 0);
    for (const uint32_t side : {0u, 1u}) {
      CHECK(nodes.count(side, EventType::suspect) == 0);
      CHECK(nodes.session(side).pairings() == 1);
    }
    CHECK(nodes.way(0).giver->lost() == 0);
    CHECK(nodes.broken() == nullptr);
  }
}

TEST_CASE("a data connection whose opening vanishes is cut, and all arrives") {
  Link link(4, 0);
  TwoNodes& nodes = link.nodes;
  nodes.cut_both(1);
  for (int n = 0; n < 3; ++n) nodes.way(0).giver->make();
  nodes.pass(kMillisecond);
  nodes.send(0, 1, SIZE_MAX); // HELLO
  nodes.listen_to_all();
  nodes.send(1, 1, SIZE_MAX); // WELCOME, OPEN
  std::vector<std::byte>& pipe = nodes.connection(1, 1)->pipes[1];
  pipe.resize(kHeadBytes + kHelloBytes + kCrcBytes);
  nodes.run(kLaneSilentNs - kSecond);
  REQUIRE(nodes.session(0).is_up(1));
  REQUIRE(nodes.way(0).taker->arrived() == 0);
  nodes.run(2 * kSecond);
  CHECK(nodes.last_refused(1) == Fault::vanished);
  CHECK(nodes.is_all_there());
  CHECK(nodes.broken() == nullptr);
}

TEST_CASE("a connection whose end vanished is let go by the side that still has it, and dialled again") {
  Link link(4, 1); // the side that dials has nothing to write
  TwoNodes& nodes = link.nodes;
  auto* const connection = nodes.connection(1, 1);
  nodes.cut(1, 1);
  connection->is_open[1] = true; // nobody tells the other end
  for (int n = 0; n < 3; ++n) nodes.way(0).giver->make();
  nodes.run(kLaneGoneNs - kPingEveryNs);
  REQUIRE(nodes.session(0).is_up(1));
  REQUIRE(!nodes.session(1).is_up(1));
  nodes.run(2 * kSecond);
  CHECK(nodes.last_refused(0) == Fault::vanished);
  CHECK(nodes.is_all_there());
  CHECK(nodes.broken() == nullptr);
}

TEST_CASE("a slow line, over which a few bytes come each second, is not cut") {
  Link link;
  TwoNodes& nodes = link.nodes;
  for (int n = 0; n < 2; ++n) nodes.way(0).giver->make();
  nodes.send(0, 1, SIZE_MAX);
  for (int second = 0; nodes.way(0).taker->arrived() < 2 && second < 1000; ++second) {
    nodes.deliver(1, 1, 5);
    nodes.pass(kSecond);
    for (const uint32_t side : {0u, 1u}) nodes.send(side, 0, SIZE_MAX);
    for (const uint32_t side : {0u, 1u}) nodes.deliver(side, 0, SIZE_MAX);
    for (const uint32_t side : {0u, 1u}) nodes.send(side, 0, SIZE_MAX);
    for (const uint32_t side : {0u, 1u}) nodes.deliver(side, 0, SIZE_MAX);
  }
  CHECK(nodes.now_ns() > 200 * kSecond);
  CHECK(nodes.way(0).taker->arrived() == 2);
  CHECK(link.cuts() == 0);
  CHECK(nodes.broken() == nullptr);
}

TEST_CASE("a reader that takes nothing in is not cut, however long") {
  Link link;
  TwoNodes& nodes = link.nodes;
  for (int n = 0; n < 20; ++n) nodes.way(0).giver->make();
  for (const int64_t end = nodes.now_ns() + 600 * kSecond; nodes.now_ns() < end;) {
    nodes.pass(100 * kMillisecond);
    nodes.settle();
  }
  CHECK(nodes.way(0).taker->arrived() == 4);
  CHECK(link.cuts() == 0);
  nodes.run(kSecond);
  CHECK(nodes.is_all_there());
}

TEST_CASE("the pings are all the timers that the watch needs") {
  Link link;
  TwoNodes& nodes = link.nodes;
  nodes.way(0).giver->make();
  nodes.send(0, 1, SIZE_MAX);
  nodes.connection(0, 1)->pipes[0].clear();
  const int64_t begun_ns = nodes.now_ns();
  for (int n = 0; n < 1000 && link.cuts() == 0; ++n) {
    nodes.settle();
    const int64_t next_ns =
        std::min(nodes.session(0).next_timer(nodes.now_ns()), nodes.session(1).next_timer(nodes.now_ns()));
    REQUIRE(next_ns <= nodes.now_ns() + kPingEveryNs);
    nodes.pass(std::max<int64_t>(1, next_ns - nodes.now_ns()));
  }
  CHECK(link.cuts() == 1);
  CHECK(nodes.now_ns() >= begun_ns + kLaneSilentNs);
  CHECK(nodes.now_ns() <= begun_ns + kLaneSilentNs + 2 * kPingEveryNs);
}

} // namespace millrace::net
