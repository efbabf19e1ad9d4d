// The proxy between real sockets of the loopback: each fault does to a connection what its name says.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "proxy.h"
#include "sample.h"
#include "tests/milliseconds.h"

namespace millrace::chaos {

namespace {

// Nothing of these tests takes as long, so a test that waits in vain fails.
constexpr int kGivenUpMs = 5'000;
// A connection on which nothing comes for so long is taken for a silent one.
constexpr int kSilentMs = 30;

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

struct Loopback {
  explicit Loopback(int family, uint16_t port = 0) {
    if (family == AF_INET) {
      auto& v4 = reinterpret_cast<sockaddr_in&>(storage);
      v4.sin_family = AF_INET;
      v4.sin_port = htons(port);
      v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      size = sizeof(v4);
    } else {
      auto& v6 = reinterpret_cast<sockaddr_in6&>(storage);
      v6.sin6_family = AF_INET6;
      v6.sin6_port = htons(port);
      v6.sin6_addr = in6addr_loopback;
      size = sizeof(v6);
    }
  }
  sockaddr* address() { return reinterpret_cast<sockaddr*>(&storage); }
  uint16_t port() const { // at one place in both families
    return ntohs(reinterpret_cast<const sockaddr_in&>(storage).sin_port);
  }

  sockaddr_storage storage{};
  socklen_t size = 0;
};

// A blocking socket that gives up after kGivenUpMs.
class Socket {
 public:
  explicit Socket(int file) : file_(file) {}
  Socket(Socket&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  Socket& operator=(Socket&&) = delete;
  ~Socket() { close(); }

  static Socket listening(int family) {
    Socket socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    Loopback any(family);
    REQUIRE(::bind(socket.file_, any.address(), any.size) == 0);
    REQUIRE(::listen(socket.file_, 16) == 0);
    return socket;
  }

  // Not connected if the other end refused: error() says so.
  static Socket dialled(int family, uint16_t port) {
    Socket socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    Loopback to(family, port);
    if (::connect(socket.file_, to.address(), to.size) != 0) socket.error_ = errno;
    return socket;
  }

  uint16_t port() const {
    Loopback own(AF_INET6);
    REQUIRE(::getsockname(file_, own.address(), &own.size) == 0);
    return own.port();
  }

  bool is_readable(int timeout_ms) const {
    pollfd one{.fd = file_, .events = POLLIN, .revents = 0};
    return ::poll(&one, 1, timeout_ms) > 0;
  }

  Socket accepted() const {
    REQUIRE(is_readable(kGivenUpMs));
    return Socket(::accept4(file_, nullptr, nullptr, SOCK_CLOEXEC));
  }

  bool send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t count = ::send(file_, text.data(), text.size(), MSG_NOSIGNAL);
      if (count < 0) return false;
      text.remove_prefix(static_cast<size_t>(count));
    }
    return true;
  }

  // `size` bytes, fewer if the connection ends before; error() tells how.
  std::string receive(size_t size) {
    std::string text(size, ' ');
    size_t got = 0;
    while (got < size) {
      if (!is_readable(kGivenUpMs)) {
        error_ = ETIMEDOUT;
        break;
      }
      const ssize_t count = ::recv(file_, text.data() + got, size - got, 0);
      if (count <= 0) {
        error_ = count < 0 ? errno : 0;
        is_at_end_ = count == 0;
        break;
      }
      got += static_cast<size_t>(count);
    }
    text.resize(got);
    return text;
  }

  // Long texts are compared here, where a failure does not print them.
  bool receives(std::string_view text) { return receive(text.size()) == text; }
  bool ends_in_order() { return receive(1).empty() && is_at_end_; }
  bool ends_by_reset() { return receive(1).empty() && error_ == ECONNRESET; }
  bool is_silent() const { return !is_readable(kSilentMs); }
  int error() const { return error_; }

