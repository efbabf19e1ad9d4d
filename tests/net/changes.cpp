// Live changes on a crossing: each comes before the first parcel that it is for, once, also after cuts; and those that
// a peer may not say.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "net/incoming.h"
#include "net/outgoing.h"
#include "tests/net/ends.h"
#include "tests/net/wire.h"

namespace millrace::net {
namespace {

using test::Buffer;
using test::Contents;
using Wrote = Outgoing::Wrote;

constexpr Contents kChangeContents{.is_exact = true};

Change change_of(uint64_t index, uint64_t number, uint32_t epoch = 0) {
  return {epoch, index, number, "blur", "sigma", std::to_string(number)};
}

// Gives so many changes before the tick of this index.
struct ChangingGiver final : test::Giver {
  using Giver::Giver;
  uint64_t at_index = 1;
  size_t count = 3;
  int begun = 0;
  bool next(Parcel& parcel) override {
    if (!Giver::next(parcel)) return false;
    if (parcel.tick.index == at_index)
      for (uint64_t number = 1; number <= count; ++number) parcel.changes.push_back(change_of(at_index, number));
    return true;
  }
  void peer_begins() override { ++begun; }
};

struct NotingTaker final : test::Taker {
  using Taker::Taker;
  std::vector<std::pair<uint64_t, std::vector<uint64_t>>> came; // by index, numbers
  void arrive(const Parcel& parcel) override {
    std::vector<uint64_t> numbers;
    for (const Change& change : parcel.changes) numbers.push_back(change.number);
    came.emplace_back(parcel.tick.index, numbers);
    Taker::arrive(parcel);
  }
};

// Both ends of one crossing, and the bytes between them.
struct ChangesWay {
  ChangingGiver giver{kChangeContents, 4};
  NotingTaker taker{kChangeContents, 4};
  Outgoing outgoing{test::plan_of(3, 1, 4, kChangeContents), giver};
  Incoming incoming{test::plan_of(3, 1, 4, kChangeContents), taker};
  Outbox outbox;

