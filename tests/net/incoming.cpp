// A crossing at its reader: what may come next, parcels that a cut interrupts, and the counts of what did not come.
#include "net/incoming.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "net/outgoing.h"
#include "tests/net/ends.h"
#include "tests/net/wire.h"

namespace millrace::net {
namespace {

using test::Buffer;
using test::Contents;

// A reader, and records for it that a sender may write or should not.
struct Reader {
  explicit Reader(uint32_t depth = 4, Contents made = {})
      : contents(made), taker(made, depth), incoming(test::plan_of(3, 1, depth, made), taker) {}

  struct Tick {
    uint64_t number = 0, index = 0, previous = kNoIndex;
    uint32_t epoch = 0;
    std::vector<Gap> gaps = {};
    bool end = false;
  };
  Buffer body_of(const Tick& said) const {
    Parcel parcel;
    parcel.tick.clock = process;
    parcel.tick.index = said.index;
    parcel.tick.epoch = said.epoch;
    parcel.tick.media_time_ns = test::media_of(said.index);
    parcel.tick.trace_id = test::mixed(said.index);
    parcel.previous = said.previous;
    for (const Gap& gap : said.gaps) parcel.gaps[parcel.gap_count++] = gap;
    parcel.value_count = static_cast<uint8_t>(said.end ? 0 : contents.values);
    return test::body_of([&](ByteWriter& writer) {
      write_tick(parcel, writer);
      for (uint32_t v = 0; v < parcel.value_count; ++v) {
        const bool is_empty = contents.is_empty(said.index, v);
        writer.put(is_empty ? kValueEmpty : kValueFull);
        if (is_empty)
          writer.put(static_cast<uint8_t>(v));
        else
          write_value(contents.header(said.index, v), writer);
      }
    });
  }
  Fault tick(const Tick& said) {
    return incoming.read_tick({said.end ? RecordType::end : RecordType::tick, 0, 3, 0, said.number, 0}, body_of(said));
  }
  Fault data(uint64_t number, uint64_t index, uint8_t value, uint32_t at, uint32_t length) {
    std::span<std::byte> target;
    const Fault fault = incoming.begin_data({RecordType::data, value, 3, length, number, at}, target);
    if (fault != Fault::none) return fault;
    REQUIRE(target.size() == length);
    std::vector<uint8_t> bytes(contents.bytes_max);
    contents.fill(bytes.data(), index, value);
    std::memcpy(target.data(), bytes.data() + at, length);
    incoming.end_data();
    return Fault::none;
  }
  // A whole parcel.
  Fault parcel(const Tick& said) {
    if (const Fault fault = tick(said); fault != Fault::none || said.end) return fault;
    for (uint8_t v = 0; v < contents.values; ++v) {
      const uint32_t size = contents.is_empty(said.index, v) ? 0 : contents.bytes(said.index, v);
      if (size == 0) continue;
      if (const Fault fault = data(said.number, said.index, v, 0, size); fault != Fault::none) return fault;
    }
    return Fault::none;
  }

