// Messages of a control connection: whole and in order or not at all, within their limits, and never before a PONG.
#include "net/messages.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/chance.h"
#include "tests/net/talk.h"
#include "tests/net/two_nodes.h"

namespace millrace::net {
namespace {

using test::Buffer;
using test::record_of;
using test::Talk;
using test::TwoNodes;

// Two sides that have met, without crossings.
struct Met {
  Met() {
    nodes.begin(0);
    nodes.begin(1);
    nodes.run(10 * kMillisecond);
    REQUIRE(nodes.count(0, EventType::met) == 1);
    REQUIRE(nodes.count(1, EventType::met) == 1);
  }
  void check() {
    CHECK(nodes.broken() == nullptr);
    CHECK(nodes.is_all_heard());
    for (const uint32_t side : {0u, 1u}) CHECK(nodes.count(side, EventType::refused) == 0);
  }
  TwoNodes nodes{TwoNodes::Options{}};
};

Buffer chunk(uint64_t number, uint32_t at, size_t bytes, bool is_last) {
  return record_of({RecordType::message, is_last ? kLastChunk : uint8_t{0}, 0, 0, number, at}, Buffer(bytes));
}
bool is_refused(Talk& talk, const Buffer& record) {
  talk.feed(0, record);
  return talk.told(EventType::refused);
}
size_t take_all(Talk& talk) {
  size_t count = 0;
  for (std::string text; talk.session.take_message(text);) ++count;
  return count;
}

} // namespace

TEST_CASE("a message of one byte, of 4 MiB, and of any size around whole chunks arrives as it was said") {
  for (const size_t bytes : {size_t{1}, size_t{2}, size_t{kMessageChunkBytes - 1}, size_t{kMessageChunkBytes},
                             size_t{kMessageChunkBytes + 1}, size_t{2 * kMessageChunkBytes}, size_t{100'000},
                             static_cast<size_t>(kMessageBytesMax)}) {
    CAPTURE(bytes);
    Met met;
    REQUIRE(met.nodes.say(0, bytes));
    met.nodes.settle(1000);
    CHECK(met.nodes.heard(1) == 1);
    met.check();
  }
}

TEST_CASE("a thousand messages each way arrive in order, each once") {
  Met met;
  Random random(5);
  for (int n = 0; n < 1000; ++n) {
    for (const uint32_t side : {0u, 1u}) REQUIRE(met.nodes.say(side, static_cast<size_t>(random.spread(1, 8000))));
    if (chance(random, 100)) met.nodes.exchange();
  }
  met.nodes.settle(3000);
  CHECK(met.nodes.heard(0) == 1000);
  CHECK(met.nodes.heard(1) == 1000);
  met.check();
}

TEST_CASE("messages that come a byte at a time are whole when their last byte is there") {
  Met met;
  for (const size_t bytes : {size_t{1}, size_t{kMessageChunkBytes + 300}, size_t{1}}) REQUIRE(met.nodes.say(1, bytes));
  while (met.nodes.exchange(1)) {
  }
  CHECK(met.nodes.heard(0) == 3);
  met.check();
}

TEST_CASE(
    "a cut at any place of a message loses it whole, and what waits after it, and the next connection begins anew") {
  constexpr size_t kHeads = kHeadBytes + kCrcBytes;
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{kHeads}, size_t{kHeads + 100}, kHeads + kMessageChunkBytes,
                             kHeads + kMessageChunkBytes + 50, 2 * kHeads + kMessageChunkBytes + 99}) {
    CAPTURE(bytes);
    Met met;
    REQUIRE(met.nodes.say(0, kMessageChunkBytes + 100));
    REQUIRE(met.nodes.say(0, 7));
    size_t went = 0;
    while (went < bytes) went += met.nodes.send(0, 0, bytes - went);
    met.nodes.deliver(1, 0, SIZE_MAX);
    met.nodes.cut_both(0);
    CHECK(!met.nodes.say(0, 1));
    met.nodes.run(kSecond);
    REQUIRE(met.nodes.count(0, EventType::back) == 1);
    CHECK(met.nodes.heard(1) == 0);
    REQUIRE(met.nodes.say(0, 9));
    REQUIRE(met.nodes.say(1, 9));
    met.nodes.settle();
    CHECK(met.nodes.heard(1) == 1);
    met.check();
  }
}

TEST_CASE("one end that learns late of a cut hears nothing of two connections as one message") {
  Met met;
  REQUIRE(met.nodes.say(1, 3 * kMessageChunkBytes));
  met.nodes.send(1, 0, SIZE_MAX);
  met.nodes.deliver(0, 0, SIZE_MAX);
  met.nodes.cut(0, 0); // the accepting side goes on writing to it
  met.nodes.send(1, 0, SIZE_MAX);
  met.nodes.run(kSecond);
  REQUIRE(met.nodes.count(1, EventType::back) == 1);
  REQUIRE(met.nodes.say(1, 2 * kMessageChunkBytes));
  met.nodes.settle();
  CHECK(met.nodes.heard(0) == 1);
  met.check();
}