  void open() {
    outbox.begin(true);
    REQUIRE(outgoing.open(incoming.open()) == Fault::none);
  }
  // Writes what may be sent; the first `records_most` of its records arrive.
  void carry(size_t records_most = SIZE_MAX) {
    while (outgoing.write_next(outbox, true) == Wrote::record) continue;
    Buffer bytes;
    for (const Bytes piece : outbox.pieces()) bytes.insert(bytes.end(), piece.begin(), piece.end());
    outbox.sent(bytes.size());
    for (Outbox::Mark mark; outbox.take_mark(mark);) outgoing.gave(mark.number);
    for (size_t at = 0; at < bytes.size() && records_most > 0; --records_most) {
      Head head;
      REQUIRE(read_head(Bytes(bytes).subspan(at).first<kHeadBytes>(), head) == Fault::none);
      const Bytes body = Bytes(bytes).subspan(at + kHeadBytes, head.length);
      at += kHeadBytes + head.length + kCrcBytes;
      std::span<std::byte> target;
      switch (head.type) {
        case RecordType::change: REQUIRE(incoming.read_change(head, body) == Fault::none); break;
        case RecordType::data:
          REQUIRE(incoming.begin_data(head, target) == Fault::none);
          std::copy(body.begin(), body.end(), target.begin());
          incoming.end_data();
          break;
        default: REQUIRE(incoming.read_tick(head, body) == Fault::none);
      }
    }
  }
  void cut() {
    outgoing.close();
    incoming.close();
  }
};

// A reader that has taken nothing yet.
struct ChangesReader {
  test::Taker taker{kChangeContents, 4};
  Incoming incoming{test::plan_of(3, 1, 4, kChangeContents), taker};
  ChangesReader() { incoming.open(); }
  Fault change(const Change& said, uint32_t at = 0, uint64_t number = 0) {
    const Buffer body = test::body_of([&](ByteWriter& writer) { write_change(said, writer); });
    return incoming.read_change({RecordType::change, 0, 3, static_cast<uint32_t>(body.size()), number, at}, body);
  }
  Fault tick(uint64_t index, bool end = false) {
    Parcel parcel;
    parcel.tick.index = index;
    parcel.gap_count = index > 0 ? 1 : 0;
    parcel.gaps[0] = {kCauseLink, index};
    parcel.value_count = end ? 0 : 1;
    const Buffer body = test::body_of([&](ByteWriter& writer) {
      write_tick(parcel, writer);
      if (end) return;
      writer.put(kValueEmpty);
      writer.put(kCauseLink);
    });
    return incoming.read_tick({end ? RecordType::end : RecordType::tick, 0, 3, 0, 0, 0}, body);
  }
};

Fault fault_of_change(const Change& change, size_t cut_off = 0, const std::string& more = "") {
  Buffer body = test::body_of([&](ByteWriter& writer) {
    write_change(change, writer);
    writer.put_text(more);
  });
  body.resize(body.size() - cut_off);
  Change read;
  return read_change(body, read);
}

} // namespace

TEST_CASE("changes come with the parcel that they are for, and each once over any cut") {
  for (size_t records = 0; records <= 12; ++records) {
    CAPTURE(records);
    ChangesWay way;
    way.open();
    for (int n = 0; n < 3; ++n) REQUIRE(way.giver.make());
    way.carry(records);
    way.cut();
    way.open();
    way.carry();
    using Came = decltype(way.taker.came);
    CHECK(way.taker.came == Came{{0, {}}, {1, {1, 2, 3}}, {2, {}}});
  }
}

TEST_CASE("as many changes as a link carries come before one parcel, however little room the connection has") {
  ChangesWay way;
  way.giver.count = kChangesMax;
  way.open();
  for (int n = 0; n < 3; ++n) REQUIRE(way.giver.make());
  for (int n = 0; n < 200 && way.taker.came.size() < 3; ++n) way.carry();
  REQUIRE(way.taker.came.size() == 3);
  CHECK(way.taker.came[1].second.size() == kChangesMax);
  CHECK(way.taker.came[2].second.empty());
}

TEST_CASE("the run hears of each process of the peer") {
  ChangesWay way;
  way.outgoing.begin_pairing();
  way.outgoing.begin_pairing();
  CHECK(way.giver.begun == 2);
}

TEST_CASE("a change that may not come is refused, with its reason") {
  CHECK(ChangesReader().change(change_of(0, 1)) == Fault::none);
  CHECK(ChangesReader().change(change_of(0, 1), 0, 1) == Fault::number);
  CHECK(ChangesReader().change(change_of(0, 1), 1) == Fault::place);
  ChangesReader closed;
  closed.incoming.close();
  CHECK(closed.change(change_of(0, 1)) == Fault::unexpected);
  ChangesReader twice;
  REQUIRE(twice.change(change_of(0, 2)) == Fault::none);
  CHECK(twice.change(change_of(0, 2), 1) == Fault::number);
  CHECK(twice.change(change_of(0, 1, 1), 1) == Fault::none); // of a later epoch
  ChangesReader early;
  REQUIRE(early.change(change_of(6, 1)) == Fault::none);
  CHECK(early.tick(5) == Fault::index);
  ChangesReader exact;
  REQUIRE(exact.change(change_of(5, 1)) == Fault::none);
  CHECK(exact.tick(5) == Fault::none);
  ChangesReader ended;
  REQUIRE(ended.change(change_of(0, 1)) == Fault::none);
  CHECK(ended.tick(0, true) == Fault::unexpected);
}

TEST_CASE("a change whose fields cannot be is refused, down to the longest that can") {
  const std::string name(kChangeNameBytesMax, 'n'), text(kChangeTextBytesMax, 't');
  CHECK(fault_of_change({0, 0, 1, name, name, text}) == Fault::none);
  CHECK(fault_of_change({UINT32_MAX, kNoIndex - 1, UINT64_MAX, "a", "b", ""}) == Fault::none);
  CHECK(fault_of_change({0, 0, 1, "a", "b", text + "t"}) == Fault::text);
  CHECK(fault_of_change({0, 0, 1, "a", "b", std::string("a\0b", 3)}) == Fault::text);
  CHECK(fault_of_change({0, 0, 1, "", "b", "1"}) == Fault::text);
  CHECK(fault_of_change({0, 0, 1, "a", "", "1"}) == Fault::text);
  CHECK(fault_of_change({0, 0, 1, "a\n", "b", "1"}) == Fault::text);
  CHECK(fault_of_change({0, 0, 0, "a", "b", "1"}) == Fault::number);
  CHECK(fault_of_change({0, kNoIndex, 1, "a", "b", "1"}) == Fault::index);
  CHECK(fault_of_change(change_of(1, 1), 1) == Fault::body_short);
  CHECK(fault_of_change(change_of(1, 1), 0, "x") == Fault::body_long);
}

TEST_CASE("the head of a change says how long it is and which one of its parcel") {
  const auto fault_of = [](const Head& head) {
    std::array<std::byte, kHeadBytes> bytes;
    write_head(head, bytes);
    Head read;
    return read_head(bytes, read);
  };
  const RecordType type = RecordType::change;
  CHECK(fault_of({type, 0, 3, 26, 5, 0}) == Fault::none);
  CHECK(fault_of({type, 0, 3, 4630, 5, 1023}) == Fault::none);
  CHECK(fault_of({type, 0, 3, 25, 5, 0}) == Fault::length);
  CHECK(fault_of({type, 0, 3, 4631, 5, 0}) == Fault::length);
  CHECK(fault_of({type, 0, 3, 26, 5, 1024}) == Fault::place);
  CHECK(fault_of({type, 1, 3, 26, 5, 0}) == Fault::flags);
}

} // namespace millrace::net
