// The promises of a link over a simulated network: named cases first, then histories that are drawn from seeds.
//
// MILLRACE_SEEDS=n tries n seeds instead of 500, from MILLRACE_SEED on, and prints what happened in them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/net/sim/simulation.h"
#include "tests/part.h"
#include "tests/seed.h"

namespace millrace::net::sim {
namespace {

// One reliable crossing from the dialler, under a clock that waits.
CrossingSetup crossing_of(uint16_t number = 0, Delivery delivery = Delivery::reliable, bool clock_waits = true) {
  CrossingSetup crossing;
  crossing.plan = make_plan(number, 1, 4, delivery, 1, 2000);
  crossing.clock_waits = clock_waits;
  return crossing;
}

// Two processes and their crossings, made before them.
struct Pair {
  explicit Pair(std::vector<CrossingSetup> crossings, int64_t latency_ns = kMillisecond, uint64_t seed = 1)
      : world(seed) {
    world.crossings = std::move(crossings);
    world.both_lines([&](Line& line) { line.latency_ns = latency_ns; });
  }
  void start() {
    listener = &world.start(false);
    dialler = &world.start(true);
  }
  void run(int64_t for_ns) {
    world.run_for(for_ns);
    REQUIRE_MESSAGE(!world.history.has_failed(), world.history.failure());
  }
  bool run_until(const std::function<bool()>& done, int64_t within_ns) {
    const bool is_done = world.run_until(done, within_ns);
    REQUIRE_MESSAGE(!world.history.has_failed(), world.history.failure());
    return is_done;
  }
  bool has_all() const {
    return dialler->has_sent_all() && listener->has_sent_all() && dialler->has_got_all() && listener->has_got_all();
  }
  bool drain(int64_t within_ns) {
    return run_until([&] { return has_all(); }, within_ns);
  }
  void check() {
    check_counts(world, *dialler, *listener);
    REQUIRE_MESSAGE(!world.history.has_failed(), world.history.failure());
  }
  uint64_t connection(uint32_t lane) const {
    uint64_t number = 0;
    REQUIRE(dialler->connection(lane, number));
    return number;
  }
  const Outgoing::Counts& sent(uint16_t crossing = 0) const { return dialler->session().outgoing(crossing)->counts(); }
  const Incoming::Counts& got(uint16_t crossing = 0) const { return listener->session().incoming(crossing)->counts(); }

