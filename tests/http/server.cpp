// The HTTP server with peers that behave, and with peers that do not.
#include "http/server.h"

#include <doctest/doctest.h>
#include <poll.h>

#include <atomic>
#include <list>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "tests/http/client.h"
#include "tests/seed.h"

using namespace millrace;
using namespace millrace::http;
using millrace::test::Frame;
using millrace::test::opened;
using millrace::test::request;
using millrace::test::TcpClient;
using millrace::test::upgrade_lines;

namespace {

// Says everything back. "big" is answered with a megabyte, "close" and "because REASON" with an end, and "events" with
// a number each millisecond from then on.
class Echo : public Channel {
 public:
  Echo(Peer& peer, std::atomic<int>& open, std::atomic<int>& taken) : peer_(peer), open_(open), taken_(taken) {
    ++open_;
  }
  ~Echo() override { --open_; }
  void take(std::string_view message) override {
    ++taken_;
    if (message == "big") return peer_.send_bytes(std::string(size_t{1} << 20, 'b'));
    if (message.starts_with("because ")) return peer_.close(4321, message.substr(8));
    if (message == "close") return peer_.close(4321, "as it was asked");
    if (message == "events") due_ms_ = 0;
    peer_.send(std::string(message));
  }
  int64_t due_ms() const override { return due_ms_; }
  void give(int64_t now_ms) override {
    due_ms_ = now_ms + 1;
    peer_.send(std::to_string(++given_));
  }

 private:
  Peer& peer_;
  std::atomic<int>&open_, &taken_;
  int64_t due_ms_ = INT64_MAX;
  int given_ = 0;
};

struct Served {
  std::atomic<int> open{0}, taken{0}, asked{0};
  std::mutex mutex;
  std::vector<Peer::Then> then; // of each peer, in the order in which they came
  Limits limits;
  std::unique_ptr<Server> server;

  explicit Served(const Limits& the_limits = {}) : limits(the_limits) {
    server = std::make_unique<Server>(Listen{"--listen", "127.0.0.1:0", {"cam.example"}, "--name"}, limits);
    Site site;
    site.get = [this](const std::string& path) {
      ++asked;
      return path == "/" ? Reply{200, "hello\n"} : Reply{404, "there is /\n"};
    };
    site.headers = {{"X-Kept", "yes"}};
    site.has_channel = [](const std::string& path) { return path == "/control"; };
    site.open = [this](const std::string&, Peer& peer) {
      const std::lock_guard lock(mutex);
      then.push_back(peer.then());
      return std::make_unique<Echo>(peer, open, taken);
    };
    server->serve(std::move(site));
  }
  uint16_t port() const { return test::port_of(server->url()); }
  std::string host() const { return "127.0.0.1:" + std::to_string(port()); }
  Peer::Then then_of(size_t peer) {
    const std::lock_guard lock(mutex);
    return then.at(peer);
  }
  std::string ask(const std::string& bytes) const {
    TcpClient client(port());
    client.say(bytes);
    return client.hear_all();
  }
  static std::string status_of(const std::string& answer) { return answer.substr(9, 3); }
};

// Looks again until it is so; false after kPatienceMs of looking.
template <class Is>
bool comes_true(Is&& is) {
  for (int n = 0; n < test::kPatienceMs; ++n) {
    if (is()) return true;
    ::poll(nullptr, 0, 1);
  }
  return false;
}

} // namespace

TEST_CASE("A request is answered with the site's headers, and the connection ends") {
  const Served served;
  const std::string answer = served.ask(request("/", "Host: localhost\r\n"));
  CHECK(Served::status_of(answer) == "200");
  CHECK(answer.find("X-Kept: yes\r\n") != std::string::npos);
  CHECK(answer.ends_with("\r\n\r\nhello\n"));
  CHECK(Served::status_of(served.ask(request("/other", "Host: localhost\r\n"))) == "404");
}

