// Records as bytes, made one at a time: as a peer writes them, or as it should not.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "net/crc32c.h"
#include "net/record.h"
#include "net/value_record.h"

namespace millrace::net::test {

using Buffer = std::vector<std::byte>;

// Bytes that `write` puts into a ByteWriter.
template <class Write>
Buffer body_of(Write write) {
  Buffer bytes(kSmallBodyBytesMax + 1024);
  ByteWriter writer(bytes);
  write(writer);
  bytes.resize(writer.size());
  return bytes;
}

// A record whose length and checksums are right, whatever its fields are.
inline Buffer record_of(Head head, Bytes body = {}, bool checks_bodies = true) {
  head.length = static_cast<uint32_t>(body.size());
  Buffer bytes(kHeadBytes);
  write_head(head, std::span<std::byte, kHeadBytes>(bytes.data(), kHeadBytes));
  bytes.insert(bytes.end(), body.begin(), body.end());
  if (!checks_bodies) return bytes;
  std::array<std::byte, kCrcBytes> checksum;
  ByteWriter(checksum).put(crc32c(body));
  bytes.insert(bytes.end(), checksum.begin(), checksum.end());
  return bytes;
}
inline Buffer record_of(RecordType type, Bytes body = {}, bool checks_bodies = true) {
  Head head;
  head.type = type;
  return record_of(head, body, checks_bodies);
}

// The checksum of a head whose bytes were changed.
inline void repair_head(Buffer& record) {
  ByteWriter(std::span<std::byte>(record).subspan(kHeadBytes - kCrcBytes))
      .put(crc32c(Bytes(record).first(kHeadBytes - kCrcBytes)));
}

inline Buffer bytes_from(const std::string& hex) {
  Buffer bytes;
  for (size_t at = 0; at + 1 < hex.size(); at += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(at, 2), nullptr, 16)));
  return bytes;
}
inline std::string hex_of(Bytes bytes) {
  std::string text;
  for (const std::byte byte : bytes)
    for (const unsigned digit : {static_cast<unsigned>(byte) >> 4, static_cast<unsigned>(byte) & 15})
      text += "0123456789abcdef"[digit];
  return text;
}

// A good body of each type.
inline Hello some_hello() {
  Hello hello;
  hello.features = 6;
  hello.mandatory = 2;
  hello.node[0] = std::byte{0xAB};
  hello.node[31] = std::byte{0xCD};
  hello.session = 0x1122334455667788;
  hello.pairing = 3;
  hello.run = 4;
  hello.revision = 5;
  hello.brief[1] = std::byte{7};
  hello.lane = 1;
  hello.connection = 9;
  return hello;
}
inline Open some_open() {
  Open open;
  open.name = "main/0>gpu";
  open.depth = 4;
  open.delivery = Delivery::reliable;
  open.value_count = 2;
  open.format_hashes = {0x0102030405060708, 9};
  open.expected = 5;
  open.credit = 9;
  return open;
}
// Two ticks were left out; the first value is a packet of 3 bytes, the second is empty.
inline Buffer some_tick(uint8_t value_count = 2) {
  Parcel parcel;
  parcel.tick.clock = 1;
  parcel.tick.epoch = 2;
  parcel.tick.index = 10;
  parcel.tick.media_time_ns = -4;
  parcel.tick.deadline_ns = 5;
  parcel.tick.trace_id = 6;
  parcel.begun_ns = 7;
  parcel.begun_error_us = 8;
  parcel.previous = 7;
  parcel.gap_count = 2;
  parcel.gaps[0] = {kCauseLink, 1};
  parcel.gaps[1] = {kCauseAway, 1};
  parcel.value_count = value_count;
  return body_of([&](ByteWriter& writer) {
    write_tick(parcel, writer);
    if (value_count == 0) return;
    mr_value value{};
    value.header.kind = MR_KIND_PACKET;
    value.header.present = 1;
    value.header.extent_bytes = 3;
    value.as.packet.codec = 0x34363248;
    writer.put(kValueFull);
    write_value(value, writer);
    writer.put(kValueEmpty);
    writer.put(kCauseAway);
  });
}
inline Buffer some_state() {
  return body_of([](ByteWriter& writer) {
    write_state_entry({1, false, {5, 9}, {}}, writer);
    write_state_entry({2, true, {}, {-3, 4}}, writer);
  });
}
inline Pong some_pong() {
  Pong pong;
  pong.times = {1, -2, 3};
  pong.lanes[0] = {4, 5};
  pong.lanes[3] = {6, 0};
  return pong;
}
inline Buffer some_change() {
  return body_of([](ByteWriter& writer) { write_change({2, 10, 7, "blur", "sigma", "2.5"}, writer); });
}

inline Buffer some_farewell() {
  return body_of([](ByteWriter& writer) { write_farewell({Fault::leaving, sentence_of(Fault::leaving)}, writer); });
}

} // namespace millrace::net::test
