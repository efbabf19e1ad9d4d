// Strangers cost a listener little: how many wait, how fast they come, how long they stay, and with how many bytes.
#include "net/system/listener.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <ctime>

#include "observe/error.h"
#include "observe/error_codes.h"
#include "tests/contains.h"
#include "tests/net/system/ends.h"
#include "tests/net/system/sockets.h"

using namespace millrace;
using namespace millrace::net;
using namespace millrace::net::test;

namespace {

Descriptor new_socket() { return Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)); }

void connect(const Descriptor& socket, uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  REQUIRE(::connect(socket.number(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
}
Descriptor dialled(uint16_t port) {
  Descriptor socket = new_socket();
  connect(socket, port);
  return socket;
}

// Until the other side has closed; false if it does not within the time.
bool closes(const Descriptor& socket, int64_t patience_ns = 20 * kSecond) {
  std::array<char, 4096> bytes;
  while (true) {
    pollfd polled{socket.number(), POLLIN, 0};
    if (::poll(&polled, 1, static_cast<int>(patience_ns / kMillisecond)) <= 0) return false;
    if (::recv(socket.number(), bytes.data(), bytes.size(), MSG_DONTWAIT) <= 0) return true;
  }
}

// Writes until the other side closes, and returns how many bytes the kernel took.
size_t write_until_closed(const Descriptor& socket, const std::vector<std::byte>& bytes) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t went =
        ::send(socket.number(), bytes.data() + sent, std::min<size_t>(512, bytes.size() - sent), MSG_NOSIGNAL);
    if (went <= 0) return sent;
    sent += static_cast<size_t>(went);
    pollfd polled{socket.number(), POLLIN, 0};
    if (::poll(&polled, 1, 1) > 0) return sent; // closed
  }
  return sent;
}

struct Alone {
  explicit Alone(Road road) : credentials(road) {
    ListenOptions options;
    options.endpoints = {any_endpoint(road)};
    options.tls = credentials.tls.get();
    options.knows = [](const NodeId&) { return false; };
    listener.emplace(options, [](Guest) {});
    port = listener->endpoints()[0].port;
  }
  // Nothing tells a test that the listener has counted, so this looks again and again.
  template <class Done>
  bool wait(Done done) {
    return progress.wait([&] { return done(listener->counts()); }, 10 * kSecond);
  }

  Credentials credentials;
  Progress progress;
  std::optional<Listener> listener;
  uint16_t port = 0;
};

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

} // namespace

TEST_CASE("Eight connections of one address may wait to be known, and a ninth is closed at once") {
  for (const Road road : {Road::ipv4, Road::tls}) {
    CAPTURE(name_of(road));
    Alone alone(road);
    std::vector<Descriptor> waiting;
    for (uint32_t i = 0; i < kStrangersOfAddressMax; ++i) waiting.push_back(dialled(alone.port));
    REQUIRE(alone.wait([](const Listener::Counts& counts) { return counts.waiting == 8; }));
    CHECK(closes(dialled(alone.port), kSecond));
    CHECK(alone.wait([](const Listener::Counts& counts) { return counts.turned_away == 1; }));
    // A place that becomes free is given to the next.
    waiting.pop_back();
    REQUIRE(alone.wait([](const Listener::Counts& counts) { return counts.waiting == 7; }));
    waiting.push_back(dialled(alone.port));
    CHECK(alone.wait([](const Listener::Counts& counts) { return counts.waiting == 8; }));
    CHECK(alone.listener->counts().turned_away == 1);
    CHECK(alone.listener->counts().accepted == 10);
  }
}

TEST_CASE("Strangers come at 20 a second after the first 64") {
  Alone alone(Road::ipv4);
  const int64_t begun_ns = monotonic_ns();
  constexpr uint64_t kCome = 200;
  for (uint64_t i = 1; i <= kCome; ++i) {
    const Descriptor socket = dialled(alone.port);
    REQUIRE(alone.wait([&](const Listener::Counts& counts) { return counts.accepted == i; }));
  }
  REQUIRE(alone.wait([](const Listener::Counts& counts) { return counts.waiting == 0; }));
  const uint64_t let_in = kCome - alone.listener->counts().turned_away;
  const double seconds = static_cast<double>(monotonic_ns() - begun_ns) / 1e9;
  CHECK(let_in >= std::min<uint64_t>(kCome, kStrangersBurst));
  CHECK(static_cast<double>(let_in) <= kStrangersBurst + kStrangersPerSecond * seconds + 1);
}

