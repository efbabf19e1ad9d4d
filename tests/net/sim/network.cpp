// Moves bytes between the ends of simulated connections.
#include "tests/net/sim/network.h"
#include "tests/chance.h"

#include <algorithm>
#include <array>
#include <deque>

#include "observe/error.h"

namespace millrace::net::sim {

// Both directions of a connection; events hold it until they are over.
struct Connection : std::enable_shared_from_this<Connection> {
  static constexpr size_t kDialler = 0;
  // A write of this size travels as one; with limited bandwidth it arrives part by part.
  static constexpr size_t kSegmentBytes = 16 * kKiB;

  struct Segment {
    int64_t arrives_ns = 0;
    std::vector<std::byte> bytes;
    size_t read = 0;
  };
  // The direction that one side writes.
  struct Pipe {
    std::deque<Segment> segments;
    size_t occupied = 0; // bytes in the buffers, as the writer knows
    uint64_t written = 0;
    int64_t wire_free_ns = 0, last_arrival_ns = 0;
    int64_t ends_ns = INT64_MAX;
    bool is_reset = false; // the end loses what was not read before it
    bool vanishes = false;
  };
  struct Side {
    Address address = 0;
    bool is_open = true, is_shut = false, has_failed = false;
    std::function<void()> ready;
  };

  Connection(Network& its, uint64_t made, Address dialler, Address listener) : network(its), number(made) {
    sides[kDialler].address = dialler;
    sides[1 - kDialler].address = listener;
  }

  // The direction that `side` writes.
  const Line& line_from(size_t side) { return network.line(sides[side].address, sides[1 - side].address); }
  int64_t now_ns() const { return network.time_.now_ns(); }
  // A block stalls bytes under way; a cut leaves those that came.
  bool is_stalled(size_t writer) { return !is_cut && (now_ns() < held_until_ns || line_from(writer).blocked); }
  // A reset that came ends both directions.
  bool has_failed(size_t side) {
    const Pipe& pipe = pipes[1 - side];
    if (pipe.is_reset && pipe.ends_ns <= now_ns() && !is_stalled(1 - side)) sides[side].has_failed = true;
    return sides[side].has_failed;
  }

  void ready_at(int64_t at_ns, size_t side) {
    network.time_.schedule(at_ns, [self = shared_from_this(), side] {
      if (self->sides[side].ready) self->sides[side].ready();
    });
  }
  void fail_at(int64_t at_ns, size_t side) {
    network.time_.schedule(at_ns, [self = shared_from_this(), side] {
      self->sides[side].has_failed = true;
      if (self->sides[side].ready) self->sides[side].ready();
    });
  }
  // The writer learns of room that is free again.
  void free_at(int64_t at_ns, size_t writer, size_t bytes) {
    network.time_.schedule(at_ns, [self = shared_from_this(), writer, bytes] {
      self->pipes[writer].occupied -= bytes;
      if (self->sides[writer].ready) self->sides[writer].ready();
    });
  }
  // After all that was written before.
  int64_t arrival(size_t writer, size_t bytes) {
    Pipe& pipe = pipes[writer];
    const Line& line = line_from(writer);
    pipe.wire_free_ns = std::max(pipe.wire_free_ns, now_ns());
    if (line.bytes_per_second > 0)
      pipe.wire_free_ns += static_cast<int64_t>(bytes * uint64_t{kSecond} / line.bytes_per_second);
    const auto jitter_ns =
        static_cast<int64_t>(network.random_.below(static_cast<uint64_t>(std::max<int64_t>(line.jitter_ns, 0)) + 1));
    pipe.last_arrival_ns = std::max(pipe.last_arrival_ns, pipe.wire_free_ns + line.latency_ns + jitter_ns);
    return pipe.last_arrival_ns;
  }
  void end_pipe(size_t writer, bool reset) {
    Pipe& pipe = pipes[writer];
    if (is_cut || pipe.vanishes || (pipe.ends_ns != INT64_MAX && !reset)) return;
    pipe.ends_ns = arrival(writer, 0);
    pipe.is_reset = reset;
    ready_at(pipe.ends_ns, 1 - writer);
  }
  void close(size_t side) {
    Side& own = sides[side];
    own.is_open = false;
    own.ready = nullptr;
    if (own.has_failed) return;
    const bool has_unread = !pipes[1 - side].segments.empty();
    if (has_unread || !own.is_shut) end_pipe(side, has_unread);
  }