TEST_CASE("A WebSocket is opened for a page of this server alone") {
  const Served served;
  const std::string host = served.host();
  for (const auto& [named, origin, status] :
       {std::tuple{host, "http://" + host, "101"},
        {"localhost:9", "http://localhost:9", "101"}, // through a tunnel
        {"cam.example", "http://cam.example", "101"},
        {host, "", "403"}, // absent
        {host, "http://evil.example", "403"},
        {host, "http://localhost:" + std::to_string(served.port()), "403"}, // ours, but not of this page
        {host, "https://" + host, "403"},
        {host, "null", "403"},
        {"evil.example", "http://evil.example", "421"}}) { // a name that was made to lead here has both
    TcpClient client(served.port());
    client.say(request("/control", upgrade_lines(named, origin)));
    const std::string head = client.hear_head();
    INFO(named << " " << origin);
    CHECK(Served::status_of(head) == status);
  }
  TcpClient twice(served.port());
  twice.say(request("/control", upgrade_lines(host, "http://" + host) + "Origin: http://evil.example\r\n"));
  CHECK(Served::status_of(twice.hear_head()) == "403");
  const Refusals refused = served.server->refusals();
  CHECK(refused.origin == 6);
  CHECK(refused.host == 1);
}

TEST_CASE("Elsewhere an upgrade is an ordinary request") {
  const Served served;
  TcpClient client(served.port());
  client.say(request("/", upgrade_lines(served.host(), "http://" + served.host())));
  CHECK(Served::status_of(client.hear_head()) == "200");
}

TEST_CASE("Messages are taken one after the other, and answers come in their order") {
  Served served;
  {
    TcpClient client = opened(served.port());
    for (int n = 0; n < 200; ++n) client.say_frame(std::to_string(n));
    for (int n = 0; n < 200; ++n) CHECK(client.hear_frame().value_or(Frame{}).bytes == std::to_string(n));
    client.say_frame("close");
    const Frame last = client.hear_frame().value_or(Frame{});
    CHECK(last.opcode == 8);
    CHECK(last.bytes == std::string("\x10\xe1", 2) + "as it was asked"); // 4321
  }
  CHECK(comes_true([&] { return served.open == 0; }));
}

TEST_CASE("A reason that is too long is cut to whole characters") {
  const Served served;
  for (const auto& [said, heard] : {std::pair{std::string(200, 'x'), std::string(123, 'x')},
                                    {std::string(122, 'x') + "ä", std::string(122, 'x')},
                                    {std::string(121, 'x') + "ä", std::string(121, 'x') + "ä"},
                                    {std::string(), std::string()}}) {
    TcpClient client = opened(served.port());
    client.say_frame("because " + said);
    CHECK(client.hear_frame().value_or(Frame{}).bytes.substr(2) == heard);
  }
}

TEST_CASE("A peer that was told to go and stays makes way for another one") {
  Served served({.connections = 2});
  std::list<TcpClient> told;
  for (int n = 0; n < 10; ++n) {
    told.push_back(opened(served.port()));
    told.back().say_frame("close");
    CHECK(told.back().hear(2)); // the frame that ends it, which this client does not answer
  }
  CHECK(served.server->refusals().crowded_out >= 8);
}

TEST_CASE("A peer that does not read is not read from, and another one is served") {
  Served served;
  TcpClient deaf = opened(served.port()), other = opened(served.port());
  int said = 0; // the server takes some, then the system's buffers fill
  std::thread talker([&] {
    while (said < 3000 && deaf.say_frame("big")) ++said;
  });
  other.say_frame("hello");
  CHECK(other.hear_frame().value_or(Frame{}).bytes == "hello");
  CHECK(comes_true([&] { return served.taken >= 2; }));
  // A megabyte that waits is more than a peer may leave: no message more is taken while it does.
  for (int n = 0; n < 50; ++n) {
    other.say_frame("again");
    CHECK(other.hear_frame().value_or(Frame{}).bytes == "again");
  }
  CHECK(served.taken < 200); // of 3,000: as many as the system's buffers hold
  served.server->stop();
  talker.join();
  CHECK(served.open == 0);
}

TEST_CASE("What is due is given while the peer reads") {
  Served served;
  TcpClient client = opened(served.port());
  client.say_frame("events");
  CHECK(client.hear_frame().value_or(Frame{}).bytes == "events");
  for (int n = 1; n <= 20; ++n) CHECK(client.hear_frame().value_or(Frame{}).bytes == std::to_string(n));
}

