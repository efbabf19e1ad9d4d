// Moves the bytes of one connection, and ends it in the way that a fault or one of its ends asks for.
#include "connection.h"

#include <boost/asio/connect.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <utility>

namespace millrace::chaos {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

// Reads and writes of one direction before others have their turn.
constexpr int kRoundsMax = 8;

bool would_block(const error_code& error) {
  return error == asio::error::would_block || error == asio::error::try_again;
}

} // namespace

Connection::Connection(asio::io_context& io, Tcp::socket dialler, size_t number, uint64_t seed, const Clock& now_ns,
                       Totals& totals)
    : ends_{std::move(dialler), Tcp::socket(io)},
      number_(number),
      now_ns_(now_ns),
      totals_(totals),
      pipes_{Pipe(io, seed, 2 * number), Pipe(io, seed, 2 * number + 1)},
      linger_timer_(io) {}

Connection::~Connection() {
  for (const Pipe& pipe : pipes_) {
    totals_.bits_flipped += pipe.stream.bits_flipped();
    totals_.bytes_vanished += pipe.stream.bytes_vanished() + pipe.stream.waiting();
  }
}

void Connection::start(const Endpoints& server, bool is_blackhole, std::function<void()> gone) {
  gone_ = std::move(gone);
  is_blackhole_ = is_blackhole;
  if (is_blackhole) {
    pipes_[1].source_ended = true;
    set(Direction::up, {});
    begin();
    return;
  }
  asio::async_connect(ends_[1], server, [self = shared_from_this()](const error_code& error, const Tcp::endpoint&) {
    if (self->is_closed_) return;
    if (!error || self->is_lingering_) { // a fault that came before says how the connection ends
      self->begin();
      return;
    }
    ++self->totals_.failed_dials;
    self->reset_all();
  });
}

void Connection::begin() {
  for (Tcp::socket& end : ends_) {
    error_code ignored;
    end.non_blocking(true, ignored);
    end.set_option(Tcp::no_delay(true), ignored);
  }
  is_connected_ = true;
  pump(0);
  pump(1);
}

void Connection::set(Direction direction, const Conditions& conditions) {
  const auto d = static_cast<size_t>(direction);
  Conditions own = conditions;
  own.is_half_open = own.is_half_open || is_blackhole_;
  pipes_[d].stream.set(own);
  post(d);
}

void Connection::cut(const Scope& scope) {
  if (is_closed_) return;
  if (!std::exchange(is_cut_, true)) ++totals_.cut_connections;
  for (const Direction direction : {Direction::up, Direction::down}) {
    if (!scope.has(direction)) continue;
    pipes_[static_cast<size_t>(direction)].stream.cut();
    post(static_cast<size_t>(direction));
  }
  if (scope.up && scope.down) linger();
}

void Connection::reset(const Scope& scope) {
  if (is_closed_) return;
  ++totals_.reset_connections;
  if (scope.up && scope.down) {
    reset_all();
  } else {
    reset_end(scope.up ? 1 : 0);
  }
}

void Connection::close() {
  if (std::exchange(is_closed_, true)) return;
  error_code ignored;
  for (Tcp::socket& end : ends_) end.close(ignored);
  for (Pipe& pipe : pipes_) pipe.timer.cancel();
  linger_timer_.cancel();
  asio::post(linger_timer_.get_executor(), [self = shared_from_this()] { self->gone_(); });
}

void Connection::post(size_t d) {
  if (is_closed_ || std::exchange(pipes_[d].is_posted, true)) return;
  asio::post(linger_timer_.get_executor(), [self = shared_from_this(), d] {
    self->pipes_[d].is_posted = false;
    self->pump(d);
  });
}

void Connection::pump(size_t d) {
  if (!is_connected_) return;
  for (int round = 0; round < kRoundsMax; ++round) {
    if (is_closed_) return;
    const bool has_read = take_in(d);
    if (is_closed_) return;
    const bool has_written = give_out(d);
    if (!has_read && !has_written) return;
  }
  post(d);
}

void Connection::wait(size_t d, Tcp::socket& socket, Tcp::socket::wait_type type, bool Pipe::*flag) {
  pipes_[d].*flag = true;
  socket.async_wait(type, [self = shared_from_this(), d, flag](const error_code&) {
    self->pipes_[d].*flag = false;
    self->pump(d);
  });
}

