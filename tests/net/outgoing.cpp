// A crossing at its sender: credit and depth, going back after a cut, and another process of the peer.
#include "net/outgoing.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/net/ends.h"
#include "tests/net/wire.h"

namespace millrace::net {
namespace {

using test::Contents;
using test::Giver;
using Wrote = Outgoing::Wrote;

struct Sender {
  explicit Sender(uint32_t depth = 4, Contents contents = {})
      : giver(contents, depth), outgoing(test::plan_of(3, 1, depth, contents), giver) {
    outbox.begin(true);
  }

  Open open_of(uint64_t expected, uint64_t credit) const {
    Open open;
    open.name = outgoing.plan().name;
    open.depth = outgoing.plan().depth;
    open.delivery = outgoing.plan().delivery;
    open.value_count = static_cast<uint8_t>(outgoing.plan().formats.size());
    for (size_t i = 0; i < outgoing.plan().formats.size(); ++i)
      open.format_hashes[i] = hash_of(outgoing.plan().formats[i]);
    open.expected = expected;
    open.credit = credit;
    return open;
  }
  void make(int count) {
    for (int n = 0; n < count; ++n) REQUIRE(giver.make());
  }
  // Writes all that it may, and gives the numbers of the parcels that began.
  std::vector<uint64_t> write(bool takes_new = true) {
    while (outgoing.write_next(outbox, takes_new) == Wrote::record) {
    }
    std::vector<uint64_t> numbers;
    test::Buffer bytes;
    for (const Bytes piece : outbox.pieces()) bytes.insert(bytes.end(), piece.begin(), piece.end());
    for (size_t at = 0; at < bytes.size();) {
      Head head;
      REQUIRE(read_head(Bytes(bytes).subspan(at).first<kHeadBytes>(), head) == Fault::none);
      if (head.type != RecordType::data) numbers.push_back(head.number);
      at += kHeadBytes + head.length + kCrcBytes;
    }
    return numbers;
  }
  // All bytes are given to the connection.
  void send() {
    outbox.sent(outbox.waiting_bytes());
    for (Outbox::Mark mark; outbox.take_mark(mark);) outgoing.gave(mark.number);
  }
  void cut() {
    outgoing.close();
    outbox.begin(true);
  }