  void end_sending() { ::shutdown(file_, SHUT_WR); }
  void reset() {
    const linger none{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(file_, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
    close();
  }
  void close() {
    if (file_ >= 0) ::close(std::exchange(file_, -1));
  }

 private:
  int file_;
  int error_ = 0;
  bool is_at_end_ = false;
};

Fault fault_of(std::string_view text) { return std::get<Script>(read_script(text)).at(0).fault; }

// A server's listening socket, and the proxy on a thread of its own.
class Rig {
 public:
  explicit Rig(std::string_view script = "", int family = AF_INET)
      : family_(family),
        server_(Socket::listening(family)),
        proxy_(io_, options(), Schedule(std::get<Script>(read_script(script)), 1)) {
    proxy_.start();
    thread_ = std::thread([this] { io_.run(); });
  }
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;
  ~Rig() { totals(); }

  Socket dial() { return Socket::dialled(family_, proxy_.endpoint().port()); }
  Socket accept() { return server_.accepted(); }
  bool is_dialled() const { return server_.is_readable(kSilentMs); }
  void end_server() { server_.close(); }

  // The fault is in force when this comes back.
  void begin(std::string_view text) {
    std::promise<void> begun;
    boost::asio::post(io_, [&] {
      proxy_.begin(fault_of(text));
      begun.set_value();
    });
    begun.get_future().wait();
  }

  // Ends the proxy.
  const Totals& totals() {
    if (thread_.joinable()) {
      boost::asio::post(io_, [this] { proxy_.stop(); });
      thread_.join();
    }
    return proxy_.totals();
  }

 private:
  ProxyOptions options() const {
    const std::string host = family_ == AF_INET ? "127.0.0.1" : "::1";
    return {.listen = {host, "0"}, .to = {host, std::to_string(server_.port())}, .seed = 1, .told = {}};
  }

  int family_;
  Socket server_;
  boost::asio::io_context io_{1};
  Proxy proxy_;
  std::thread thread_;
};

// A connection through the proxy, with its two ends.
struct Pair {
  explicit Pair(Rig& rig) : dialler(rig.dial()), server(rig.accept()) {}

  // The proxy knows that the server took the connection, which a server learns first.
  void greet() {
    CHECK(dialler.send("!"));
    CHECK(server.receive(1) == "!");
  }

  Socket dialler, server;
};

// Sends while the caller receives.
class Sending {
 public:
  Sending(Socket& socket, const std::string& text) : thread_([&] { socket.send(text); }) {}
  Sending(const Sending&) = delete;
  Sending& operator=(const Sending&) = delete;
  ~Sending() { thread_.join(); }

 private:
  std::thread thread_;
};

} // namespace

TEST_CASE("without faults all bytes pass both ways, and each direction ends by itself") {
  for (const int family : {AF_INET, AF_INET6}) {
    Rig rig("", family);
    Pair pair(rig);
    const std::string up = sample(10'000'000), down = sample(3'000'001);
    {
      const Sending sending_up(pair.dialler, up);
      const Sending sending_down(pair.server, down);
      CHECK(pair.server.receives(up));
      CHECK(pair.dialler.receives(down));
    }
    pair.dialler.end_sending();
    CHECK(pair.server.ends_in_order());
    CHECK(pair.server.send("still here"));
    CHECK(pair.dialler.receive(10) == "still here");
    pair.server.end_sending();
    CHECK(pair.dialler.ends_in_order());
    CHECK(rig.totals().connections == 1);
    CHECK(rig.totals().bytes[0] == up.size());
    CHECK(rig.totals().bytes[1] == down.size() + 10);
    CHECK(rig.totals().bytes_vanished == 0);
  }
}

TEST_CASE("connections do not wait for each other") {
  Rig rig("stall connection 2");
  std::vector<Pair> pairs;
  for (int n = 0; n < 20; ++n) pairs.emplace_back(rig);
  for (size_t n = 0; n < pairs.size(); ++n) CHECK(pairs[n].dialler.send(std::to_string(n)));
  for (size_t n = 0; n < pairs.size(); ++n)
    if (n != 1) CHECK(pairs[n].server.receive(std::to_string(n).size()) == std::to_string(n));
  CHECK(pairs[1].server.is_silent());
}

TEST_CASE("a reset of one end reaches the other, and so does a server that is not there") {
  Rig rig;
  Pair pair(rig);
  pair.greet();
  pair.server.reset();
  CHECK(pair.dialler.ends_by_reset());
  Pair other(rig);
  other.greet();
  other.dialler.reset();
  CHECK(other.server.ends_by_reset());
  rig.end_server();
  CHECK(rig.dial().ends_by_reset());
  CHECK(rig.totals().failed_dials == 1);
}

TEST_CASE("latency and jitter: all bytes come in order, and late by their time") {
  Rig rig("latency 100ms up; jitter 10ms up");
  Pair pair(rig);
  CHECK(pair.server.send("at once"));
  int64_t began = now_ns();
  CHECK(pair.dialler.receive(7) == "at once");
  CHECK(now_ns() - began < 90 * kMs);

  const std::string text = sample(2'000);
  began = now_ns();
  for (size_t at = 0; at < text.size(); at += 10) CHECK(pair.dialler.send(text.substr(at, 10)));
  CHECK(pair.server.receives(text.substr(0, 10)));
  CHECK(now_ns() - began >= 90 * kMs);
  CHECK(pair.server.receives(text.substr(10)));
}

TEST_CASE("slices and bandwidth: all bytes come in order, at that rate") {
  Rig rig("slice 1..7 down; bandwidth 2MB/s up");
  Pair pair(rig);
  const std::string text = sample(400'000);
  {
    const Sending sending(pair.server, text);
    CHECK(pair.dialler.receives(text));
  }
  const Sending sending(pair.dialler, text);
  const int64_t began = now_ns();
  CHECK(pair.server.receives(text));
  // 200 ms. On a busy machine timers are late; stream_test.cpp looks at the rate in virtual time.
  CHECK(now_ns() - began > 160 * kMs);
  CHECK(now_ns() - began < 600 * kMs);
}

TEST_CASE("flips change their share of the bits of their direction, and nothing else") {
  Rig rig("flip 1/1000 up");
  Pair pair(rig);
  const std::string text = sample(1'000'000);
  std::string got;
  {
    const Sending up(pair.dialler, text);
    got = pair.server.receive(text.size());
  }
  {
    const Sending down(pair.server, text);
    CHECK(pair.dialler.receives(text));
  }
  REQUIRE(got.size() == text.size());
  uint64_t bits = 0;
  int most = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const int differing = std::popcount(static_cast<uint8_t>(got[at] ^ text[at]));
    bits += static_cast<uint64_t>(differing);
    most = std::max(most, differing);
  }
  CHECK(most == 1);
  CHECK(bits > 800);
  CHECK(bits < 1200);
  CHECK(rig.totals().bits_flipped == bits);
}

TEST_CASE("a stall holds bytes and ends, and loses none") {
  Rig rig;
  Pair pair(rig);
  rig.begin("stall up");
  CHECK(pair.dialler.send("held"));
  pair.dialler.end_sending();
  CHECK(pair.server.is_silent());
  CHECK(pair.server.send("down"));
  CHECK(pair.dialler.receive(4) == "down");
  rig.begin("clear");
  CHECK(pair.server.receive(9) == "held");
  CHECK(pair.server.ends_in_order());
}

TEST_CASE("a sender is held up once 4 MiB wait, and a stall that ends by itself loses nothing") {
  Rig rig;
  Pair pair(rig);
  const std::string text = sample(12'000'000);
  rig.begin("stall up for 150ms");
  const Sending sending(pair.dialler, text);
  CHECK(pair.server.is_silent());
  CHECK(pair.server.receives(text));
}

TEST_CASE("half-open: bytes and ends of one direction vanish, the other one works") {
  Rig rig;
  Pair pair(rig);
  rig.begin("half-open up");
  CHECK(pair.dialler.send("lost"));
  CHECK(pair.server.is_silent());
  CHECK(pair.server.send("down"));
  CHECK(pair.dialler.receive(4) == "down");
  rig.begin("clear");
  CHECK(pair.dialler.send("found"));
  CHECK(pair.server.receive(5) == "found");
  rig.begin("half-open up");
  pair.dialler.close();
  CHECK(pair.server.is_silent());
  CHECK(rig.totals().bytes_vanished == 4);
}

TEST_CASE("a cut ends both ends in order, with the bytes that were under way") {
  Rig rig("latency 10s up");
  Pair pair(rig), later(rig);
  CHECK(pair.dialler.send("before"));
  CHECK(pair.server.is_silent());
  rig.begin("cut connection 1");
  CHECK(pair.server.receive(7) == "before");
  CHECK(pair.server.ends_in_order());
  CHECK(pair.dialler.ends_in_order());
  CHECK(later.server.send("other"));
  CHECK(later.dialler.receive(5) == "other");

  rig.begin("cut down");
  CHECK(later.dialler.ends_in_order());
  CHECK(later.server.is_silent());
  CHECK(rig.totals().cut_connections == 2);
}

TEST_CASE("a reset is one for both ends, or for the end that its direction leads to") {
  Rig rig;
  Pair both(rig);
  rig.begin("reset");
  CHECK(both.server.ends_by_reset());
  CHECK(both.dialler.ends_by_reset());
  Pair up(rig);
  rig.begin("reset up");
  CHECK(up.server.ends_by_reset());
  CHECK(up.dialler.ends_in_order());
  Pair down(rig);
  down.greet(); // `up` was perhaps reset before
  rig.begin("reset down");
  CHECK(down.dialler.ends_by_reset());
  CHECK(down.server.ends_in_order());
}

TEST_CASE("refused connections do not come, those that are open stay, and the port remains the same") {
  Rig rig;
  Pair pair(rig);
  rig.begin("refuse");
  CHECK(rig.dial().error() == ECONNREFUSED);
  CHECK(rig.dial().error() == ECONNREFUSED);
  CHECK(pair.dialler.send("open"));
  CHECK(pair.server.receive(4) == "open");
  rig.begin("clear");
  Pair next(rig);
  CHECK(next.dialler.send("next"));
  CHECK(next.server.receive(4) == "next");
  rig.begin("refuse for 20ms");
  int64_t began = now_ns();
  while (rig.dial().error() == ECONNREFUSED && now_ns() - began < 2000 * kMs)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(now_ns() - began > 10 * kMs);
  CHECK(now_ns() - began < 1000 * kMs);
}

TEST_CASE("in a blackhole a connection comes about, and the server never hears of it") {
  Rig rig("blackhole connection 1");
  Socket dialler = rig.dial();
  CHECK(dialler.error() == 0);
  CHECK(dialler.send(sample(100'000)));
  CHECK(!rig.is_dialled());
  CHECK(dialler.is_silent());
  Pair second(rig);
  CHECK(second.dialler.send("passes"));
  CHECK(second.server.receive(6) == "passes");
  rig.begin("cut");
  CHECK(dialler.ends_in_order());
}

TEST_CASE("a limit lets exactly its bytes pass, then both ends see the end") {
  Rig rig("limit 100KB down");
  Pair pair(rig);
  const std::string text = sample(300'000);
  {
    const Sending up(pair.dialler, text);
    CHECK(pair.server.receives(text));
  }
  const Sending down(pair.server, text);
  CHECK(pair.dialler.receives(text.substr(0, 100'000)));
  CHECK(pair.dialler.ends_in_order());
  CHECK(pair.server.ends_in_order());
  CHECK(rig.totals().cut_connections == 1);
}

TEST_CASE("an end that goes on sending after a cut is closed all the same") {
  Rig rig;
  Pair pair(rig);
  rig.begin("cut");
  CHECK(pair.dialler.ends_in_order());
  const int64_t began = now_ns();
  while (pair.dialler.send("more") && now_ns() - began < 3 * kLingerNs)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(now_ns() - began < 2 * kLingerNs);
}

TEST_CASE("addresses are read with their ports") {
  CHECK(read_address("127.0.0.1:0")->host == "127.0.0.1");
  CHECK(read_address("[::1]:7433")->host == "::1");
  CHECK(read_address("[::1]:7433")->port == "7433");
  CHECK(read_address("localhost:80")->host == "localhost");
  for (const char* text :
       {"", ":", "localhost", "localhost:", ":80", "::1", "[]:80", "host:port", "host:65536", "host:-1"})
    CHECK(!read_address(text));
}

namespace {

// The command, with its output in a pipe.
struct Command {
  explicit Command(std::vector<std::string> words) {
    int files[2];
    REQUIRE(::pipe(files) == 0);
    words.insert(words.begin(), MILLRACE_CHAOS);
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, files[1], 1);
    posix_spawn_file_actions_adddup2(&actions, files[1], 2);
    posix_spawn_file_actions_addclose(&actions, files[0]);
    REQUIRE(posix_spawn(&process, MILLRACE_CHAOS, &actions, nullptr, pointers.data(), environ) == 0);
    posix_spawn_file_actions_destroy(&actions);
    ::close(files[1]);
    output = ::fdopen(files[0], "r");
  }
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;
  ~Command() { std::fclose(output); }

  // "" at the end.
  std::string line() const {
    std::array<char, 4096> text{};
    return std::fgets(text.data(), static_cast<int>(text.size()), output) ? text.data() : "";
  }

  int exit_status() const {
    int status = 0;
    REQUIRE(::waitpid(process, &status, 0) == process);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  pid_t process = 0;
  std::FILE* output = nullptr;
};

} // namespace

TEST_CASE("the command prints its port, its seed, the faults and, when it is ended, its totals") {
  const Socket server = Socket::listening(AF_INET);
  const Command command({"--to", "127.0.0.1:" + std::to_string(server.port()), "--print-port", "--seed", "7", "--log",
                         "-e", "latency 1ms up; at 10ms jitter 1us"});
  const auto port = static_cast<uint16_t>(std::stoi(command.line()));
  CHECK(command.line() == "seed 7\n");
  CHECK(command.line() == "0.000000 latency 1ms up\n");
  CHECK(command.line() == "0.010000 jitter 1us\n");
  Socket dialler = Socket::dialled(AF_INET, port);
  Socket accepted = server.accepted();
  CHECK(dialler.send("hello"));
  CHECK(accepted.receive(5) == "hello");
  REQUIRE(::kill(command.process, SIGTERM) == 0);
  CHECK(command.line() ==
        "{\"connections\": 1, \"failed_dials\": 0, \"cut_connections\": 0, \"reset_connections\": 0, \"bytes_up\": 5, "
        "\"bytes_down\": 0, \"bytes_vanished\": 0, \"bits_flipped\": 0, \"faults\": {\"latency\": 1, \"jitter\": 1, "
        "\"bandwidth\": 0, \"slice\": 0, \"flip\": 0, \"stall\": 0, \"half-open\": 0, \"cut\": 0, \"reset\": 0, "
        "\"refuse\": 0, \"blackhole\": 0, \"limit\": 0, \"clear\": 0}}\n");
  CHECK(command.line().empty());
  CHECK(command.exit_status() == 0);
}

TEST_CASE("the command tells a mistake and ends with 2") {
  const Command command({"--to", "127.0.0.1:1", "-e", "latency 5ms\ncutt"});
  const std::string line = command.line();
  CHECK(line.starts_with("millrace-chaos: -e line 2: expected at, every or a fault ("));
  CHECK(line.ends_with("found 'cutt'; the nearest word is 'cut'\n"));
  CHECK(command.exit_status() == 2);
}

} // namespace millrace::chaos