// Reads once; true if that changed anything.
bool Connection::take_in(size_t d) {
  Pipe& pipe = pipes_[d];
  if (pipe.source_ended || pipe.waits_to_read) return false;
  const std::span<std::byte> room = pipe.stream.room();
  if (room.empty()) return false;
  error_code error;
  const size_t count = source(d).read_some(asio::buffer(room.data(), room.size()), error);
  if (would_block(error)) {
    wait(d, source(d), Tcp::socket::wait_read, &Pipe::waits_to_read);
    return false;
  }
  if (!error) {
    pipe.stream.received(count, now_ns_());
    return true;
  }
  pipe.source_ended = true;
  if (is_blackhole_) {
    close();
    return false;
  }
  if (error == asio::error::eof) {
    pipe.stream.end(Ending::in_order, now_ns_());
    if (pipe.is_over) over(d);
    return true;
  }
  // A reset end takes no bytes either.
  pipe.stream.end(Ending::reset, now_ns_());
  pipes_[1 - d].stream.discard();
  over(1 - d);
  return !is_closed_;
}

// Writes once or passes the ending on; true if that changed anything.
bool Connection::give_out(size_t d) {
  Pipe& pipe = pipes_[d];
  if (pipe.is_over || pipe.waits_to_write) return false;
  const Next next = pipe.stream.next(now_ns_());
  if (next.ending) {
    pass_ending(d, *next.ending);
    return true;
  }
  if (next.wait_until_ns) arm(d, *next.wait_until_ns);
  if (next.bytes.empty()) return false;
  error_code error;
  const size_t count = target(d).write_some(asio::buffer(next.bytes.data(), next.bytes.size()), error);
  if (would_block(error)) {
    wait(d, target(d), Tcp::socket::wait_write, &Pipe::waits_to_write);
    return false;
  }
  if (error) {
    target_failed(d, error);
    return true;
  }
  pipe.stream.sent(count, now_ns_());
  totals_.bytes[d] += count;
  return true;
}

void Connection::arm(size_t d, int64_t at_ns) {
  Pipe& pipe = pipes_[d];
  if (pipe.timer_at_ns == at_ns) return;
  pipe.timer_at_ns = at_ns;
  pipe.timer.expires_after(std::chrono::nanoseconds(at_ns - now_ns_()));
  pipe.timer.async_wait([self = shared_from_this(), d](const error_code& error) {
    if (error) return; // armed anew, or closed
    self->pipes_[d].timer_at_ns = -1;
    self->pump(d);
  });
}

void Connection::pass_ending(size_t d, Ending ending) {
  if (ending == Ending::reset) {
    reset_all();
    return;
  }
  error_code ignored;
  target(d).shutdown(Tcp::socket::shutdown_send, ignored);
  over(d);
  if (ending == Ending::limit) cut({});
}

// The kernel tells a reset to one call alone: if a write gets it, the end's reads would only see an end in order.
void Connection::target_failed(size_t d, const error_code& error) {
  pipes_[d].stream.discard();
  if (error == asio::error::connection_reset && !pipes_[1 - d].source_ended) {
    pipes_[1 - d].source_ended = true;
    pipes_[1 - d].stream.end(Ending::reset, now_ns_());
    post(1 - d);
  }
  is_broken_ = true;
  over(d);
}

void Connection::reset_end(size_t end) {
  error_code ignored;
  ends_[end].set_option(asio::socket_base::linger(true, 0), ignored);
  ends_[end].close(ignored);
  Pipe& from = pipes_[end];
  from.source_ended = true;
  from.stream.cut();
  pipes_[1 - end].stream.discard();
  over(1 - end);
  post(end);
  linger();
}

void Connection::reset_all() {
  error_code ignored;
  for (Tcp::socket& end : ends_) end.set_option(asio::socket_base::linger(true, 0), ignored);
  close();
}

// The direction is over; closes the connection if all of it is.
void Connection::over(size_t d) {
  pipes_[d].is_over = true;
  pipes_[d].stream.end(Ending::in_order, now_ns_()); // later bytes vanish
  if (!pipes_[0].is_over || !pipes_[1].is_over) return;
  if (is_broken_) {
    reset_all();
  } else if (pipes_[0].source_ended && pipes_[1].source_ended) {
    close();
  } else {
    linger();
  }
}

void Connection::linger() {
  if (is_closed_ || std::exchange(is_lingering_, true)) return;
  linger_timer_.expires_after(std::chrono::nanoseconds(kLingerNs));
  linger_timer_.async_wait([self = shared_from_this()](const error_code& error) {
    if (!error) self->close();
  });
}

} // namespace millrace::chaos