TEST_CASE("A message that is too long ends its connection, and is counted") {
  Served served;
  TcpClient client = opened(served.port());
  client.say_frame(std::string(served.limits.message_bytes, 'x'));
  CHECK(client.hear_frame().value_or(Frame{}).bytes.size() == served.limits.message_bytes);
  client.say_frame(std::string(served.limits.message_bytes + 1, 'x'));
  client.hear_all();
  CHECK(served.taken == 1);
  CHECK(comes_true([&] { return served.server->refusals().malformed == 1; }));
}

TEST_CASE("Connections that say nothing make way for one that does") {
  Served served({.connections = 8});
  std::list<TcpClient> silent;
  for (int n = 0; n < 1000; ++n) {
    silent.emplace_back(served.port());
    if (silent.size() > 100) silent.pop_front(); // gone on this side too
  }
  TcpClient client = opened(served.port());
  client.say_frame("hello");
  CHECK(client.hear_frame().value_or(Frame{}).bytes == "hello");
  CHECK(served.server->refusals().crowded_out > 0);
}

TEST_CASE("Who has said something is not crowded out") {
  Served served({.connections = 4});
  std::list<TcpClient> talkers;
  for (int n = 0; n < 4; ++n) {
    talkers.push_back(opened(served.port()));
    talkers.back().say_frame("hello");
    CHECK(talkers.back().hear_frame().value_or(Frame{}).bytes == "hello");
  }
  TcpClient late(served.port());
  CHECK(late.hear_all() == ""); // closed without a word
  for (TcpClient& talker : talkers) {
    talker.say_frame("still");
    CHECK(talker.hear_frame().value_or(Frame{}).bytes == "still");
  }
}

TEST_CASE("A thread's answer comes, and one for a peer or a server that is gone does no harm") {
  Served served;
  {
    TcpClient client = opened(served.port());
    client.say_frame("hello");
    client.hear_frame();
    std::atomic<bool> was_called{false};
    served.then_of(0)([&] { was_called = true; });
    CHECK(comes_true([&] { return was_called.load(); }));
  }
  CHECK(comes_true([&] { return served.open == 0; }));
  std::atomic<bool> was_called{false};
  served.then_of(0)([&] { was_called = true; });
  TcpClient other = opened(served.port());
  other.say_frame("hello");
  other.hear_frame(); // the server's thread has been there
  served.server.reset();
  served.then_of(1)([&] { was_called = true; });
  CHECK(!was_called);
}

TEST_CASE("At its end a server tells every peer why") {
  Served served;
  TcpClient client = opened(served.port()), silent = opened(served.port()), waits(served.port());
  client.say_frame("hello");
  client.hear_frame();
  served.server->stop("the run is over");
  const Frame last = client.hear_frame().value_or(Frame{});
  CHECK(last.opcode == 8);
  CHECK(last.bytes == std::string("\x03\xe9", 2) + "the run is over");
  CHECK(silent.hear_frame().value_or(Frame{}).opcode == 8);
  CHECK(waits.hear_all() == "");
  CHECK(served.open == 0);
}

TEST_CASE("A server ends while others dial without pause") {
  for (int n = 0; n < 30; ++n) {
    Served served({.connections = 4});
    const uint16_t port = served.port();
    std::atomic<bool> is_over{false};
    std::vector<std::thread> diallers;
    for (int d = 0; d < 2; ++d)
      diallers.emplace_back([&] {
        while (!is_over) {
          TcpClient client(port);
          client.say(request("/", "Host: localhost\r\n"));
        }
      });
    CHECK(comes_true([&] { return served.asked > 20; }));
    served.server->stop();
    is_over = true;
    for (std::thread& dialler : diallers) dialler.join();
  }
}

TEST_CASE("Bytes that are no request and no frame are refused, and the next peer is served") {
  std::mt19937 random(random_seed());
  INFO("seed " << random_seed());
  Served served;
  for (int n = 0; n < 300; ++n) {
    std::string bytes(random() % 300, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    TcpClient client = n % 2 == 0 ? TcpClient(served.port()) : opened(served.port());
    client.say(bytes);
  }
  TcpClient client = opened(served.port());
  client.say_frame("hello");
  CHECK(client.hear_frame().value_or(Frame{}).bytes == "hello");
}
