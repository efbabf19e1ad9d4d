// An HTTP server with WebSockets, on Boost.Beast. It knows nothing of millrace: a Site says what it answers.
//
// One thread of its own serves all connections. A plain connection has one request and one answer, and closes. Each
// request has to name the server's address or a name that was given, so that no page in a browser can read an answer by
// a name of its own; a WebSocket has to come from a page of this server as well.
//
// Everything that a peer may do is bounded: the size of a request and its time, the number of connections, the size of
// a message, and the bytes that wait for a peer. A peer that does not read is not read from. A connection that has said
// nothing keeps nobody out: the one that is silent for longest makes way for a new one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace::http {

// A certificate and its key, both as PEM, for browsers that come by https. Empty: it is plain HTTP.
struct Certificate {
  std::string chain{}, key{};
};

struct Listen {
  std::string option;  // the command's, as errors name it: "--metrics"
  std::string address; // "HOST:PORT"; ":PORT" means every IPv4 address of the machine, port 0 a free port
  // Further hosts of requests, and the option that gives them. Without them a request has to name the address, HOST as
  // it was given, or localhost on the loopback; if the server listens on all addresses, localhost or any IP address.
  std::vector<std::string> names{};
  std::string names_option{};
  Certificate certificate{};
  const char* scheme() const { return certificate.chain.empty() ? "http" : "https"; }
};

struct Limits {
  uint32_t connections = 16;
  size_t message_bytes = size_t{64} << 10;  // a WebSocket's longest message from its peer
  size_t waiting_bytes = size_t{256} << 10; // for a peer to read; it is not read from beyond them
};

struct Reply {
  int status = 200;
  std::string body{};
  std::string type = "text/plain; charset=utf-8";
};

// Bytes that several peers get and that are not copied for each. `owner` keeps them until they were sent.
struct SharedBytes {
  std::shared_ptr<const void> owner{};
  const uint8_t* bytes = nullptr;
  size_t size = 0;
};

// The other end of a WebSocket. All but then() is called by the server's thread.
class Peer {
 public:
  virtual ~Peer() = default;
  virtual void send(std::string message) = 0; // as text
  // One binary message: the head, and then the body.
  virtual void send_bytes(std::string head, SharedBytes body) = 0;
  void send_bytes(std::string message) { send_bytes(std::move(message), {}); }
  // Once all that waits was sent. What comes meanwhile is not read. The peer gets 123 bytes of the reason.
  virtual void close(uint16_t code, std::string_view reason) = 0;
  // A function for any thread, also one that must not wait: the server's thread does `what` soon, if the peer is still
  // there.
  using Then = std::function<void(std::function<void()> what)>;
  virtual Then then() = 0;
};

// One WebSocket, as the code that answers it sees it. The server's thread calls it, and it is gone with its peer.
class Channel {
 public:
  virtual ~Channel() = default;
  // A message has come.
  virtual void take(std::string_view message) = 0;
  // The same for one that is not text.
  virtual void take_bytes(std::string_view message) { take(message); }
  // When there is something to say without a question, by the steady clock; INT64_MAX: not as things are. It is asked
  // after each call, and when the peer has read all.
  virtual int64_t due_ms() const = 0;
  // The time has come, and the peer has read all that came before.
  virtual void give(int64_t now_ms) = 0;
};

struct Site {
  // Answers GET and HEAD of a path.
  std::function<Reply(const std::string& path)> get;
  std::vector<std::pair<std::string, std::string>> headers{}; // each answer has them
  // True if WebSockets are opened at this path. Null: nowhere.
  std::function<bool(const std::string& path)> has_channel{};
  // Opens one. Null: there is none at this path any more. The peer outlives its channel.
  std::function<std::unique_ptr<Channel>(const std::string& path, Peer&)> open{};
};

// Requests and connections that were refused.
struct Refusals {
  uint64_t host = 0, origin = 0, malformed = 0, crowded_out = 0, silent = 0;
};

class Server {
 public:
  // Listens from now on; requests wait until serve(). Throws Failure: MR0105 if the address cannot be read, MR0113 if
  // the server cannot listen on it, MR0126 if the certificate cannot be used.
  explicit Server(const Listen& listen, const Limits& limits = {});
  ~Server(); // as stop()
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // "http://127.0.0.1:9090" or "https://…", also if it listens on all addresses.
  std::string url() const;
  bool is_on_loopback() const;
  // True if it listens where `address` says. Throws Failure as the constructor does.
  bool listens_at(const std::string& address) const;
  // The server's thread calls the site until stop(). Throws Failure, MR0612, if there is no thread.
  void serve(Site site);
  // Ends all connections. WebSockets are told 1001 and `reason`, as far as their peers take it within a second.
  void stop(std::string_view reason = "the server ends");
  Refusals refusals() const; // any thread

 private:
  class Listener;
  std::unique_ptr<Listener> listener_;
};

} // namespace millrace::http