TEST_CASE("a message is refused to its speaker if it is empty, too long or too much, or if nobody would hear it") {
  Talk talk(true);
  CHECK_MESSAGE(!talk.session.say("early"), "nobody was met");
  talk.dial(0);
  CHECK_MESSAGE(!talk.session.say("early"), "WELCOME has not come");
  talk.welcome(0, talk.hello(0, test::kPairing));
  CHECK(talk.session.say("now"));
  CHECK(!talk.session.say(""));
  CHECK(!talk.session.say(std::string(kMessageBytesMax + 1, 'x')));
  talk.session.cut(0, talk.now);
  CHECK_MESSAGE(!talk.session.say("late"), "the connection is gone");

  Talk full(false);
  full.come_up();
  for (int n = 0; n < 4; ++n) CHECK(full.session.say(std::string(kMessageBytesMax, 'x')));
  CHECK_MESSAGE(!full.session.say("x"), "16 MiB wait");
  Talk many(false);
  many.come_up();
  for (size_t n = 0; n < kMessagesWaitingMax; ++n) REQUIRE(many.session.say("x"));
  CHECK_MESSAGE(!many.session.say("x"), "as many wait as may");
  many.hear(0);
  CHECK_MESSAGE(many.session.say("x"), "one has gone");
}

TEST_CASE("messages are told once until all were taken, and stay whole beyond a cut until the next connection is up") {
  Talk talk(false);
  talk.come_up();
  talk.feed(0, chunk(0, 0, kMessageChunkBytes, false));
  CHECK_MESSAGE(!talk.told(EventType::message), "it is not whole");
  std::string text;
  CHECK(!talk.session.take_message(text));
  talk.feed(0, chunk(0, kMessageChunkBytes, 5, true));
  CHECK(talk.events() == std::vector{EventType::message});
  talk.feed(0, chunk(1, 0, 7, true));
  talk.feed(0, chunk(2, 0, 8, true));
  CHECK_MESSAGE(!talk.told(EventType::message), "it was told");
  REQUIRE(talk.session.take_message(text));
  CHECK(text == std::string(kMessageChunkBytes + 5, '\0'));
  talk.session.cut(0, talk.now);
  REQUIRE(talk.session.take_message(text));
  CHECK(text.size() == 7);
  REQUIRE(talk.session.accept(talk.hello(0, talk.pairing), true, talk.now) == Fault::none);
  talk.hear(0);
  talk.feed(0, talk.ping());
  REQUIRE(talk.told(EventType::back));
  CHECK_MESSAGE(!talk.session.take_message(text), "it is of a connection before");
  talk.feed(0, chunk(0, 0, 9, true));
  CHECK(talk.told(EventType::message));
  CHECK(take_all(talk) == 1);
}

TEST_CASE("a message that is followed by the end of its connection may be taken") {
  Talk talk(false);
  talk.come_up();
  Buffer both = chunk(0, 0, 9, true);
  const Buffer refusal = record_of(RecordType::refuse, test::some_farewell());
  both.insert(both.end(), refusal.begin(), refusal.end());
  talk.feed(0, both);
  CHECK(talk.events() == std::vector{EventType::message, EventType::was_refused, EventType::close});
  CHECK(take_all(talk) == 1);
}

TEST_CASE("a PONG, a STATE and a GOAWAY go before the chunks of a message, and wait for one at most") {
  Talk talk(false);
  talk.come_up(true);
  talk.hear(0);
  REQUIRE(talk.session.say(std::string(kMessageBytesMax, 'x')));
  CHECK(talk.session.next_timer(talk.now) == talk.now);
  CHECK(talk.hear(0) == std::vector{RecordType::message});
  talk.feed(0, talk.ping());
  CHECK(talk.hear(0) == std::vector{RecordType::pong, RecordType::message});
  talk.feed(1, good_record(talk, RecordType::tick, 1));
  talk.feed(1, good_record(talk, RecordType::data, 1)); // an arrival, which STATE tells
  talk.session.leave();
  talk.now += kStateEveryNs;
  CHECK(talk.hear(0) == std::vector{RecordType::state, RecordType::go_away, RecordType::message});
  // The connection takes half a chunk. What is due meanwhile waits for the rest, and the next chunk for all of it.
  const auto waiting = [&] {
    size_t bytes = 0;
    for (const Bytes piece : talk.session.gather(0, talk.now)) bytes += piece.size();
    return bytes;
  };
  constexpr size_t kRecord = kHeadBytes + kMessageChunkBytes + kCrcBytes;
  REQUIRE(waiting() == kRecord);
  talk.session.sent(0, kRecord / 2, talk.now);
  CHECK(waiting() == kRecord - kRecord / 2);
  talk.feed(0, talk.ping());
  CHECK(waiting() == kRecord - kRecord / 2 + kHeadBytes + kPongBytes + kCrcBytes);
  talk.session.sent(0, waiting(), talk.now);
  CHECK(talk.hear(0) == std::vector{RecordType::message});
}