  Giver giver;
  Outgoing outgoing;
  Outbox outbox;
};

using Numbers = std::vector<uint64_t>;

} // namespace

TEST_CASE("nothing is taken from the run before the reader has opened the crossing") {
  Sender sender;
  sender.make(2);
  CHECK(sender.write().empty());
  CHECK(sender.giver.given() == 0);
  REQUIRE(sender.outgoing.open(sender.open_of(0, 4)) == Fault::none);
  CHECK(sender.write() == Numbers{0, 1});
}

TEST_CASE("an opening has to be that of the plan") {
  const auto refused = [](auto change) {
    Sender sender;
    Open open = sender.open_of(0, 4);
    change(open);
    const Fault fault = sender.outgoing.open(open);
    CHECK(!sender.outgoing.is_open());
    return fault;
  };
  CHECK(refused([](Open& open) { open.name = "main/0>gpv"; }) == Fault::open_name);
  CHECK(refused([](Open& open) { open.depth = 5; }) == Fault::open_depth);
  CHECK(refused([](Open& open) { open.delivery = Delivery::live; }) == Fault::open_delivery);
  CHECK(refused([](Open& open) { open.value_count = 2; }) == Fault::open_values);
  CHECK(refused([](Open& open) { open.format_hashes[0] ^= 1; }) == Fault::open_format);
  CHECK(refused([](Open& open) { open.expected = 1; }) == Fault::open_expected);
  Sender sender;
  REQUIRE(sender.outgoing.open(sender.open_of(0, 4)) == Fault::none);
  CHECK_MESSAGE(sender.outgoing.open(sender.open_of(0, 4)) == Fault::open_expected, "a crossing is opened once");
}

TEST_CASE("no parcel is sent without credit") {
  Sender sender;
  sender.make(4);
  REQUIRE(sender.outgoing.open(sender.open_of(0, 1)) == Fault::none);
  CHECK(sender.outgoing.has_credit());
  CHECK(sender.write() == Numbers{0});
  CHECK(!sender.outgoing.has_credit());
  CHECK(sender.giver.given() == 1);
  REQUIRE(sender.outgoing.read_state({0, 3}) == Fault::none);
  CHECK(sender.write() == Numbers{0, 1, 2});
}

TEST_CASE("credit only grows: a state that comes late takes nothing away") {
  Sender sender;
  sender.make(4);
  REQUIRE(sender.outgoing.open(sender.open_of(0, 3)) == Fault::none);
  REQUIRE(sender.outgoing.read_state({0, 1}) == Fault::none);
  CHECK(sender.write() == Numbers{0, 1, 2});
  sender.send();
  REQUIRE(sender.outgoing.read_state({2, 6}) == Fault::none);
  REQUIRE(sender.outgoing.read_state({1, 5}) == Fault::none);
  CHECK(sender.outgoing.counts().acknowledged == 2);
}

TEST_CASE("a state may overtake the opening, and its credit counts") {
  Sender sender;
  sender.make(4);
  REQUIRE(sender.outgoing.read_state({0, 3}) == Fault::none);
  REQUIRE(sender.outgoing.open(sender.open_of(0, 1)) == Fault::none);
  CHECK(sender.write() == Numbers{0, 1, 2});
}

TEST_CASE("at most `depth` parcels are held, whatever the credit is") {
  Sender sender(3);
  sender.make(9);
  REQUIRE(sender.outgoing.open(sender.open_of(0, 1000)) == Fault::none);
  CHECK(sender.write() == Numbers{0, 1, 2});
  sender.send();
  CHECK(sender.write().empty());
  REQUIRE(sender.outgoing.read_state({1, 1000}) == Fault::none);
  CHECK(sender.write() == Numbers{3});
  CHECK(sender.giver.acknowledged() == 1);
  CHECK(sender.giver.broken() == nullptr);
}

TEST_CASE("a parcel is acknowledged at the earliest when its last byte was given to the connection") {
  Sender sender;
  sender.make(2);
  REQUIRE(sender.outgoing.open(sender.open_of(0, 4)) == Fault::none);
  CHECK(sender.write() == Numbers{0, 1});
  CHECK(sender.outgoing.read_state({1, 4}) == Fault::acknowledged);
  sender.send();
  CHECK(sender.outgoing.read_state({2, 4}) == Fault::none);
  CHECK(sender.outgoing.is_drained());
  CHECK(sender.outgoing.read_state({3, 9}) == Fault::acknowledged);
  CHECK(sender.outgoing.read_state({2, 1}) == Fault::credit);
}

TEST_CASE("after a cut the sender goes back to the number that the reader expects") {
  Contents contents;
  contents.bytes_max = 50;
  for (uint64_t arrived = 0; arrived <= 3; ++arrived) {
    CAPTURE(arrived);
    Sender sender(4, contents);
    sender.make(4);
    REQUIRE(sender.outgoing.open(sender.open_of(0, 4)) == Fault::none);
    CHECK(sender.write() == Numbers{0, 1, 2, 3});
    sender.outbox.sent(sender.outbox.waiting_bytes() - 1); // the last parcel is not whole
    for (Outbox::Mark mark; sender.outbox.take_mark(mark);) sender.outgoing.gave(mark.number);
    sender.cut();
    CHECK(sender.write().empty());
    CHECK(sender.outgoing.open(sender.open_of(4, 9)) == Fault::open_expected);
    REQUIRE(sender.outgoing.open(sender.open_of(arrived, 4)) == Fault::none);
    CHECK(sender.outgoing.counts().acknowledged == arrived);
    Numbers expected;
    for (uint64_t number = arrived; number < 4; ++number) expected.push_back(number);
    CHECK(sender.write() == expected);
    CHECK_MESSAGE(sender.outgoing.read_state({arrived + 1, 9}) == Fault::acknowledged,
                  "its bytes are still to be read");
    sender.cut();
    if (arrived > 0) CHECK(sender.outgoing.open(sender.open_of(arrived - 1, 9)) == Fault::open_expected);
    CHECK(sender.giver.broken() == nullptr);
    CHECK(sender.outgoing.counts().lost == 0);
    CHECK(sender.outgoing.counts().sent == 4);
  }
}

TEST_CASE("with another process of the peer all that is held is lost, and numbers begin anew") {
  Sender sender;
  sender.make(6);
  REQUIRE(sender.outgoing.open(sender.open_of(0, 4)) == Fault::none);
  sender.write();
  sender.send();
  REQUIRE(sender.outgoing.read_state({1, 4}) == Fault::none);
  sender.outbox.begin(true);
  sender.outgoing.begin_pairing();
  CHECK(sender.outgoing.counts().acknowledged == 1);
  CHECK(sender.outgoing.counts().lost == 3);
  CHECK(sender.giver.lost() == 3);
  CHECK(sender.outgoing.is_drained());
  CHECK(!sender.outgoing.is_open());
  CHECK_MESSAGE(sender.outgoing.open(sender.open_of(1, 5)) == Fault::open_expected, "it has none of the new numbers");
  REQUIRE(sender.outgoing.open(sender.open_of(0, 4)) == Fault::none);
  CHECK(sender.write() == Numbers{0, 1});
  CHECK(sender.giver.broken() == nullptr);
}

TEST_CASE("an end is the last parcel, has no blocks to let go, and is told to another process too") {
  Sender sender;
  sender.make(1);
  REQUIRE(sender.giver.make(0, kCauseLink, true));
  REQUIRE(sender.outgoing.open(sender.open_of(0, 4)) == Fault::none);
  CHECK(sender.write() == Numbers{0, 1});
  CHECK(!sender.outgoing.has_credit());
  sender.send();
  REQUIRE(sender.outgoing.read_state({2, 4}) == Fault::none);
  CHECK(sender.outgoing.is_drained());
  CHECK(sender.giver.acknowledged() == 1);
  sender.outgoing.begin_pairing();
  CHECK(!sender.outgoing.is_drained());
  REQUIRE(sender.outgoing.open(sender.open_of(0, 0)) == Fault::none);
  CHECK_MESSAGE(sender.write().empty(), "an end needs credit, as any parcel");
  REQUIRE(sender.outgoing.read_state({0, 1}) == Fault::none);
  CHECK(sender.write() == Numbers{0});
  sender.send();
  REQUIRE(sender.outgoing.read_state({1, 1}) == Fault::none);
  CHECK(sender.outgoing.is_drained());
  CHECK(sender.giver.broken() == nullptr);
}

TEST_CASE("while the node leaves, what was taken is still sent, and nothing new is taken") {
  Sender sender;
  sender.make(1);
  REQUIRE(sender.outgoing.open(sender.open_of(0, 4)) == Fault::none);
  sender.write();
  sender.make(1);
  sender.cut();
  REQUIRE(sender.outgoing.open(sender.open_of(0, 4)) == Fault::none);
  CHECK(sender.write(false) == Numbers{0});
  CHECK(sender.giver.given() == 1);
}

TEST_CASE("a value of many chunks goes in order, and a parcel waits where there is no room") {
  Contents contents;
  contents.is_exact = true;
  contents.values = 2;
  contents.bytes_max = 2 * kChunkBytesMax + 10;
  Sender sender(2, contents);
  sender.make(1);
  REQUIRE(sender.outgoing.open(sender.open_of(0, 2)) == Fault::none);
  std::vector<Head> heads;
  while (sender.outgoing.write_next(sender.outbox, true) == Wrote::record) {
  }
  test::Buffer bytes;
  for (const Bytes piece : sender.outbox.pieces()) bytes.insert(bytes.end(), piece.begin(), piece.end());
  for (size_t at = 0; at < bytes.size(); at += kHeadBytes + heads.back().length + kCrcBytes)
    REQUIRE(read_head(Bytes(bytes).subspan(at).first<kHeadBytes>(), heads.emplace_back()) == Fault::none);
  REQUIRE(heads.size() == 7);
  for (size_t i = 1; i < heads.size(); ++i) {
    CHECK(heads[i].type == RecordType::data);
    CHECK(heads[i].flags == (i - 1) / 3);
    CHECK(heads[i].at == (i - 1) % 3 * kChunkBytesMax);
    CHECK(heads[i].length == ((i - 1) % 3 == 2 ? 10 : kChunkBytesMax));
  }
  const test::Buffer block(1, std::byte{0});
  while (sender.outbox.has_room(0)) sender.outbox.add_data({RecordType::data}, block);
  sender.make(1);
  CHECK(sender.outgoing.write_next(sender.outbox, true) == Wrote::no_room);
  CHECK_MESSAGE(sender.giver.given() == 1, "the run keeps what finds no room");
}

TEST_CASE("ticks that were left out are counted by their cause") {
  Sender sender;
  REQUIRE(sender.giver.make());
  REQUIRE(sender.giver.make(3, kCauseAway));
  REQUIRE(sender.giver.make(2, kCauseLink));
  REQUIRE(sender.outgoing.open(sender.open_of(0, 4)) == Fault::none);
  sender.write();
  CHECK(sender.outgoing.counts().left_out[kCauseAway] == 3);
  CHECK(sender.outgoing.counts().left_out[kCauseLink] == 2);
}

TEST_CASE("a passed time is told with the number after which it counts, once, and again on another connection") {
  Sender sender;
  sender.make(2);
  CHECK(!sender.outgoing.has_passed());
  REQUIRE(sender.outgoing.open(sender.open_of(0, 4)) == Fault::none);
  sender.write();
  REQUIRE(sender.outgoing.has_passed());
  const SenderState told = sender.outgoing.write_state();
  CHECK(told.passed_ns == test::media_of(1));
  CHECK(told.after == 2);
  CHECK(!sender.outgoing.has_passed());
  sender.outgoing.retell();
  CHECK(sender.outgoing.has_passed());
  sender.outgoing.write_state();
  sender.make(1);
  sender.write();
  CHECK(sender.outgoing.has_passed());
}

TEST_CASE("an unsound value stays here and becomes an empty one") {
  struct Unsound : Giver {
    using Giver::Giver;
    bool next(Parcel& parcel) override {
      if (!Giver::next(parcel)) return false;
      made = *parcel.values[0].value;
      made.header.extent_bytes = 1000; // more than the block of the plan has
      parcel.values[0].value = &made;
      return true;
    }
    mr_value made{};
  };
  Contents contents;
  contents.is_exact = true;
  Unsound giver(contents, 2);
  Outgoing outgoing(test::plan_of(3, 1, 2, contents), giver);
  REQUIRE(giver.make());
  Sender other(2, contents);
  Outbox outbox;
  outbox.begin(false);
  REQUIRE(outgoing.open(other.open_of(0, 2)) == Fault::none);
  CHECK(outgoing.write_next(outbox, true) == Wrote::record);
  CHECK(outgoing.write_next(outbox, true) == Wrote::nothing); // no bytes of it follow
  CHECK(outgoing.counts().unsound == 1);
}

namespace {

struct StrandedGiver : Giver {
  using Giver::Giver;
  bool is_stranded() const override { return stranded; }
  bool stranded = false;
};

} // namespace

TEST_CASE(
    "7.9: a sender says that it is stranded and after which parcel, and when it is so no more, to who understands it") {
  for (const bool understands : {true, false}) {
    CAPTURE(understands);
    Sender sender;
    StrandedGiver giver(Contents{}, 4);
    Outgoing outgoing(sender.outgoing.plan(), giver);
    REQUIRE(outgoing.open(sender.open_of(0, 4)) == Fault::none);
    outgoing.set_tells_stranded(understands);
    for (int n = 0; n < 2; ++n) REQUIRE(giver.make());
    while (outgoing.write_next(sender.outbox, true) == Wrote::record) {
    }
    (void)outgoing.write_state(); // of the time that has passed
    REQUIRE(!outgoing.has_passed());
    giver.stranded = true;
    CHECK(outgoing.has_passed() == understands);
    const SenderState state = outgoing.write_state();
    CHECK(state.is_stranded == understands);
    CHECK(state.after == 2);
    CHECK(!outgoing.has_passed());
    outgoing.retell(); // over a new connection
    CHECK(outgoing.has_passed());
    CHECK(outgoing.write_state().is_stranded == understands);
    giver.stranded = false;
    CHECK(outgoing.has_passed() == understands);
    CHECK(!outgoing.write_state().is_stranded);
  }
}

} // namespace millrace::net