  World world;
  Process* dialler = nullptr;
  Process* listener = nullptr;
};

int64_t time_of(const Process& process, EventType type) {
  for (const Process::Seen& seen : process.events())
    if (seen.event.type == type) return seen.at_ns;
  return -1;
}

bool was_refused(const Process& process, Fault fault) {
  return std::any_of(process.events().begin(), process.events().end(), [&](const Process::Seen& seen) {
    return seen.event.type == EventType::was_refused && seen.event.fault == fault;
  });
}

} // namespace

TEST_CASE("parcels arrive in order and once through two hundred cuts") {
  CrossingSetup crossing = crossing_of();
  crossing.ticks = 3000;
  Pair pair({crossing}, 5 * kMillisecond);
  pair.start();
  for (int i = 0; i < 200; ++i) {
    pair.run(50 * kMillisecond + i * kMillisecond);
    pair.world.cut_all(i % 2 == 0 ? 0 : 100 * kMillisecond);
  }
  CHECK(pair.drain(120 * kSecond));
  pair.check();
  CHECK(pair.got().arrived == 3001);
  CHECK(pair.sent().lost == 0);
  CHECK(pair.listener->session().pairings() == 1);
}

TEST_CASE("acknowledgement and credit grow, though states overtake what data connections say") {
  // The history fails if a credit or an acknowledgement falls, and if a session finds fault with the other one.
  for (uint64_t seed = 0; seed < 20; ++seed) {
    CrossingSetup crossing = crossing_of();
    crossing.ticks = 400;
    crossing.period_ns = kMillisecond;
    crossing.taking_most_ns = 6 * kMillisecond;
    Pair pair({crossing}, 2 * kMillisecond, seed);
    pair.world.both_lines([](Line& line) { line.jitter_ns = 20 * kMillisecond; });
    pair.start();
    for (int i = 0; i < 20; ++i) {
      pair.run(100 * kMillisecond);
      uint64_t number = 0;
      if (pair.dialler->connection(1, number)) pair.world.network.cut(number, 0, 0);
    }
    CHECK(pair.drain(60 * kSecond));
    pair.check();
    CHECK(pair.dialler->count(EventType::was_refused) == 0);
  }
}

TEST_CASE("after a cut at most depth parcels are sent again") {
  CrossingSetup crossing = crossing_of(0, Delivery::reliable, false);
  crossing.ticks = 100'000;
  crossing.value_bytes_most = 2000;
  Pair pair({crossing});
  pair.start();
  pair.run(kSecond);
  // Nothing of it is acknowledged, since nothing arrives.
  pair.world.network.block(kDialler, kListener, true);
  pair.run(200 * kMillisecond);
  const uint64_t given = pair.world.history.given_count();
  pair.run(200 * kMillisecond);
  CHECK(pair.world.history.given_count() == given);
  pair.world.cut_all(0);
  pair.world.network.block(kDialler, kListener, false);
  pair.listener->stop(1000, 100 * kMillisecond);
  REQUIRE(pair.run_until([&] { return pair.world.history.given_count() > given; }, 10 * kSecond));
  // HELLO, and what was sent again before the next parcel was taken.
  CHECK(pair.world.network.bytes_written(pair.connection(1), true) <= 4 * 2300 + 200);
  CHECK(pair.dialler->maker(0)->held_max() <= 5);
}

TEST_CASE("a live crossing leaves out the oldest tick that is not begun, a reliable one the new tick") {
  const auto lag_of = [](Delivery delivery) {
    CrossingSetup crossing = crossing_of(0, delivery, false);
    crossing.ticks = 2000;
    crossing.period_ns = 5 * kMillisecond;
    crossing.taking_least_ns = crossing.taking_most_ns = 50 * kMillisecond;
    Pair pair({crossing});
    pair.start();
    uint64_t lag_most = 0;
    pair.listener->taker(0)->on_parcel = [&](const Parcel& parcel) {
      if (!parcel.end) lag_most = std::max(lag_most, pair.dialler->maker(0)->index() - parcel.tick.index);
    };
    pair.run(5 * kSecond);
    CHECK(pair.sent().left_out[kCauseLink] > 500);
    CHECK(pair.dialler->maker(0)->held_max() <= 5);
    return lag_most;
  };
  CHECK(lag_of(Delivery::live) <= 6); // depth, and what was made while it was on its way
  CHECK(lag_of(Delivery::reliable) >= 30);
}

TEST_CASE("ticks that were left out are told with their cause and exact counts") {
  CrossingSetup crossing = crossing_of(0, Delivery::live, false);
  crossing.ticks = 2000;
  crossing.every = 3;
  crossing.taking_most_ns = 100 * kMillisecond;
  Pair pair({crossing});
  pair.start();
  pair.run(2 * kSecond);
  pair.world.both_lines([](Line& line) { line.blocked = true; });
  pair.run(6 * kSecond);
  pair.world.network.block(kDialler, kListener, false);
  pair.world.network.block(kListener, kDialler, false);
  CHECK(pair.drain(60 * kSecond));
  pair.check();
  CHECK(pair.sent().left_out == pair.got().left_out);
  CHECK(pair.got().left_out[kCauseNotDue] == 1333);
  CHECK(pair.got().left_out[kCauseLink] > 10);
  CHECK(pair.got().left_out[kCauseAway] > 90);
  CHECK(pair.got().left_out[kCauseLink] + pair.got().left_out[kCauseAway] + pair.got().arrived - 1 == 667);
}

TEST_CASE("an end arrives as a parcel, also at a process that begins after it") {
  CrossingSetup crossing = crossing_of();
  crossing.ticks = 5;
  Pair pair({crossing});
  pair.start();
  CHECK(pair.drain(kSecond));
  CHECK(pair.got().arrived == 6);
  pair.listener->kill(0);
  pair.run(kSecond);
  pair.listener = &pair.world.start(false);
  CHECK(pair.drain(10 * kSecond));
  CHECK(pair.got().arrived == 1);
  pair.check();
}

TEST_CASE("an end waits for credit as any other parcel, also when it is sent again") {
  CrossingSetup crossing = crossing_of();
  crossing.ticks = 3;
  crossing.taking_least_ns = crossing.taking_most_ns = 20 * kSecond;
  Pair pair({crossing});
  pair.start();
  REQUIRE(pair.run_until([&] { return pair.got().arrived == 4; }, kSecond));
  // Another process comes between, and the reader has taken nothing in when the first one is back.
  pair.dialler->stop(0, 8 * kSecond);
  Process& other = pair.world.start(true);
  REQUIRE(pair.run_until([&] { return other.count(EventType::met) == 1; }, 5 * kSecond));
  pair.run(kSecond);
  other.kill(0);
  REQUIRE(pair.run_until([&] { return pair.dialler->count(EventType::met) == 2; }, 8 * kSecond));
  pair.run(4 * kSecond);
  CHECK(pair.got().arrived == 4);
  REQUIRE(pair.run_until([&] { return pair.got().arrived == 5; }, 10 * kSecond));
  CHECK(pair.dialler->count(EventType::was_refused) <= 1);
}

TEST_CASE("a new process is recognised by its session, and what the old one had not acknowledged is lost") {
  CrossingSetup crossing = crossing_of();
  crossing.ticks = 500;
  Pair pair({crossing}, 20 * kMillisecond);
  pair.start();
  pair.run(kSecond);
  pair.listener->kill(0);
  pair.run(kSecond);
  pair.listener = &pair.world.start(false);
  CHECK(pair.drain(30 * kSecond));
  pair.check();
  CHECK(pair.dialler->count(EventType::met) == 2);
  CHECK(pair.dialler->count(EventType::back) == 0);
  CHECK(pair.sent().lost >= 1);
  CHECK(pair.sent().lost <= 4);
}

TEST_CASE("a second connection of one session replaces the first") {
  CrossingSetup crossing = crossing_of();
  crossing.ticks = 300;
  Pair pair({crossing});
  pair.start();
  pair.run(kSecond);
  // The listener does not learn that its connections are gone.
  for (const uint32_t lane : {0u, 1u}) pair.world.network.cut(pair.connection(lane), 0, INT64_MAX);
  REQUIRE(pair.run_until([&] { return pair.listener->count(EventType::back) == 1; }, kSecond));
  CHECK(pair.listener->count(EventType::suspect) == 0);
  CHECK(pair.drain(30 * kSecond));
  pair.check();
  CHECK(pair.listener->session().pairings() == 1);
  CHECK(pair.got().arrived == 301);
}

TEST_CASE("of two processes with one identity the later one is refused while the earlier is heard") {
  CrossingSetup crossing = crossing_of();
  crossing.ticks = 2000;
  Pair pair({crossing});
  pair.start();
  pair.run(kSecond);
  Process& later = pair.world.start(true);
  pair.run(5 * kSecond);
  CHECK(was_refused(later, Fault::running_already));
  CHECK(later.count(EventType::met) == 0);
  CHECK(pair.listener->session().pairings() == 1);
  CHECK(pair.dialler->count(EventType::suspect) == 0);
  // One that hangs is not heard.
  pair.dialler->stop(0, 60 * kSecond);
  REQUIRE(pair.run_until([&] { return later.count(EventType::met) == 1; }, 8 * kSecond));
  pair.run(10 * kMillisecond);
  CHECK(pair.listener->session().pairings() == 2);
}

TEST_CASE("a peer is suspect after 1.5 s and away after 3 s of silence on the control connection, to the nanosecond") {
  Pair pair({crossing_of()});
  pair.start();
  REQUIRE(pair.run_until([&] { return pair.dialler->count(EventType::met) == 1; }, kSecond));
  const int64_t met_ns = time_of(*pair.dialler, EventType::met);
  pair.world.both_lines([](Line& line) { line.blocked = true; });
  pair.run(4 * kSecond);
  CHECK(time_of(*pair.dialler, EventType::suspect) == met_ns + kSuspectAfterNs);
  CHECK(time_of(*pair.dialler, EventType::away) == met_ns + kAwayAfterNs);
}

TEST_CASE("parcels that still come do not keep a peer from being suspect") {
  CrossingSetup crossing = crossing_of(0, Delivery::live, false);
  crossing.ticks = 2000;
  crossing.plan.depth = 64;
  Pair pair({crossing});
  pair.start();
  pair.run(kSecond);
  pair.world.network.hold(pair.connection(0), 1700 * kMillisecond);
  const uint64_t arrived = pair.got().arrived;
  pair.run(600 * kMillisecond);
  CHECK(pair.got().arrived >= arrived + 55);
  pair.run(kSecond);
  CHECK(pair.listener->count(EventType::suspect) == 1);
  pair.run(kSecond);
  CHECK(pair.listener->count(EventType::there) == 1);
  CHECK(pair.listener->count(EventType::away) == 0);
}

TEST_CASE("a data connection that is saturated for ten minutes is never suspect") {
  CrossingSetup crossing = crossing_of();
  crossing.plan = make_plan(0, 1, 8, Delivery::reliable, 1, 200'000);
  crossing.large_per_mille = 1000;
  crossing.ticks = 1'000'000;
  constexpr uint64_t kBytesPerSecond = 100'000;
  Pair pair({crossing}, 10 * kMillisecond);
  pair.world.both_lines([&](Line& line) { line.bytes_per_second = kBytesPerSecond; });
  pair.start();
  pair.run(600 * kSecond);
  for (const Process* process : {pair.dialler, pair.listener}) {
    CHECK(process->count(EventType::suspect) == 0);
    CHECK(process->count(EventType::refused) == 0);
    CHECK(process->count(EventType::met) == 1);
  }
  CHECK(pair.listener->taker(0)->value_bytes() > 600 * kBytesPerSecond * 95 / 100);
}

TEST_CASE("a data connection in which bytes vanish is dialled again, and control and its peer stay") {
  for (const bool from_dialler : {true, false}) {
    CAPTURE(from_dialler);
    CrossingSetup crossing = crossing_of();
    crossing.from_dialler = from_dialler;
    crossing.ticks = 1000;
    Pair pair({crossing});
    pair.start();
    pair.run(kSecond);
    const uint64_t control = pair.connection(0), data = pair.connection(1);
    pair.world.network.vanish(data, from_dialler);
    const Process& sender = from_dialler ? *pair.dialler : *pair.listener;
    const auto is_cut = [&] { return sender.count(EventType::close) == 1; };
    CHECK(!pair.run_until(is_cut, kLaneSilentNs - kSecond));
    CHECK(pair.run_until(is_cut, 2 * kSecond));
    // The end of what the listener wrote vanishes too, so that the dialler hears of it by its pings alone.
    CHECK(pair.run_until([&] { return pair.dialler->count(EventType::dial) == 3; }, kLaneGoneNs + 2 * kPingEveryNs));
    CHECK(pair.drain(20 * kSecond));
    pair.check();
    CHECK(pair.connection(0) == control);
    CHECK(pair.connection(1) != data);
    for (const Process* process : {pair.dialler, pair.listener}) {
      CHECK(process->count(EventType::suspect) == 0);
      CHECK(process->count(EventType::met) == 1);
    }
  }
}

TEST_CASE("the offset of two clocks is within its error, though they drift and one direction is slower") {
  // The history compares each estimate with the clocks themselves.
  for (const int64_t drift_ppm : {-200, 0, 200}) {
    Pair pair({crossing_of()});
    pair.world.network.line(kDialler, kListener).latency_ns = 20'000;
    pair.world.network.line(kListener, kDialler) = {10'000, 40 * kMillisecond, 0, 256 * kKiB, 0, false};
    ProcessSetup dialler = pair.world.setup(true), listener = pair.world.setup(false);
    dialler.clock = {5 * kSecond, drift_ppm};
    listener.clock = {-1000 * kSecond, 0};
    pair.dialler = &pair.world.start(dialler);
    pair.listener = &pair.world.start(listener);
    for (int i = 0; i < 20; ++i) {
      pair.run(2 * kSecond + i * 37 * kMillisecond);
      pair.listener->stop(static_cast<uint64_t>(i), kSecond); // an answer waits
    }
    const Heartbeat::Offset offset = pair.dialler->session().offset(pair.dialler->now_ns());
    CHECK(offset.known);
    CHECK(offset.error_ns < 25 * kMillisecond);
  }
}

TEST_CASE("an answer that waited long makes the offset's error larger by the drift of that time") {
  Heartbeat heartbeat;
  // 0.3 ms there and back, and a second between them, in which the peer's clock gains 0.4 ms.
  constexpr int64_t kWayNs = 300'000, kGainNs = 400'000;
  heartbeat.answered({0, kWayNs, kWayNs + kSecond + kGainNs}, kSecond + 2 * kWayNs);
  const Heartbeat::Offset offset = heartbeat.offset(kSecond + 2 * kWayNs);
  REQUIRE(offset.known);
  CHECK(std::abs(offset.offset_ns - kGainNs) <= offset.error_ns);
  CHECK(offset.error_ns < 2 * kWayNs);
}

TEST_CASE("a node that leaves takes nothing more, and both sides have all that was taken") {
  for (const bool dialler_leaves : {true, false}) {
    CrossingSetup there = crossing_of(), back = crossing_of(1);
    there.ticks = back.ticks = 100'000;
    back.from_dialler = false;
    Pair pair({there, back}, 30 * kMillisecond);
    pair.start();
    pair.run(kSecond);
    (dialler_leaves ? pair.dialler : pair.listener)->leave();
    REQUIRE(pair.run_until([&] { return pair.dialler->is_drained() && pair.listener->is_drained(); }, kSecond));
    for (const uint16_t crossing : {uint16_t{0}, uint16_t{1}}) {
      const History::Progress progress = pair.world.history.progress({pair.dialler->session().pairing(), crossing});
      CHECK(progress.given == progress.arrived);
      CHECK(progress.given == progress.acknowledged);
      CHECK(progress.given > 10);
    }
    const uint64_t given = pair.world.history.given_count();
    pair.run(kSecond);
    CHECK(pair.world.history.given_count() == given);
    CHECK(pair.world.network.connections().empty());
  }
}

TEST_CASE("both sides learn that a link is over, wherever its last words are cut") {
  for (int64_t cut_us = 0; cut_us < 130'000; cut_us += 700) {
    CrossingSetup there = crossing_of(), back = crossing_of(1);
    there.ticks = back.ticks = 100'000;
    back.from_dialler = false;
    Pair pair({there, back}, 20 * kMillisecond);
    pair.start();
    pair.run(500 * kMillisecond);
    (cut_us % 1400 == 0 ? pair.dialler : pair.listener)->leave();
    pair.run(cut_us * 1000);
    pair.world.cut_all(0);
    REQUIRE(pair.run_until([&] { return pair.dialler->is_drained() && pair.listener->is_drained(); }, 5 * kSecond));
  }
}

TEST_CASE("a reader at one percent of the speed holds up no other crossing of its connection") {
  const auto rate = [](bool with_slow_one) {
    CrossingSetup fast = crossing_of(), slow = crossing_of(1);
    fast.ticks = slow.ticks = 1'000'000;
    slow.taking_least_ns = slow.taking_most_ns = kSecond;
    std::vector<CrossingSetup> crossings = {fast};
    if (with_slow_one) crossings.push_back(slow);
    Pair pair(crossings);
    pair.start();
    pair.run(60 * kSecond);
    if (with_slow_one) {
      CHECK(pair.got(1).arrived < 70);
      CHECK(pair.dialler->maker(1)->held_max() <= 5);
    }
    return pair.got().arrived;
  };
  const uint64_t alone = rate(false), beside = rate(true);
  CHECK(alone > 5900);
  CHECK(beside * 100 >= alone * 95);
}

TEST_CASE("a media time that has passed is told although there is no credit") {
  CrossingSetup crossing = crossing_of(0, Delivery::live, false);
  crossing.ticks = 100'000;
  crossing.taking_least_ns = crossing.taking_most_ns = 3600 * kSecond;
  Pair pair({crossing});
  pair.start();
  pair.run(10 * kSecond);
  CHECK(pair.got().arrived == 4); // depth
  const auto passed_ns = [&] { return pair.world.history.progress({pair.listener->session().pairing(), 0}).passed_ns; };
  CHECK(passed_ns() > 9900 * kMillisecond);
  pair.run(5 * kSecond);
  CHECK(passed_ns() > 14'900 * kMillisecond);
}

TEST_CASE("two nodes speak the latest version that both know, and none if there is none") {
  struct Case {
    uint16_t least, most, chosen;
  };
  for (const Case& versions : {Case{1, 1, 0}, Case{1, 3, 3}, Case{2, 3, 3}, Case{4, 9, 5}, Case{6, 9, 0}}) {
    CAPTURE(versions.most);
    Pair pair({crossing_of()});
    ProcessSetup dialler = pair.world.setup(true), listener = pair.world.setup(false);
    dialler.session.self.version_least = versions.least;
    dialler.session.self.version_most = versions.most;
    listener.session.self.version_least = 2;
    listener.session.self.version_most = 5;
    pair.dialler = &pair.world.start(dialler);
    pair.listener = &pair.world.start(listener);
    pair.run(kSecond);
    CHECK(pair.dialler->session().version() == versions.chosen);
    CHECK(pair.listener->session().version() == versions.chosen);
    CHECK(was_refused(*pair.dialler, Fault::version) == (versions.chosen == 0));
    CHECK((pair.got().arrived > 0) == (versions.chosen != 0));
  }
}

TEST_CASE("an unknown feature is ignored if it is optional, and refused if it is mandatory") {
  for (const bool is_mandatory : {false, true})
    for (const bool of_dialler : {false, true}) {
      Pair pair({crossing_of()});
      ProcessSetup dialler = pair.world.setup(true), listener = pair.world.setup(false);
      dialler.session.self.features = listener.session.self.features = 3;
      Self& newer = of_dialler ? dialler.session.self : listener.session.self;
      newer.features = 7;
      if (is_mandatory) newer.mandatory = 4;
      pair.dialler = &pair.world.start(dialler);
      pair.listener = &pair.world.start(listener);
      pair.run(kSecond);
      CHECK(was_refused(*pair.dialler, Fault::feature) == is_mandatory);
      if (!is_mandatory) CHECK(pair.dialler->session().features() == 3);
      if (!is_mandatory) CHECK(pair.listener->session().features() == 3);
    }
}

TEST_CASE("a HELLO that comes late from the same process does not end its pairing") {
  CrossingSetup crossing = crossing_of();
  crossing.ticks = 1000;
  Pair pair({crossing});
  pair.start();
  pair.listener->stop(0, 5500 * kMillisecond);
  REQUIRE(pair.run_until([&] { return !pair.world.network.connections().empty(); }, kSecond));
  // The dialler gives the first connection up after 5 s. Its HELLO comes when the second one is in use.
  pair.world.network.hold(0, 8 * kSecond);
  pair.run(7 * kSecond);
  CHECK(pair.got().arrived > 50);
  CHECK(pair.drain(60 * kSecond));
  pair.check();
  CHECK(pair.listener->session().pairings() == 1);
  CHECK(pair.sent().lost == 0);
}

TEST_CASE("a HELLO that comes late from a process that has died does not end the pairing of the next one") {
  CrossingSetup crossing = crossing_of();
  crossing.ticks = 1000;
  Pair pair({crossing});
  pair.start();
  REQUIRE(pair.run_until([&] { return !pair.world.network.connections().empty(); }, kSecond));
  pair.world.network.hold(0, 4 * kSecond);
  pair.run(kSecond);
  pair.dialler->kill(0);
  pair.dialler = &pair.world.start(true);
  pair.run(2900 * kMillisecond);
  // The listener alone learns of this cut, so it has no connection when the old HELLO comes.
  pair.world.network.cut(pair.connection(0), INT64_MAX, 0);
  CHECK(pair.drain(60 * kSecond));
  pair.check();
  CHECK(pair.listener->session().pairings() == 1);
  CHECK(pair.sent().lost == 0);
}

TEST_CASE("a connection that was refused has room for all that the peer still says") {
  World world(1);
  Session session(world.setup(true).session);
  session.on_time(0);
  session.dialled(0, true, 0);
  std::fill_n(session.room(0).begin(), kInboxBytes, std::byte{0x5A});
  session.received(0, kInboxBytes, 0);
  for (int i = 0; i < 3; ++i) {
    REQUIRE(session.is_connected(0)); // REFUSE is still to be written
    REQUIRE(!session.room(0).empty());
    session.received(0, session.room(0).size(), 0);
  }
}

TEST_CASE("the control connection may be cut while parcels flow, and they go on") {
  CrossingSetup crossing = crossing_of();
  crossing.ticks = 1000;
  crossing.plan.depth = 64;
  Pair pair({crossing});
  pair.start();
  pair.run(kSecond);
  const uint64_t data = pair.connection(1);
  for (int i = 0; i < 10; ++i) {
    pair.world.network.cut(pair.connection(0), 0, i % 2 == 0 ? 0 : INT64_MAX);
    pair.run(300 * kMillisecond);
  }
  CHECK(pair.connection(1) == data);
  CHECK(pair.drain(60 * kSecond));
  pair.check();
  CHECK(pair.got().arrived == 1001);
}

TEST_CASE("owners that say anew what still holds after each cut hear each other's last word") {
  CrossingSetup crossing = crossing_of();
  crossing.ticks = 1000;
  Pair pair({crossing}, 5 * kMillisecond);
  pair.world.both_lines([](Line& line) { line.bytes_per_second = 2'000'000; });
  pair.start();
  // A plan of half a megabyte, which takes 0.25 s, and the word that it was heard.
  const std::string plan(500'000, 'p');
  uint64_t plans = 0, answers = 0;
  pair.dialler->on_event = [&](const Event& event) {
    if (event.type == EventType::met || event.type == EventType::back) CHECK(pair.dialler->say(plan));
  };
  pair.dialler->on_message = [&](const std::string& text) { answers += text == "heard" ? 1 : 0; };
  pair.listener->on_message = [&](const std::string& text) {
    CHECK(text == plan);
    ++plans;
    CHECK(pair.listener->say("heard"));
  };
  for (int i = 0; i < 10; ++i) {
    pair.run(30 * kMillisecond + i * 60 * kMillisecond);
    pair.world.cut_all(i % 2 == 0 ? 0 : 100 * kMillisecond);
  }
  CHECK(plans < 10);
  CHECK(pair.drain(60 * kSecond));
  CHECK(pair.run_until([&] { return answers > 0 && answers == plans; }, kSecond));
  pair.check();
  for (const Process* process : {pair.dialler, pair.listener}) CHECK(process->count(EventType::suspect) == 0);
}

TEST_CASE("a message of 4 MiB on a slow line holds up neither pings nor the data connection") {
  CrossingSetup crossing = crossing_of(0, Delivery::reliable, false);
  crossing.ticks = 1000;
  Pair pair({crossing});
  // 8 s for the message. What the line's buffer holds is all that a ping waits for: 0.13 s.
  pair.world.both_lines([](Line& line) {
    line.bytes_per_second = 500'000;
    line.buffer_bytes = 64 * kKiB;
  });
  pair.start();
  pair.run(kSecond);
  size_t heard = 0;
  pair.listener->on_message = [&](const std::string& text) { heard += text.size(); };
  REQUIRE(pair.dialler->say(std::string(kMessageBytesMax, 'x')));
  REQUIRE(pair.run_until([&] { return heard == kMessageBytesMax; }, 20 * kSecond));
  CHECK(pair.dialler->session().offset(pair.dialler->now_ns()).round_trip_ns < 300 * kMillisecond);
  for (const Process* process : {pair.dialler, pair.listener}) CHECK(process->count(EventType::suspect) == 0);
  CHECK(pair.drain(20 * kSecond));
  pair.check();
}

TEST_CASE("a history that is run twice is the same") {
  Totals totals;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const Outcome first = simulate(seed, totals), second = simulate(seed, totals);
    CHECK(first.hash == second.hash);
    CHECK(first.hash != simulate(seed + 100, totals).hash);
  }
}

TEST_CASE("histories that are drawn keep all promises of a link") {
  const char* const asked = std::getenv("MILLRACE_SEEDS");
  const uint64_t count =
      asked ? std::strtoull(asked, nullptr, 10) : static_cast<uint64_t>(millrace::test::part_of(500));
  Totals totals;
  for (uint64_t seed = random_seed(), last = seed + count; seed < last; ++seed) {
    const Outcome outcome = simulate(seed, totals);
    REQUIRE_MESSAGE(outcome.failure.empty(), "seed " << seed << ": " << outcome.failure << "again: MILLRACE_SEED="
                                                     << seed << " MILLRACE_SEEDS=1 test_net -tc='histories*'");
  }
  if (asked) MESSAGE(describe(totals));
  CHECK(totals.histories == count);
}

// ---- the checker itself --------------------------------------------------------------------------------------------

namespace {

Parcel parcel_of(uint64_t index) {
  Parcel parcel;
  parcel.tick.index = index;
  parcel.tick.media_time_ns = static_cast<int64_t>(index) + 1;
  parcel.previous = index == 0 ? kNoIndex : index - 1;
  return parcel;
}

// Three parcels of depth 4 were given, and none has arrived.
struct Told {
  Told() {
    history.promised(stream, 4);
    for (uint64_t i = 0; i < 3; ++i) tokens.push_back(history.given(stream, 4, parcel_of(i)));
    REQUIRE(!history.has_failed());
  }
  bool fails(const char* with) const { return history.failure().starts_with(with); }

  device::VirtualTime time;
  History history{time};
  History::Stream stream{7, 0};
  std::vector<uint64_t> tokens;
};

} // namespace

TEST_CASE("the checker finds loss, doubling, reordering and change") {
  Told lost, doubled, changed, invented;
  lost.history.arrived(lost.stream, parcel_of(1));
  CHECK(lost.fails("a parcel arrived that is not the next one"));
  doubled.history.arrived(doubled.stream, parcel_of(0));
  doubled.history.arrived(doubled.stream, parcel_of(0));
  CHECK(doubled.fails("a parcel arrived that is not the next one"));
  Parcel other = parcel_of(0);
  other.tick.deadline_ns = 1;
  changed.history.arrived(changed.stream, other);
  CHECK(changed.fails("a parcel arrived that is not the next one"));
  for (uint64_t i = 0; i < 4; ++i) invented.history.arrived(invented.stream, parcel_of(i));
  CHECK(invented.fails("a parcel arrived that was not given"));
}

TEST_CASE("the checker finds a block that is let go too early, twice or out of order") {
  Told early, twice, order;
  early.history.let_go(early.tokens[0], true);
  CHECK(early.fails("a parcel was acknowledged that has not arrived"));
  twice.history.arrived(twice.stream, parcel_of(0));
  twice.history.let_go(twice.tokens[0], true);
  twice.history.let_go(twice.tokens[0], true);
  CHECK(twice.fails("a parcel was let go twice"));
  order.history.let_go(order.tokens[1], false);
  CHECK(order.fails("parcels were let go out of order"));
}

TEST_CASE("the checker finds too many parcels, a credit that falls, and a media time that passes too early") {
  Told many, falls, passes, deep;
  many.history.given(many.stream, 9, parcel_of(3));
  many.history.given(many.stream, 9, parcel_of(4));
  CHECK(many.fails("a parcel was taken without credit"));
  falls.history.promised(falls.stream, 3);
  CHECK(falls.fails("a credit has fallen"));
  passes.history.passed(passes.stream, 1);
  passes.history.arrived(passes.stream, parcel_of(0));
  CHECK(passes.fails("a parcel arrived after its media time had passed"));
  deep.history.given(deep.stream, 3, parcel_of(3));
  CHECK(deep.fails("more parcels are held than the depth"));
}

TEST_CASE("the checker finds a message that is lost, doubled, changed or invented, or that comes after a later one's") {
  constexpr uint64_t kHearer = 3;
  const auto failure_of = [&](auto steps) {
    device::VirtualTime time;
    History history(time);
    for (const uint64_t connection : {5u, 6u})
      for (const char* text : {"one", "two"}) history.said({connection, true}, text);
    const auto hear = [&](uint64_t connection, const char* text) { history.heard(kHearer, {connection, true}, text); };
    steps(hear);
    return history.failure().substr(0, history.failure().find(':'));
  };
  CHECK(failure_of([](auto hear) { hear(5, "one"), hear(5, "two"), hear(6, "one"); }).empty());
  CHECK(failure_of([](auto hear) { hear(5, "one"), hear(6, "one"), hear(6, "two"); }).empty());
  CHECK(failure_of([](auto hear) { hear(5, "two"); }) == "a message was heard that is not the next one");
  CHECK(failure_of([](auto hear) { hear(5, "one"), hear(5, "one"); }) ==
        "a message was heard that is not the next one");
  CHECK(failure_of([](auto hear) { hear(5, "onE"); }) == "a message was heard that is not the next one");
  CHECK(failure_of([](auto hear) { hear(5, "one"), hear(5, "two"), hear(5, "two"); }) ==
        "a message was heard that was not said");
  CHECK(failure_of([](auto hear) { hear(7, "one"); }) == "a message was heard that was not said");
  CHECK(failure_of([](auto hear) { hear(5, "one"), hear(6, "one"), hear(5, "two"); }) ==
        "a message was heard after those of another connection");
  device::VirtualTime time;
  History history(time);
  CHECK(history.is_heard({5, true}));
  history.said({5, true}, "one");
  CHECK(!history.is_heard({5, true}));
  CHECK(history.is_heard({5, false}));
}

TEST_CASE("the checker finds two living processes that begin anew") {
  Told told;
  for (const uint64_t session : {1u, 2u}) told.history.met(session, 7, session == 2);
  REQUIRE(!told.history.has_failed());
  for (const uint64_t session : {1u, 2u}) told.history.met(session, 8, session == 2);
  CHECK(told.fails("two living processes began anew"));
}

} // namespace millrace::net::sim