  Contents contents;
  uint32_t process = 0; // of the sender
  test::Taker taker;
  Incoming incoming;
};

Contents two_values() {
  Contents contents;
  contents.values = 2;
  contents.bytes_max = 60;
  contents.is_exact = true;
  return contents;
}

} // namespace

TEST_CASE("nothing may come before the crossing was opened") {
  Reader reader;
  CHECK(reader.parcel({}) == Fault::unexpected);
  CHECK(reader.data(0, 0, 0, 0, 1) == Fault::unexpected);
  const Open open = reader.incoming.open();
  CHECK(open.name == "main/3>gpu");
  CHECK(open.depth == 4);
  CHECK(open.expected == 0);
  CHECK(open.credit == 4);
  CHECK(reader.parcel({}) == Fault::none);
  CHECK(reader.taker.arrived() == 1);
  CHECK(reader.taker.broken() == nullptr);
}

TEST_CASE("parcels come by their numbers, and never more than the credit that was told") {
  Reader reader(2);
  reader.incoming.open();
  CHECK(reader.parcel({1, 0}) == Fault::number);
  CHECK(reader.parcel({0, 0}) == Fault::none);
  CHECK(reader.parcel({0, 1, 0}) == Fault::number);
  CHECK(reader.parcel({1, 1, 0}) == Fault::none);
  CHECK(reader.parcel({2, 2, 1}) == Fault::credit);
  reader.taker.take_in();
  CHECK_MESSAGE(reader.parcel({2, 2, 1}) == Fault::credit, "credit counts once it was told");
  reader.incoming.write_state();
  CHECK(reader.parcel({2, 2, 1}) == Fault::none);
  CHECK(reader.taker.broken() == nullptr);
}

TEST_CASE("a tick goes on where the one before ended") {
  const auto after_tick_5 = [](const Reader::Tick& tick) {
    Reader reader;
    reader.incoming.open();
    REQUIRE(reader.parcel({0, 5, kNoIndex, 1, {{kCauseLink, 5}}}) == Fault::none);
    return reader.parcel(tick);
  };
  CHECK(after_tick_5({1, 6, 5, 1}) == Fault::none);
  CHECK(after_tick_5({1, 8, 5, 1, {{kCauseLink, 2}}}) == Fault::none);
  CHECK(after_tick_5({1, 6, 4, 1, {{kCauseLink, 1}}}) == Fault::index);
  CHECK(after_tick_5({1, 6, kNoIndex, 1, {{kCauseLink, 6}}}) == Fault::index);
  CHECK(after_tick_5({1, 5, 5, 1}) == Fault::index);
  CHECK(after_tick_5({1, 4, 5, 1}) == Fault::index);
  CHECK_MESSAGE(after_tick_5({1, 6, 5, 0}) == Fault::index, "epochs do not fall");
  CHECK_MESSAGE(after_tick_5({1, 6, 5, 2}) == Fault::none, "indices go on in a higher epoch");
  CHECK_MESSAGE(after_tick_5({1, 2, kNoIndex, 2, {{kCauseLink, 2}}}) == Fault::none, "or begin again there");
  CHECK(after_tick_5({1, 7, 4, 2, {{kCauseLink, 2}}}) == Fault::index);
  CHECK(after_tick_5({1, kNoIndex, 5, 1}) == Fault::index);
  CHECK(after_tick_5({1, 8, 5, 1, {{kCauseLink, 1}}}) == Fault::gap);
  CHECK(after_tick_5({1, 8, 5, 1, {{kCauseLink, 3}}}) == Fault::gap);
  CHECK(after_tick_5({1, 8, 5, 1, {{kCauseLink, 0}, {kCauseAway, 2}}}) == Fault::gap);
  CHECK(after_tick_5({1, 8, 5, 1, {{kCauseAway, 1}, {kCauseLink, 1}}}) == Fault::cause);
  CHECK(after_tick_5({1, 8, 5, 1, {{kCausesMax, 2}}}) == Fault::cause);
}

TEST_CASE("the values of a tick are those of the plan") {
  const auto refused = [](auto change) {
    Reader reader(4, two_values());
    reader.incoming.open();
    Buffer body = reader.body_of({});
    change(body);
    const Fault fault = reader.incoming.read_tick({RecordType::tick, 0, 3, 0, 0, 0}, body);
    CHECK(reader.taker.arrived() == 0);
    return fault;
  };
  constexpr size_t kCount = 61, kFirst = 62, kExtent = kFirst + 1 + 48;
  CHECK(refused([](Buffer&) {}) == Fault::none);
  CHECK(refused([](Buffer& body) { body[kCount] = std::byte{1}; }) == Fault::open_values);
  CHECK(refused([](Buffer& body) { body[kCount] = std::byte{3}; }) == Fault::open_values);
  CHECK(refused([](Buffer& body) { body[kCount] = std::byte{kValuesMax + 1}; }) == Fault::which_value);
  CHECK(refused([](Buffer& body) { body[kFirst] = std::byte{2}; }) == Fault::value);
  CHECK_MESSAGE(refused([](Buffer& body) { body[kExtent] = std::byte{61}; }) == Fault::value,
                "more than its block has");
  CHECK(refused([](Buffer& body) { body.pop_back(); }) == Fault::value);
  CHECK(refused([](Buffer& body) { body.push_back({}); }) == Fault::body_long);
  CHECK(refused([](Buffer& body) {
          body.resize(kFirst);
          body.insert(body.end(), {std::byte{0}, std::byte{kCausesMax}, std::byte{0}, std::byte{0}});
        }) == Fault::cause);
  CHECK(refused([](Buffer& body) {
          body.resize(kFirst);
          body.insert(body.end(), {std::byte{0}, std::byte{1}, std::byte{0}});
        }) == Fault::body_short);
}

TEST_CASE("the bytes of values come in order, each once") {
  Reader reader(4, two_values());
  reader.incoming.open();
  REQUIRE(reader.tick({}) == Fault::none);
  CHECK_MESSAGE(reader.tick({1, 1, 0}) == Fault::unexpected, "the parcel before is not whole");
  CHECK(reader.data(1, 0, 0, 0, 10) == Fault::number);
  CHECK(reader.data(0, 0, 1, 0, 10) == Fault::which_value);
  CHECK(reader.data(0, 0, 0, 1, 10) == Fault::place);
  CHECK(reader.data(0, 0, 0, 0, 61) == Fault::too_many_bytes);
  CHECK(reader.data(0, 0, 0, 0, 10) == Fault::none);
  CHECK(reader.data(0, 0, 0, 0, 10) == Fault::place);
  CHECK(reader.data(0, 0, 0, 10, 51) == Fault::too_many_bytes);
  CHECK(reader.data(0, 0, 0, 10, 50) == Fault::none);
  CHECK(reader.data(0, 0, 0, 60, 1) == Fault::which_value);
  CHECK(reader.taker.arrived() == 0);
  CHECK(reader.data(0, 0, 1, 0, 60) == Fault::none);
  CHECK(reader.taker.arrived() == 1);
  CHECK(reader.data(0, 0, 1, 60, 1) == Fault::unexpected);
  CHECK(reader.taker.broken() == nullptr);
}

TEST_CASE("a parcel that a cut has interrupted begins anew in the same blocks") {
  Reader reader(4, two_values());
  reader.incoming.open();
  REQUIRE(reader.parcel({}) == Fault::none);
  REQUIRE(reader.tick({1, 1, 0}) == Fault::none);
  REQUIRE(reader.data(1, 1, 0, 0, 60) == Fault::none);
  REQUIRE(reader.data(1, 1, 1, 0, 30) == Fault::none);
  const uint8_t* const block = reader.taker.room(0).data;
  reader.incoming.close();
  CHECK(reader.data(1, 1, 1, 30, 30) == Fault::unexpected);
  CHECK(reader.taker.arrived() == 1);
  const Open open = reader.incoming.open();
  CHECK(open.expected == 1);
  CHECK(reader.data(1, 1, 1, 30, 30) == Fault::unexpected);
  CHECK(reader.parcel({1, 1, 0}) == Fault::none);
  CHECK(reader.taker.arrived() == 2);
  CHECK(reader.taker.room(0).data != block);
  while (reader.taker.take_in()) {
  }
  CHECK(reader.taker.broken() == nullptr);
}

TEST_CASE("nothing comes after an end, and an end has no values") {
  Reader reader;
  reader.incoming.open();
  REQUIRE(reader.parcel({}) == Fault::none);
  Reader::Tick end{1, 1, 0, 0, {}, true};
  Buffer body = reader.body_of(end);
  body[61] = std::byte{1};
  CHECK(reader.incoming.read_tick({RecordType::end, 0, 3, 0, 1, 0}, body) == Fault::open_values);
  CHECK(!reader.incoming.has_ended());
  CHECK(reader.parcel(end) == Fault::none);
  CHECK(reader.incoming.has_ended());
  CHECK(reader.taker.has_ended());
  CHECK(reader.parcel({2, 2, 1}) == Fault::after_end);
  CHECK(reader.incoming.counts().arrived == 2);
}

TEST_CASE("another process begins its numbers at 0, and credit goes on") {
  Reader reader;
  reader.incoming.open();
  for (uint64_t n = 0; n < 3; ++n) REQUIRE(reader.parcel({n, n, n == 0 ? kNoIndex : n - 1}) == Fault::none);
  reader.taker.take_in();
  reader.incoming.begin_pairing();
  ++reader.process;
  CHECK(reader.parcel({3, 3, 2}) == Fault::unexpected);
  const Open open = reader.incoming.open();
  CHECK(open.expected == 0);
  CHECK_MESSAGE(open.credit == 2, "two of four blocks are in use");
  CHECK(reader.parcel({3, 7, 6}) == Fault::number);
  CHECK(reader.parcel({0, 7, kNoIndex, 0, {{kCauseLink, 7}}}) == Fault::none);
  CHECK(reader.taker.arrived() == 4);
  CHECK(reader.taker.broken() == nullptr);
}

TEST_CASE("ticks that did not come are counted by cause, and those that a process took with it as lost") {
  Reader reader(8);
  reader.incoming.open();
  REQUIRE(reader.parcel({0, 2, kNoIndex, 0, {{kCauseLink, 2}}}) == Fault::none);
  REQUIRE(reader.parcel({1, 8, 2, 0, {{kCauseLink, 2}, {kCauseAway, 3}}}) == Fault::none);
  CHECK(reader.incoming.counts().left_out[kCauseLink] == 4);
  CHECK(reader.incoming.counts().left_out[kCauseAway] == 3);
  CHECK(reader.incoming.counts().lost == 0);
  // It knows of no tick before its first: 9 to 11 went with the process before it.
  reader.incoming.begin_pairing();
  ++reader.process;
  reader.incoming.open();
  REQUIRE(reader.parcel({0, 12, kNoIndex, 0, {{kCauseLink, 12}}}) == Fault::none);
  CHECK(reader.incoming.counts().lost == 3);
  CHECK(reader.incoming.counts().left_out[kCauseLink] == 4);
  // It had parcel 14 of the same clock, which has not come; 15 was left out.
  reader.incoming.begin_pairing();
  ++reader.process;
  reader.incoming.open();
  REQUIRE(reader.parcel({0, 16, 14, 0, {{kCauseLink, 1}}}) == Fault::none);
  CHECK(reader.incoming.counts().lost == 5);
  CHECK(reader.incoming.counts().left_out[kCauseLink] == 5);
  CHECK(reader.incoming.counts().arrived == 4);
  CHECK(reader.taker.broken() == nullptr);
}

TEST_CASE("a passed time counts once all parcels before it have arrived, and only rises") {
  Reader reader;
  reader.incoming.open();
  REQUIRE(reader.incoming.read_state(SenderState{test::media_of(1), 2}) == Fault::none);
  CHECK(reader.taker.passed_ns() == INT64_MIN);
  REQUIRE(reader.parcel({0, 0}) == Fault::none);
  CHECK(reader.taker.passed_ns() == INT64_MIN);
  REQUIRE(reader.parcel({1, 1, 0}) == Fault::none);
  CHECK(reader.taker.passed_ns() == test::media_of(1));
  CHECK(reader.incoming.read_state(SenderState{test::media_of(1) - 1, 2}) == Fault::state_falls);
  CHECK(reader.incoming.read_state(SenderState{test::media_of(1), 1}) == Fault::state_falls);
  CHECK_MESSAGE(reader.incoming.read_state(SenderState{test::media_of(1), 2}) == Fault::none, "it is told again");
  REQUIRE(reader.incoming.read_state(SenderState{test::media_of(5), 2}) == Fault::none);
  CHECK_MESSAGE(reader.taker.passed_ns() == test::media_of(5), "without any parcel or credit");
  CHECK(reader.taker.broken() == nullptr);
}

TEST_CASE(
    "a state is urgent where the sender may be waiting, due where anything moved, and told again if it may be lost") {
  Reader reader(8);
  reader.incoming.open();
  CHECK(!reader.incoming.is_due());
  REQUIRE(reader.parcel({0, 0}) == Fault::none);
  CHECK(reader.incoming.is_due());
  CHECK(!reader.incoming.is_urgent());
  for (uint64_t n = 1; n < 4; ++n) REQUIRE(reader.parcel({n, n, n - 1}) == Fault::none);
  CHECK_MESSAGE(reader.incoming.is_urgent(), "half of the depth has arrived");
  const ReaderState told = reader.incoming.write_state();
  CHECK(told.acknowledged == 4);
  CHECK(told.credit == 8);
  CHECK(!reader.incoming.is_due());
  reader.incoming.retell();
  CHECK(reader.incoming.is_due());
  CHECK(reader.incoming.is_urgent());
  reader.incoming.write_state();
  for (uint64_t n = 4; n < 8; ++n) REQUIRE(reader.parcel({n, n, n - 1}) == Fault::none);
  reader.incoming.write_state();
  reader.taker.take_in();
  CHECK_MESSAGE(reader.incoming.is_urgent(), "the sender had no credit");
  reader.incoming.write_state();
  CHECK(!reader.incoming.is_urgent());
  reader.incoming.close();
  CHECK_MESSAGE(!reader.incoming.is_due(), "the next opening says it");
}

namespace {

struct StrandedTaker : test::Taker {
  using Taker::Taker;
  void stranded(bool is_stranded) override { told.push_back(is_stranded); }
  std::vector<bool> told;
};

} // namespace

TEST_CASE(
    "7.9: a reader learns that its sender is stranded once all before it have come, and by the next parcel that it is "
    "so no more") {
  Contents contents;
  contents.is_exact = true;
  contents.bytes_max = 0;
  Reader reader(4, contents);
  StrandedTaker taker(contents, 4);
  Incoming incoming(reader.incoming.plan(), taker);
  incoming.open();
  const auto parcel = [&](uint64_t number, bool end = false) {
    const Reader::Tick tick{
        .number = number, .index = number, .previous = number == 0 ? kNoIndex : number - 1, .end = end};
    REQUIRE(incoming.read_tick({end ? RecordType::end : RecordType::tick, 0, 3, 0, number, 0}, reader.body_of(tick)) ==
            Fault::none);
  };
  parcel(0);
  REQUIRE(incoming.read_state({INT64_MIN, 2, true}) == Fault::none);
  CHECK(taker.told.empty()); // one is still on its way
  parcel(1);
  CHECK(taker.told == std::vector<bool>{true});
  REQUIRE(incoming.read_state({INT64_MIN, 2, true}) == Fault::none);
  CHECK(taker.told.size() == 1);
  parcel(2);
  CHECK(taker.told == std::vector<bool>{true, false});
  REQUIRE(incoming.read_state({INT64_MIN, 3, true}) == Fault::none);
  REQUIRE(incoming.read_state({INT64_MIN, 3, false}) == Fault::none);
  CHECK(taker.told == std::vector<bool>{true, false, true, false});
  REQUIRE(incoming.read_state({INT64_MIN, 3, true}) == Fault::none);
  incoming.begin_pairing(); // another process
  CHECK(taker.told == std::vector<bool>{true, false, true, false, true, false});
}

} // namespace millrace::net
