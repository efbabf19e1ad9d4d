// Looks at one record as a peer may send it: it is refused, or it is written again as the same bytes.
//
// The first 24 bytes are a head, the rest is its body. The head is looked at as it came, and once more with its
// checksum and length put right, so that its fields are reached.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "net/crc32c.h"
#include "net/incoming.h"
#include "net/messages.h"
#include "net/record.h"
#include "net/value_record.h"

namespace millrace::net {
namespace fuzz {

// A crossing of three values, whose blocks are one byte larger than is said, to see that nothing is written there.
class RecordReader : public Arrival {
 public:
  static CrossingPlan plan() {
    CrossingPlan plan;
    plan.name = "main/0>gpu";
    plan.depth = 4;
    plan.formats.resize(3);
    for (mr_format& format : plan.formats) format.kind = MR_KIND_PACKET;
    plan.formats[1].kind = MR_KIND_RECORDS;
    plan.capacities = {64, 64, 0};
    return plan;
  }

  Room room(uint32_t value) override { return {&values_[value], blocks_[value].data(), plan_.capacities[value]}; }
  void arrive(const Parcel& parcel) override {
    ++arrived_;
    parcel_ = parcel;
  }
  uint64_t credit() const override { return arrived_ + plan_.depth; }
  void passed(int64_t) override {}

  const Parcel& parcel() const { return parcel_; }
  uint64_t arrived() const { return arrived_; }
  bool is_whole() const {
    return std::all_of(blocks_.begin(), blocks_.end(), [](const auto& block) { return block[64] == 0xA5; });
  }

