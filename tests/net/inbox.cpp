// Bytes of a connection become records: whole for any slicing, and large bodies are not copied.
#include "net/inbox.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>

#include "tests/net/ends.h"
#include "tests/net/wire.h"

namespace millrace::net {
namespace {

using test::Buffer;

struct Read {
  Head head;
  Buffer body;
};

// Hands `bytes` to an inbox in slices, as a transport that is offered room() does, and collects records.
class Reading {
 public:
  explicit Reading(bool checks_bodies) { inbox.begin(checks_bodies); }

  // False once there was a fault.
  bool take(Bytes bytes, size_t slice) {
    while (!bytes.empty()) {
      const std::span<std::byte> room = inbox.room();
      REQUIRE(!room.empty());
      const size_t size = std::min({room.size(), slice, bytes.size()});
      std::copy_n(bytes.begin(), size, room.begin());
      bytes = bytes.subspan(size);
      inbox.received(size);
      if (!look()) return false;
    }
    return true;
  }

  Inbox inbox;
  std::vector<Read> records;
  bool keeps_bodies = true;

 private:
  bool look() {
    while (true) switch (inbox.next()) {
        case Inbox::Next::nothing: return true;
        case Inbox::Next::fault: return false;
        case Inbox::Next::record: records.push_back({inbox.head(), {inbox.body().begin(), inbox.body().end()}}); break;
        case Inbox::Next::data:
          block_.resize(inbox.head().length);
          inbox.read_data(block_);
          break;
        case Inbox::Next::data_whole: records.push_back({inbox.head(), keeps_bodies ? block_ : Buffer()}); break;
      }
  }

