// Accepts connections; see server.h.
#include "http/server.h"

#include <utility> // first: Asio 1.74 uses std::exchange without including this

#include <boost/asio.hpp>
#include <chrono>
#include <future>
#include <thread>

#include "http/address.h"
#include "http/connection.h"
#include "http/tls.h"
#include "observe/error.h"
#include "observe/error_codes.h"
#include "observe/start_thread.h"

namespace millrace::http {

namespace {

namespace asio = boost::asio;
using Tcp = asio::ip::tcp;
using boost::system::error_code;

// The wait after accept has failed, for instance because the process has no more file descriptors.
constexpr std::chrono::milliseconds kAcceptAgain{100};
// A page takes the last words within some milliseconds.
constexpr std::chrono::seconds kLastWordsWithin{1};

} // namespace

class Server::Listener {
 public:
  Listener(const Listen& listen, const Limits& limits)
      : listen_(listen),
        limits_(limits),
        endpoint_(endpoint_of(listen)),
        hosts_(listen, endpoint_.address()),
        tls_(tls_of(listen.certificate)) {
    try {
      acceptor_.open(endpoint_.protocol());
      acceptor_.set_option(asio::socket_base::reuse_address(true));
      acceptor_.bind(endpoint_);
      acceptor_.listen();
      endpoint_ = acceptor_.local_endpoint();
    } catch (const boost::system::system_error& failed) {
      throw Failure(Error{code::bad_address,
                          listen.option + " cannot listen on " + listen.address + ": " + failed.code().message(),
                          {},
                          {},
                          "",
                          listen.option + " 127.0.0.1:0"});
    }
  }
  ~Listener() { stop("the server ends"); }

  std::string url() const {
    asio::ip::address address = endpoint_.address();
    if (address.is_unspecified())
      address = address.is_v6() ? asio::ip::address(asio::ip::address_v6::loopback())
                                : asio::ip::address(asio::ip::address_v4::loopback());
    const std::string host = address.is_v6() ? "[" + address.to_string() + "]" : address.to_string();
    return listen_.scheme() + ("://" + host) + ":" + std::to_string(endpoint_.port());
  }

  bool is_on_loopback() const { return endpoint_.address().is_loopback(); }

  bool listens_at(const std::string& address) const {
    const Tcp::endpoint asked = endpoint_of({listen_.option, address});
    return asked.address() == endpoint_.address() && (asked.port() == 0 || asked.port() == endpoint_.port());
  }

  void serve(Site site) {
    room_ = std::make_shared<Room>(std::move(site), hosts_, listen_, limits_, refused_);
    room_->context = context_;
    accept();
    thread_ = start_thread("the thread that serves " + listen_.option, [this] {
      for (;;) {
        try {
          context_->run();
          return ended_.set_value();
        } catch (const std::exception&) { // no memory for one answer: that connection ends, the others go on
        }
      }
    });
  }

  void stop(std::string_view reason) {
    if (!thread_.joinable()) return;
    asio::post(*context_, [this, reason = std::string(reason)] {
      acceptor_.close();
      again_.cancel();
      for_all([&](Open& open) { open.leave(reason); });
    });
    if (ended_.get_future().wait_for(kLastWordsWithin) != std::future_status::ready)
      asio::post(*context_, [this] { for_all([](Open& open) { open.drop(); }); });
    thread_.join(); // the loop ends with the last connection
  }

  Refusals refusals() const {
    return {refused_.host, refused_.origin, refused_.malformed, refused_.crowded_out, refused_.silent};
  }

 private:
  // A connection may have been accepted, or the wait be over, just before the server closed its door.
  void accept() {
    if (!acceptor_.is_open()) return;
    acceptor_.async_accept([this](error_code failed, Tcp::socket socket) {
      if (!acceptor_.is_open()) return;
      if (failed) {
        again_.expires_after(kAcceptAgain);
        again_.async_wait([this](error_code stopped) {
          if (!stopped) accept();
        });
        return;
      }
      accept(); // first: the next connection is accepted whatever happens to this one
      if (!make_way()) {
        ++refused_.crowded_out;
        return; // closes the socket
      }
      tls_ ? begin(TlsStream(std::move(socket), *tls_)) : begin(PlainStream(std::move(socket)));
    });
  }

  template <class Stream>
  void begin(Stream stream) {
    const auto connection = std::make_shared<Connection<Stream>>(std::move(stream), room_);
    room_->open.push_back(connection);
    connection->begin();
  }

  // True if there is room for one more: the oldest connection that makes way goes for it.
  bool make_way() {
    room_->forget_gone();
    if (room_->open.size() < limits_.connections) return true;
    for (auto one = room_->open.begin(); one != room_->open.end(); ++one) {
      const auto open = one->lock();
      if (!open || !open->makes_way()) continue;
      ++refused_.crowded_out;
      open->drop();
      room_->open.erase(one);
      return true;
    }
    return false;
  }

  template <class Do>
  void for_all(Do&& act) {
    for (const std::weak_ptr<Open>& one : room_->open)
      if (const auto open = one.lock()) act(*open);
  }

  const Listen listen_;
  const Limits limits_;
  Tcp::endpoint endpoint_;
  const Hosts hosts_;
  const std::unique_ptr<asio::ssl::context> tls_; // null: plain HTTP
  Counters refused_;
  const std::shared_ptr<asio::io_context> context_ = std::make_shared<asio::io_context>(1);
  Tcp::acceptor acceptor_{*context_};
  asio::steady_timer again_{*context_};
  std::shared_ptr<Room> room_; // null until it serves
  std::promise<void> ended_;
  std::thread thread_;
};

Server::Server(const Listen& listen, const Limits& limits) : listener_(std::make_unique<Listener>(listen, limits)) {}
Server::~Server() = default;
std::string Server::url() const { return listener_->url(); }
bool Server::is_on_loopback() const { return listener_->is_on_loopback(); }
bool Server::listens_at(const std::string& address) const { return listener_->listens_at(address); }
void Server::serve(Site site) { listener_->serve(std::move(site)); }
void Server::stop(std::string_view reason) { listener_->stop(reason); }
Refusals Server::refusals() const { return listener_->refusals(); }

} // namespace millrace::http
