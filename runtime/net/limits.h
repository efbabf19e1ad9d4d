// Every limit of a link, each with its reason: nothing that a peer says is larger than what stands here.
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace::net {

inline constexpr uint64_t kKiB = 1024, kMiB = 1024 * kKiB;
inline constexpr int64_t kMillisecond = 1'000'000, kSecond = 1'000 * kMillisecond;

// ---- one connection ------------------------------------------------------------------------------------------------

// One control connection, and up to this many for data. One TLS connection carries 2 GB/s; four fill a 50 Gbit/s line.
inline constexpr uint32_t kDataLanesMax = 4;
inline constexpr uint32_t kLanesMax = 1 + kDataLanesMax;
// A data record. Larger ones are no faster on a socket, and the crossings of a connection take turns by records.
inline constexpr uint32_t kChunkBytesMax = 1 * kMiB;
// Any other record: 64 values of at most 193 bytes, with the tick's own fields; 1,024 entries of a state.
inline constexpr uint32_t kSmallBodyBytesMax = 32 * kKiB;
// As much is read at once where records are small. At most this much of a frame is copied in user space.
inline constexpr size_t kInboxBytes = 64 * kKiB;
// Heads and small records that wait to be written. Two of the largest records find room beside each other.
inline constexpr size_t kOutboxBytes = 128 * kKiB;
// Pieces that one write may take. Linux takes 1,024 (IOV_MAX).
inline constexpr size_t kPiecesMax = 512;
// A lane prepares no more records once this much waits to be written: what is younger stays with the run, where a newer
// tick may still take its place.
inline constexpr uint64_t kWaitingBytesMax = 256 * kKiB;

// ---- crossings -----------------------------------------------------------------------------------------------------

inline constexpr uint32_t kCrossingsMax = 1024;        // between two nodes; a pipeline of 1,000 handlers has fewer
inline constexpr uint32_t kValuesMax = 64;             // in one crossing
inline constexpr uint32_t kDepthMax = 64;              // parcels that are not acknowledged; what fills a long way
inline constexpr uint64_t kValueBytesMax = 256 * kMiB; // one value: twice an 8K picture of four 16-bit channels
inline constexpr uint32_t kCausesMax = 32;             // numbers of causes, of which a few are in use
inline constexpr uint32_t kGapCausesMax = 8;           // causes that one gap between two parcels may have
inline constexpr size_t kCrossingNameBytesMax = 96;    // "main/0>gpu"
inline constexpr size_t kChangesMax = 1024;            // live changes before one parcel: one of each parameter
inline constexpr size_t kChangeNameBytesMax = 255;     // the name of a handler or a parameter
inline constexpr size_t kChangeTextBytesMax = 4096;    // a value; a line of text on a picture is shorter
inline constexpr size_t kSentenceBytesMax = 512;       // in REFUSE and GOAWAY

// ---- messages ------------------------------------------------------------------------------------------------------

// A message is a document of the coordination layer. The largest is a plan: 4 KiB for each of 1,000 handlers.
inline constexpr uint64_t kMessageBytesMax = 4 * kMiB;
// A ping waits for one chunk, and for what the system's buffers hold: 13 ms at 10 Mbit/s. Its head adds 0.2 %.
inline constexpr uint32_t kMessageChunkBytes = 16 * kKiB;
// Messages of one direction that wait at one end, to be written or to be taken: four of the largest. One read of an
// inbox brings 2,621 of the smallest, so an owner that takes all after each call never has more.
inline constexpr uint64_t kMessagesWaitingBytesMax = 16 * kMiB;
inline constexpr size_t kMessagesWaitingMax = 4096;
// Bounds what reading them costs: 16 of the largest, or 2.7 million of one byte, since heads count too.
inline constexpr uint64_t kMessageBytesPerMinute = 64 * kMiB;
// A sender keeps to half of it, so that it is within the rate also if a minute's bytes come late and at once.
inline constexpr uint64_t kMessageBytesPerMinuteSaid = kMessageBytesPerMinute / 2;

// ---- time ----------------------------------------------------------------------------------------------------------

inline constexpr int64_t kPingEveryNs = 500 * kMillisecond;
// A peer that is heard and leaves so many unanswered answers none: 10 s, for a line as slow as kLaneSilentNs allows.
inline constexpr uint32_t kPingsUnansweredMax = 20;
inline constexpr int64_t kSuspectAfterNs = 1'500 * kMillisecond; // three pings were not answered
inline constexpr int64_t kAwayAfterNs = 3 * kSecond;             // six
inline constexpr uint32_t kRoundTripsKept = 16;                  // 8 s of pings, from which the least is taken
// Two machines' clocks, to each other: each is within 200 ppm of the true time, and 1.0002 / 0.9998 is 400.08 ppm.
inline constexpr int64_t kDriftPpmMax = 401;
inline constexpr int64_t kStateEveryNs = 5 * kMillisecond;
inline constexpr uint32_t kStateEveryParcels = 8;
inline constexpr int64_t kRedialFirstNs = 100 * kMillisecond, kRedialMaxNs = 5 * kSecond;
inline constexpr int64_t kGreetingNs = 5 * kSecond; // from a connection to its WELCOME
// A parcel that has come whole is acknowledged within kStateEveryNs, before the next PONG.
inline constexpr int64_t kStateSilentNs = 3 * kSecond;
// Bytes of a data connection that have not come for so long, while no others came either, have vanished. TCP itself
// cuts a connection whose bytes nobody acknowledges after 5 s, and a packet may be lost five times (6.2 s) before it
// gets through. A line of 1.7 kB/s brings a whole record of TLS (16 KiB) within it: one that is slower may be cut.
inline constexpr int64_t kLaneSilentNs = 10 * kSecond;
// The peer has said for so long that it no longer has a data connection. The end of the stream comes sooner if it
// comes.
inline constexpr int64_t kLaneGoneNs = 1 * kSecond;

// ---- strangers -----------------------------------------------------------------------------------------------------

inline constexpr uint64_t kStrangerBytesMax = 16 * kKiB; // before a peer is known; a handshake of TLS takes 2 to 5 KiB
inline constexpr int64_t kStrangerNs = 5 * kSecond;
inline constexpr uint32_t kStrangersMax = 128;        // handshakes at once; one takes 40 KiB of OpenSSL's memory
inline constexpr uint32_t kStrangersOfAddressMax = 8; // from one address
inline constexpr uint32_t kStrangersPerSecond = 20, kStrangersBurst = 64; // an RSA-free handshake takes 0.3 ms

} // namespace millrace::net
