// A connection from its first byte to its answer, or until it becomes a WebSocket.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>

#include "http/address.h"
#include "http/server.h"

namespace millrace::http {

// A request has some hundred bytes; a browser's, with cookies of other servers of this host, some thousand.
inline constexpr uint32_t kRequestBytesMax = 8 * 1024;

struct Counters {
  std::atomic<uint64_t> host{0}, origin{0}, malformed{0}, crowded_out{0}, silent{0};
};

// An open connection, as the server's list has it.
class Open {
 public:
  virtual ~Open() = default;
  virtual bool makes_way() const = 0; // it has not said anything whole yet, or is told to go
  virtual void drop() = 0;            // at once
  virtual void leave(std::string_view reason) = 0;
};

// All that connections share. The server's thread has it.
struct Room {
  Room(Site the_site, const Hosts& the_hosts, const Listen& the_listen, const Limits& the_limits, Counters& counters)
      : site(std::move(the_site)), hosts(the_hosts), listen(the_listen), limits(the_limits), refused(counters) {}

  const Site site;
  const Hosts& hosts;
  const Listen& listen;
  const Limits& limits;
  Counters& refused;
  std::weak_ptr<boost::asio::io_context> context; // gone with the server, but for functions of then()
  std::list<std::weak_ptr<Open>> open;            // the oldest first
  void forget_gone() {
    open.remove_if([](const std::weak_ptr<Open>& one) { return one.expired(); });
  }
};

using Request = boost::beast::http::request<boost::beast::http::empty_body>;

using PlainStream = boost::beast::tcp_stream;
using TlsStream = boost::beast::ssl_stream<PlainStream>;

// Lives as long as an operation on its socket is pending. Stream is one of the two above.
template <class Stream>
class Connection : public Open, public std::enable_shared_from_this<Connection<Stream>> {
 public:
  Connection(Stream stream, std::shared_ptr<Room> room);
  void begin();

  bool makes_way() const override { return !was_read_; }
  void drop() override { boost::beast::get_lowest_layer(stream_).close(); }
  void leave(std::string_view) override { drop(); }

 private:
  using Response = boost::beast::http::response<boost::beast::http::string_body>;
  void read_request();
  void read(boost::system::error_code failed);
  std::optional<Reply> refusal(const Request& request) const;
  Reply reply_to(const Request& request) const;
  void write(const Reply& reply, bool with_body);
  void end();

  Stream stream_;
  const std::shared_ptr<Room> room_;
  bool was_read_ = false;
  boost::beast::flat_buffer buffer_;
  boost::beast::http::request_parser<boost::beast::http::empty_body> parser_;
  Response response_;
};

} // namespace millrace::http
