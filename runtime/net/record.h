// The wire, mrl/1: a record's head and the fields of each type, to bytes and back. No state.
//
// Problem. Two processes exchange ticks with values of up to 256 MiB over connections that may end at any byte. A
// frame should be copied nowhere, small records should share a system call, and nothing that a peer writes may size an
// allocation or be used as an offset before it was checked.
//
// Why this way. Everything is a record: a head of 24 bytes, then a body whose length the head says. A value's bytes are
// records of their own (`data`), of at most 1 MiB, so that crossings take turns on a connection, and so that a reader
// knows the place of each byte before it reads it: straight in the block. A tick's record comes first and says which
// values follow with how many bytes, so its bodies need no further description. Numbers are little endian, fields have
// fixed places, and no field is optional: what a version adds comes at the end of a body.
//
// A connection carries, in this order: HELLO (by the side that dialled) and WELCOME; then on the control connection
// STATE, PING, PONG, MESSAGE, GOAWAY, REFUSE, and on a data connection OPEN (from the reader of each crossing), then
// CHANGE before the TICK that it is for, TICK with its DATA, or END. A data connection has a number, which its HELLO
// says; PONG says how many bytes of each have come. MESSAGE is a chunk of a document of `fleet` (messages.h), whose
// bytes have no meaning here.
//
//   type u8 | flags u8 | crossing u16 | length u32 | number u64 | at u32 | crc u32        24 bytes
//
// Invariants.
//  - `crc` is the CRC-32C of the 20 bytes before it. On a connection without TLS a body ends in its own CRC-32C, which
//    `length` does not count.
//  - `length` is at most kChunkBytesMax for DATA, kMessageChunkBytes for MESSAGE, kSmallBodyBytesMax for the rest, and
//    exact for types of a fixed size and for a MESSAGE that is not the last of its message.
//  - `number` counts the parcels of a crossing, or the messages of a connection, without gaps.
//  - `at` is the first byte of DATA within its value, or of MESSAGE within its message, or counts the CHANGEs before
//    one parcel from 0 on.
//  - Both are 0 in types that have no use for them, and so are flags that a type does not have.
//  - A record has one spelling: what is read and written again is the same bytes.
//
// Numbers. 24 bytes are 0.002 % of a chunk. A parcel of 1 KiB takes 24 + 24 + about 130 bytes beside its own.
//
// Limits. It is no general message format: what a record means, and when it may come, is in session.h.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "net/bytes.h"
#include "net/crossing.h"
#include "net/fault.h"
#include "net/limits.h"

