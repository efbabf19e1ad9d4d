// The proxy: listens, dials the server for each connection, and puts the schedule's faults into force at their times.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "connection.h"
#include "rules.h"
#include "schedule.h"
#include "totals.h"

namespace millrace::chaos {

// A host and a port as the command line has them: "127.0.0.1:7433", "[::1]:0", "localhost:7433".
struct Address {
  std::string host, port;
};

// Empty if the text is no address.
std::optional<Address> read_address(const std::string& text);

struct ProxyOptions {
  Address listen, to;
  uint64_t seed = 1;
  std::function<void(const Event&)> told; // called for each event as it begins; may be empty
};

// All of it runs on the thread that runs the io_context. Its constructor resolves both names, which may take a while,
// and throws boost::system::system_error if it cannot listen.
class Proxy {
 public:
  Proxy(boost::asio::io_context& io, ProxyOptions options, Schedule schedule);

  // Takes connections and counts the time from now on.
  void start();
  // Ends all connections; then the io_context has nothing left to do.
  void stop();
  // Puts one fault into force now, besides the schedule's.
  void begin(const Fault& fault);

  Tcp::endpoint endpoint() const { return endpoint_; }
  // Complete once the io_context has nothing left to do.
  const Totals& totals() const { return totals_; }

 private:
  void listen();
  void accept();
  void taken(Tcp::socket dialler);
  void apply(const Event& event);
  void update();
  void on_time();

  boost::asio::io_context& io_;
  ProxyOptions options_;
  Schedule schedule_;
  Endpoints server_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  Clock now_ns_;
  Totals totals_;
  Rules rules_;
  // Bound and never listening: it keeps the port while connections are refused.
  Tcp::socket reservation_;
  Tcp::acceptor acceptor_;
  Tcp::endpoint endpoint_;
  boost::asio::steady_timer timer_, accept_again_;
  std::map<size_t, std::shared_ptr<Connection>> connections_;
  bool is_stopped_ = false;
};

} // namespace millrace::chaos
