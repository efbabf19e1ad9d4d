// Reads and writes a WebSocket's messages; see web_socket.h.
#include "http/web_socket.h"

#include <utility> // first: Asio 1.74 uses std::exchange without including this

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <chrono>

#include "observe/steady_ms.h"

namespace millrace::http {

namespace {

namespace beast = boost::beast;
namespace websocket = beast::websocket;
using boost::system::error_code;

// A page speaks some milliseconds after it is connected, also through a slow tunnel.
constexpr std::chrono::seconds kFirstMessageWithin{5};
// A peer that answers no ping for so long is gone.
constexpr std::chrono::seconds kSilentMax{30};
constexpr size_t kReasonBytesMax = 123; // RFC 6455, 5.5.1

} // namespace

template <class Stream>
WebSocket<Stream>::WebSocket(Stream stream, std::shared_ptr<Room> room)
    : stream_(std::move(stream)), room_(std::move(room)), timer_(stream_.get_executor()) {
  beast::get_lowest_layer(stream_).expires_never(); // from here on the WebSocket's own time limits count
  error_code ignored;                               // a message would wait for the acknowledgement of the one before
  beast::get_lowest_layer(stream_).socket().set_option(boost::asio::ip::tcp::no_delay(true), ignored);
  stream_.set_option(websocket::stream_base::timeout{kFirstMessageWithin, kSilentMax, true});
  stream_.set_option(websocket::stream_base::decorator([this](websocket::response_type& response) {
    for (const auto& [name, value] : room_->site.headers) response.set(name, value);
  }));
  stream_.read_message_max(room_->limits.message_bytes);
  stream_.auto_fragment(false);
}

template <class Stream>
void WebSocket<Stream>::begin(const Request& request, const std::string& path) {
  stream_.async_accept(request, [self = this->shared_from_this(), path](error_code failed) {
    if (failed || self->is_gone_) return;
    self->timer_.expires_after(kFirstMessageWithin);
    self->timer_.async_wait([weak = self->weak_from_this()](error_code stopped) {
      const auto still = weak.lock();
      if (stopped || !still || still->has_said_) return;
      ++still->room_->refused.silent;
      still->drop();
    });
    self->channel_ = self->room_->site.open(path, *self);
    if (!self->channel_) return self->drop();
    self->read();
    self->go_on();
  });
}

template <class Stream>
void WebSocket<Stream>::drop() {
  is_gone_ = true;
  timer_.cancel();
  beast::get_lowest_layer(stream_).close();
}

template <class Stream>
void WebSocket<Stream>::leave(std::string_view reason) {
  if (channel_)
    close(websocket::close_code::going_away, reason);
  else
    drop();
}

template <class Stream>
void WebSocket<Stream>::close(uint16_t code, std::string_view reason) {
  if (closes_ || is_gone_) return;
  size_t size = std::min(reason.size(), kReasonBytesMax);
  while (size > 0 && size < reason.size() && (reason[size] & 0xC0) == 0x80) --size; // no part of a character
  closes_.emplace(static_cast<websocket::close_code>(code), beast::string_view(reason.data(), size));
  if (!is_called_) go_on();
}

template <class Stream>
Peer::Then WebSocket<Stream>::then() {
  return [weak = this->weak_from_this(), context = room_->context.lock()](std::function<void()> what) {
    boost::asio::post(*context, [weak, what = std::move(what)] {
      const auto self = weak.lock();
      if (!self || self->is_gone_) return;
      what();
      self->go_on();
    });
  };
}

template <class Stream>
void WebSocket<Stream>::put(Message message) {
  if (closes_ || is_gone_) return;
  waiting_bytes_ += message.size();
  waiting_.push_back(std::move(message));
}

// One message: the next is read once there is room for its answer.
template <class Stream>
void WebSocket<Stream>::read() {
  if (reads_ || is_closing_ || is_gone_ || waiting_bytes_ > room_->limits.waiting_bytes) return;
  reads_ = true;
  stream_.async_read(buffer_, [self = this->shared_from_this()](error_code failed, size_t) {
    self->reads_ = false;
    if (failed) {
      if (failed == websocket::error::message_too_big || failed == websocket::error::bad_frame_payload)
        ++self->room_->refused.malformed;
      return self->drop();
    }
    self->has_said_ = true;
    if (!self->closes_) {
      self->is_called_ = true;
      const std::string_view message(static_cast<const char*>(self->buffer_.data().data()), self->buffer_.size());
      self->stream_.got_text() ? self->channel_->take(message) : self->channel_->take_bytes(message);
      self->is_called_ = false;
    }
    self->buffer_.consume(self->buffer_.size());
    self->go_on();
  });
}

// Beast takes one write at a time.
template <class Stream>
void WebSocket<Stream>::write() {
  writes_ = true;
  const Message& message = waiting_.front();
  stream_.binary(message.is_binary);
  const std::array<boost::asio::const_buffer, 2> parts = {boost::asio::buffer(message.head),
                                                          boost::asio::buffer(message.body.bytes, message.body.size)};
  stream_.async_write(parts, [self = this->shared_from_this()](error_code failed, size_t) {
    self->writes_ = false;
    if (failed) return self->drop();
    self->waiting_bytes_ -= self->waiting_.front().size();
    self->waiting_.pop_front();
    self->go_on();
  });
}

// Begins whatever comes next.
template <class Stream>
void WebSocket<Stream>::go_on() {
  if (is_gone_ || !channel_) return;
  if (waiting_.empty() && !closes_) {
    const int64_t now_ms = steady_ms();
    if (channel_->due_ms() <= now_ms) {
      is_called_ = true;
      channel_->give(now_ms);
      is_called_ = false;
    }
    if (waiting_.empty() && !closes_) wait_until(channel_->due_ms());
  }
  if (!waiting_.empty() && !writes_) write();
  if (waiting_.empty() && closes_ && !writes_ && !is_closing_) {
    is_closing_ = true; // it reads by itself from here on; Beast 1.74 ends the process if another read comes late
    stream_.async_close(*closes_, [self = this->shared_from_this()](error_code) { self->drop(); });
  }
  read();
}

template <class Stream>
void WebSocket<Stream>::wait_until(int64_t due_ms) {
  if (due_ms == INT64_MAX || !has_said_) return; // the timer minds the first message until then
  timer_.expires_at(std::chrono::steady_clock::time_point(std::chrono::milliseconds(due_ms)));
  timer_.async_wait([weak = this->weak_from_this()](error_code stopped) {
    if (const auto self = weak.lock(); self && !stopped) self->go_on();
  });
}

template class WebSocket<PlainStream>;
template class WebSocket<TlsStream>;

} // namespace millrace::http
