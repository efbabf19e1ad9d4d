// Reads a request and answers it; see connection.h.
#include "http/connection.h"

#include <utility> // first: Asio 1.74 uses std::exchange without including this

#include <boost/asio/ssl/stream_base.hpp>
#include <boost/beast/websocket/rfc6455.hpp>
#include <chrono>
#include <type_traits>

#include "http/web_socket.h"
#include "observe/error.h"
#include "observe/error_codes.h"

namespace millrace::http {

namespace {

namespace beast = boost::beast;
using beast::http::field;
using beast::http::verb;
using boost::system::error_code;

// Prometheus itself gives up after ten seconds.
constexpr std::chrono::seconds kRequestTimeMax{5};

constexpr int kBadRequest = 400, kForbidden = 403, kMethodNotAllowed = 405, kMisdirected = 421;

std::string_view value_of(const Request& request, field name) {
  const auto value = request[name];
  return {value.data(), value.size()};
}

std::string path_of(const Request& request) {
  const auto target = request.target();
  return std::string(target.substr(0, target.find('?')));
}

std::string elsewhere() { return format_code(code::request_from_elsewhere); }

} // namespace

template <class Stream>
Connection<Stream>::Connection(Stream stream, std::shared_ptr<Room> room)
    : stream_(std::move(stream)), room_(std::move(room)), buffer_(kRequestBytesMax) {
  parser_.header_limit(kRequestBytesMax);
}

template <class Stream>
void Connection<Stream>::begin() {
  beast::get_lowest_layer(stream_).expires_after(kRequestTimeMax); // for the whole request, however slowly it comes
  if constexpr (std::is_same_v<Stream, TlsStream>)
    stream_.async_handshake(boost::asio::ssl::stream_base::server,
                            [self = this->shared_from_this()](error_code failed) {
                              if (failed == beast::error::timeout) ++self->room_->refused.silent;
                              if (!failed) self->read_request();
                            });
  else
    read_request();
}

template <class Stream>
void Connection<Stream>::read_request() {
  beast::http::async_read(stream_, buffer_, parser_,
                          [self = this->shared_from_this()](error_code failed, size_t) { self->read(failed); });
}

template <class Stream>
void Connection<Stream>::read(error_code failed) {
  if (failed == beast::error::timeout) ++room_->refused.silent;
  if (failed == beast::error::timeout || failed == beast::http::error::end_of_stream ||
      failed == boost::asio::error::operation_aborted)
    return;
  was_read_ = true;
  if (failed) {
    ++room_->refused.malformed;
    return write({kBadRequest, "this is not a request that is understood\n"}, true);
  }
  const Request& request = parser_.get();
  const std::optional<Reply> refused = refusal(request);
  const auto opens = [&] { return room_->site.has_channel && room_->site.has_channel(path_of(request)); };
  if (!refused && beast::websocket::is_upgrade(request) && opens()) {
    const auto socket = std::make_shared<WebSocket<Stream>>(std::move(stream_), room_);
    room_->open.push_back(socket);
    return socket->begin(request, path_of(request));
  }
  write(refused ? *refused : reply_to(request), request.method() != verb::head);
}

// The answer to a request that is not for this server, or that no page of this server has sent.
template <class Stream>
std::optional<Reply> Connection<Stream>::refusal(const Request& request) const {
  // Browsers send one Host, always; HTTP 1.0 did not ask for it.
  const auto count = request.count(field::host);
  const std::string_view host = value_of(request, field::host);
  if (count > 1 || (count == 0 && request.version() > 10)) {
    ++room_->refused.malformed;
    return Reply{kBadRequest, "a request names one Host\n"};
  }
  if (count == 1 && !room_->hosts.answers(host)) {
    ++room_->refused.host;
    return Reply{kMisdirected, elsewhere() + ": this server is not known by that name; `millrace run " +
                                   room_->listen.names_option + " NAME` gives it a name\n"};
  }
  // The host was found above, so a page of that origin is one that this server gave.
  if (beast::websocket::is_upgrade(request) &&
      (request.count(field::origin) != 1 ||
       value_of(request, field::origin) != room_->listen.scheme() + ("://" + std::string(host)))) {
    ++room_->refused.origin;
    return Reply{kForbidden, elsewhere() + ": only a page of this server may open a connection that stays\n"};
  }
  return std::nullopt;
}

template <class Stream>
Reply Connection<Stream>::reply_to(const Request& request) const {
  if (request.method() != verb::get && request.method() != verb::head)
    return {kMethodNotAllowed, "only GET and HEAD are answered\n"};
  return room_->site.get(path_of(request));
}

// HEAD is answered as GET is, with the length of the body that is left out.
template <class Stream>
void Connection<Stream>::write(const Reply& reply, bool with_body) {
  response_ = {static_cast<beast::http::status>(reply.status), 11};
  response_.set(field::content_type, reply.type);
  for (const auto& [name, value] : room_->site.headers) response_.set(name, value);
  if (reply.status == kMethodNotAllowed) response_.set(field::allow, "GET, HEAD");
  response_.keep_alive(false);
  response_.body() = reply.body;
  response_.prepare_payload();
  if (!with_body) response_.body().clear();
  beast::get_lowest_layer(stream_).expires_after(kRequestTimeMax);
  beast::http::async_write(stream_, response_, [self = this->shared_from_this()](error_code, size_t) { self->end(); });
}

template <class Stream>
void Connection<Stream>::end() {
  if constexpr (std::is_same_v<Stream, TlsStream>) {
    stream_.async_shutdown([self = this->shared_from_this()](error_code) {});
  } else {
    error_code ignored; // the peer may have gone
    stream_.socket().shutdown(boost::asio::ip::tcp::socket::shutdown_send, ignored);
  }
}

template class Connection<PlainStream>;
template class Connection<TlsStream>;

} // namespace millrace::http
