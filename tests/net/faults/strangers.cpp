// Thousands of strangers at once cost a node little memory, and its links next to no rate.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "tests/net/faults/measure.h"

using namespace millrace;
using namespace millrace::net;
using namespace millrace::net::test;

namespace {

// Connections from many addresses of the loopback, so that not only the limit for one address holds them off. Each
// says something, and none says what a node says.
class Strangers {
 public:
  Strangers(uint16_t port, size_t count) : port_(port), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    sockets_.resize(count);
    begun_ns_.resize(count);
  }

  void come(size_t i) {
    Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    REQUIRE(socket);
    const auto address_of = [](uint32_t host, uint16_t port) {
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_addr.s_addr = htonl(host);
      address.sin_port = htons(port);
      return address;
    };
    const sockaddr_in own = address_of(0x7F000002u + static_cast<uint32_t>(i % 5000), 0);
    const sockaddr_in peer = address_of(INADDR_LOOPBACK, port_);
    REQUIRE(::bind(socket.number(), reinterpret_cast<const sockaddr*>(&own), sizeof own) == 0);
    ::connect(socket.number(), reinterpret_cast<const sockaddr*>(&peer), sizeof peer);
    epoll_event event{};
    event.events = EPOLLIN | EPOLLOUT | EPOLLET;
    event.data.u64 = i;
    REQUIRE(::epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, socket.number(), &event) == 0);
    sockets_[i] = std::move(socket);
    begun_ns_[i] = monotonic_ns();
    ++open_;
  }

  // Talks to those that are connected, and sees which ones are closed.
  void look(int timeout_ms) {
    std::array<epoll_event, 256> events;
    const int count = ::epoll_wait(epoll_.number(), events.data(), static_cast<int>(events.size()), timeout_ms);
    for (int e = 0; e < count; ++e) {
      const size_t i = events[static_cast<size_t>(e)].data.u64;
      const uint32_t what = events[static_cast<size_t>(e)].events;
      if ((what & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) {
        char bytes[512];
        if (::recv(sockets_[i].number(), bytes, sizeof bytes, 0) > 0) continue;
        longest_ns_ = std::max(longest_ns_, monotonic_ns() - begun_ns_[i]);
        sockets_[i] = Descriptor();
        --open_;
      } else if (i % 4 == 1) { // some stay silent, some begin a handshake of TLS, some say something else
        static constexpr unsigned char kHandshake[] = {0x16, 3, 1, 2, 0, 1, 0, 1, 0xFC, 3, 3};
        ::send(sockets_[i].number(), kHandshake, sizeof kHandshake, MSG_NOSIGNAL);
      } else if (i % 4 == 2) {
        const std::string text(100, 'x');
        ::send(sockets_[i].number(), text.data(), text.size(), MSG_NOSIGNAL);
      }
    }
  }

  size_t open() const { return open_; }
  double longest_s() const { return static_cast<double>(longest_ns_) / 1e9; }

 private:
  uint16_t port_;
  Descriptor epoll_;
  std::vector<Descriptor> sockets_;
  std::vector<int64_t> begun_ns_;
  size_t open_ = 0;
  int64_t longest_ns_ = 0;
};

// As many sockets as the system lets this process have.
size_t raise_descriptors(size_t wanted) {
  rlimit limit{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, wanted + 500);
  REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  return std::min<size_t>(wanted, limit.rlim_cur - 400);
}

} // namespace

TEST_CASE("Strangers by the thousand cost less than 16 MiB, are ended within 5 s, and a link keeps its rate") {
  const size_t count = raise_descriptors(static_cast<size_t>(amount(500, 10'000)));
  constexpr double kPerSecond = 2000;
  Pair pair(Road::tls);
  Crossing& crossing = pair.add(true, packets(4000), 32);
  pair.start();
  const Pacer pacer(*pair.left, crossing, kPerSecond);
  REQUIRE(pair.arrive(crossing, 100));
  Strangers strangers(pair.listener->endpoints()[0].port, count);
  const uint64_t before = resident_bytes(), arrived = crossing.reader->arrived;
  const int64_t begun_ns = monotonic_ns();
  uint64_t most = before;
  for (size_t i = 0; i < count; ++i) {
    strangers.come(i);
    if (i % 64 == 63) strangers.look(0);
  }
  while (strangers.open() > 0 && monotonic_ns() - begun_ns < 60 * kSecond) {
    most = std::max(most, resident_bytes());
    strangers.look(100);
  }
  const double seconds = static_cast<double>(monotonic_ns() - begun_ns) / 1e9;
  const double rate = static_cast<double>(crossing.reader->arrived - arrived) / seconds;
  const Listener::Counts counts = pair.listener->counts();
  std::printf(
      "%zu strangers: the last was ended after %.2f s, %llu were turned away at once, %.1f MiB more; the link %.0f "
      "of %.0f parcels/s\n",
      count, strangers.longest_s(), static_cast<unsigned long long>(counts.turned_away),
      static_cast<double>(most - before) / static_cast<double>(kMiB), rate, kPerSecond);
  CHECK(strangers.open() == 0);
  CHECK(counts.accepted >= count);
  if (kMeasures) {
    CHECK(strangers.longest_s() < 6);
    CHECK(most - before < 16 * kMiB);
    CHECK(rate >= 0.95 * kPerSecond);
  }
  CHECK(pair.left->events.count(EventType::suspect) == 0);
  CHECK(pair.left->events.count(EventType::met) == 1);
  CHECK(pair.broken() == nullptr);
}
