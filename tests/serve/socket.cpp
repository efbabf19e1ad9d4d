// The control socket with clients that behave, and with clients that do not.
#include "serve/socket.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <future>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>
#include <utility>

#include "exec/tap.h"
#include "net/system/local.h"
#include "observe/error.h"
#include "serve/client.h"
#include "serve/message.h"
#include "serve/run_folder.h"
#include "tests/exec/endless_run.h"
#include "tests/folder.h"
#include "tests/part.h"
#include "tests/seed.h"

using namespace millrace;
using namespace millrace::serve;
using nlohmann::ordered_json;
namespace fs = std::filesystem;

namespace {

constexpr int kPatienceMs = 20'000; // a busy machine under a sanitizer is slow
const std::string kHello = R"({"jsonrpc":"2.0","id":1,"method":"hello","params":{"protocol":1,"role":"steer"}})";
const std::string kSet = R"({"jsonrpc":"2.0","id":2,"method":"set","params":{"changes":{"blur.sigma":4}}})";

const std::string kStop = R"({"jsonrpc":"2.0","id":3,"method":"stop"})";

// A socket in a folder of its own, the run that it steers, and the time that passes for its clients.
struct Served {
  test::Folder temporary;
  fs::path folder = temporary.path / "millrace";
  std::mutex mutex;
  std::vector<SetDone> asked;
  std::atomic<int> stops{0}, stops_before_set{0};
  std::function<void()> on_stop = [] {};
  std::atomic<int64_t> now_ms{1'000'000};
  std::atomic<int> states{0}; // how often it was asked for its state, which is a number and so many letters
  size_t state_letters = 0;
  test::EndlessRun* tapped = nullptr;
  Control control{run()};
  std::unique_ptr<ControlSocket> socket = open();