namespace millrace::net {

inline constexpr size_t kHeadBytes = 24;
inline constexpr size_t kCrcBytes = 4;

enum class RecordType : uint8_t {
  hello = 1,
  welcome = 2,
  open = 3,
  tick = 4,
  data = 5,
  end = 6,
  state = 7,
  ping = 8,
  pong = 9,
  go_away = 10,
  refuse = 11,
  message = 12,
  change = 13,
};
inline constexpr uint8_t kRecordTypeLast = 13;
const char* name_of(RecordType type);

struct Head {
  RecordType type{};
  uint8_t flags = 0; // DATA: which value; MESSAGE: kLastChunk
  uint16_t crossing = 0;
  uint32_t length = 0;
  uint64_t number = 0; // TICK, DATA, END, MESSAGE; CHANGE: of the parcel that follows
  uint32_t at = 0;     // DATA, MESSAGE, CHANGE
};
inline constexpr uint8_t kLastChunk = 1; // the chunk ends its message

void write_head(const Head& head, std::span<std::byte, kHeadBytes> bytes);
// Faults: checksum, type, length, flags, place, and fields that the type does not have.
Fault read_head(std::span<const std::byte, kHeadBytes> bytes, Head& head);

// ---- HELLO, WELCOME ------------------------------------------------------------------------------------------------

inline constexpr uint32_t kMagic = 0x316C726Du; // "mrl1"
inline constexpr uint16_t kVersionLeast = 1, kVersionMost = 1;

// Both say the same fields. In a WELCOME the two versions are the chosen one, and the features those of both sides.
struct Hello {
  uint16_t version_least = kVersionLeast, version_most = kVersionMost;
  uint64_t features = 0;  // offered; a peer that does not know one ignores it
  uint64_t mandatory = 0; // features without which this side cannot work
  std::array<std::byte, 32> node{};
  uint64_t session = 0;              // random, of this process; not 0
  uint64_t pairing = 0;              // as this side remembers it; 0: none
  uint64_t run = 0;                  // the run's random number
  uint32_t revision = 0;             // the fleet's plan has this number
  std::array<std::byte, 32> brief{}; // the plan's hash
  uint32_t lane = 0;                 // 0: control
  // Counts the data connections that the dialling process has made, from 1 on; 0 on control. WELCOME repeats it.
  uint64_t connection = 0;
};
inline constexpr uint32_t kLaterHelloBytesMax = 1024; // as much more may a later version say
inline constexpr uint32_t kHelloBytes = 4 + 2 + 2 + 8 + 8 + 32 + 8 + 8 + 8 + 4 + 32 + 4 + 8;

void write_hello(const Hello& hello, ByteWriter& writer);
Fault read_hello(Bytes body, Hello& hello);

// ---- OPEN ----------------------------------------------------------------------------------------------------------

// The reader of a crossing says what it expects on this connection. Its number is in the head.
struct Open {
  std::string_view name; // points into the body
  uint32_t depth = 0;
  Delivery delivery{};
  uint8_t value_count = 0;
  std::array<uint64_t, kValuesMax> format_hashes{};
  uint64_t expected = 0; // the number of the next parcel: all before it have arrived
  uint64_t credit = 0;   // numbers below this may be sent
};

inline constexpr uint32_t kOpenBytesLeast = 1 + 4 + 1 + 1 + 8 + 8;
inline constexpr uint32_t kOpenBytesMax = kOpenBytesLeast + kCrossingNameBytesMax + 8 * kValuesMax;
void write_open(const Open& open, ByteWriter& writer);
Fault read_open(Bytes body, Open& open);
// A hash of all that two plans must agree on for one value.
uint64_t hash_of(const mr_format& format);

// ---- TICK, END -----------------------------------------------------------------------------------------------------

inline constexpr uint32_t kTickBytesLeast = 4 + 4 + 8 + 8 + 8 + 8 + 8 + 4 + 8 + 1 + 1;
inline constexpr uint32_t kTickBytesMax = kTickBytesLeast + (1 + 8) * kGapCausesMax; // without values
// The fields before a tick's values; END has them alone, with no values.
void write_tick(const Parcel& parcel, ByteWriter& writer);
Fault read_tick(ByteReader& reader, Parcel& parcel); // leaves the reader at the first value

// A value begins with one byte: 0 for an empty one, then its cause; 1 for one that has a record (value_record.h).
inline constexpr uint8_t kValueEmpty = 0, kValueFull = 1;
void write_values(const Parcel& parcel, ByteWriter& writer);

// ---- CHANGE --------------------------------------------------------------------------------------------------------

inline constexpr uint32_t kChangeBytesLeast = 4 + 8 + 8 + 1 + 1 + 1 + 1 + 2;
inline constexpr uint32_t kChangeBytesMax = kChangeBytesLeast - 2 + 2 * kChangeNameBytesMax + kChangeTextBytesMax;
void write_change(const Change& change, ByteWriter& writer);
Fault read_change(Bytes body, Change& change);

// ---- STATE ---------------------------------------------------------------------------------------------------------

// One crossing, by the reader: all below `acknowledged` have arrived, all below `credit` may be sent. Or by the sender:
// once all parcels below `after` have arrived, the clock has passed `passed_ns`. All of them only grow. A sender that
// is stranded has no parcel after these before a third node that is away is back. It says so to a peer with that
// feature.
struct ReaderState {
  uint64_t acknowledged = 0, credit = 0;
};
struct SenderState {
  int64_t passed_ns = INT64_MIN;
  uint64_t after = 0;
  bool is_stranded = false;
};
inline constexpr uint64_t kFeatureStranded = 1; // HELLO: it understands a sender that is stranded
struct StateEntry {
  uint16_t crossing = 0;
  bool of_sender = false;
  ReaderState reader;
  SenderState sender;
};
inline constexpr size_t kStateEntryBytes = 2 + 1 + 8 + 8;
inline constexpr size_t kStateEntriesMax = kCrossingsMax;

void write_state_entry(const StateEntry& entry, ByteWriter& writer);
Fault read_state_entry(ByteReader& reader, StateEntry& entry);

// ---- PING, PONG ----------------------------------------------------------------------------------------------------

// t1: PING left, t2: it came, t3: PONG left; t1 is on the clock of the side that pings, the others on the peer's.
struct Times {
  int64_t t1 = 0, t2 = 0, t3 = 0;
};
// The bytes of a data connection that the side which says it has received (lane_watch.h).
struct LaneCount {
  uint64_t connection = 0; // as its HELLO said; 0: none, and then there are no bytes
  uint64_t bytes = 0;
};
struct Pong {
  Times times;
  std::array<LaneCount, kDataLanesMax> lanes; // from lane 1 on; what a link does not have is 0
};
inline constexpr uint32_t kPingBytes = 8, kPongBytes = 3 * 8 + 16 * kDataLanesMax;
void write_pong(const Pong& pong, ByteWriter& writer);
Fault read_pong(Bytes body, Pong& pong);

// ---- GOAWAY, REFUSE ------------------------------------------------------------------------------------------------

struct Farewell {
  Fault code{};
  std::string_view sentence; // points into the body; without control characters
};
inline constexpr uint32_t kFarewellBytesLeast = 2 + 2;
inline constexpr uint32_t kFarewellBytesMax = kFarewellBytesLeast + kSentenceBytesMax;
void write_farewell(const Farewell& farewell, ByteWriter& writer);
Fault read_farewell(Bytes body, Farewell& farewell);

} // namespace millrace::net