  Network& network;
  uint64_t number;
  std::array<Pipe, 2> pipes;
  std::array<Side, 2> sides;
  bool is_cut = false;
  int64_t held_until_ns = 0;
};

// ---- an end --------------------------------------------------------------------------------------------------------

End::End(std::shared_ptr<Connection> connection, size_t side) : connection_(std::move(connection)), side_(side) {}

End::~End() { connection_->close(side_); }

uint64_t End::number() const { return connection_->number; }

void End::on_ready(std::function<void()> ready) { connection_->sides[side_].ready = std::move(ready); }

Transfer End::read(std::span<std::byte> room) {
  const size_t writer = 1 - side_;
  Connection& connection = *connection_;
  Connection::Pipe& pipe = connection.pipes[writer];
  const int64_t now_ns = connection.now_ns();
  if (connection.has_failed(side_)) return {Moved::failed, 0};
  const bool stalled = connection.is_stalled(writer);
  const Line& line = connection.line_from(writer);
  size_t most = room.size();
  if (line.slice_most > 0) most = std::min<size_t>(most, 1 + connection.network.random_.below(line.slice_most));
  size_t bytes = 0;
  while (!stalled && bytes < most && !pipe.segments.empty() && pipe.segments.front().arrives_ns <= now_ns) {
    Connection::Segment& segment = pipe.segments.front();
    const size_t part = std::min(most - bytes, segment.bytes.size() - segment.read);
    std::memcpy(room.data() + bytes, segment.bytes.data() + segment.read, part);
    bytes += part;
    segment.read += part;
    if (segment.read == segment.bytes.size()) pipe.segments.pop_front();
  }
  if (bytes > 0) {
    connection.free_at(now_ns + connection.line_from(side_).latency_ns, writer, bytes);
    return {Moved::some, bytes};
  }
  if (!stalled && pipe.segments.empty() && pipe.ends_ns <= now_ns) return {Moved::closed, 0};
  return {Moved::would_block, 0};
}

Transfer End::write(std::span<const Bytes> pieces) {
  Connection& connection = *connection_;
  Connection::Pipe& pipe = connection.pipes[side_];
  Connection::Side& own = connection.sides[side_];
  if (connection.has_failed(side_) || own.is_shut) return {Moved::failed, 0};
  const Line& line = connection.line_from(side_);
  size_t room = line.buffer_bytes > pipe.occupied ? line.buffer_bytes - pipe.occupied : 0;
  size_t bytes = 0;
  std::vector<std::byte> segment;
  const auto send = [&] {
    if (segment.empty()) return;
    pipe.occupied += segment.size();
    if (pipe.vanishes) {
      connection.free_at(connection.now_ns() + line.latency_ns, side_, segment.size());
    } else if (!connection.is_cut && connection.sides[1 - side_].is_open) {
      const int64_t arrives_ns = connection.arrival(side_, segment.size());
      pipe.segments.push_back({arrives_ns, std::move(segment), 0});
      connection.ready_at(arrives_ns, 1 - side_);
    }
    segment = {};
  };
  for (Bytes piece : pieces)
    while (!piece.empty() && room > 0) {
      const size_t part = std::min({piece.size(), room, Connection::kSegmentBytes - segment.size()});
      segment.insert(segment.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(part));
      piece = piece.subspan(part);
      room -= part;
      bytes += part;
      if (segment.size() == Connection::kSegmentBytes) send();
    }
  send();
  if (bytes == 0) return {Moved::would_block, 0};
  pipe.written += bytes;
  // The machine of an end that is closed answers with a reset, unless nothing gets through.
  if (!connection.is_cut && !pipe.vanishes && !connection.sides[1 - side_].is_open)
    connection.fail_at(connection.now_ns() + line.latency_ns + connection.line_from(1 - side_).latency_ns, side_);
  return {Moved::some, bytes};
}

void End::shut() {
  Connection::Side& own = connection_->sides[side_];
  if (own.is_shut || own.has_failed) return;
  own.is_shut = true;
  connection_->end_pipe(side_, false);
}

// ---- the network ---------------------------------------------------------------------------------------------------

Network::Network(device::VirtualTime& time, Random random) : time_(time), random_(random) {}
Network::~Network() = default;

void Network::block(Address from, Address to, bool blocked) {
  line(from, to).blocked = blocked;
  if (blocked) return;
  for (const auto& [number, weak] : connections_)
    if (const auto connection = weak.lock())
      for (const size_t side : {size_t{0}, size_t{1}}) connection->ready_at(time_.now_ns(), side);
}

void Network::listen(Address address, const void* owner, std::function<void(std::unique_ptr<End>)> accept) {
  listeners_[address] = {owner, std::move(accept)};
}

void Network::unlisten(Address address, const void* owner) {
  const auto found = listeners_.find(address);
  if (found != listeners_.end() && found->second.owner == owner) listeners_.erase(found);
}

void Network::dial(Address from, Address to, std::function<void(std::unique_ptr<End>)> done) {
  if (line(from, to).blocked || line(to, from).blocked || chance(random_, lost_dials_)) {
    time_.schedule(time_.now_ns() + kDialNs, [done = std::move(done)] { done(nullptr); });
    return;
  }
  const int64_t there_ns = time_.now_ns() + line(from, to).latency_ns;
  time_.schedule(there_ns, [this, from, to, done = std::move(done)] {
    const int64_t back_ns = time_.now_ns() + line(to, from).latency_ns;
    const auto listener = listeners_.find(to);
    if (listener == listeners_.end()) {
      time_.schedule(back_ns, [done] { done(nullptr); });
      return;
    }
    std::erase_if(connections_, [](const auto& entry) { return entry.second.expired(); });
    const auto connection = std::make_shared<Connection>(*this, made_, from, to);
    connections_[made_++] = connection;
    listener->second.accept(std::make_unique<End>(connection, 1 - Connection::kDialler));
    time_.schedule(back_ns, [done, connection] { done(std::make_unique<End>(connection, Connection::kDialler)); });
  });
}

void Network::hold(uint64_t number, int64_t for_ns) {
  const auto found = connections_.find(number);
  const auto connection = found == connections_.end() ? nullptr : found->second.lock();
  if (!connection) return;
  connection->held_until_ns = std::max(connection->held_until_ns, time_.now_ns() + for_ns);
  for (const size_t side : {size_t{0}, size_t{1}}) connection->ready_at(connection->held_until_ns, side);
}

void Network::cut(uint64_t number, int64_t dialler_learns_ns, int64_t listener_learns_ns) {
  const auto found = connections_.find(number);
  const auto connection = found == connections_.end() ? nullptr : found->second.lock();
  if (!connection || connection->is_cut) return;
  connection->is_cut = true;
  const int64_t now_ns = time_.now_ns();
  for (Connection::Pipe& pipe : connection->pipes) {
    std::erase_if(pipe.segments, [&](const Connection::Segment& segment) { return segment.arrives_ns > now_ns; });
    if (pipe.ends_ns > now_ns) pipe.ends_ns = INT64_MAX;
    if (pipe.ends_ns > now_ns) pipe.is_reset = false;
  }
  connection->fail_at(now_ns + std::min(dialler_learns_ns, kNoticeNs), Connection::kDialler);
  connection->fail_at(now_ns + std::min(listener_learns_ns, kNoticeNs), 1 - Connection::kDialler);
}

void Network::vanish(uint64_t number, bool by_dialler) {
  const auto found = connections_.find(number);
  const auto connection = found == connections_.end() ? nullptr : found->second.lock();
  if (!connection || connection->is_cut) return;
  const size_t writer = by_dialler ? Connection::kDialler : 1 - Connection::kDialler;
  Connection::Pipe& pipe = connection->pipes[writer];
  pipe.vanishes = true;
  const int64_t now_ns = time_.now_ns();
  std::erase_if(pipe.segments, [&](const Connection::Segment& segment) {
    if (segment.arrives_ns <= now_ns) return false;
    connection->free_at(segment.arrives_ns, writer, segment.bytes.size());
    return true;
  });
  if (pipe.ends_ns <= now_ns) return;
  pipe.ends_ns = INT64_MAX;
  pipe.is_reset = false;
}

uint64_t Network::bytes_written(uint64_t number, bool by_dialler) const {
  const auto found = connections_.find(number);
  const auto connection = found == connections_.end() ? nullptr : found->second.lock();
  return connection ? connection->pipes[by_dialler ? Connection::kDialler : 1 - Connection::kDialler].written : 0;
}

std::vector<uint64_t> Network::connections() const {
  std::vector<uint64_t> numbers;
  for (const auto& [number, weak] : connections_)
    if (const auto connection = weak.lock(); connection && !connection->is_cut) numbers.push_back(number);
  return numbers;
}

} // namespace millrace::net::sim
