// A link of two nodes over real sockets and threads: everything arrives once, in order and whole, or is refused with a
// reason.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <thread>

#include "tests/contains.h"
#include "tests/net/system/ends.h"
#include "tests/net/system/sockets.h"
#include "tests/part.h"

using namespace millrace;
using namespace millrace::net;
using namespace millrace::net::test;

namespace {

bool is_here(Road road) { return road != Road::ipv6 || has_ipv6(); }

// Ends the streams of all accepted connections of a TCP port, as a router that forgets them does. Returns how many.
int cut_connections(uint16_t port) {
  int cut = 0;
  for (int socket = 3; socket < 1024; ++socket) {
    sockaddr_in own{}, peer{};
    socklen_t own_size = sizeof own, peer_size = sizeof peer;
    if (getsockname(socket, reinterpret_cast<sockaddr*>(&own), &own_size) != 0 || own.sin_family != AF_INET) continue;
    if (ntohs(own.sin_port) != port) continue;
    if (getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0) continue;
    cut += shutdown(socket, SHUT_RDWR) == 0;
  }
  return cut;
}

// A port at which connections wait and nobody says anything.
struct SilentServer {
  SilentServer() : socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    REQUIRE(::bind(socket.number(), reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(::listen(socket.number(), 16) == 0);
    REQUIRE(::getsockname(socket.number(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
    endpoint = parse_endpoint("127.0.0.1:" + std::to_string(ntohs(address.sin_port)));
  }
  // Answers the next connection with these bytes, and reads until it is closed.
  void answer(const std::string& text) const {
    const Descriptor accepted(::accept(socket.number(), nullptr, nullptr));
    [[maybe_unused]] const ssize_t sent = ::send(accepted.number(), text.data(), text.size(), MSG_NOSIGNAL);
    char bytes[4096];
    while (::recv(accepted.number(), bytes, sizeof bytes, 0) > 0) {
    }
  }

  Descriptor socket;
  Endpoint endpoint;
};

} // namespace

TEST_CASE("Parcels of every size arrive once, in order and whole over IPv4, IPv6, TLS and a Unix socket") {
  struct Load {
    uint32_t bytes;
    int64_t parcels;
  };
  for (const Road road : kRoads) {
    if (!is_here(road)) continue;
    for (const Load load : {Load{1, 4000}, {1024, 4000}, {64 * 1024, 400}, {1024 * 1024, 60}, {6'220'800, 12}}) {
      CAPTURE(name_of(road));
      CAPTURE(load.bytes);
      Pair pair(road);
      Crossing& crossing = pair.add(true, packets(load.bytes), 4);
      pair.start();
      const auto parcels = static_cast<uint64_t>(millrace::test::part_of(load.parcels));
      pair.allow(crossing, parcels);
      REQUIRE_MESSAGE(pair.arrive(crossing, parcels), (pair.broken() ? pair.broken() : pair.left->events.why()));
      CHECK(pair.progress.wait([&] { return crossing.sender->acknowledged == parcels; }));
      CHECK(crossing.sender->lost == 0);
      CHECK(pair.left->events.count(EventType::met) == 1);
      CHECK(pair.progress.wait([&] { return pair.right->events.count(EventType::met) == 1; }));
      const uint64_t copied = pair.right->ask([](Session& session) { return session.bytes_copied(); });
      CHECK(copied <= parcels * std::min<uint64_t>(load.bytes, 64 * kKiB));
      CHECK(pair.broken() == nullptr);
    }
  }
}

TEST_CASE("Crossings of both directions share a link's connections, each in its own order") {
  for (const Road road : {Road::ipv4, Road::tls, Road::local}) {
    CAPTURE(name_of(road));
    Pair pair(road, 2);
    const auto parcels = static_cast<uint64_t>(millrace::test::part_of(1000));
    for (uint32_t i = 0; i < 8; ++i) {
      Contents contents;
      contents.seed = i + 1;
      contents.values = 1 + i % 3;
      contents.bytes_max = i % 2 == 0 ? 3000 : 200'000;
      pair.add(i < 4, contents, 1 + 3 * i, 1 + i % 2);
    }
    pair.start();
    for (const auto& crossing : pair.crossings) {
      crossing->sender->ends = true;
      pair.allow(*crossing, parcels);
    }
    for (const auto& crossing : pair.crossings) {
      CHECK(pair.arrive(*crossing, parcels + 1));
      CHECK(crossing->reader->has_ended);
      CHECK(pair.progress.wait([&] { return crossing->sender->acknowledged == parcels; }));
    }
    CHECK(pair.broken() == nullptr);
  }
}

TEST_CASE("Messages of up to 4 MiB arrive whole and in order in both directions, beside parcels, over each transport") {
  for (const Road road : kRoads) {
    if (!is_here(road)) continue;
    CAPTURE(name_of(road));
    Pair pair(road);
    Crossing& crossing = pair.add(true, packets(50'000), 4);
    pair.start();
    pair.allow(crossing, UINT64_MAX);
    for (const auto& node : {pair.left.get(), pair.right.get()})
      REQUIRE(pair.progress.wait([&] { return node->events.count(EventType::met) == 1; }));
    const std::vector<size_t> sizes{1, kMessageBytesMax, 20'000, 1};
    const auto text_of = [&](size_t i) { return std::string(sizes[i], static_cast<char>('a' + i)); };
    for (const auto& node : {pair.left.get(), pair.right.get()}) {
      CHECK(node->ask([&](Session& session) {
        bool all = true;
        for (size_t i = 0; i < sizes.size(); ++i) all = session.say(text_of(i)) && all;
        return all;
      }));
      node->reactor.ring();
    }
    for (const auto& node : {pair.left.get(), pair.right.get()}) {
      size_t heard = 0;
      CHECK(pair.progress.wait([&] {
        return node->ask([&](Session& session) {
          for (std::string text; session.take_message(text); ++heard) CHECK(text == text_of(heard));
          return heard == sizes.size();
        });
      }));
      CHECK(node->events.count(EventType::suspect) == 0);
    }
    REQUIRE(pair.arrive(crossing, 50));
    CHECK(pair.broken() == nullptr);
  }
}

TEST_CASE("A reader learns that a clock has passed a time once all parcels before it have arrived") {
  Pair pair(Road::ipv4);
  Crossing& crossing = pair.add(true, packets(100), 4);
  pair.start();
  pair.allow(crossing, 100);
  CHECK(pair.arrive(crossing, 100));
  CHECK(pair.progress.wait([&] { return crossing.reader->passed_ns == media_of(100) - 1; }));
}

TEST_CASE("A node that leaves and its peer deliver what they have taken, and both links are over") {
  for (const Road road : kRoads) {
    if (!is_here(road)) continue;
    for (const bool is_right : {false, true}) {
      CAPTURE(name_of(road));
      CAPTURE(is_right);
      Pair pair(road);
      Crossing& there = pair.add(true, packets(50'000), 8);
      Crossing& back = pair.add(false, packets(1000), 8);
      pair.start();
      pair.allow(there, UINT64_MAX);
      pair.allow(back, UINT64_MAX);
      REQUIRE(pair.arrive(there, 50));
      REQUIRE(pair.arrive(back, 50));
      (is_right ? pair.right : pair.left)->leave();
      for (Node* node : {pair.left.get(), pair.right.get()}) {
        REQUIRE(pair.progress.wait([&] { return node->events.count(EventType::drained) == 1; }));
        // Nobody is waited for, dialled or missed any more.
        CHECK(node->ask([](Session& session) { return session.next_timer(monotonic_ns()); }) == INT64_MAX);
      }
      CHECK((is_right ? pair.left : pair.right)->events.count(EventType::leaving) == 1);
      for (const Crossing* crossing : {&there, &back}) {
        CHECK(crossing->sender->given == crossing->reader->arrived);
        CHECK(crossing->sender->acknowledged == crossing->sender->given);
        CHECK(crossing->sender->lost == 0);
      }
      CHECK(pair.broken() == nullptr);
    }
  }
}

TEST_CASE("A link whose connections are cut goes on where it was") {
  for (const Road road : {Road::ipv4, Road::tls}) {
    CAPTURE(name_of(road));
    Pair pair(road, 2);
    Crossing& small = pair.add(true, packets(300), 16, 1);
    Crossing& large = pair.add(true, packets(700'000, 2), 3, 2);
    Crossing& back = pair.add(false, packets(5000, 3), 8, 1);
    pair.start();
    for (Crossing* crossing : {&small, &large, &back}) pair.allow(*crossing, UINT64_MAX);
    for (uint64_t cuts = 1; cuts <= static_cast<uint64_t>(millrace::test::part_of(10)); ++cuts) {
      for (Crossing* crossing : {&small, &large, &back}) REQUIRE(pair.arrive(*crossing, crossing->reader->arrived + 5));
      const uint64_t backs = pair.right->events.count(EventType::back);
      REQUIRE(cut_connections(pair.listener->endpoints()[0].port) > 0);
      REQUIRE(pair.progress.wait([&] { return pair.right->events.count(EventType::back) > backs; }));
    }
    for (Crossing* crossing : {&small, &large, &back}) CHECK(pair.arrive(*crossing, crossing->reader->arrived + 50));
    CHECK(pair.left->events.count(EventType::met) == 1);
    for (const auto& crossing : pair.crossings) CHECK(crossing->sender->lost == 0);
    CHECK(pair.broken() == nullptr);
  }
}

TEST_CASE("A line that cuts every connection as soon as it is up is dialled ten times a second") {
  Pair pair(Road::tls);
  pair.start();
  const auto ups = [&] { return pair.right->events.count(EventType::met) + pair.right->events.count(EventType::back); };
  REQUIRE(pair.progress.wait([&] { return ups() == 1; }));
  const int64_t begun_ns = monotonic_ns();
  for (uint64_t cuts = 1; cuts <= 10; ++cuts) {
    REQUIRE(cut_connections(pair.listener->endpoints()[0].port) > 0);
    REQUIRE(pair.progress.wait([&] { return ups() > cuts; }));
  }
  CHECK(monotonic_ns() - begun_ns >= 10 * (kRedialFirstNs * 3 / 4)); // a wait is shorter by up to a quarter
  CHECK(pair.right->events.count(EventType::met) == 1);
}

TEST_CASE("A process that begins anew is met, and what the one before had not acknowledged is counted as lost") {
  for (const Road road : {Road::ipv4, Road::tls, Road::local}) {
    CAPTURE(name_of(road));
    Pair pair(road);
    Crossing& crossing = pair.add(true, packets(20'000), 8);
    pair.start();
    crossing.reader->takes = 20;
    pair.allow(crossing, 1000);
    REQUIRE(pair.arrive(crossing, 28));
    pair.stop_right();
    // Stopping ends the connections at once, so nobody has to wait until the peer is missed.
    REQUIRE(pair.progress.wait([&] { return !pair.left->ask([](Session& s) { return s.is_up(0); }); }, kSecond));
    crossing.reader = std::make_unique<Reader>(crossing.contents, 8, pair.progress);
    pair.start_right();
    REQUIRE(pair.progress.wait([&] { return pair.left->events.count(EventType::met) == 2; }));
    REQUIRE(pair.progress.wait([&] { return crossing.reader->last_index == 999; }));
    const uint64_t lost = crossing.sender->lost, acknowledged = crossing.sender->acknowledged;
    CHECK(pair.progress.wait([&] { return crossing.sender->acknowledged + lost == 1000; }));
    CHECK(lost <= 8);
    CHECK(acknowledged >= 20);
    CHECK(crossing.reader->arrived == crossing.sender->acknowledged - (28 - lost));
    CHECK(pair.broken() == nullptr);
  }
}

TEST_CASE("A second process of a node is refused while the first is heard, and served when that is gone") {
  for (const Road road : kRoads) {
    if (!is_here(road)) continue;
    CAPTURE(name_of(road));
    Pair pair(road);
    Crossing& crossing = pair.add(true, packets(1000), 4);
    pair.start();
    pair.allow(crossing, 100);
    REQUIRE(pair.arrive(crossing, 100));
    Sender other(packets(1000), 4, pair.progress, 100); // the thread of `second` calls it to the end
    const std::unique_ptr<Node> second = pair.make(false);
    second->add_link();
    second->session->add(crossing.plan, other);
    second->reactor.start();
    REQUIRE(pair.progress.wait([&] { return second->events.count(EventType::was_refused) > 0; }));
    const auto told = second->events.first(EventType::was_refused);
    CHECK(told->fault == Fault::running_already);
    CHECK(told->sentence == "a process with this node id is running already");
    // The first one does not notice.
    pair.allow(crossing, 200);
    CHECK(pair.arrive(crossing, 200));
    CHECK(pair.left->events.count(EventType::met) == 1);
    CHECK(second->events.count(EventType::met) == 0);
    pair.left->reactor.stop();
    CHECK(pair.progress.wait([&] { return second->events.count(EventType::met) == 1; }));
    CHECK(pair.progress.wait([&] { return pair.right->events.count(EventType::met) == 2; }));
  }
}

TEST_CASE("A node that the peer does not know, or that is another than was expected, learns it") {
  {
    Pair pair(Road::tls);
    pair.known = {pair.right_credentials.id};
    pair.start();
    REQUIRE(pair.progress.wait([&] { return pair.left->events.count(EventType::dial) >= 3; }));
    CHECK(
        contains(pair.left->events.why(), "the peer does not know this node, " + short_text(pair.left_credentials.id)));
    CHECK(pair.left->events.count(EventType::met) + pair.right->events.count(EventType::met) == 0);
    CHECK(pair.listener->counts().taken == 0);
  }
  {
    std::atomic<int> others = 0;
    Pair pair(Road::tls);
    pair.listen();
    pair.start_right();
    auto left = pair.make(false);
    left->options.session.peer = Credentials(Road::tls).id.bytes;
    left->options.on_other = [&](const std::string& why) {
      others += contains(why, short_text(pair.right_credentials.id)) ? 1 : 0;
    };
    pair.start_left(std::move(left));
    REQUIRE(pair.progress.wait([&] { return pair.left->events.count(EventType::dial) >= 3; }));
    CHECK(contains(pair.left->events.why(), "another node than gpu answers"));
    CHECK(others >= 2);
    CHECK(pair.left->events.count(EventType::met) == 0);
    CHECK(pair.listener->counts().taken == 0);
  }
}

TEST_CASE("A HELLO with another node's id than the key proves is refused, and so is one for a node without a link") {
  Pair pair(Road::tls);
  pair.listen();
  pair.start_right();
  auto left = pair.make(false);
  left->options.session.self.node = Credentials(Road::tls).id.bytes;
  pair.start_left(std::move(left));
  REQUIRE(pair.progress.wait([&] { return pair.left->events.count(EventType::was_refused) > 0; }));
  CHECK(pair.left->events.first(EventType::was_refused)->fault == Fault::node);

  Pair plain(Road::ipv4);
  plain.listen();
  plain.start_right();
  auto stranger = plain.make(false);
  stranger->options.session.self.node = Credentials(Road::ipv4).id.bytes;
  plain.start_left(std::move(stranger));
  REQUIRE(plain.progress.wait([&] { return plain.left->events.count(EventType::was_refused) > 0; }));
  CHECK(plain.left->events.first(EventType::was_refused)->sentence == sentence_of(Fault::node));
}

TEST_CASE("A link with TLS is not served over TCP without it, though another listener has none") {
  Pair pair(Road::tls);
  pair.listen();
  pair.start_right();
  ListenOptions options;
  options.endpoints = {any_endpoint(Road::ipv4)};
  const Listener open(options, [&](Guest guest) { pair.right->reactor.give(std::move(guest)); });
  pair.dialled = open.endpoints();
  auto left = pair.make(false);
  left->options.tls = nullptr;
  pair.start_left(std::move(left));
  REQUIRE(pair.progress.wait([&] { return pair.left->events.count(EventType::was_refused) > 0; }));
  CHECK(pair.left->events.first(EventType::was_refused)->fault == Fault::node);
  CHECK(pair.right->events.count(EventType::met) == 0);
}

TEST_CASE("Nodes without a common version refuse each other; else they speak the newest of both") {
  struct Versions {
    uint16_t left_least, left_most, right_least, right_most, spoken;
  };
  for (const Versions versions : {Versions{1, 1, 2, 3, 0}, {4, 5, 2, 3, 0}, {1, 2, 2, 3, 2}, {1, 9, 2, 3, 3}}) {
    CAPTURE(versions.left_most);
    Pair pair(Road::tls);
    pair.listen();
    auto right = pair.make(true);
    right->options.session.self.version_least = versions.right_least;
    right->options.session.self.version_most = versions.right_most;
    pair.start_right(std::move(right));
    auto left = pair.make(false);
    left->options.session.self.version_least = versions.left_least;
    left->options.session.self.version_most = versions.left_most;
    pair.start_left(std::move(left));
    const EventType expected = versions.spoken > 0 ? EventType::met : EventType::was_refused;
    REQUIRE(pair.progress.wait([&] { return pair.left->events.count(expected) > 0; }));
    if (versions.spoken > 0) {
      CHECK(pair.left->ask([](Session& session) { return session.version(); }) == versions.spoken);
      CHECK(pair.right->ask([](Session& session) { return session.version(); }) == versions.spoken);
    } else {
      const auto told = pair.left->events.first(EventType::was_refused);
      CHECK(told->fault == Fault::version);
      const std::string common = "the two nodes have no protocol version in common: the one that dials speaks ";
      CHECK(told->sentence ==
            common + (versions.left_least == 1 ? "mrl/1" : "mrl/4 to mrl/5") + ", the other one mrl/2 to mrl/3");
      REQUIRE(pair.progress.wait([&] { return pair.right->events.count(EventType::refused) > 0; }));
      CHECK(pair.right->events.first(EventType::refused)->sentence == told->sentence);
      CHECK(pair.right->events.count(EventType::met) == 0);
    }
  }
}

TEST_CASE("A peer that does not speak TLS is told so, on either side") {
  Pair pair(Road::tls);
  const SilentServer server;
  std::thread web([&] { server.answer("HTTP/1.1 400 Bad Request\r\n\r\n"); });
  pair.dialled = {server.endpoint};
  pair.start();
  web.join();
  REQUIRE(pair.progress.wait([&] { return !pair.left->events.why().empty(); }));
  CHECK(pair.left->events.why() == to_text(server.endpoint) + ": the peer does not speak TLS");

  // A plain HELLO to a listener with TLS: the listener closes it.
  pair.left.reset();
  pair.dialled.clear();
  auto plain = pair.make(false);
  plain->options.tls = nullptr;
  pair.start_left(std::move(plain));
  REQUIRE(pair.progress.wait([&] { return pair.left->events.count(EventType::dial) >= 2; }));
  CHECK(pair.left->events.count(EventType::met) == 0);
  CHECK(pair.listener->counts().taken == 0);
}

TEST_CASE("A peer's next address is tried after one that refuses, is somebody else, or has no name") {
  Pair pair(Road::tls), other(Road::tls);
  pair.listen();
  other.start();
  Crossing& crossing = pair.add(true, packets(100), 4);
  pair.dialled = {parse_endpoint("127.0.0.1:1"), other.listener->endpoints()[0],
                  parse_endpoint("local:@nobody-is-here"), parse_endpoint("no-such-name.invalid:1"),
                  pair.listener->endpoints()[0]};
  pair.start();
  pair.allow(crossing, 10);
  CHECK(pair.arrive(crossing, 10));
  const std::string why = pair.left->events.why();
  for (const char* part : {"127.0.0.1:1: Connection refused; 127.0.0.1:", ": another node than gpu answers: ",
                           "; local:@nobody-is-here: ", "; no-such-name.invalid:1: "})
    CHECK_MESSAGE(contains(why, part), why);
}

TEST_CASE("A name is looked up and dialled") {
  Pair pair(Road::ipv4);
  pair.listen();
  pair.dialled = {parse_endpoint("localhost:" + std::to_string(pair.listener->endpoints()[0].port))};
  Crossing& crossing = pair.add(true, packets(100), 4);
  pair.start();
  pair.allow(crossing, 10);
  CHECK(pair.arrive(crossing, 10));
}

TEST_CASE("A reactor stops at once while it dials, looks up a name, shakes hands or sends") {
  const SilentServer server;
  const auto dial = [&](const Endpoint& endpoint, EventType until) {
    Pair pair(Road::tls);
    pair.listen();
    pair.dialled = {endpoint};
    pair.start_right();
    Crossing& crossing = pair.add(true, packets(1'000'000), 4);
    crossing.sender->allowed = UINT64_MAX;
    pair.start_left();
    REQUIRE(pair.progress.wait([&] { return pair.left->events.count(until) > 0; }));
    const int64_t begun_ns = monotonic_ns();
    pair.left->reactor.stop();
    pair.left->reactor.stop();
    CHECK(monotonic_ns() - begun_ns < 2 * kSecond);
  };
  dial(server.endpoint, EventType::dial);
  dial(parse_endpoint("127.0.0.1:1"), EventType::dial);
  dial(parse_endpoint("localhost:1"), EventType::dial);
  for (int i = 0; i < 20; ++i) { // at any moment of a handshake and of the first parcels
    Pair pair(Road::tls);
    Crossing& crossing = pair.add(true, packets(100'000), 4);
    pair.start();
    pair.allow(crossing, UINT64_MAX);
    const auto dials = [&] { return pair.left->events.count(EventType::dial) > 0; };
    const bool is_there = i % 2 == 0 ? pair.progress.wait(dials) : pair.arrive(crossing, static_cast<uint64_t>(i));
    REQUIRE(is_there);
    if (i % 4 < 2) pair.stop_right();
    pair.left->reactor.stop();
  }
}

TEST_CASE("A machine that accepts connections and says nothing is given up after 5 s, and the next address is tried" *
          doctest::test_suite("long")) {
  Pair pair(Road::tls);
  const SilentServer server;
  pair.listen();
  pair.dialled = {server.endpoint, pair.listener->endpoints()[0]};
  Crossing& crossing = pair.add(true, packets(100), 4);
  const int64_t begun_ns = monotonic_ns();
  pair.start();
  pair.allow(crossing, 10);
  REQUIRE(pair.arrive(crossing, 10));
  const int64_t took_ns = monotonic_ns() - begun_ns;
  CHECK(took_ns >= kGreetingNs - kMillisecond);
  CHECK(took_ns < 2 * kGreetingNs - kMillisecond); // the data connection begins at the address that answered
  CHECK(contains(pair.left->events.why(), "it did not say who it is in time"));
}
