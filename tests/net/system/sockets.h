// Connected sockets of this machine, for tests of transports.
#pragma once

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <string>

#include "net/system/descriptor.h"
#include "net/system/transport.h"

namespace millrace::net::test {

struct Sockets {
  Descriptor dialled, accepted;
};

inline bool has_ipv6() {
  const Descriptor socket(::socket(AF_INET6, SOCK_STREAM, 0));
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  return socket && ::bind(socket.number(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

// Over the loopback. `family` is AF_INET or AF_INET6.
inline Sockets tcp_sockets(int family) {
  const Descriptor listener(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(listener);
  sockaddr_storage storage{};
  auto* address = reinterpret_cast<sockaddr*>(&storage);
  socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  storage.ss_family = static_cast<sa_family_t>(family);
  if (family == AF_INET) reinterpret_cast<sockaddr_in*>(address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (family == AF_INET6) reinterpret_cast<sockaddr_in6*>(address)->sin6_addr = in6addr_loopback;
  REQUIRE(::bind(listener.number(), address, size) == 0);
  REQUIRE(::listen(listener.number(), 1) == 0);
  REQUIRE(::getsockname(listener.number(), address, &size) == 0);
  Sockets sockets;
  sockets.dialled = Descriptor(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(::connect(sockets.dialled.number(), address, size) == 0);
  sockets.accepted = Descriptor(::accept(listener.number(), nullptr, nullptr));
  REQUIRE(sockets.accepted);
  return sockets;
}

inline Sockets local_sockets() {
  int numbers[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, numbers) == 0);
  return {Descriptor(numbers[0]), Descriptor(numbers[1])};
}

// Until one of two sockets can do what it waits for. 10 s are more than any loopback takes.
inline void wait_for(int left, Moved left_waits, int right, Moved right_waits) {
  const auto asked = [](int socket, Moved waits) {
    const short events = waits == Moved::want_read ? POLLIN : POLLOUT;
    const bool asks = waits == Moved::want_read || waits == Moved::want_write;
    return pollfd{asks ? socket : -1, events, 0};
  };
  pollfd polled[] = {asked(left, left_waits), asked(right, right_waits)};
  REQUIRE(::poll(polled, 2, 10'000) > 0);
}

inline void wait_for_ends(Transport& left, Moved left_waits, Transport& right, Moved right_waits) {
  wait_for(left.descriptor(), left_waits, right.descriptor(), right_waits);
}

// The kernel sends a reset when the socket is closed, as it does for a process whose peer still sends.
inline void close_by_reset(std::unique_ptr<Transport> end) {
  const linger at_once{1, 0};
  ::setsockopt(end->descriptor(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

} // namespace millrace::net::test
