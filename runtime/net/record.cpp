// Records to bytes and back; record.h is the essay.
#include "net/record.h"

#include <algorithm>
#include <iterator>

#include "net/crc32c.h"
#include "net/value_record.h"

namespace millrace::net {
namespace {

// A type's body: its least and most length, and which fields of the head it has.
struct Shape {
  const char* name;
  uint32_t least, most;
  bool has_crossing, has_number, has_place;
  uint8_t flags_most = 0;
};
constexpr Shape kShapes[] = {
    {},
    {"HELLO", kHelloBytes, kHelloBytes + kLaterHelloBytesMax, false, false, false},
    {"WELCOME", kHelloBytes, kHelloBytes + kLaterHelloBytesMax, false, false, false},
    {"OPEN", kOpenBytesLeast, kOpenBytesMax, true, false, false},
    {"TICK", kTickBytesLeast, kSmallBodyBytesMax, true, true, false},
    {"DATA", 1, kChunkBytesMax, true, true, true, kValuesMax - 1},
    {"END", kTickBytesLeast, kTickBytesMax, true, true, false},
    {"STATE", kStateEntryBytes, kStateEntryBytes* kStateEntriesMax, false, false, false},
    {"PING", kPingBytes, kPingBytes, false, false, false},
    {"PONG", kPongBytes, kPongBytes, false, false, false},
    {"GOAWAY", kFarewellBytesLeast, kFarewellBytesMax, false, false, false},
    {"REFUSE", kFarewellBytesLeast, kFarewellBytesMax, false, false, false},
    {"MESSAGE", 1, kMessageChunkBytes, false, true, true, kLastChunk},
    {"CHANGE", kChangeBytesLeast, kChangeBytesMax, true, true, true},
};
static_assert(std::size(kShapes) == kRecordTypeLast + 1);
static_assert(kChangeBytesMax <= kSmallBodyBytesMax);
static_assert(kStateEntryBytes * kStateEntriesMax <= kSmallBodyBytesMax);

// Without control characters. A terminal gets it through printable(), which looks at the rest.
bool is_sentence(Bytes bytes) {
  return std::all_of(bytes.begin(), bytes.end(),
                     [](std::byte byte) { return byte >= std::byte{0x20} && byte != std::byte{0x7F}; });
}
std::string_view text_of(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// The place and length of a chunk. All but the last of a message are full, and so begin at a multiple of a full one.
Fault check_chunk(const Head& head) {
  const bool is_last = head.flags == kLastChunk;
  const uint64_t end = uint64_t{head.at} + head.length;
  if (end > kMessageBytesMax || (!is_last && end == kMessageBytesMax)) return Fault::message;
  if (!is_last && head.length != kMessageChunkBytes) return Fault::length;
  return head.at % kMessageChunkBytes == 0 ? Fault::none : Fault::place;
}

} // namespace

const char* name_of(RecordType type) {
  return static_cast<uint8_t>(type) <= kRecordTypeLast ? kShapes[static_cast<uint8_t>(type)].name : nullptr;
}

void write_head(const Head& head, std::span<std::byte, kHeadBytes> bytes) {
  ByteWriter writer(bytes);
  writer.put(static_cast<uint8_t>(head.type));
  writer.put(head.flags);
  writer.put(head.crossing);
  writer.put(head.length);
  writer.put(head.number);
  writer.put(head.at);
  writer.put(crc32c(writer.written()));
}

Fault read_head(std::span<const std::byte, kHeadBytes> bytes, Head& head) {
  ByteReader reader(bytes);
  const auto type = reader.get<uint8_t>();
  head.type = static_cast<RecordType>(type);
  head.flags = reader.get<uint8_t>();
  head.crossing = reader.get<uint16_t>();
  head.length = reader.get<uint32_t>();
  head.number = reader.get<uint64_t>();
  head.at = reader.get<uint32_t>();
  if (reader.get<uint32_t>() != crc32c(bytes.first<kHeadBytes - kCrcBytes>())) return Fault::head_checksum;
  if (type == 0 || type > kRecordTypeLast) return Fault::type;
  const Shape& shape = kShapes[type];
  if (head.length < shape.least || head.length > shape.most) return Fault::length;
  if (head.flags > shape.flags_most) return head.type == RecordType::data ? Fault::which_value : Fault::flags;
  if (head.crossing != 0 && !shape.has_crossing) return Fault::field;
  if (head.number != 0 && !shape.has_number) return Fault::field;
  if (head.at != 0 && !shape.has_place) return Fault::field;
  if (head.type == RecordType::message) return check_chunk(head);
  if (head.type == RecordType::change) return head.at < kChangesMax ? Fault::none : Fault::place;
  if (uint64_t{head.at} + head.length > kValueBytesMax) return Fault::place;
  return Fault::none;
}

void write_hello(const Hello& hello, ByteWriter& writer) {
  writer.put(kMagic);
  writer.put(hello.version_least);
  writer.put(hello.version_most);
  writer.put(hello.features);
  writer.put(hello.mandatory);
  writer.put_bytes(hello.node);
  writer.put(hello.session);
  writer.put(hello.pairing);
  writer.put(hello.run);
  writer.put(hello.revision);
  writer.put_bytes(hello.brief);
  writer.put(hello.lane);
  writer.put(hello.connection);
}

Fault read_hello(Bytes body, Hello& hello) {
  ByteReader reader(body);
  if (reader.get<uint32_t>() != kMagic) return Fault::magic;
  hello.version_least = reader.get<uint16_t>();
  hello.version_most = reader.get<uint16_t>();
  hello.features = reader.get<uint64_t>();
  hello.mandatory = reader.get<uint64_t>();
  reader.take_into(hello.node);
  hello.session = reader.get<uint64_t>();
  hello.pairing = reader.get<uint64_t>();
  hello.run = reader.get<uint64_t>();
  hello.revision = reader.get<uint32_t>();
  reader.take_into(hello.brief);
  hello.lane = reader.get<uint32_t>();
  hello.connection = reader.get<uint64_t>();
  if (!reader.good()) return Fault::body_short;
  if (hello.version_least == 0 || hello.version_least > hello.version_most) return Fault::version;
  // Only a later version may say more than these fields.
  if (!reader.at_end() && hello.version_most <= kVersionMost) return Fault::body_long;
  if ((hello.mandatory & ~hello.features) != 0) return Fault::feature;
  if (hello.session == 0) return Fault::session;
  if (hello.lane >= kLanesMax) return Fault::lane;
  return (hello.lane == 0) == (hello.connection == 0) ? Fault::none : Fault::lane;
}

void write_open(const Open& open, ByteWriter& writer) {
  writer.put(static_cast<uint8_t>(open.name.size()));
  writer.put_text(open.name);
  writer.put(open.depth);
  writer.put(static_cast<uint8_t>(open.delivery));
  writer.put(open.value_count);
  for (uint8_t i = 0; i < open.value_count; ++i) writer.put(open.format_hashes[i]);
  writer.put(open.expected);
  writer.put(open.credit);
}

Fault read_open(Bytes body, Open& open) {
  ByteReader reader(body);
  const Bytes name = reader.take(reader.get<uint8_t>());
  open.name = text_of(name);
  open.depth = reader.get<uint32_t>();
  const auto delivery = reader.get<uint8_t>();
  open.delivery = static_cast<Delivery>(delivery);
  open.value_count = reader.get<uint8_t>();
  if (!reader.good()) return Fault::body_short;
  if (name.size() > kCrossingNameBytesMax || !is_sentence(name)) return Fault::text;
  if (open.depth == 0 || open.depth > kDepthMax) return Fault::open_depth;
  if (delivery >= kDeliveryCount) return Fault::delivery;
  if (open.value_count > kValuesMax) return Fault::open_values;
  for (uint8_t i = 0; i < open.value_count; ++i) open.format_hashes[i] = reader.get<uint64_t>();
  open.expected = reader.get<uint64_t>();
  open.credit = reader.get<uint64_t>();
  if (!reader.good()) return Fault::body_short;
  if (!reader.at_end()) return Fault::body_long;
  if (open.credit < open.expected) return Fault::credit;
  return Fault::none;
}

// FNV-1a over the fields in the order of mr_format: small, and the same on every machine.
uint64_t hash_of(const mr_format& format) {
  uint64_t hash = 0xcbf29ce484222325u;
  const auto add = [&](uint64_t number) {
    for (int shift = 0; shift < 64; shift += 8) hash = (hash ^ ((number >> shift) & 0xFF)) * 0x100000001b3u;
  };
  for (const uint64_t number : {uint64_t{format.kind},
                                format.schema,
                                format.layout,
                                format.pixel_formats,
                                uint64_t{format.width},
                                uint64_t{format.height},
                                uint64_t{format.size_kind},
                                uint64_t{format.color},
                                uint64_t{format.range},
                                uint64_t{format.dtype_code},
                                uint64_t{format.dtype_bits},
                                uint64_t{format.dtype_lanes},
                                uint64_t{format.rank},
                                format.record_size,
                                format.record_count_max,
                                format.bytes_max,
                                uint64_t{format.primaries},
                                uint64_t{format.transfer},
                                uint64_t{format.aspect_num},
                                uint64_t{format.aspect_den}})
    add(number);
  for (uint32_t i = 0; i < MR_RANK_MAX; ++i) {
    add(static_cast<uint64_t>(format.shape[i]));
    add(format.shape_kind[i]);
  }
  return hash;
}

void write_tick(const Parcel& parcel, ByteWriter& writer) {
  writer.put(parcel.tick.clock);
  writer.put(parcel.tick.epoch);
  writer.put(parcel.tick.index);
  writer.put(parcel.tick.media_time_ns);
  writer.put(parcel.tick.deadline_ns);
  writer.put(parcel.tick.trace_id);
  writer.put(parcel.begun_ns);
  writer.put(parcel.begun_error_us);
  writer.put(parcel.previous);
  writer.put(parcel.gap_count);
  for (uint8_t i = 0; i < parcel.gap_count; ++i) {
    writer.put(parcel.gaps[i].cause);
    writer.put(parcel.gaps[i].ticks);
  }
  writer.put(parcel.value_count);
}

void write_values(const Parcel& parcel, ByteWriter& writer) {
  for (uint8_t i = 0; i < parcel.value_count; ++i) {
    const Value& value = parcel.values[i];
    writer.put(value.value ? kValueFull : kValueEmpty);
    if (value.value)
      write_value(*value.value, writer);
    else
      writer.put(value.cause);
  }
}

Fault read_tick(ByteReader& reader, Parcel& parcel) {
  parcel.tick.clock = reader.get<uint32_t>();
  parcel.tick.epoch = reader.get<uint32_t>();
  parcel.tick.index = reader.get<uint64_t>();
  parcel.tick.media_time_ns = reader.get<int64_t>();
  parcel.tick.deadline_ns = reader.get<int64_t>();
  parcel.tick.trace_id = reader.get<uint64_t>();
  parcel.begun_ns = reader.get<int64_t>();
  parcel.begun_error_us = reader.get<uint32_t>();
  parcel.previous = reader.get<uint64_t>();
  parcel.gap_count = reader.get<uint8_t>();
  if (!reader.good()) return Fault::body_short;
  if (parcel.tick.index == kNoIndex) return Fault::index;
  if (parcel.previous != kNoIndex && parcel.previous >= parcel.tick.index) return Fault::index;
  if (parcel.gap_count > kGapCausesMax) return Fault::gap;
  const uint64_t between = parcel.tick.index - parcel.previous - 1; // also right for kNoIndex, which is -1
  uint64_t told = 0;
  for (uint8_t i = 0; i < parcel.gap_count; ++i) {
    Gap& gap = parcel.gaps[i];
    gap.cause = reader.get<uint8_t>();
    gap.ticks = reader.get<uint64_t>();
    if (!reader.good()) return Fault::body_short;
    if (gap.cause >= kCausesMax) return Fault::cause;
    if (i > 0 && gap.cause <= parcel.gaps[i - 1].cause) return Fault::cause; // each once, in order
    if (gap.ticks == 0 || gap.ticks > between - told) return Fault::gap;
    told += gap.ticks;
  }
  if (told != between) return Fault::gap;
  parcel.value_count = reader.get<uint8_t>();
  if (!reader.good()) return Fault::body_short;
  return parcel.value_count <= kValuesMax ? Fault::none : Fault::which_value;
}

void write_change(const Change& change, ByteWriter& writer) {
  writer.put(change.epoch);
  writer.put(change.index);
  writer.put(change.number);
  writer.put(static_cast<uint8_t>(change.handler.size()));
  writer.put_text(change.handler);
  writer.put(static_cast<uint8_t>(change.param.size()));
  writer.put_text(change.param);
  writer.put(static_cast<uint16_t>(change.text.size()));
  writer.put_text(change.text);
}

Fault read_change(Bytes body, Change& change) {
  ByteReader reader(body);
  change.epoch = reader.get<uint32_t>();
  change.index = reader.get<uint64_t>();
  change.number = reader.get<uint64_t>();
  const Bytes handler = reader.take(reader.get<uint8_t>());
  const Bytes param = reader.take(reader.get<uint8_t>());
  const Bytes text = reader.take(reader.get<uint16_t>());
  if (!reader.good()) return Fault::body_short;
  if (!reader.at_end()) return Fault::body_long;
  if (change.index == kNoIndex) return Fault::index;
  if (change.number == 0) return Fault::number;
  const bool has_zero = std::find(text.begin(), text.end(), std::byte{0}) != text.end(); // a C string ends there
  if (handler.empty() || param.empty() || !is_sentence(handler) || !is_sentence(param)) return Fault::text;
  if (text.size() > kChangeTextBytesMax || has_zero) return Fault::text;
  change.handler = text_of(handler);
  change.param = text_of(param);
  change.text = text_of(text);
  return Fault::none;
}

namespace {

// The side that says a state.
constexpr uint8_t kOfReader = 0, kOfSender = 1, kOfStrandedSender = 2;

} // namespace

void write_state_entry(const StateEntry& entry, ByteWriter& writer) {
  writer.put(entry.crossing);
  writer.put(entry.of_sender ? (entry.sender.is_stranded ? kOfStrandedSender : kOfSender) : kOfReader);
  if (entry.of_sender) {
    writer.put(entry.sender.passed_ns);
    writer.put(entry.sender.after);
  } else {
    writer.put(entry.reader.acknowledged);
    writer.put(entry.reader.credit);
  }
}

Fault read_state_entry(ByteReader& reader, StateEntry& entry) {
  entry.crossing = reader.get<uint16_t>();
  const auto side = reader.get<uint8_t>();
  if (side > kOfStrandedSender) return Fault::flags;
  entry.of_sender = side != kOfReader;
  entry.sender.is_stranded = side == kOfStrandedSender;
  if (entry.of_sender) {
    entry.sender.passed_ns = reader.get<int64_t>();
    entry.sender.after = reader.get<uint64_t>();
  } else {
    entry.reader.acknowledged = reader.get<uint64_t>();
    entry.reader.credit = reader.get<uint64_t>();
  }
  return reader.good() ? Fault::none : Fault::body_short;
}

void write_pong(const Pong& pong, ByteWriter& writer) {
  writer.put(pong.times.t1);
  writer.put(pong.times.t2);
  writer.put(pong.times.t3);
  for (const LaneCount& lane : pong.lanes) {
    writer.put(lane.connection);
    writer.put(lane.bytes);
  }
}

Fault read_pong(Bytes body, Pong& pong) {
  ByteReader reader(body);
  pong.times.t1 = reader.get<int64_t>();
  pong.times.t2 = reader.get<int64_t>();
  pong.times.t3 = reader.get<int64_t>();
  for (LaneCount& lane : pong.lanes) {
    lane.connection = reader.get<uint64_t>();
    lane.bytes = reader.get<uint64_t>();
    if (lane.connection == 0 && lane.bytes != 0) return Fault::field;
  }
  if (!reader.good()) return Fault::body_short;
  return reader.at_end() ? Fault::none : Fault::body_long;
}

void write_farewell(const Farewell& farewell, ByteWriter& writer) {
  const std::string_view sentence = farewell.sentence.substr(0, kSentenceBytesMax);
  writer.put(static_cast<uint16_t>(farewell.code));
  writer.put(static_cast<uint16_t>(sentence.size()));
  writer.put_text(sentence);
}

Fault read_farewell(Bytes body, Farewell& farewell) {
  ByteReader reader(body);
  farewell.code = static_cast<Fault>(reader.get<uint16_t>());
  const Bytes sentence = reader.take(reader.get<uint16_t>());
  if (!reader.good()) return Fault::body_short;
  if (!reader.at_end()) return Fault::body_long;
  if (sentence.size() > kSentenceBytesMax || !is_sentence(sentence)) return Fault::text;
  farewell.sentence = text_of(sentence);
  return Fault::none;
}

} // namespace millrace::net
