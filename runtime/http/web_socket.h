// A connection that stays: a WebSocket with an outbox, between its peer and its channel.
//
//              message, due, then()                 close(), server stops
//   opens ------------------------> open (reads, writes) -------------> closes (writes what waits) ---> gone
//     |   no first message in time    |   the peer goes, or breaks the protocol                           ^
//     +-------------------------------+-------------------------------------------------------------------+
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <boost/beast/websocket/ssl.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <deque>
#include <string>

#include "http/connection.h"

namespace millrace::http {

// Lives as long as an operation on its socket or its timer is pending. Stream is that of the connection.
template <class Stream>
class WebSocket : public Open, public Peer, public std::enable_shared_from_this<WebSocket<Stream>> {
 public:
  WebSocket(Stream stream, std::shared_ptr<Room> room);
  void begin(const Request& request, const std::string& path);

  bool makes_way() const override { return !has_said_ || closes_; }
  void drop() override;
  void leave(std::string_view reason) override;

  using Peer::send_bytes;
  void send(std::string message) override { put({std::move(message), {}, false}); }
  void send_bytes(std::string head, SharedBytes body) override { put({std::move(head), std::move(body), true}); }
  void close(uint16_t code, std::string_view reason) override;
  Then then() override;

 private:
  struct Message {
    std::string head;
    SharedBytes body;
    bool is_binary;
    size_t size() const { return head.size() + body.size; }
  };
  void put(Message message);
  void read();
  void write();
  void go_on();
  void wait_until(int64_t due_ms);

  boost::beast::websocket::stream<Stream> stream_;
  const std::shared_ptr<Room> room_;
  boost::beast::flat_buffer buffer_;
  boost::asio::steady_timer timer_;
  std::deque<Message> waiting_; // the first one is being written
  size_t waiting_bytes_ = 0;
  bool has_said_ = false; // a first message has come
  bool reads_ = false, writes_ = false, is_called_ = false, is_closing_ = false, is_gone_ = false;
  std::optional<boost::beast::websocket::close_reason> closes_;
  std::unique_ptr<Channel> channel_; // last: it may use all of the above. Null until the handshake is over
};

} // namespace millrace::http
