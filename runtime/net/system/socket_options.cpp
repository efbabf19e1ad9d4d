// Sets the options of a link's sockets.
#include "net/system/socket_options.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <fstream>
#include <system_error>

namespace millrace::net {

namespace {

bool set(int socket, int level, int option, int value) {
  return ::setsockopt(socket, level, option, &value, sizeof value) == 0;
}

// "reno, cubic"
std::string available_congestion_controls() {
  std::ifstream file("/proc/sys/net/ipv4/tcp_available_congestion_control");
  std::string names;
  for (std::string name; file >> name;) names += (names.empty() ? "" : ", ") + name;
  return names;
}

} // namespace

bool make_non_blocking(int socket) {
  const int flags = ::fcntl(socket, F_GETFL);
  return flags >= 0 && ::fcntl(socket, F_SETFL, flags | O_NONBLOCK) == 0 && ::fcntl(socket, F_SETFD, FD_CLOEXEC) == 0;
}

bool set_link_options(int socket) {
  return set(socket, IPPROTO_TCP, TCP_NODELAY, 1) && set(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, kNotSentBytesMax) &&
         set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, kUserTimeoutMs) && set(socket, SOL_SOCKET, SO_KEEPALIVE, 1) &&
         set(socket, IPPROTO_TCP, TCP_KEEPIDLE, kKeepIdleS) &&
         set(socket, IPPROTO_TCP, TCP_KEEPINTVL, kKeepIntervalS) && set(socket, IPPROTO_TCP, TCP_KEEPCNT, kKeepCount);
}

std::string choose_congestion_control(int socket, const std::string& name) {
  if (::setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name.data(), static_cast<socklen_t>(name.size())) == 0)
    return "";
  const int error = errno;
  const std::string names = available_congestion_controls();
  return "the congestion control " + name + " cannot be used: " +
         (error == ENOENT ? "this machine does not have it" : std::generic_category().message(error)) +
         (names.empty() ? "" : "; there are " + names);
}

} // namespace millrace::net