  Buffer block_;
};

Buffer some_bytes(size_t size, uint64_t seed) {
  Buffer bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(test::mixed(seed + i / 8) >> (8 * (i % 8)));
  return bytes;
}

// Every type, small and large data in turn, and records right after a large one.
std::vector<Read> some_records(bool with_large) {
  const Buffer hello = test::body_of([](ByteWriter& writer) { write_hello(test::some_hello(), writer); });
  const Buffer open = test::body_of([](ByteWriter& writer) { write_open(test::some_open(), writer); });
  std::vector<Read> records{{{RecordType::hello}, hello},
                            {{RecordType::open, 0, 3}, open},
                            {{RecordType::tick, 0, 3, 0, 7}, test::some_tick()},
                            {{RecordType::data, 1, 3, 0, 7}, some_bytes(1, 1)}};
  if (with_large) {
    records.push_back({{RecordType::data, 0, 3, 0, 7}, some_bytes(kChunkBytesMax, 2)});
    records.push_back({{RecordType::data, 0, 3, 0, 7, kChunkBytesMax}, some_bytes(70'000, 3)});
    records.push_back({{RecordType::data, 0, 3, 0, 7, kChunkBytesMax}, some_bytes(65'536, 4)});
  }
  records.push_back({{RecordType::data, 0, 3, 0, 7}, some_bytes(3000, 5)});
  records.push_back({{RecordType::ping}, some_bytes(kPingBytes, 6)});
  records.push_back({{RecordType::state}, test::some_state()});
  records.push_back({{RecordType::end, 0, 3, 0, 8}, test::some_tick(0)});
  records.push_back({{RecordType::go_away}, test::some_farewell()});
  return records;
}

Buffer stream_of(const std::vector<Read>& records, bool checks_bodies) {
  Buffer stream;
  for (const Read& record : records) {
    const Buffer bytes = test::record_of(record.head, record.body, checks_bodies);
    stream.insert(stream.end(), bytes.begin(), bytes.end());
  }
  return stream;
}

void check_same(const std::vector<Read>& read, const std::vector<Read>& sent) {
  REQUIRE(read.size() == sent.size());
  for (size_t i = 0; i < sent.size(); ++i) {
    CAPTURE(i);
    CHECK(read[i].head.type == sent[i].head.type);
    CHECK(read[i].head.flags == sent[i].head.flags);
    CHECK(read[i].head.crossing == sent[i].head.crossing);
    CHECK(read[i].head.number == sent[i].head.number);
    CHECK(read[i].head.at == sent[i].head.at);
    CHECK((read[i].body == sent[i].body));
  }
}

} // namespace

TEST_CASE("records come whole for any slicing of the bytes, with and without checksums") {
  for (const bool checks_bodies : {false, true}) {
    const std::vector<Read> sent = some_records(false);
    const Buffer stream = stream_of(sent, checks_bodies);
    for (size_t slice = 1; slice <= stream.size(); slice += slice < 300 ? 1 : 97) {
      CAPTURE(slice);
      Reading reading(checks_bodies);
      REQUIRE(reading.take(stream, slice));
      check_same(reading.records, sent);
    }
  }
}

TEST_CASE("records with large bodies between them come whole") {
  for (const bool checks_bodies : {false, true}) {
    const std::vector<Read> sent = some_records(true);
    const Buffer stream = stream_of(sent, checks_bodies);
    for (const size_t slice : {size_t{23}, size_t{1448}, size_t{16'384}, kInboxBytes, size_t{1'000'000}, SIZE_MAX}) {
      CAPTURE(slice);
      Reading reading(checks_bodies);
      REQUIRE(reading.take(stream, slice));
      check_same(reading.records, sent);
    }
  }
}

TEST_CASE("at most 64 KiB of a frame of 6.2 MB is copied where the transport reads all that there is room for") {
  constexpr size_t kFrame = 1920 * 1080 * 3;
  constexpr uint64_t kFrames = 4;
  const Buffer frame = some_bytes(kFrame, 1);
  for (const bool checks_bodies : {false, true})
    for (const size_t tail : {size_t{0}, size_t{10'000}, size_t{65'535}}) {
      CAPTURE(tail);
      Reading reading(checks_bodies);
      reading.keeps_bodies = false;
      Buffer stream;
      for (uint64_t number = 0; number < kFrames; ++number) {
        Buffer bytes = test::record_of({RecordType::tick, 0, 0, 0, number, 0}, test::some_tick(), checks_bodies);
        stream.insert(stream.end(), bytes.begin(), bytes.end());
        const size_t whole = kFrame - kFrame % kChunkBytesMax + tail;
        for (size_t at = 0; at < whole; at += kChunkBytesMax) {
          const size_t size = std::min<size_t>(kChunkBytesMax, whole - at);
          bytes = test::record_of({RecordType::data, 0, 0, 0, number, static_cast<uint32_t>(at)},
                                  Bytes(frame).subspan(std::min(at, kFrame - size), size), checks_bodies);
          stream.insert(stream.end(), bytes.begin(), bytes.end());
        }
      }
      REQUIRE(reading.take(stream, SIZE_MAX));
      CHECK(reading.inbox.bytes_copied() <= kFrames * kInboxBytes);
    }
}

TEST_CASE("a body goes straight into its block once its head was read alone") {
  Inbox inbox;
  inbox.begin(false);
  const Buffer first = test::record_of({RecordType::data, 0, 0, 0, 0, 0}, some_bytes(kInboxBytes, 1), false);
  std::copy_n(first.begin(), kHeadBytes, inbox.room().begin());
  inbox.received(kHeadBytes);
  REQUIRE(inbox.next() == Inbox::Next::data);
  Buffer block(kInboxBytes);
  inbox.read_data(block);
  CHECK(inbox.room().data() == block.data());
  CHECK(inbox.room().size() == block.size());
  std::copy_n(first.begin() + kHeadBytes, 100, inbox.room().begin());
  inbox.received(100);
  CHECK(inbox.next() == Inbox::Next::nothing);
  CHECK(inbox.room().data() == block.data() + 100);
  std::copy(first.begin() + kHeadBytes + 100, first.end(), inbox.room().begin());
  inbox.received(kInboxBytes - 100);
  CHECK(inbox.next() == Inbox::Next::data_whole);
  CHECK(std::equal(block.begin(), block.end(), first.begin() + kHeadBytes));
  CHECK(inbox.bytes_copied() == 0);
  CHECK_MESSAGE(inbox.room().size() == kHeadBytes, "after a large body one head is asked for");
}

TEST_CASE("a wrong checksum of a body is found, wherever the body went") {
  for (const size_t size : {size_t{1}, size_t{3000}, size_t{200'000}})
    for (const size_t slice : {size_t{7}, SIZE_MAX})
      for (const RecordType type : {RecordType::data, RecordType::tick}) {
        if (type == RecordType::tick && size != 3000) continue;
        Buffer record = test::record_of({type, 0, 0, 0, 0, 0}, some_bytes(size, 9));
        record[kHeadBytes + size / 2] ^= std::byte{1};
        Reading reading(true);
        CHECK(!reading.take(record, slice));
        CHECK(reading.inbox.fault() == Fault::body_checksum);
        CHECK(reading.records.empty());
      }
}

TEST_CASE("after a fault nothing is read, until another connection begins") {
  Reading reading(false);
  Buffer record = test::record_of({RecordType::ping}, some_bytes(kPingBytes, 1), false);
  const Buffer good = record;
  record[3] ^= std::byte{1};
  REQUIRE(!reading.take(record, SIZE_MAX));
  CHECK(reading.inbox.fault() == Fault::head_checksum);
  CHECK(!reading.take(good, SIZE_MAX));
  reading.inbox.begin(false);
  CHECK(reading.take(good, SIZE_MAX));
  CHECK(reading.records.size() == 1);
}

} // namespace millrace::net
