// A known peer that keeps to the records and contradicts itself: it is refused with its fault, counts as away, and its
// process does not come back.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "net/session.h"
#include "tests/net/talk.h"

namespace millrace::net {
namespace {

using test::Buffer;
using test::kPairing;
using test::Talk;

// A tick, or the end, of the crossing that the session reads.
struct Tick {
  uint64_t number = 0, index = 0, previous = kNoIndex;
  uint32_t epoch = 0;
  uint64_t left_out = 0; // before it
  bool end = false;
};

Buffer record_of_tick(const Tick& said) {
  Parcel parcel;
  parcel.tick.index = said.index;
  parcel.tick.epoch = said.epoch;
  parcel.tick.media_time_ns = test::media_of(said.index);
  parcel.tick.trace_id = test::mixed(said.index);
  parcel.previous = said.previous;
  if (said.left_out > 0) parcel.gaps[parcel.gap_count++] = {kCauseLink, said.left_out};
  parcel.value_count = said.end ? 0 : 1;
  const RecordType type = said.end ? RecordType::end : RecordType::tick;
  return test::record_of({type, 0, 1, 0, said.number, 0}, test::body_of([&](ByteWriter& writer) {
                           write_tick(parcel, writer);
                           if (said.end) return;
                           writer.put(kValueEmpty);
                           writer.put(uint8_t{0});
                         }));
}

Buffer open_with_credit(uint64_t credit) {
  return test::record_of(RecordType::open, test::body_of([&](ByteWriter& writer) {
                           Open open;
                           open.name = "main/0>gpu";
                           open.depth = 4;
                           open.delivery = Delivery::reliable;
                           open.value_count = 1;
                           open.format_hashes[0] = hash_of(test::plan_of(0, 1, 4, test::exact(10)).formats[0]);
                           open.credit = credit;
                           write_open(open, writer);
                         }));
}

// The session has sent a parcel, whose bytes have all come, as the peer says in each of its answers for so long.
void acknowledge_nothing(Talk& talk, int64_t for_ns) {
  talk.feed(1, open_with_credit(4));
  REQUIRE(talk.giver.make());
  talk.hear(1);
  for (int64_t asked_ns = 0; asked_ns <= for_ns; asked_ns += kPingEveryNs) {
    if (!talk.session.is_up(0)) return;
    talk.feed(0, talk.pong(talk.now, talk.connection, talk.written));
    talk.now += kPingEveryNs;
  }
}

// The peer pings, and is pinged so often, and gives no answer.
void answer_no_ping(Talk& talk, uint32_t pings) {
  for (uint32_t n = 0; n < pings && talk.session.is_up(0); ++n) {
    talk.now += kPingEveryNs;
    const std::vector<RecordType> said = talk.hear(0);
    CHECK(std::count(said.begin(), said.end(), RecordType::ping) == 1);
    talk.feed(0, talk.ping());
  }
}

struct Contradiction {
  const char* what;
  Fault fault;
  std::function<void(Talk&)> say;
};

const std::vector<Contradiction> kContradictions{
    {"a tick after the end", Fault::after_end,
     [](Talk& talk) {
       talk.feed(1, record_of_tick({.end = true}));
       talk.feed(1, record_of_tick({.number = 1, .index = 1, .previous = 0}));
     }},
    {"two ends", Fault::after_end,
     [](Talk& talk) {
       talk.feed(1, record_of_tick({.end = true}));
       talk.feed(1, record_of_tick({.number = 1, .index = 1, .previous = 0, .end = true}));
     }},
    {"a gap on a clock that leaves nothing out", Fault::leaves_out,
     [](Talk& talk) {
       talk.feed(1, record_of_tick({}));
       talk.feed(1, record_of_tick({.number = 1, .index = 3, .previous = 0, .left_out = 2}));
     }},
    {"a gap before its first tick", Fault::leaves_out,
     [](Talk& talk) { talk.feed(1, record_of_tick({.index = 2, .left_out = 2})); }},
    {"a first tick that is not the first", Fault::leaves_out,
     [](Talk& talk) { talk.feed(1, record_of_tick({.index = 2, .previous = 1})); }},
    {"an epoch that no restart began", Fault::epoch,
     [](Talk& talk) {
       talk.feed(1, record_of_tick({}));
       talk.feed(1, record_of_tick({.number = 1, .index = 1, .previous = 0, .epoch = 1}));
     }},
    {"no credit", Fault::no_credit, [](Talk& talk) { talk.feed(1, open_with_credit(0)); }},
    {"less credit than it has places", Fault::no_credit, [](Talk& talk) { talk.feed(1, open_with_credit(3)); }},
    {"no STATE", Fault::no_state, [](Talk& talk) { acknowledge_nothing(talk, kStateSilentNs); }},
    {"no PONG", Fault::no_pong, [](Talk& talk) { answer_no_ping(talk, kPingsUnansweredMax + 1); }},
    {"a parcel that is not the next one", Fault::number,
     [](Talk& talk) { talk.feed(1, record_of_tick({.number = 1, .index = 1, .previous = 0})); }},
    {"a parcel beyond the credit", Fault::credit,
     [](Talk& talk) {
       for (uint64_t n = 0; n < 5; ++n)
         talk.feed(1, record_of_tick({.number = n, .index = n, .previous = n == 0 ? kNoIndex : n - 1}));
     }},
};

// The fault that the session finds in a process of the peer that dials, or answers, on control; none if it takes it.
Fault meet(Talk& talk, uint64_t process) {
  Hello hello = talk.hello(0, talk.options.dials ? kPairing + process : 0);
  hello.session = process;
  talk.fault = Fault::none;
  if (!talk.options.dials) {
    const Fault fault = talk.session.accept(hello, true, talk.now);
    if (fault != Fault::none) return fault;
    talk.hear(0);
    talk.feed(0, talk.ping());
    return Fault::none;
  }
  talk.now += kRedialMaxNs; // each refusal doubles the wait, up to this
  talk.session.on_time(talk.now);
  talk.events();
  talk.session.dialled(0, true, talk.now);
  talk.hear(0);
  talk.welcome(0, hello);
  return talk.fault;
}

} // namespace

TEST_CASE(
    "a known peer that contradicts itself is refused with its fault, is away, and comes back as another process") {
  for (const bool dials : {false, true})
    for (const Contradiction& one : kContradictions) {
      CAPTURE(dials);
      CAPTURE(one.what);
      Talk talk(dials, {}, true);
      talk.come_up(true);
      one.say(talk);
      const std::vector<EventType> events = talk.events();
      CHECK(std::count(events.begin(), events.end(), EventType::refused) == 1);
      CHECK(std::count(events.begin(), events.end(), EventType::away) == 1);
      CHECK(talk.fault == one.fault);
      CHECK(talk.session.presence() == Presence::away);
      for (const uint32_t lane : {0u, 1u}) { // the peer is told why on both connections
        REQUIRE(talk.hear(lane).back() == RecordType::refuse);
        Farewell said;
        REQUIRE(read_farewell(talk.last, said) == Fault::none);
        CHECK(said.code == one.fault);
        CHECK(!talk.session.is_connected(lane));
      }
      talk.events();
      for (int again = 0; again < 3; ++again) {
        const Fault fault = meet(talk, 88);
        const bool is_told = talk.told(EventType::refused) || !dials;
        CHECK(is_told);
        CHECK((dials ? talk.fault : fault) == one.fault);
        CHECK(!talk.session.is_up(0));
        if (dials) talk.hear(0), talk.events(); // the refusal is written, and the connection closed
      }
      CHECK(meet(talk, 89) == Fault::none);
      CHECK(talk.told(EventType::met));
      CHECK(talk.session.is_up(0));
      CHECK(talk.session.presence() == Presence::there);
    }
}

TEST_CASE("a peer that is slow is not taken for one that contradicts itself") {
  SUBCASE("it acknowledges late, but before the next answers") {
    Talk talk(true, {}, true);
    talk.come_up(true);
    talk.feed(1, open_with_credit(4));
    for (uint64_t n = 0; n < 20; ++n) {
      REQUIRE(talk.giver.make());
      talk.hear(1);
      for (int64_t asked_ns = 0; asked_ns < kStateSilentNs; asked_ns += kPingEveryNs) {
        talk.feed(0, talk.pong(talk.now, talk.connection, talk.written));
        talk.now += kPingEveryNs;
      }
      talk.feed(0, test::record_of(RecordType::state, test::body_of([&](ByteWriter& writer) {
                                     write_state_entry({0, false, {n + 1, n + 5}, {}}, writer);
                                   })));
    }
    CHECK(!talk.told(EventType::refused));
    CHECK(talk.giver.given() == 20);
  }
  SUBCASE("it takes in nothing for an hour") {
    Talk talk(true, {}, true);
    talk.come_up(true);
    talk.feed(1, open_with_credit(4));
    for (int n = 0; n < 6; ++n) REQUIRE(talk.giver.make());
    talk.hear(1);
    talk.feed(0, test::record_of(RecordType::state, test::body_of([](ByteWriter& writer) {
                                   write_state_entry({0, false, {4, 4}, {}}, writer);
                                 })));
    for (int pong = 0; pong < 7200; ++pong) {
      talk.now += kPingEveryNs;
      talk.hear(0);
      talk.feed(0, talk.pong(talk.now, talk.connection, talk.written));
    }
    CHECK(!talk.told(EventType::refused));
    CHECK(talk.session.is_up(1));
  }
  SUBCASE("it answers a ping now and then") {
    Talk talk(false, {}, true);
    talk.come_up();
    for (int round = 0; round < 5; ++round) {
      answer_no_ping(talk, kPingsUnansweredMax);
      talk.feed(0, talk.pong(talk.now, 0, 0));
    }
    CHECK(!talk.told(EventType::refused));
    CHECK(talk.session.is_up(0));
  }
}

TEST_CASE("under realtime rules a clock leaves ticks out, and a reader that another process filled has no credit") {
  Talk talk(true);
  talk.come_up(true);
  talk.feed(1, open_with_credit(0));
  talk.feed(1, record_of_tick({.index = 2, .left_out = 2}));
  talk.feed(1, record_of_tick({.number = 1, .index = 6, .previous = 2, .epoch = 1, .left_out = 3}));
  CHECK(!talk.told(EventType::refused));
  CHECK(talk.session.is_up(1));
}

TEST_CASE("bytes that a line has damaged are no contradiction: the peer goes on where it was") {
  Talk talk(true);
  talk.come_up(true);
  Buffer damaged = record_of_tick({});
  damaged.back() ^= std::byte{1};
  talk.feed(1, damaged);
  CHECK(talk.fault == Fault::none);
  CHECK(talk.told(EventType::refused));
  CHECK(talk.fault == Fault::body_checksum);
  CHECK(talk.session.is_up(0));
  CHECK(talk.session.presence() == Presence::there);
}

} // namespace millrace::net