  SteeredRun run() {
    SteeredRun run;
    run.version = "1";
    run.pipeline = "street";
    run.elapsed_s = [] { return 0.0; };
    run.state = [this] { return std::to_string(++states) + std::string(state_letters, 'x'); };
    run.set = [this](const std::vector<exec::ParamChange>&, const SetDone& taken) {
      const std::lock_guard lock(mutex);
      asked.push_back(taken);
      stops_before_set = stops.load();
    };
    run.stop = [this] {
      ++stops;
      on_stop();
    };
    run.tap = [this](const std::string& output, const exec::TapOptions& options) {
      return tapped->tap(output, options);
    };
    return run;
  }
  std::unique_ptr<ControlSocket> open() {
    make_run_folder(folder);
    return std::make_unique<ControlSocket>(control, folder, SocketOptions{{}, [this] { return now_ms.load(); }});
  }
  fs::path path() const { return socket_in(folder); }
  size_t asked_count() {
    const std::lock_guard lock(mutex);
    return asked.size();
  }
};

// A client that sends bytes as they are.
class Wire {
 public:
  explicit Wire(const Served& served) {
    std::string why;
    // Refused for a moment while too many others wait to be accepted.
    for (int i = 0; i < 1'000'000 && !socket_; ++i) socket_ = net::dial_local(served.path().string(), why);
    REQUIRE_MESSAGE(static_cast<bool>(socket_), why);
  }
  // The bytes that were taken before the other end took no more.
  size_t send(std::string_view bytes, int patience_ms = kPatienceMs) {
    size_t sent = 0;
    while (sent < bytes.size()) {
      const ssize_t taken = ::send(socket_.number(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (taken > 0) sent += static_cast<size_t>(taken);
      if (taken < 0 && (errno != EAGAIN || !wait(POLLOUT, patience_ms))) break;
    }
    return sent;
  }
  // The next line; "": the other end has hung up.
  std::string line() {
    while (received_.find('\n') == std::string::npos) {
      REQUIRE(wait(POLLIN, kPatienceMs));
      char bytes[4096];
      const ssize_t got = ::recv(socket_.number(), bytes, sizeof bytes, 0);
      if (got <= 0) return "";
      received_.append(bytes, static_cast<size_t>(got));
    }
    const size_t end = received_.find('\n');
    const std::string line = received_.substr(0, end);
    received_.erase(0, end + 1);
    return line;
  }
  ordered_json answer() {
    const std::string text = line();
    REQUIRE(!text.empty());
    return ordered_json::parse(text);
  }
  ordered_json ask(const std::string& request) {
    send(request + "\n");
    return answer();
  }
  // The code with which the other end hung up.
  int farewell() {
    const int code = answer()["error"]["code"];
    REQUIRE(line().empty());
    return code;
  }
  int error_of(const std::string& request) { return ask(request)["error"]["code"]; }
  void say_no_more() { ::shutdown(socket_.number(), SHUT_WR); }

 private:
  bool wait(short events, int patience_ms) const {
    pollfd watched{socket_.number(), events, 0};
    return ::poll(&watched, 1, patience_ms) > 0;
  }
  net::Descriptor socket_;
  std::string received_;
};

} // namespace

TEST_CASE("Two clients are served side by side, and each has a role of its own") {
  Served served;
  Wire one(served), two(served);
  CHECK(one.ask(kHello)["result"]["role"] == "steer");
  CHECK(two.error_of(kSet) == -32001);
  two.ask(R"({"jsonrpc":"2.0","id":1,"method":"hello","params":{"protocol":1}})");
  CHECK(two.error_of(kSet) == -32002);
  CHECK(one.ask(R"({"jsonrpc":"2.0","id":3,"method":"stop"})")["result"]["state"] == "draining");
  CHECK(served.stops == 1);
}

TEST_CASE("An answer that a thread of the run gives finds its client, and nobody else") {
  Served served;
  Wire one(served), two(served);
  one.ask(kHello);
  two.ask(kHello);
  one.send(kSet + "\n");
  while (served.asked_count() < 1) std::this_thread::yield();
  two.send(kSet + "\n");
  while (served.asked_count() < 2) std::this_thread::yield();
  std::thread run([&] {
    served.asked[1]({{{"main", 22}}});
    served.asked[0]({{{"main", 11}}});
  });
  CHECK(one.answer()["result"]["ticks"]["main"] == 11);
  CHECK(two.answer()["result"]["ticks"]["main"] == 22);
  run.join();
}

TEST_CASE("The end of a run answers those who wait, removes the socket and hangs up") {
  Served served;
  Wire client(served);
  client.ask(kHello);
  client.send(kSet + "\n");
  while (served.asked_count() < 1) std::this_thread::yield();
  CHECK(fs::exists(served.path()));
  served.control.end();
  served.socket.reset();
  CHECK(client.answer()["error"]["code"] == -32003);
  CHECK(client.line().empty());
  CHECK_FALSE(fs::exists(served.path()));
  served.asked[0]({{{"main", 1}}}); // a late word of the run's goes nowhere
}

TEST_CASE("A request may come byte by byte, several may come at once, and the last one needs a line end") {
  Served served;
  Wire slow(served);
  for (const char c : kHello + "\n") slow.send({&c, 1});
  CHECK(slow.answer()["id"] == 1);
  Wire fast(served);
  fast.send(kHello + "\n\r\n  \n" + kHello + "\n" + kHello.substr(0, 20));
  fast.say_no_more();
  CHECK(fast.answer()["id"] == 1);
  CHECK(fast.answer()["id"] == 1);
  const ordered_json half = fast.answer();
  CHECK(half["error"]["message"] == "the last message has no line end");
  CHECK(fast.line().empty());
}

TEST_CASE("A client that says no more still gets the answer that it waits for") {
  Served served;
  Wire client(served);
  client.send(kHello + "\n" + kSet + "\n");
  client.say_no_more();
  CHECK(client.answer()["id"] == 1);
  while (served.asked_count() < 1) std::this_thread::yield();
  served.asked[0]({{{"main", 5}}});
  CHECK(client.answer()["result"]["ticks"]["main"] == 5);
  CHECK(client.line().empty());
}

TEST_CASE("A message of 64 KiB is taken; one of a byte more is refused, and the client may go on") {
  Served served;
  Wire client(served);
  const std::string longest = kHello + std::string(kMessageBytesMax - kHello.size(), ' ');
  CHECK(client.ask(longest)["result"]["protocol"] == 1);
  const ordered_json refused = client.ask(longest + " ");
  CHECK(refused["error"]["code"] == -32600);
  CHECK(refused["error"]["message"] == "a message has at most 65536 bytes");
  CHECK(client.ask(std::string(10 * kMessageBytesMax, 'x'))["error"]["code"] == -32600);
  CHECK(client.ask(kHello)["result"]["protocol"] == 1);
}

namespace {

constexpr ClientLimits kLimits;

// As many clients as there are places; each has said this.
std::vector<std::unique_ptr<Wire>> fill(Served& served, const std::string& request = kHello) {
  std::vector<std::unique_ptr<Wire>> clients;
  for (size_t i = 0; i < kLimits.clients; ++i) {
    clients.push_back(std::make_unique<Wire>(served));
    REQUIRE(clients.back()->ask(request).contains("id"));
  }
  return clients;
}

} // namespace

TEST_CASE("A client that says nothing, or half a message, is told so after a second and keeps nobody out") {
  Served served;
  Wire silent(served), half(served), blank(served);
  half.send(kHello);
  blank.send("\n \r\n");
  std::vector<std::unique_ptr<Wire>> more;
  for (size_t i = 0; i < 3 * kLimits.arrivals; ++i) more.push_back(std::make_unique<Wire>(served));
  Wire steers(served);
  CHECK(steers.ask(kHello)["result"]["role"] == "steer");
  steers.send(kSet + "\n");
  while (served.asked_count() < 1) std::this_thread::yield();
  served.asked[0]({{{"main", 5}}});
  CHECK(steers.answer()["result"]["ticks"]["main"] == 5);
  served.now_ms += kLimits.arrives_ms;
  for (Wire* one : {&silent, &half, &blank, more.back().get()}) CHECK(one->farewell() == -32004);
  CHECK(steers.ask(kHello)["id"] == 1);
}

TEST_CASE("A client whose first message comes within the second stays, for as long as nobody needs its place") {
  Served served;
  Wire in_time(served), asks_at_once(served), other(served);
  other.ask(kHello);
  CHECK(asks_at_once.error_of(kStop) == -32001); // a message is a message
  served.now_ms += kLimits.arrives_ms - 1;
  CHECK(other.ask(kHello)["id"] == 1); // the thread has seen that time
  CHECK(in_time.ask(kHello)["id"] == 1);
  served.now_ms += 1'000'000;
  CHECK(other.ask(kHello)["id"] == 1);
  CHECK(in_time.ask(kHello)["id"] == 1);
  CHECK(asks_at_once.ask(kHello)["id"] == 1);
}

TEST_CASE("Where all places are taken an idle client is told that it gives way") {
  Served served;
  auto clients = fill(served);
  served.now_ms += kLimits.idle_ms;
  for (size_t i = 1; i < clients.size(); ++i) clients[i]->ask(kHello);
  Wire next(served);
  CHECK(next.ask(kHello)["id"] == 1);
  next.send(kSet + "\n");
  while (served.asked_count() < 1) std::this_thread::yield();
  CHECK(clients[0]->farewell() == -32004);
  CHECK(clients[1]->ask(kHello)["id"] == 1);
}

TEST_CASE("Where nobody is idle a client may greet and stop the run; all else is refused with the cause") {
  Served served;
  auto clients = fill(served);
  Wire next(served);
  CHECK(next.ask(kHello)["result"]["role"] == "steer");
  const ordered_json refused = next.ask(kSet);
  CHECK(refused["error"]["code"] == -32004);
  CHECK(refused["error"]["message"] ==
        "16 clients are connected, and none of them is idle; without a place there are hello and stop");
  CHECK(next.error_of(R"({"jsonrpc":"2.0","id":4,"method":"streams.list"})") == -32004);
  CHECK(served.asked_count() == 0);
  CHECK(next.ask(kStop)["result"]["state"] == "draining");
  CHECK(served.stops == 1);
  for (auto& one : clients) CHECK(one->ask(kHello)["id"] == 1);
  served.now_ms += kLimits.arrives_ms; // it has no place, so its time is over
  CHECK(next.farewell() == -32004);
}

TEST_CASE("Clients that wait for a tick keep their places, but not against a stop, and not for ever") {
  Served served;
  auto clients = fill(served);
  for (size_t i = 0; i < clients.size(); ++i) {
    clients[i]->send(kSet + "\n");
    while (served.asked_count() <= i) std::this_thread::yield();
  }
  served.now_ms += kLimits.answer_ms - 1;
  Wire stops(served);
  CHECK(stops.ask(kHello)["id"] == 1);
  CHECK(stops.error_of(kSet) == -32004);
  CHECK(stops.ask(kStop)["result"]["state"] == "draining");
  served.now_ms += 1;
  CHECK(Wire(served).ask(R"({"jsonrpc":"2.0","id":4,"method":"streams.list"})")["error"]["code"] == -32001);
  CHECK(clients[0]->farewell() == -32004);
  served.asked[0]({{{"main", 1}}}); // too late: nobody is there
  served.asked[1]({{{"main", 7}}});
  CHECK(clients[1]->answer()["result"]["ticks"]["main"] == 7);
}

TEST_CASE("A client finds room once another one has gone") {
  Served served;
  auto clients = fill(served);
  clients.pop_back();
  bool found_room = false;
  for (int i = 0; i < 10'000 && !found_room; ++i) { // until the server has seen that it is gone
    Wire next(served);
    next.ask(kHello);
    found_room = next.ask(R"({"jsonrpc":"2.0","id":4,"method":"streams.list"})").contains("result");
  }
  CHECK(found_room);
}

TEST_CASE("A client that never reads is not read from either, and the others are served") {
  Served served;
  Wire deaf(served);
  // Each line is answered by about as many bytes.
  const std::string line = "{" + std::string(126, ' ') + "\n";
  std::string lines;
  for (int i = 0; i < 100'000; ++i) lines += line;
  const size_t taken = deaf.send(lines, 300);
  CHECK(taken < lines.size());
  Wire other(served);
  CHECK(other.ask(kHello)["id"] == 1);
  // It gets all its answers once it reads.
  size_t answers = 0;
  while (answers < taken / line.size() && deaf.line().find("-32700") != std::string::npos) ++answers;
  CHECK(answers == taken / line.size());
}

TEST_CASE("Events come when they are due, and none are made for a client that does not read") {
  Served served;
  served.state_letters = 100'000;
  Wire client(served), other(served);
  client.ask(kHello);
  client.ask(R"({"jsonrpc":"2.0","id":2,"method":"subscribe","params":{"topics":["state"],"hz":20}})");
  const auto next = [&] { return std::stoi(client.answer()["params"]["state"].get<std::string>()); };
  CHECK(next() == 1);
  for (int n = 0; n < 100; ++n) {
    served.now_ms += 50;
    other.ask(kHello); // the thread has gone round once more
  }
  const int made = served.states;
  CHECK(made < 10); // what the system holds for it, and one more
  for (int n = 2; n <= made; ++n) CHECK(next() == n);
  served.now_ms += 50;
  CHECK(next() == made + 1);
  client.ask(R"({"jsonrpc":"2.0","id":3,"method":"subscribe","params":{"topics":[]}})");
  const int before = served.states;
  for (int n = 0; n < 10; ++n) {
    served.now_ms += 50;
    other.ask(kHello);
  }
  CHECK(served.states == before);
}

TEST_CASE("A client that has subscribed and says no more goes on getting events") {
  Served served;
  Wire client(served);
  client.ask(kHello);
  client.ask(R"({"jsonrpc":"2.0","id":2,"method":"subscribe","params":{"topics":["state"],"hz":20}})");
  client.say_no_more();
  for (const std::string number : {"1", "2", "3"}) {
    CHECK(client.answer()["params"]["state"] == number);
    served.now_ms += 50;
  }
}

TEST_CASE("A client that taps an output gets a sample, and the next one once it has acknowledged that") {
  test::EndlessRun run("t.count name=source count=0 ! t.sink name=sink log=seen");
  Served served;
  served.tapped = &run;
  Wire client(served);
  client.ask(kHello);
  CHECK(client.ask(
            R"({"jsonrpc":"2.0","id":4,"method":"tap","params":{"output":"sourc"}})")["error"]["data"]["nearest"] ==
        "source");
  CHECK(client.ask(
            R"({"jsonrpc":"2.0","id":4,"method":"tap","params":{"output":"source.out","hz":20}})")["result"]["tap"] ==
        1);
  uint64_t last = 0;
  for (int n = 0; n < 5; ++n) {
    const ordered_json sample = client.answer();
    REQUIRE(sample["method"] == "tap");
    const ordered_json& params = sample["params"];
    CHECK(params["tap"] == 1);
    CHECK(params["kind"] == "tensor");
    const uint64_t tick = params["tick"];
    CHECK(params["data"]["mean"] == static_cast<double>(tick));
    CHECK((n == 0 || tick > last));
    last = tick;
    // Nothing comes before that, and then it comes, because its time is over.
    CHECK(client.ask(R"({"jsonrpc":"2.0","id":5,"method":"get"})").contains("error"));
    served.now_ms += 50;
    client.send(R"({"jsonrpc":"2.0","method":"ack","params":{"tap":1}})"
                "\n");
  }
  CHECK(client.answer()["method"] == "tap");
  CHECK(client.ask(R"({"jsonrpc":"2.0","id":6,"method":"untap","params":{"tap":1}})").contains("result"));
}

TEST_CASE("A client that sends much at once does not keep the others waiting") {
  constexpr int kMany = 300; // which fit into one read
  Served served;
  Wire many(served), other(served);
  many.ask(kHello);
  other.ask(kHello);
  std::promise<void> both_have_sent;
  served.on_stop = [&, waited = false]() mutable {
    if (!std::exchange(waited, true)) both_have_sent.get_future().wait();
  };
  std::string stops;
  for (int i = 0; i < kMany; ++i) stops += kStop + "\n";
  many.send(stops);
  other.send(kSet + "\n");
  both_have_sent.set_value();
  while (served.asked_count() == 0) std::this_thread::yield();
  CHECK(served.stops_before_set <= 2 * int{kMessagesATurn}); // the one that was under way, and one before the other's
  for (int i = 0; i < kMany; ++i) CHECK(many.answer()["result"]["state"] == "draining");
  CHECK(served.stops == kMany);
}

TEST_CASE("A client that sends its last messages and goes has them answered") {
  constexpr int kMany = 300;
  Served served;
  {
    Wire gone(served);
    gone.ask(kHello);
    std::string stops;
    for (int i = 0; i < kMany; ++i) stops += kStop + "\n";
    gone.send(stops);
    gone.say_no_more();
    for (int i = 0; i < kMany; ++i) CHECK(gone.answer()["result"]["state"] == "draining");
    CHECK(gone.line().empty());
  }
  CHECK(served.stops == kMany);
}

TEST_CASE("Clients that send random bytes and leave at any moment hurt nobody") {
  const uint32_t seed = random_seed();
  CAPTURE(seed);
  std::mt19937 random(seed);
  Served served;
  Wire steady(served);
  steady.ask(kHello);
  for (int64_t i = 0; i < test::part_of(1000); ++i) {
    Wire wild(served);
    std::string bytes;
    const auto size = random() % 3000;
    for (size_t at = 0; at < size; ++at) {
      const auto kind = random() % 100;
      if (kind == 0) bytes += "\n" + kHello + "\n";
      if (kind == 1) bytes += kSet.substr(random() % kSet.size());
      bytes += kind == 2 ? '\n' : static_cast<char>(random());
    }
    wild.send(bytes);
    if (random() % 2) wild.say_no_more();
    if (i % 100 == 0) CHECK(steady.ask(kHello)["id"] == 1);
  }
  CHECK(steady.ask(kHello)["id"] == 1);
}

TEST_CASE("A process of another user is hung up on") {
  if (geteuid() != 0) return; // nobody else can become another user
  Served served;
  // As if the folder's mode did not keep it out already.
  REQUIRE(chmod(served.temporary.path.c_str(), 0711) == 0);
  REQUIRE(chmod(served.folder.c_str(), 0711) == 0);
  REQUIRE(chmod(served.path().c_str(), 0666) == 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, served.path().c_str());
  const pid_t child = fork();
  if (child == 0) { // only what may be called after fork
    if (setuid(65534) != 0) _exit(2);
    const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) _exit(3);
    char byte = 0;
    static_cast<void>(::send(socket, "{\n", 2, MSG_NOSIGNAL));
    const ssize_t got = ::recv(socket, &byte, 1, 0);
    _exit(got <= 0 ? 0 : 4);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("A socket that cannot be opened is refused with its path; one that a dead process left is used again") {
  Served served;
  CHECK_THROWS_WITH_AS(ControlSocket(served.control, served.folder), doctest::Contains(served.path().c_str()), Failure);
  CHECK(fs::exists(served.path())); // it is another one's
  served.socket.reset();
  std::string why;
  net::listen_local(served.path().string(), why);
  REQUIRE(fs::exists(served.path()));
  served.socket = served.open();
  Wire client(served);
  CHECK(client.ask(kHello)["id"] == 1);
}

TEST_CASE("A run is greeted: it answers, is gone, says nothing, is busy, hangs up, or cannot be reached") {
  using State = Greeting::State;
  Served served;
  const Greeting answers = Greeting::of(served.path(), kPatienceMs);
  CHECK(answers.state == State::answers);
  CHECK(answers.hello["pipeline"] == "street");
  CHECK(Greeting::of(served.folder / "1.sock", 1).state == State::gone);
  std::string why;
  const fs::path other = served.folder / "2.sock";
  net::listen_local(other.string(), why); // closed at once, as by a process that dies
  CHECK(Greeting::of(other, 1).state == State::gone);
  { // it takes in nobody
    const net::Descriptor listener = net::listen_local(other.string(), why);
    const Greeting silent = Greeting::of(other, 1);
    CHECK(silent.state == State::silent);
    CHECK(silent.why == "does not answer");
    std::vector<net::Descriptor> waiting;
    while (net::Descriptor one = net::dial_local(other.string(), why)) waiting.push_back(std::move(one));
    const Greeting crowded = Greeting::of(other, 1);
    CHECK(crowded.state == State::silent);
    CHECK(crowded.why == "takes in nobody, and others wait there");
  }
  const auto answered_by = [&](const std::string& line) {
    const net::Descriptor listener = net::listen_local(other.string(), why);
    std::atomic<bool> ends{false};
    std::thread server([&] {
      while (!ends) {
        pollfd watched{listener.number(), POLLIN, 0};
        if (::poll(&watched, 1, 1) <= 0) continue;
        const net::Descriptor client(::accept(listener.number(), nullptr, nullptr));
        static_cast<void>(::send(client.number(), line.data(), line.size(), MSG_NOSIGNAL));
      }
    });
    Greeting greeting = Greeting::of(other, 100);
    ends = true;
    server.join();
    return std::pair(greeting.state, greeting.why);
  };
  const std::string busy =
      R"({"jsonrpc":"2.0","id":null,"error":{"code":-32004,"message":"16 clients are connected"}})";
  CHECK(answered_by(busy + "\n") == std::pair(State::busy, std::string("is busy: 16 clients are connected")));
  CHECK(answered_by("") == std::pair(State::refuses, std::string("hangs up")));
  const std::string refuses_protocol =
      R"({"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"this run speaks protocol 1"}})";
  const std::string takes_the_older = R"({"jsonrpc":"2.0","id":2,"result":{"protocol":1,"pipeline":"old"}})";
  CHECK(answered_by(refuses_protocol + "\n" + takes_the_older + "\n").first == State::answers);
  CHECK(answered_by("nonsense\n").second == "cannot be asked: the run answers what is no answer: nonsense");
  if (geteuid() == 0) return; // whom no mode keeps out
  const net::Descriptor listener = net::listen_local(other.string(), why);
  REQUIRE(chmod(other.c_str(), 0) == 0);
  CHECK(Greeting::of(other, 1).state == State::refuses);
}

TEST_CASE("A client of this program asks and is answered, refused with the run's own words, or hears that it hung up") {
  Served served;
  auto client = ControlClient::dial(served.path());
  REQUIRE(client);
  CHECK((*client->call("hello", {{"protocol", 1}, {"role", "steer"}}, kPatienceMs))["pipeline"] == "street");
  CHECK_THROWS_WITH_AS(client->call("helo", ordered_json::object(), kPatienceMs), doctest::Contains("no such method"),
                       Failure);
  CHECK_FALSE(client->call("set", {{"changes", {{"blur.sigma", 4}}}}, 1));
  served.socket.reset();
  CHECK_THROWS_WITH_AS(client->call("stop", ordered_json::object(), kPatienceMs), doctest::Contains("hung up"),
                       Failure);
  CHECK_FALSE(ControlClient::dial(served.path()));
}
