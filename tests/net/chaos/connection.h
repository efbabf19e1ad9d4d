// One connection through the proxy: a socket to the dialler, a socket to the server, and a stream for each direction.
//
// A direction d reads from end d and writes to end 1 - d; end 0 is the dialler's. It is over once its ending was passed
// on. The connection is gone once both directions are over and both ends have been read to their end, so that the
// kernel has no unread bytes, which would turn an end in order into a reset. An end that goes on sending gets
// kLingerNs.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "stream.h"
#include "totals.h"

namespace millrace::chaos {

// After a cut, ends may take what waits and close in their turn for this long.
inline constexpr int64_t kLingerNs = 1'000'000'000;

using Tcp = boost::asio::ip::tcp;
using Endpoints = boost::asio::ip::basic_resolver_results<Tcp>;
// Nanoseconds since the start of the proxy.
using Clock = std::function<int64_t()>;

// All of it runs on the thread of the io_context. `totals` and the clock outlive it.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(boost::asio::io_context& io, Tcp::socket dialler, size_t number, uint64_t seed, const Clock& now_ns,
             Totals& totals);
  ~Connection();

  // Dials the server and passes bytes on. In a blackhole the server is not dialled, and all bytes vanish. `gone` is
  // called once, later, from the loop.
  void start(const Endpoints& server, bool is_blackhole, std::function<void()> gone);
  void set(Direction direction, const Conditions& conditions);
  // Both end the directions of `scope`; its connection was compared by the caller.
  void cut(const Scope& scope);
  void reset(const Scope& scope);
  void close();

  size_t number() const { return number_; }

 private:
  struct Pipe {
    Pipe(boost::asio::io_context& io, uint64_t seed, uint64_t part) : stream(seed, part), timer(io) {}

    Stream stream;
    boost::asio::steady_timer timer;
    int64_t timer_at_ns = -1; // -1: not armed
    bool waits_to_read = false, waits_to_write = false;
    bool is_posted = false;
    bool source_ended = false; // nothing more will be read
    bool is_over = false;      // nothing more will be written
  };

  Tcp::socket& source(size_t d) { return ends_[d]; }
  Tcp::socket& target(size_t d) { return ends_[1 - d]; }
  void begin();
  void pump(size_t d);
  void post(size_t d);
  bool take_in(size_t d);
  bool give_out(size_t d);
  void wait(size_t d, Tcp::socket& socket, Tcp::socket::wait_type type, bool Pipe::*flag);
  void arm(size_t d, int64_t at_ns);
  void pass_ending(size_t d, Ending ending);
  void target_failed(size_t d, const boost::system::error_code& error);
  void reset_end(size_t end);
  void reset_all();
  void over(size_t d);
  void linger();

  std::array<Tcp::socket, 2> ends_;
  const size_t number_;
  const Clock& now_ns_;
  Totals& totals_;
  std::array<Pipe, 2> pipes_;
  boost::asio::steady_timer linger_timer_;
  std::function<void()> gone_;
  bool is_connected_ = false, is_blackhole_ = false, is_closed_ = false, is_lingering_ = false, is_cut_ = false;
  bool is_broken_ = false; // one end did not take its bytes: the other is reset, as without a proxy
};

} // namespace millrace::chaos
