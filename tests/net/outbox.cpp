// Records that wait to be written: pieces in order, large bodies where they lie, marks once the last byte has gone.
#include "net/outbox.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "tests/net/wire.h"
#include "tests/seed.h"

namespace millrace::net {
namespace {

using test::Buffer;

Buffer all_bytes(const Outbox& outbox) {
  Buffer bytes;
  for (const Bytes piece : outbox.pieces()) bytes.insert(bytes.end(), piece.begin(), piece.end());
  return bytes;
}

void add_ping(Outbox& outbox, int64_t time) {
  ByteWriter body = outbox.body(kPingBytes);
  body.put(time);
  outbox.add({RecordType::ping}, body);
}

Buffer ping(int64_t time, bool checks_bodies) {
  return test::record_of(RecordType::ping, test::body_of([&](ByteWriter& writer) { writer.put(time); }), checks_bodies);
}

} // namespace

TEST_CASE("records are written as they are read, and a large body is not copied") {
  for (const bool checks_bodies : {false, true}) {
    Outbox outbox;
    outbox.begin(checks_bodies);
    CHECK(outbox.empty());
    const Buffer block(300'000, std::byte{0x5A});
    add_ping(outbox, 1);
    outbox.add_data({RecordType::data, 1, 2, 0, 3, 4}, block);
    add_ping(outbox, 2);
    Buffer expected = ping(1, checks_bodies);
    const Buffer data = test::record_of({RecordType::data, 1, 2, 0, 3, 4}, block, checks_bodies);
    expected.insert(expected.end(), data.begin(), data.end());
    const Buffer last = ping(2, checks_bodies);
    expected.insert(expected.end(), last.begin(), last.end());
    CHECK((all_bytes(outbox) == expected));
    CHECK(outbox.waiting_bytes() == expected.size());
    REQUIRE(outbox.pieces().size() == 3); // small records that lie one after the other are one piece
    CHECK(outbox.pieces()[1].data() == block.data());
    CHECK(outbox.pieces()[1].size() == block.size());
  }
}

TEST_CASE("whatever parts are sent, all bytes go once and in order") {
  std::mt19937_64 random(random_seed());
  const Buffer block(5000, std::byte{0x33});
  for (int turn = 0; turn < 200; ++turn) {
    INFO("seed " << random_seed() << ", turn " << turn);
    Outbox outbox;
    const bool checks_bodies = random() % 2;
    outbox.begin(checks_bodies);
    Buffer expected, sent;
    for (int64_t step = 0; step < 60; ++step) {
      if (outbox.has_room(kPingBytes) && random() % 2) {
        const bool is_data = random() % 3 == 0;
        const Bytes body = Bytes(block).first(1 + random() % block.size());
        if (is_data) {
          outbox.add_data({RecordType::data}, body);
        } else {
          add_ping(outbox, step);
        }
        const Buffer record =
            is_data ? test::record_of(RecordType::data, body, checks_bodies) : ping(step, checks_bodies);
        expected.insert(expected.end(), record.begin(), record.end());
      }
      const Buffer waiting = all_bytes(outbox);
      const size_t part = waiting.empty() ? 0 : random() % (waiting.size() + 1);
      sent.insert(sent.end(), waiting.begin(), waiting.begin() + static_cast<ptrdiff_t>(part));
      outbox.sent(part);
      CHECK(outbox.waiting_bytes() == waiting.size() - part);
    }
    const Buffer rest = all_bytes(outbox);
    sent.insert(sent.end(), rest.begin(), rest.end());
    REQUIRE((sent == expected));
  }
}

TEST_CASE("a mark comes when the last byte of its record has gone, and marks come in order") {
  Outbox outbox;
  outbox.begin(true);
  const Buffer block(100, std::byte{1});
  Outbox::Mark mark{};
  outbox.add_data({RecordType::data}, block);
  outbox.mark(7, 41);
  const size_t first = outbox.waiting_bytes();
  outbox.add_data({RecordType::data}, block);
  outbox.mark(7, 42);
  add_ping(outbox, 1);
  CHECK(!outbox.take_mark(mark));
  outbox.sent(first - 1);
  CHECK(!outbox.take_mark(mark));
  outbox.sent(1);
  REQUIRE(outbox.take_mark(mark));
  CHECK(mark.crossing == 7);
  CHECK(mark.number == 41);
  CHECK(!outbox.take_mark(mark));
  outbox.sent(first);
  REQUIRE(outbox.take_mark(mark));
  CHECK(mark.number == 42);
  CHECK(!outbox.take_mark(mark));
}

TEST_CASE("there is room for so many bytes and pieces, and for as many again once all have gone") {
  Outbox outbox;
  outbox.begin(true);
  const Buffer block(10, std::byte{1});
  for (int turn = 0; turn < 3; ++turn) {
    size_t records = 0;
    for (; outbox.has_room(0); ++records) outbox.add_data({RecordType::data}, block);
    CHECK(records >= kPiecesMax / 3 - 1);
    CHECK(outbox.pieces().size() <= kPiecesMax);
    outbox.sent(outbox.waiting_bytes() - 1);
    CHECK_MESSAGE(!outbox.has_room(0), "the last byte's piece still lies at the end");
    outbox.sent(1);
    CHECK(outbox.empty());
    CHECK(outbox.has_room(0));
    for (records = 0; outbox.has_room(kSmallBodyBytesMax); ++records) {
      ByteWriter body = outbox.body(kSmallBodyBytesMax);
      body.advance(kSmallBodyBytesMax);
      outbox.add({RecordType::tick}, body);
    }
    CHECK(records >= 2); // limits.h: two of the largest beside each other
    CHECK(outbox.waiting_bytes() <= kOutboxBytes);
    outbox.sent(outbox.waiting_bytes());
  }
}

TEST_CASE("marks have their most too, and are free again when they were taken") {
  Outbox outbox;
  outbox.begin(false);
  Outbox::Mark mark{};
  for (int turn = 0; turn < 3; ++turn) {
    size_t marks = 0;
    for (; outbox.has_room(kPingBytes); ++marks) {
      add_ping(outbox, 1);
      outbox.mark(1, marks);
    }
    CHECK(marks == kPiecesMax);
    outbox.sent(outbox.waiting_bytes());
    for (size_t n = 0; n < marks; ++n) {
      REQUIRE(outbox.take_mark(mark));
      CHECK(mark.number == n);
    }
    CHECK(!outbox.take_mark(mark));
  }
}

TEST_CASE("another connection has nothing of the one before") {
  Outbox outbox;
  outbox.begin(true);
  const Buffer block(100, std::byte{1});
  outbox.add_data({RecordType::data}, block);
  outbox.mark(1, 2);
  outbox.sent(30);
  outbox.begin(false);
  Outbox::Mark mark{};
  CHECK(outbox.empty());
  CHECK(outbox.waiting_bytes() == 0);
  CHECK(!outbox.take_mark(mark));
  add_ping(outbox, 3);
  CHECK((all_bytes(outbox) == ping(3, false)));
  for (int n = 0; n < 20; ++n) add_ping(outbox, n);
  outbox.sent(outbox.waiting_bytes());
  CHECK_MESSAGE(!outbox.take_mark(mark), "though as many bytes have gone as the old mark had before it");
}

} // namespace millrace::net
