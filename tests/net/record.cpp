// The wire: records of every type come back, have one spelling, and are the bytes that they have always been.
#include "net/record.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>

#include "tests/fuzz/record_fuzz.h"
#include "tests/net/wire.h"
#include "tests/part.h"
#include "tests/seed.h"

namespace millrace::net {
namespace {

using test::Buffer;

Head head_of(RecordType type, uint16_t crossing = 0, uint64_t number = 0, uint8_t flags = 0, uint32_t at = 0) {
  return {type, flags, crossing, 0, number, at};
}

struct Golden {
  Buffer record;
  const char* hex;
};

std::vector<Golden> golden_records() {
  const Buffer hello = test::body_of([](ByteWriter& writer) { write_hello(test::some_hello(), writer); });
  const Buffer open = test::body_of([](ByteWriter& writer) { write_open(test::some_open(), writer); });
  const Buffer pong = test::body_of([](ByteWriter& writer) { write_pong(test::some_pong(), writer); });
  const Buffer bytes = test::bytes_from("0a0b0c");
  const Bytes first_time = Bytes(pong).first(kPingBytes);
  return {
      {test::record_of(RecordType::hello, hello),
       "01000000800000000000000000000000000000007be4b73a6d726c310100010006000000000000000200000000000000"
       "ab000000000000000000000000000000000000000000000000000000000000cd88776655443322110300000000000000"
       "040000000000000005000000000700000000000000000000000000000000000000000000000000000000000001000000"
       "0900000000000000091196d4"},
      {test::record_of(RecordType::welcome, hello, false),
       "0200000080000000000000000000000000000000bcfc73636d726c310100010006000000000000000200000000000000"
       "ab000000000000000000000000000000000000000000000000000000000000cd88776655443322110300000000000000"
       "040000000000000005000000000700000000000000000000000000000000000000000000000000000000000001000000"
       "0900000000000000"},
      {test::record_of(head_of(RecordType::open, 3), open),
       "0300030031000000000000000000000000000000bb3cdc3c0a6d61696e2f303e67707504000000010208070605040302"
       "01090000000000000005000000000000000900000000000000e1988761"},
      {test::record_of(head_of(RecordType::tick, 3, 5), test::some_tick()),
       "040003009700000005000000000000000000000018ab2cf601000000020000000a00000000000000fcffffffffffffff"
       "050000000000000006000000000000000700000000000000080000000700000000000000020d01000000000000000e01"
       "000000000000000201000000000000000000000000000000000300000000000000000000000000000000000000000000"
       "0000000000010000000300000000000000483236340000000000000000000e0f1aefde"},
      {test::record_of(head_of(RecordType::data, 3, 5, 0, 0), bytes),
       "0500030003000000050000000000000000000000099d7ca00a0b0c436beaf3"},
      {test::record_of(head_of(RecordType::data, 3, 5, 63, 0x0FFFFFFD), bytes, false),
       "053f0300030000000500000000000000fdffff0fa28336730a0b0c"},
      {test::record_of(head_of(RecordType::end, 3, 6), test::some_tick(0)),
       "06000300500000000600000000000000000000002e136cf701000000020000000a00000000000000fcffffffffffffff"
       "050000000000000006000000000000000700000000000000080000000700000000000000020d01000000000000000e01"
       "0000000000000000e581e656"},
      {test::record_of(RecordType::state, test::some_state()),
       "07000000260000000000000000000000000000009500b23301000005000000000000000900000000000000020001fdff"
       "ffffffffffff04000000000000002a6eef2b"},
      {test::record_of(RecordType::ping, first_time),
       "080000000800000000000000000000000000000000b2d38a0100000000000000adcf14c5"},
      {test::record_of(RecordType::pong, pong),
       "0900000058000000000000000000000000000000fecf2ef30100000000000000feffffffffffffff0300000000000000"
       "040000000000000005000000000000000000000000000000000000000000000000000000000000000000000000000000"
       "06000000000000000000000000000000397cafbd"},
      {test::record_of(RecordType::go_away, test::some_farewell()),
       "0a00000017000000000000000000000000000000fa966bae2a001300746865206e6f6465206973206c656176696e67dc"
       "788920"},
      {test::record_of(RecordType::refuse, test::some_farewell(), false),
       "0b00000017000000000000000000000000000000476128992a001300746865206e6f6465206973206c656176696e67"},
      {test::record_of(head_of(RecordType::message, 0, 5, kLastChunk, 0x3FC000), bytes),
       "0c01000003000000050000000000000000c03f00d304396b0a0b0c436beaf3"},
      {test::record_of(head_of(RecordType::message, 0, 0, kLastChunk, 0), bytes, false),
       "0c01000003000000000000000000000000000000c76ffa740a0b0c"},
      {test::record_of(head_of(RecordType::change, 3, 5, 0, 1), test::some_change()),
       "0d00030024000000050000000000000001000000ce617a3b020000000a00000000000000070000000000000004626c75"
       "72057369676d610300322e35186542a5"},
  };
}

} // namespace

TEST_CASE("a record of each type is the bytes that it has always been") {
  std::set<RecordType> types;
  for (const Golden& golden : golden_records()) {
    CHECK(test::hex_of(golden.record) == golden.hex);
    types.insert(static_cast<RecordType>(golden.record[0]));
  }
  CHECK(types.size() == kRecordTypeLast);
}

TEST_CASE("a record of each type is read, and written again as the same bytes") {
  for (const Golden& golden : golden_records()) {
    CAPTURE(golden.hex);
    Head head;
    REQUIRE(read_head(Bytes(golden.record).first<kHeadBytes>(), head) == Fault::none);
    Buffer bare(golden.record.begin(), golden.record.begin() + kHeadBytes + head.length);
    CHECK(look_at_record(bare) == nullptr);
  }
}

TEST_CASE("each type of record has a name") {
  for (uint8_t type = 1; type <= kRecordTypeLast; ++type) CHECK(name_of(static_cast<RecordType>(type)) != nullptr);
  CHECK(std::string(name_of(RecordType::go_away)) == "GOAWAY");
  CHECK(std::string(name_of(RecordType::message)) == "MESSAGE");
  CHECK(std::string(name_of(RecordType::change)) == "CHANGE");
  CHECK(name_of(static_cast<RecordType>(0)) == nullptr);
  CHECK(name_of(static_cast<RecordType>(kRecordTypeLast + 1)) == nullptr);
}

TEST_CASE("a greeting comes back field by field") {
  const Hello said = test::some_hello();
  const Buffer body = test::body_of([&](ByteWriter& writer) { write_hello(said, writer); });
  REQUIRE(body.size() == kHelloBytes);
  Hello read;
  REQUIRE(read_hello(body, read) == Fault::none);
  CHECK(read.version_least == said.version_least);
  CHECK(read.version_most == said.version_most);
  CHECK(read.features == said.features);
  CHECK(read.mandatory == said.mandatory);
  CHECK(read.node == said.node);
  CHECK(read.session == said.session);
  CHECK(read.pairing == said.pairing);
  CHECK(read.run == said.run);
  CHECK(read.revision == said.revision);
  CHECK(read.brief == said.brief);
  CHECK(read.lane == said.lane);
  CHECK(read.connection == said.connection);
}

TEST_CASE("an opening comes back field by field, with the longest name and the most values") {
  const std::string name(kCrossingNameBytesMax, 'n');
  Open said = test::some_open();
  said.name = name;
  said.value_count = kValuesMax;
  for (uint32_t i = 0; i < kValuesMax; ++i) said.format_hashes[i] = i * i;
  const Buffer body = test::body_of([&](ByteWriter& writer) { write_open(said, writer); });
  Open read;
  REQUIRE(read_open(body, read) == Fault::none);
  CHECK(read.name == said.name);
  CHECK(read.depth == said.depth);
  CHECK(read.delivery == said.delivery);
  CHECK(read.value_count == said.value_count);
  CHECK(read.format_hashes == said.format_hashes);
  CHECK(read.expected == said.expected);
  CHECK(read.credit == said.credit);
}

TEST_CASE("a tick comes back field by field, with the ticks that were left out before it") {
  const Buffer body = test::some_tick();
  ByteReader reader(body);
  Parcel parcel;
  REQUIRE(read_tick(reader, parcel) == Fault::none);
  CHECK(parcel.tick.clock == 1);
  CHECK(parcel.tick.epoch == 2);
  CHECK(parcel.tick.index == 10);
  CHECK(parcel.tick.media_time_ns == -4);
  CHECK(parcel.tick.deadline_ns == 5);
  CHECK(parcel.tick.trace_id == 6);
  CHECK(parcel.begun_ns == 7);
  CHECK(parcel.begun_error_us == 8);
  CHECK(parcel.previous == 7);
  REQUIRE(parcel.gap_count == 2);
  CHECK(parcel.gaps[0].cause == kCauseLink);
  CHECK(parcel.gaps[1].cause == kCauseAway);
  CHECK(parcel.gaps[0].ticks + parcel.gaps[1].ticks == 2);
  CHECK(parcel.value_count == 2);
  CHECK(reader.get<uint8_t>() == kValueFull);
}

TEST_CASE("the state of a reader and of a sender come back") {
  const Buffer body = test::some_state();
  ByteReader reader(body);
  StateEntry of_reader, of_sender;
  REQUIRE(read_state_entry(reader, of_reader) == Fault::none);
  REQUIRE(read_state_entry(reader, of_sender) == Fault::none);
  CHECK(reader.at_end());
  CHECK(of_reader.crossing == 1);
  CHECK(!of_reader.of_sender);
  CHECK(of_reader.reader.acknowledged == 5);
  CHECK(of_reader.reader.credit == 9);
  CHECK(of_sender.crossing == 2);
  CHECK(of_sender.of_sender);
  CHECK(of_sender.sender.passed_ns == -3);
  CHECK(of_sender.sender.after == 4);
}

TEST_CASE("an answer to a ping comes back with its times and the bytes of each data connection") {
  const Pong said = test::some_pong();
  const Buffer body = test::body_of([&](ByteWriter& writer) { write_pong(said, writer); });
  REQUIRE(body.size() == kPongBytes);
  Pong read;
  REQUIRE(read_pong(body, read) == Fault::none);
  CHECK(read.times.t1 == said.times.t1);
  CHECK(read.times.t2 == said.times.t2);
  CHECK(read.times.t3 == said.times.t3);
  for (size_t i = 0; i < kDataLanesMax; ++i) {
    CHECK(read.lanes[i].connection == said.lanes[i].connection);
    CHECK(read.lanes[i].bytes == said.lanes[i].bytes);
  }
}

TEST_CASE("a farewell is cut to its most bytes when it is written") {
  const std::string sentence(kSentenceBytesMax + 5, 'x');
  const Buffer body = test::body_of([&](ByteWriter& writer) { write_farewell({Fault::plan, sentence}, writer); });
  Farewell read;
  REQUIRE(read_farewell(body, read) == Fault::none);
  CHECK(read.code == Fault::plan);
  CHECK(read.sentence == std::string(kSentenceBytesMax, 'x'));
}

TEST_CASE("the hash of a format changes with each of its fields") {
  const mr_format plain{};
  std::set<uint64_t> hashes{hash_of(plain)};
  const auto differs = [&](auto change) {
    mr_format format{};
    change(format);
    CHECK(hashes.insert(hash_of(format)).second);
  };
  differs([](mr_format& f) { f.kind = 1; });
  differs([](mr_format& f) { f.schema = 1; });
  differs([](mr_format& f) { f.layout = 1; });
  differs([](mr_format& f) { f.pixel_formats = 1; });
  differs([](mr_format& f) { f.width = 1; });
  differs([](mr_format& f) { f.height = 1; });
  differs([](mr_format& f) { f.size_kind = 1; });
  differs([](mr_format& f) { f.color = 1; });
  differs([](mr_format& f) { f.range = 1; });
  differs([](mr_format& f) { f.dtype_code = 1; });
  differs([](mr_format& f) { f.dtype_bits = 1; });
  differs([](mr_format& f) { f.dtype_lanes = 1; });
  differs([](mr_format& f) { f.rank = 1; });
  differs([](mr_format& f) { f.record_size = 1; });
  differs([](mr_format& f) { f.record_count_max = 1; });
  differs([](mr_format& f) { f.bytes_max = 1; });
  differs([](mr_format& f) { f.primaries = 1; });
  differs([](mr_format& f) { f.transfer = 1; });
  differs([](mr_format& f) { f.aspect_num = 1; });
  differs([](mr_format& f) { f.aspect_den = 1; });
  for (uint32_t d = 0; d < MR_RANK_MAX; ++d) {
    differs([&](mr_format& f) { f.shape[d] = 1; });
    differs([&](mr_format& f) { f.shape_kind[d] = 1; });
  }
}

TEST_CASE("a body that was cut anywhere is refused") {
  for (const Golden& golden : golden_records()) {
    CAPTURE(golden.hex);
    Head head;
    REQUIRE(read_head(Bytes(golden.record).first<kHeadBytes>(), head) == Fault::none);
    for (size_t size = 0; size < head.length; ++size) {
      const Bytes body = Bytes(golden.record).subspan(kHeadBytes, size);
      Hello hello;
      Open open;
      Farewell farewell;
      Change change;
      Parcel parcel;
      Pong pong;
      ByteReader reader(body);
      switch (head.type) {
        case RecordType::hello:
        case RecordType::welcome:
          CHECK(read_hello(body, hello) == (size < 4 ? Fault::magic : Fault::body_short));
          break;
        case RecordType::open: CHECK(read_open(body, open) == Fault::body_short); break;
        case RecordType::end: CHECK(read_tick(reader, parcel) == Fault::body_short); break;
        case RecordType::pong: CHECK(read_pong(body, pong) == Fault::body_short); break;
        case RecordType::go_away:
        case RecordType::refuse: CHECK(read_farewell(body, farewell) == Fault::body_short); break;
        case RecordType::change: CHECK(read_change(body, change) == Fault::body_short); break;
        default: break; // a tick's values and a state's entries are the crossings' (incoming.cpp, session.cpp)
      }
    }
  }
}

TEST_CASE("a record with a changed bit is refused, or is another record of one spelling") {
  for (const Golden& golden : golden_records()) {
    CAPTURE(golden.hex);
    for (size_t bit = 0; bit < golden.record.size() * 8; ++bit) {
      Buffer damaged = golden.record;
      damaged[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
      Head head;
      if (bit / 8 < kHeadBytes) CHECK(read_head(Bytes(damaged).first<kHeadBytes>(), head) == Fault::head_checksum);
      INFO("bit " << bit);
      CHECK(look_at_record(damaged) == nullptr);
    }
  }
}

TEST_CASE("random bytes as a record break no rule") {
  std::mt19937_64 random(random_seed());
  const std::vector<Golden> golden = golden_records();
  for (int64_t n = millrace::test::part_of(20'000); n > 0; --n) {
    Buffer bytes = golden[random() % golden.size()].record;
    for (uint64_t changes = random() % 8; changes > 0; --changes) bytes[random() % bytes.size()] = std::byte(random());
    INFO("seed " << random_seed() << ", " << test::hex_of(bytes));
    REQUIRE(look_at_record(bytes) == nullptr);
  }
}

} // namespace millrace::net
