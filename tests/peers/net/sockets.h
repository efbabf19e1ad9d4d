// Two TCP sockets joined over the loopback, for the loops that are written by hand. They have a link's options: few
// unsent bytes stay in the cache, and a loop is up to twice as fast as with megabytes of them.
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/peers/net/meter.h"

namespace peers::net {

// Bytes of one system call: 1 MiB is the fastest on a loopback.
constexpr uint64_t kCallBytes = 1U << 20;

constexpr int kUnsentBytesMax = 256 * 1024;

struct Sockets {
  int sender = -1, receiver = -1;
};

inline Sockets connected_sockets() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const plain = reinterpret_cast<sockaddr*>(&address);
  Sockets sockets;
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  require(listener >= 0 && ::bind(listener, plain, size) == 0 && ::listen(listener, 1) == 0, "listening");
  require(::getsockname(listener, plain, &size) == 0, "asking for the port");
  sockets.sender = ::socket(AF_INET, SOCK_STREAM, 0);
  require(sockets.sender >= 0 && ::connect(sockets.sender, plain, size) == 0, "connecting");
  sockets.receiver = ::accept(listener, nullptr, nullptr);
  require(sockets.receiver >= 0, "accepting");
  ::close(listener);
  const int on = 1;
  for (const int socket : {sockets.sender, sockets.receiver})
    require(::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0 &&
                ::setsockopt(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kUnsentBytesMax, sizeof kUnsentBytesMax) == 0,
            "setting a socket's options");
  return sockets;
}

} // namespace peers::net
