// One direction of a connection without its sockets: bytes that wait, each with the time at which it is due.
//
// The proxy reads straight into room() and writes straight from next(): bytes are copied by the kernel alone. Faults
// that concern bytes (flip, half-open, limit) or set their time (latency, jitter) act when bytes come in; faults that
// hold bytes back (stall, bandwidth, slice) act when they leave. Bits are flipped by their place in the stream, so that
// the same seed flips the same bits however the kernel divides the reads. Times are arguments: tests need no clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>

#include "draw.h"
#include "rules.h"

namespace millrace::chaos {

// Bytes that wait in one direction. Then the proxy stops reading, and the sender's own window fills. The kernel's
// buffers come in addition. With a latency this bounds the rate as well: 4 MiB in 20 ms are 200 MB/s.
inline constexpr size_t kBufferedMax = size_t{4} << 20;
// Different times among these bytes: 65,536 writes of a byte each are 1 MiB of records.
inline constexpr size_t kMarksMax = size_t{1} << 16;
// One read or write. Reading and writing the same 256 KiB stays within a processor's second cache.
inline constexpr size_t kTransferMax = size_t{256} << 10;
// With a bandwidth each write is this long at most, so that bytes pass evenly.
inline constexpr int64_t kBandwidthStepNs = 2'000'000;
// A timer that fires late is made up for by this much, so that the mean rate is met while bytes wait.
inline constexpr int64_t kBandwidthLagMaxNs = 20'000'000;

// How a direction ends: by its sender's FIN, by its sender's reset, by a cut, or by a limit, which cuts the other
// direction too.
enum class Ending : uint8_t { in_order, reset, cut, limit };

// The answer of Stream::next(): one of the three, or nothing until something changes.
struct Next {
  std::span<const std::byte> bytes = {};
  std::optional<Ending> ending = {};
  std::optional<int64_t> wait_until_ns = {};
};

class Stream {
 public:
  // `part` is the number of this direction among all: each draws from generators of its own.
  Stream(uint64_t seed, uint64_t part) : flips_(seed, 2 * part), draw_(seed, 2 * part + 1) {}

  void set(const Conditions& conditions);

  // The place for the next bytes from the sender; empty while the stream is full.
  std::span<std::byte> room();
  // `count` bytes came into room().
  void received(size_t count, int64_t now_ns);
  // The sender will send no more. The ending leaves after the bytes; only the first call counts.
  void end(Ending ending, int64_t now_ns);
  // A cut: bytes that wait leave without delay or stall, and the ending follows them.
  void cut();
  // Drops what waits: nobody will take it.
  void discard();

  // The next thing to pass on, which stays the same until sent(), but for the length of a slice.
  Next next(int64_t now_ns);
  void sent(size_t count, int64_t now_ns);

  size_t waiting() const { return size_; }
  uint64_t bits_flipped() const { return bits_flipped_; }
  uint64_t bytes_vanished() const { return bytes_vanished_; }

 private:
  struct Mark {
    int64_t due_ns;
    size_t count;
  };

  int64_t due_at(int64_t now_ns);
  void flip(std::span<std::byte> bytes);
  void draw_flip_gap();

  Draw flips_; // draws in the order of bytes alone
  Draw draw_;  // draws for each read and write
  Conditions conditions_;
  std::unique_ptr<std::byte[]> ring_; // kBufferedMax bytes, from the first read on
  size_t first_ = 0, size_ = 0;
  std::deque<Mark> marks_;
  int64_t last_due_ns_ = 0; // later bytes are not due earlier
  int64_t free_at_ns_ = 0;  // the bandwidth is used up to here
  int64_t bytes_to_flip_ = 0;
  int64_t limit_left_ = 0;
  std::optional<Ending> ending_;
  int64_t ending_due_ns_ = 0;
  bool is_hurried_ = false;
  uint64_t bits_flipped_ = 0, bytes_vanished_ = 0;
};

} // namespace millrace::chaos
