// A simulated network over virtual time: connections that are slow, jittered, sliced, cut, half open or one way only.
//
// A connection behaves as TCP does, seen from above. Bytes keep their order, and none is missing before another. A
// write is partial when the socket's buffer is full, and a reader that does not read blocks the writer. What was
// written before a close arrives after it and before the end. A close with unread bytes resets the connection instead:
// once the reset arrives, the other end neither reads nor writes. An end whose connection was cut learns of it when the
// network says so, or at its next write once the other end is gone.
//
// Single threaded. Calls return at once; `on_ready` is called by an event of the virtual time when an end may be able
// to read or write again. A network outlives its ends.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "device/timeline.h"
#include "net/bytes.h"
#include "net/limits.h"
#include "observe/random.h"

namespace millrace::net::sim {

using Address = uint32_t;

// One direction between two addresses.
struct Line {
  int64_t latency_ns = 100'000;
  int64_t jitter_ns = 0;            // up to this much more, drawn for each write
  uint64_t bytes_per_second = 0;    // for each connection; 0: no limit
  size_t buffer_bytes = 256 * kKiB; // written and not read: both sockets' buffers
  size_t slice_most = 0;            // a read gives from 1 to this many bytes; 0: all that is there
  bool blocked = false;             // nothing arrives, and nobody can dial
};

enum class Moved : uint8_t {
  some,
  would_block, // nothing moved; on_ready is called when it is worth another try
  closed,      // read: the peer has ended the stream, and all that it wrote was read
  failed,      // the connection is of no further use
};
struct Transfer {
  Moved moved = Moved::failed;
  size_t bytes = 0; // more than 0 with `some` alone
};

struct Connection;

// One end of a connection. It is closed with the object.
class End {
 public:
  End(std::shared_ptr<Connection> connection, size_t side);
  ~End();
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  Transfer read(std::span<std::byte> room);
  Transfer write(std::span<const Bytes> pieces);
  // Ends this direction; reading goes on.
  void shut();
  void on_ready(std::function<void()> ready);
  // The connection's number; they count from 0 in the order in which they were made.
  uint64_t number() const;

 private:
  std::shared_ptr<Connection> connection_;
  size_t side_;
};

class Network {
 public:
  Network(device::VirtualTime& time, Random random);
  ~Network();

  // The quality of new writes, reads and dials from one address to another.
  Line& line(Address from, Address to) { return lines_[{from, to}]; }
  // Blocks a direction, or lets what was stalled arrive.
  void block(Address from, Address to, bool blocked);

  // `accept` gets the end of each connection that somebody dials to `address`, until unlisten(). A later call takes the
  // address over. The system accepts: a process that is stopped finds them when it goes on.
  void listen(Address address, const void* owner, std::function<void(std::unique_ptr<End>)> accept);
  void unlisten(Address address, const void* owner);
  // Calls `done` once: with the end, or with null when nobody listens, or after kDialNs when nothing answers.
  void dial(Address from, Address to, std::function<void(std::unique_ptr<End>)> done);
  // This many of a thousand dials are not answered.
  void lose_dials(uint32_t per_mille) { lost_dials_ = per_mille; }

  // Nothing arrives on one connection for that time, as when a packet is lost again and again. Others go on.
  void hold(uint64_t number, int64_t for_ns);
  // Ends a connection between any two bytes. Each end learns of it so much later. What has arrived there may be read
  // until then, and what it writes is lost.
  void cut(uint64_t number, int64_t dialler_learns_ns, int64_t listener_learns_ns);
  // Bytes that one side writes vanish from now on, with those under way and the end of the stream; to its system they
  // are acknowledged. The other direction goes on.
  void vanish(uint64_t number, bool by_dialler);
  // Bytes that one side has written; 0 once the connection is gone.
  uint64_t bytes_written(uint64_t number, bool by_dialler) const;
  // Those that live, in the order in which they were made.
  std::vector<uint64_t> connections() const;

  static constexpr int64_t kDialNs = 3 * kSecond;
  // A half-open connection is found after this time at the latest: by TCP_USER_TIMEOUT or keepalive.
  static constexpr int64_t kNoticeNs = 8 * kSecond;

 private:
  friend class End;
  friend struct Connection;

  device::VirtualTime& time_;
  Random random_;
  std::map<std::pair<Address, Address>, Line> lines_;
  struct Listener {
    const void* owner = nullptr;
    std::function<void(std::unique_ptr<End>)> accept;
  };
  std::map<Address, Listener> listeners_;
  std::map<uint64_t, std::weak_ptr<Connection>> connections_;
  uint64_t made_ = 0;
  uint32_t lost_dials_ = 0;
};

} // namespace millrace::net::sim