TEST_CASE("a message that is left until others wait too long is refused to its speaker's peer") {
  Talk many(false);
  many.come_up();
  uint64_t number = 0;
  while (number < kMessagesWaitingMax && !is_refused(many, chunk(number, 0, 1, true))) ++number;
  CHECK(number == kMessagesWaitingMax);
  CHECK(is_refused(many, chunk(number, 0, 1, true)));
  CHECK(many.fault == Fault::message_waiting);
  CHECK_MESSAGE(take_all(many) == kMessagesWaitingMax, "those that came before may be taken");

  Talk large(false);
  large.come_up();
  for (number = 0; number < 4; ++number)
    for (uint32_t at = 0; at < kMessageBytesMax; at += kMessageChunkBytes)
      REQUIRE(!is_refused(large, chunk(number, at, kMessageChunkBytes, at + kMessageChunkBytes == kMessageBytesMax)));
  CHECK(is_refused(large, chunk(number, 0, 1, true)));
  CHECK(large.fault == Fault::message_waiting);
  CHECK(large.hear(0).back() == RecordType::refuse);
}

TEST_CASE("one read of the smallest messages does not overflow the queue of an owner that takes all after each call") {
  Met met;
  for (int n = 0; n < 4000; ++n) REQUIRE(met.nodes.say(0, 1));
  // All of them wait in the line, and come in reads of 64 KiB.
  while (met.nodes.send(0, 0, SIZE_MAX) > 0) {
  }
  met.nodes.deliver(1, 0, SIZE_MAX);
  CHECK(met.nodes.heard(1) == 4000);
  met.check();
}

TEST_CASE("more messages in a minute than a link carries are refused, and a minute later as many more are taken") {
  for (const size_t bytes : {size_t{kMessageChunkBytes}, size_t{100}}) {
    CAPTURE(bytes);
    IncomingMessages messages;
    const uint64_t a_minute = kMessageBytesPerMinute / (kHeadBytes + bytes);
    const Buffer body(bytes);
    std::string text;
    int64_t now = -5 * kSecond;
    uint64_t number = 0;
    // How many of them are taken.
    const auto read = [&](uint64_t count) {
      for (uint64_t n = 0; n < count; ++n, ++number) {
        const Head head{RecordType::message, kLastChunk, 0, static_cast<uint32_t>(bytes), number, 0};
        const Fault fault = messages.read(head, body, now);
        if (fault != Fault::none) {
          CHECK(fault == Fault::message_rate);
          return n;
        }
        messages.take(text);
      }
      return count;
    };
    const uint64_t at_once = read(UINT64_MAX);
    CHECK(at_once >= a_minute);
    CHECK(at_once <= a_minute + a_minute / 1000); // each cost is rounded down to a nanosecond
    now += 60 * kSecond;
    CHECK(read(a_minute) == a_minute);
    now += 30 * kSecond;
    CHECK(read(a_minute / 2) == a_minute / 2);
    CHECK(read(UINT64_MAX) <= a_minute / 500 + 1);
  }
  Talk talk(false);
  talk.come_up();
  bool was_refused = false;
  for (uint64_t number = 0; number < 17 && !was_refused; ++number) {
    for (uint32_t at = 0; at < kMessageBytesMax && !was_refused; at += kMessageChunkBytes)
      was_refused =
          is_refused(talk, chunk(number, at, kMessageChunkBytes, at + kMessageChunkBytes == kMessageBytesMax));
    CHECK(take_all(talk) == (was_refused ? 0 : 1));
  }
  CHECK(was_refused);
  CHECK(talk.fault == Fault::message_rate);
}

TEST_CASE("a sender keeps to half the rate of its peer, and goes on when it may") {
  Talk talk(false);
  talk.come_up();
  talk.hear(0);
  uint64_t bytes = 0;
  const auto write_all = [&] {
    for (;;) {
      while (talk.session.say(std::string(kMessageBytesMax, 'x'))) {
      }
      const std::vector<RecordType> types = talk.hear(0);
      if (types.empty()) return;
      REQUIRE(types == std::vector{RecordType::message});
      bytes += kHeadBytes + kMessageChunkBytes;
    }
  };
  write_all();
  const uint64_t at_once = bytes;
  CHECK(at_once <= kMessageBytesPerMinuteSaid + kMessageChunkBytes);
  CHECK(at_once > kMessageBytesPerMinuteSaid - 2 * kMessageChunkBytes);
  const int64_t next = talk.session.next_timer(talk.now);
  CHECK(next > talk.now);
  CHECK(next < talk.now + 60 * kSecond);
  talk.now += 400 * kMillisecond; // no PING is due
  write_all();
  CHECK(bytes - at_once <= kMessageBytesPerMinuteSaid / 150 + 2 * kMessageChunkBytes);
  CHECK(bytes - at_once > kMessageBytesPerMinuteSaid / 150 - 2 * kMessageChunkBytes);
}

} // namespace millrace::net
