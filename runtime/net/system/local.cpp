// Unix sockets: addresses, and the check of the peer's user.
#include "net/system/local.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <system_error>

namespace millrace::net {

namespace {

constexpr int kBacklog = 16; // processes of one machine that dial at the same moment

struct Address {
  sockaddr_un name{};
  socklen_t size = 0;
};

bool make_address(const std::string& text, Address& address) {
  const size_t size = text.size();
  if (size < 1 || size >= sizeof address.name.sun_path || text == "@") return false;
  address.name.sun_family = AF_UNIX;
  std::memcpy(address.name.sun_path, text.data(), size);
  if (text[0] == '@') address.name.sun_path[0] = '\0';
  // An abstract name has no zero at its end.
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + size + (text[0] == '@' ? 0 : 1));
  return true;
}

Descriptor fail(std::string& why, const char* act) {
  why = std::string(act) + ": " + std::generic_category().message(errno);
  return {};
}

Descriptor new_socket(const std::string& text, Address& address, std::string& why) {
  if (!make_address(text, address)) {
    why = "the address has to be 1 to " + std::to_string(sizeof(sockaddr_un::sun_path) - 1) + " bytes";
    return {};
  }
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return socket ? std::move(socket) : fail(why, "a socket cannot be made");
}

bool connect_to(const Descriptor& socket, const Address& address) {
  return ::connect(socket.number(), reinterpret_cast<const sockaddr*>(&address.name), address.size) == 0;
}

bool bind_to(const Descriptor& socket, const Address& address) {
  return ::bind(socket.number(), reinterpret_cast<const sockaddr*>(&address.name), address.size) == 0;
}

} // namespace

Moved LocalTransport::handshake() {
  if (trouble() != Trouble::none) return Moved::failed;
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(descriptor(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return fail_by_system(errno);
  if (peer.uid == ::geteuid()) return Moved::some;
  return fail(Trouble::unknown_peer,
              "the peer is a process of another user, whose number is " + std::to_string(peer.uid));
}

Descriptor listen_local(const std::string& text, std::string& why) {
  Address address;
  Descriptor socket = new_socket(text, address, why);
  if (!socket) return {};
  // On Linux the file of the socket gets the mode that the socket has, so there is no moment at which it is wider.
  if (::fchmod(socket.number(), 0600) != 0) return fail(why, "the mode of the socket cannot be set");
  bool bound = bind_to(socket, address);
  if (!bound && errno == EADDRINUSE) {
    const bool left_over = is_left_over(text);
    errno = EADDRINUSE;
    bound = left_over && ::unlink(text.c_str()) == 0 && bind_to(socket, address);
  }
  if (!bound || ::listen(socket.number(), kBacklog) != 0) return fail(why, "the address cannot be used");
  return socket;
}

bool is_left_over(const std::string& path) {
  Address address;
  struct stat facts {};
  if (path.starts_with('@') || !make_address(path, address)) return false;
  if (::lstat(path.c_str(), &facts) != 0 || !S_ISSOCK(facts.st_mode)) return false;
  const Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return socket && !connect_to(socket, address) && errno == ECONNREFUSED;
}

Descriptor dial_local(const std::string& text, std::string& why) {
  int ignored = 0;
  return dial_local(text, why, ignored);
}

Descriptor dial_local(const std::string& text, std::string& why, int& error) {
  Address address;
  error = 0;
  Descriptor socket = new_socket(text, address, why);
  if (!socket || connect_to(socket, address)) return socket;
  error = errno;
  return fail(why, "nobody answers");
}

} // namespace millrace::net