TEST_CASE("A connection that says something else than HELLO is closed at once") {
  for (const Road road : {Road::ipv4, Road::tls}) {
    CAPTURE(name_of(road));
    Alone alone(road);
    for (const std::string& text :
         std::vector<std::string>{"GET / HTTP/1.1\r\nHost: millrace\r\n\r\n", "SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n",
                                  "hello, are you a millrace node?\r\n"}) {
      CAPTURE(text);
      const Descriptor socket = dialled(alone.port);
      REQUIRE(::send(socket.number(), text.data(), text.size(), MSG_NOSIGNAL) > 0);
      CHECK(closes(socket, 2 * kSecond));
    }
    CHECK(alone.listener->counts().taken == 0);
    CHECK(alone.wait([](const Listener::Counts& counts) { return counts.refused == 3 && counts.waiting == 0; }));
  }
}

TEST_CASE("A stranger's connection is closed after 16 KiB, whatever they are") {
  // A handshake of TLS that never ends: the head of a ClientHello, then parts of one byte each.
  std::vector<std::byte> slow;
  const auto add = [&](std::initializer_list<int> bytes) {
    for (const int byte : bytes) slow.push_back(static_cast<std::byte>(byte));
  };
  add({0x16, 3, 1, 0, 4, 1, 0, 0x3F, 0xF0});
  while (slow.size() < 64 * kKiB) add({0x16, 3, 1, 0, 1, 0});
  std::vector<std::byte> noise(64 * kKiB);
  for (size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<std::byte>(mixed(i));
  for (const Road road : {Road::ipv4, Road::tls})
    for (const auto* bytes : {&slow, &noise}) {
      CAPTURE(name_of(road));
      Alone alone(road);
      const Descriptor socket = dialled(alone.port);
      const int64_t begun_ns = monotonic_ns();
      CHECK(write_until_closed(socket, *bytes) <= kStrangerBytesMax + 8 * kKiB);
      CHECK(monotonic_ns() - begun_ns < 4 * kSecond);
      CHECK(alone.wait([](const Listener::Counts& counts) { return counts.refused == 1 && counts.waiting == 0; }));
    }
}

TEST_CASE("A damaged HELLO is closed, and a whole one in single bytes is taken") {
  Pair pair(Road::ipv4);
  Crossing& crossing = pair.add(true, packets(100), 4);
  pair.start();
  Hello hello;
  hello.node = pair.left_credentials.id.bytes;
  hello.session = 77;
  Outbox outbox;
  outbox.begin(true);
  ByteWriter body = outbox.body(kHelloBytes);
  write_hello(hello, body);
  Head head;
  head.type = RecordType::hello;
  outbox.add(head, body);
  const Bytes whole = outbox.pieces()[0];
  const uint16_t port = pair.listener->endpoints()[0].port;
  for (const size_t place : {size_t{0}, size_t{5}, kHeadBytes - 1, kHeadBytes, size_t{60}, whole.size() - 1}) {
    CAPTURE(place);
    std::vector<std::byte> damaged(whole.begin(), whole.end());
    damaged[place] ^= std::byte{4};
    const Descriptor socket = dialled(port);
    REQUIRE(::send(socket.number(), damaged.data(), damaged.size(), MSG_NOSIGNAL) > 0);
    CHECK(closes(socket, 2 * kSecond));
  }
  // It is refused by the session then, which knows that another process is running: with a record.
  REQUIRE(pair.progress.wait([&] { return pair.right->events.count(EventType::met) == 1; }));
  const Descriptor socket = dialled(port);
  for (const std::byte& byte : whole) REQUIRE(::send(socket.number(), &byte, 1, MSG_NOSIGNAL) == 1);
  std::array<std::byte, 1024> answer;
  const ssize_t size = ::recv(socket.number(), answer.data(), answer.size(), 0);
  REQUIRE(size > static_cast<ssize_t>(kHeadBytes));
  CHECK(read_head(std::span(answer).first<kHeadBytes>(), head) == Fault::none);
  CHECK(head.type == RecordType::refuse);
  pair.allow(crossing, 10);
  CHECK(pair.arrive(crossing, 10));
}

TEST_CASE("Silent strangers are ended after 5 s while a link goes on" * doctest::test_suite("long")) {
  Pair pair(Road::tls);
  Crossing& crossing = pair.add(true, packets(10'000), 8);
  pair.start();
  REQUIRE(pair.progress.wait([&] { return pair.left->events.count(EventType::met) == 1; }));
  // The data connection is there too, so that it does not wait for a place at the door.
  pair.allow(crossing, 1);
  REQUIRE(pair.arrive(crossing, 1));
  const uint16_t port = pair.listener->endpoints()[0].port;
  const int64_t begun_ns = monotonic_ns();
  std::vector<Descriptor> silent;
  for (uint32_t i = 0; i < kStrangersOfAddressMax; ++i) silent.push_back(dialled(port));
  const std::byte half[100] = {std::byte{0x16}, std::byte{3}, std::byte{1}, std::byte{1}};
  REQUIRE(::send(silent[0].number(), half, sizeof half, MSG_NOSIGNAL) > 0); // one has begun a handshake
  pair.allow(crossing, UINT64_MAX);
  for (const Descriptor& socket : silent) {
    CHECK(closes(socket));
    const int64_t took_ns = monotonic_ns() - begun_ns;
    CHECK(took_ns >= kStrangerNs - 10 * kMillisecond);
    CHECK(took_ns < kStrangerNs + 2 * kSecond);
  }
  CHECK(pair.arrive(crossing, crossing.reader->arrived + 100));
  CHECK(pair.left->events.count(EventType::suspect) == 0);
  CHECK(pair.broken() == nullptr);
}

TEST_CASE("A listener without descriptors waits, costs little meanwhile, and accepts when there are some again") {
  ListenOptions options;
  options.endpoints = {any_endpoint(Road::ipv4), any_endpoint(Road::ipv4)};
  Listener listener(options, [](Guest) {});
  std::vector<Descriptor> sockets;
  for (int i = 0; i < 4; ++i) sockets.push_back(new_socket());
  const Descriptor next = new_socket(); // the number that the listener would get next, or more
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit none{static_cast<rlim_t>(next.number()), before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
  for (size_t i = 0; i < sockets.size(); ++i) connect(sockets[i], listener.endpoints()[i % 2].port);
  const double begun_s = processor_seconds();
  Progress progress;
  progress.wait([] { return false; }, 500 * kMillisecond); // the processor's time of this long is looked at
  const double used_s = processor_seconds() - begun_s;
  const uint64_t accepted = listener.counts().accepted;
  REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(used_s < 0.2);
  CHECK(accepted <= 2); // an accept that had begun before
  CHECK(progress.wait([&] { return listener.counts().accepted == 4; }, 5 * kSecond));
}

TEST_CASE("An address at which nobody can listen is refused with MR0817") {
  const Alone alone(Road::ipv4);
  const std::string taken = "127.0.0.1:" + std::to_string(alone.port);
  for (const std::string& text :
       std::vector<std::string>{taken, std::string("192.0.2.1:0"), std::string("no-such-name.invalid:1"),
                                std::string("local:/no/such/folder/x")}) {
    CAPTURE(text);
    ListenOptions options;
    options.endpoints = {parse_endpoint("127.0.0.1:0"), parse_endpoint(text)};
    try {
      const Listener listener(options, [](Guest) {});
      FAIL_CHECK("it listens");
    } catch (const Failure& failure) {
      CHECK(failure.error().code == code::link_not_listening);
      CHECK(contains(failure.what(), "this node cannot listen at " + text + ": "));
    }
  }
}

TEST_CASE("[::] takes IPv4 too, unless IPv4 is listened at by itself on the same port") {
  if (!has_ipv6()) return;
  const auto dial_v4 = [](uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    const Descriptor socket = new_socket();
    return ::connect(socket.number(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  };
  ListenOptions options;
  options.endpoints = {parse_endpoint("[::]:0")};
  const Listener all(options, [](Guest) {});
  CHECK(dial_v4(all.endpoints()[0].port));
  // Both on one port, as a node listens that is told no address.
  std::optional<Listener> both;
  std::string why;
  for (int tries = 0; tries < 20 && !both; ++tries) { // another program may take the port meanwhile
    options.endpoints = {parse_endpoint("0.0.0.0:0")};
    const uint16_t port = Listener(options, [](Guest) {}).endpoints()[0].port;
    options.endpoints = {parse_endpoint("0.0.0.0:" + std::to_string(port)),
                         parse_endpoint("[::]:" + std::to_string(port))};
    try {
      both.emplace(options, [](Guest) {});
      CHECK(dial_v4(port));
    } catch (const Failure& failure) {
      why = failure.what();
    }
  }
  CHECK_MESSAGE(both.has_value(), why);
}
