// Unix sockets: addresses, the check of the peer's user, and descriptors in passing.
#include "net/system/local.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <system_error>

#include "observe/error.h"

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

bool LocalTransport::keep_descriptors(msghdr& message) {
  bool fits = (message.msg_flags & MSG_CTRUNC) == 0; // the kernel has closed those that found no room
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head; head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(head) + i * sizeof number, sizeof number);
      descriptors_.emplace_back(number);
    }
  }
  return fits && descriptors_.size() <= kDescriptorsMax;
}

Transfer LocalTransport::read(std::span<std::byte> room) {
  if (trouble() != Trouble::none) return {Moved::failed, 0};
  if (room.empty()) return {Moved::some, 0};
  alignas(cmsghdr) char control[CMSG_SPACE(kDescriptorsMax * sizeof(int))];
  iovec vector{room.data(), room.size()};
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  while (true) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t got = ::recvmsg(descriptor(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got >= 0 && !keep_descriptors(message))
      return {fail(Trouble::protocol, "the peer passed more than " + std::to_string(kDescriptorsMax) + " descriptors"),
              0};
    if (got > 0) return {Moved::some, static_cast<size_t>(got)};
    if (got == 0) return {Moved::closed, 0};
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {Moved::want_read, 0};
    if (errno != EINTR) return {fail_by_system(errno), 0};
  }
}

Transfer LocalTransport::send_descriptor(int passed, Bytes bytes) {
  MR_ASSERT(!bytes.empty(), "a descriptor goes with a byte");
  if (trouble() != Trouble::none) return {Moved::failed, 0};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof passed)] = {};
  iovec vector{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof passed);
  std::memcpy(CMSG_DATA(head), &passed, sizeof passed);
  while (true) {
    const ssize_t sent = ::sendmsg(descriptor(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) return {Moved::some, static_cast<size_t>(sent)};
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {Moved::want_write, 0};
    if (errno != EINTR) return {fail_by_system(errno), 0};
  }
}

Descriptor LocalTransport::take_descriptor() {
  if (descriptors_.empty()) return {};
  Descriptor oldest = std::move(descriptors_.front());
  descriptors_.pop_front();
  return oldest;
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