 private:
  CrossingPlan plan_ = plan();
  std::array<mr_value, 3> values_{};
  std::array<std::array<uint8_t, 65>, 3> blocks_ = [] {
    std::array<std::array<uint8_t, 65>, 3> blocks;
    for (auto& block : blocks) block.fill(0xA5);
    return blocks;
  }();
  Parcel parcel_;
  uint64_t arrived_ = 0;
};

inline bool is_same(const ByteWriter& written, Bytes bytes) {
  return written.fits() && written.size() == bytes.size() &&
         std::equal(bytes.begin(), bytes.end(), written.written().begin());
}

// A body that `read` accepts is written as the same bytes by `write`.
template <class Fields>
const char* look_at(Bytes body, Fault (*read)(Bytes, Fields&), void (*write)(const Fields&, ByteWriter&), size_t most) {
  Fields fields;
  const Fault fault = read(body, fields);
  if (fault >= Fault::count) return "a fault has a name";
  if (fault != Fault::none) return nullptr;
  std::array<std::byte, 8192> room;
  ByteWriter writer(std::span<std::byte>(room).first(std::max(most, body.size())));
  write(fields, writer);
  return is_same(writer, body) ? nullptr : "what is read is written as the same bytes";
}

inline const char* look_at_tick(const Head& head, Bytes body) {
  ByteReader reader(body);
  Parcel parcel;
  if (read_tick(reader, parcel) == Fault::none) {
    std::array<std::byte, 256> room;
    ByteWriter writer(room);
    write_tick(parcel, writer);
    if (!is_same(writer, body.first(body.size() - reader.rest().size()))) return "a tick is written as it was read";
  }
  // The whole record, as the reader of a crossing takes it.
  static RecordReader arrival;
  static Incoming incoming(RecordReader::plan(), arrival);
  incoming.begin_pairing();
  incoming.open();
  Head at_0 = head;
  at_0.number = 0;
  const uint64_t before = arrival.arrived();
  const Fault fault = incoming.read_tick(at_0, body);
  if (!arrival.is_whole()) return "nothing is written beyond a block";
  if (fault != Fault::none) return arrival.arrived() == before ? nullptr : "a refused parcel does not arrive";
  if (arrival.arrived() == before) return nullptr; // its bytes are still to come
  const Parcel& arrived = arrival.parcel();
  std::array<std::byte, 1024> room;
  ByteWriter writer(room);
  write_tick(arrived, writer);
  write_values(arrived, writer);
  return is_same(writer, body) ? nullptr : "a parcel is written as it was read";
}

inline const char* look_at_state(Bytes body) {
  ByteReader reader(body);
  while (!reader.at_end()) {
    const Bytes before = reader.rest();
    StateEntry entry;
    if (read_state_entry(reader, entry) != Fault::none) return nullptr;
    std::array<std::byte, kStateEntryBytes> room;
    ByteWriter writer(room);
    write_state_entry(entry, writer);
    if (!is_same(writer, before.first(kStateEntryBytes))) return "a state is written as it was read";
  }
  return nullptr;
}

// A chunk is refused, or is a message, or what a message begins with.
inline const char* look_at_message(const Head& head, Bytes body) {
  IncomingMessages messages;
  const Fault fault = messages.read(head, body, 0);
  if (fault >= Fault::count) return "a fault has a name";
  std::string text;
  if (!messages.take(text)) return nullptr;
  if (fault != Fault::none || head.number != 0 || head.at != 0) return "a message begins at its first byte";
  const Bytes bytes = std::as_bytes(std::span(text.data(), text.size()));
  return std::equal(bytes.begin(), bytes.end(), body.begin(), body.end()) ? nullptr
                                                                          : "a message is what its chunks were";
}

inline const char* look_at_body(const Head& head, Bytes body) {
  switch (head.type) {
    case RecordType::hello:
    case RecordType::welcome: {
      Hello hello;
      // Fields of a later version are not kept.
      const bool is_later = read_hello(body, hello) == Fault::none && hello.version_most > kVersionMost;
      return look_at(is_later ? body.first(kHelloBytes) : body, read_hello, write_hello, kHelloBytes);
    }
    case RecordType::open: return look_at(body, read_open, write_open, 0);
    case RecordType::tick:
    case RecordType::end: return look_at_tick(head, body);
    case RecordType::state: return look_at_state(body);
    case RecordType::pong: return look_at(body, read_pong, write_pong, kPongBytes);
    case RecordType::go_away:
    case RecordType::refuse: return look_at(body, read_farewell, write_farewell, 0);
    case RecordType::message: return look_at_message(head, body);
    case RecordType::change: return look_at(body, read_change, write_change, 0);
    default: return nullptr;
  }
}

inline const char* look_at_head(std::span<const std::byte, kHeadBytes> bytes, Head& head) {
  const Fault fault = read_head(bytes, head);
  if (fault >= Fault::count) return "a fault has a name";
  if (fault != Fault::none) return nullptr;
  if (!name_of(head.type)) return "a type has a name";
  std::array<std::byte, kHeadBytes> again;
  write_head(head, again);
  return std::equal(bytes.begin(), bytes.end(), again.begin()) ? nullptr : "a head is written as it was read";
}

} // namespace fuzz

// Returns the rule that is broken; null if none is.
inline const char* look_at_record(Bytes input) {
  if (input.size() < kHeadBytes) return nullptr;
  Head head;
  if (const char* rule = fuzz::look_at_head(input.first<kHeadBytes>(), head)) return rule;
  const Bytes body = input.subspan(kHeadBytes);
  std::array<std::byte, kHeadBytes> repaired;
  std::copy_n(input.begin(), kHeadBytes, repaired.begin());
  const auto put = [&](size_t at, uint32_t number) {
    ByteWriter writer(std::span<std::byte>(repaired).subspan(at, 4));
    writer.put(number);
  };
  put(kHeadBytes - kCrcBytes, crc32c(Bytes(repaired).first(kHeadBytes - kCrcBytes)));
  if (const char* rule = fuzz::look_at_head(repaired, head)) return rule;
  put(4, static_cast<uint32_t>(body.size()));
  put(kHeadBytes - kCrcBytes, crc32c(Bytes(repaired).first(kHeadBytes - kCrcBytes)));
  if (const char* rule = fuzz::look_at_head(repaired, head)) return rule;
  head.type = static_cast<RecordType>(1 + static_cast<uint8_t>(input[0]) % kRecordTypeLast);
  return fuzz::look_at_body(head, body);
}

} // namespace millrace::net
