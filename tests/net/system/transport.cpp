// All transports keep one contract; sockets have the options that they should; local ones take no descriptors.
#include "net/system/transport.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "net/system/local.h"
#include "net/system/plain.h"
#include "net/system/socket_options.h"
#include "net/system/tls.h"
#include "tests/contains.h"
#include "tests/net/system/sockets.h"
#include "tests/net/system/transport_suite.h"

using namespace millrace;
using namespace millrace::net;
using namespace millrace::net::test;

namespace {

template <class Made>
Ends ends_of(Sockets sockets) {
  return {std::make_unique<Made>(std::move(sockets.dialled)), std::make_unique<Made>(std::move(sockets.accepted))};
}

// 10 s are more than any loopback takes.
void wait_for_sockets(std::initializer_list<Waiting> list) {
  std::vector<pollfd> polled;
  for (const Waiting& waiting : list)
    if (waiting.waits())
      polled.push_back(
          {waiting.end.descriptor(), waiting.word == Moved::want_read ? short{POLLIN} : short{POLLOUT}, 0});
  REQUIRE(::poll(polled.data(), polled.size(), 10'000) > 0);
}

Way plain_way(const std::string& name, int family) {
  Way way{name, [family] { return ends_of<PlainTransport>(tcp_sockets(family)); }, wait_for_sockets, close_by_reset};
  return way;
}

Way local_way() {
  Way way{"local", [] { return ends_of<LocalTransport>(local_sockets()); }, wait_for_sockets, close_by_reset};
  way.checks_bytes = true;
  way.tells_reset = false; // the kernel ends a Unix socket in order, unless bytes were not read
  return way;
}

Way tls_way(const std::string& name, std::function<Sockets()> make) {
  const auto left = std::make_shared<TlsContext>(Identity::generate());
  const auto right = std::make_shared<TlsContext>(Identity::generate());
  Way way{name, {}, wait_for_sockets, close_by_reset};
  way.proves_peers = way.checks_bytes = true;
  way.connect = [=] {
    Sockets sockets = make();
    const auto knows = [](const NodeId& known) { return [known](const NodeId& id) { return id == known; }; };
    return Ends{std::make_unique<TlsTransport>(*left, std::move(sockets.dialled), Side::dials,
                                               PeerTerms{knows(right->id()), right->id(), "right"}),
                std::make_unique<TlsTransport>(*right, std::move(sockets.accepted), Side::listens,
                                               PeerTerms{knows(left->id())})};
  };
  return way;
}

int option_of(int socket, int level, int option) {
  int value = -1;
  socklen_t size = sizeof value;
  CHECK(::getsockopt(socket, level, option, &value, &size) == 0);
  return value;
}

class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "millrace-local-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string file(const char* name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

// An abstract address that no other process of this machine uses.
std::string own_address() { return "@millrace-test-" + std::to_string(::getpid()); }

} // namespace

TEST_CASE("plain TCP over IPv4 keeps the contract") { check_contract(plain_way("IPv4", AF_INET)); }

TEST_CASE("plain TCP over IPv6 keeps the contract") {
  if (has_ipv6())
    check_contract(plain_way("IPv6", AF_INET6));
  else
    MESSAGE("Not tested: this machine has no IPv6");
}

TEST_CASE("TLS keeps the contract") {
  check_contract(tls_way("TLS", [] { return tcp_sockets(AF_INET); }));
}

TEST_CASE("a local socket keeps the contract") { check_contract(local_way()); }

TEST_CASE("transports keep the contract with the options of a link") {
  const auto with_options = [] {
    Sockets sockets = tcp_sockets(AF_INET);
    REQUIRE(set_link_options(sockets.dialled.number()));
    REQUIRE(set_link_options(sockets.accepted.number()));
    return sockets;
  };
  check_contract({"IPv4", [=] { return ends_of<PlainTransport>(with_options()); }, wait_for_sockets, close_by_reset});
  check_contract(tls_way("TLS", with_options));
}

// ---- options
// -----------------------------------------------------------------------------------------------------------

TEST_CASE("a transport's socket does not block, and is closed in programs that are started") {
  const Ends ends = ends_of<PlainTransport>(tcp_sockets(AF_INET));
  CHECK((::fcntl(ends.left->descriptor(), F_GETFL) & O_NONBLOCK) != 0);
  CHECK((::fcntl(ends.left->descriptor(), F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("a link's socket has a link's options") {
  const Sockets sockets = tcp_sockets(AF_INET);
  const int socket = sockets.dialled.number();
  REQUIRE(set_link_options(socket));
  CHECK(option_of(socket, IPPROTO_TCP, TCP_NODELAY) == 1);
  CHECK(option_of(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT) == 262'144);
  CHECK(option_of(socket, IPPROTO_TCP, TCP_USER_TIMEOUT) == 5'000);
  CHECK(option_of(socket, SOL_SOCKET, SO_KEEPALIVE) == 1);
  CHECK_FALSE(set_link_options(local_sockets().dialled.number()));
  CHECK_FALSE(make_non_blocking(-1));
}

TEST_CASE("a congestion control is chosen by its name, or refused with those that there are") {
  const Sockets sockets = tcp_sockets(AF_INET);
  CHECK(choose_congestion_control(sockets.dialled.number(), "reno") == "");
  const std::string why = choose_congestion_control(sockets.dialled.number(), "vegan");
  CHECK(contains(why, "the congestion control vegan cannot be used: this machine does not have it; there are "));
  CHECK(contains(why, "reno"));
}

// ---- local sockets
// -----------------------------------------------------------------------------------------------------

TEST_CASE("descriptors that a peer passes are closed, and the bytes arrive") {
  const auto open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  const Ends ends = connected(local_way());
  const auto before = open_files();
  std::byte byte{7};
  const int passed = ends.left->descriptor();
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof passed)] = {};
  iovec vector{&byte, 1};
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
  REQUIRE(::sendmsg(ends.left->descriptor(), &message, 0) == 1);
  std::byte room[10];
  CHECK(ends.right->read(room).bytes == 1);
  CHECK(room[0] == std::byte{7});
  CHECK(open_files() == before);
}

TEST_CASE("a local address is dialled, by path or abstract") {
  const Folder folder;
  for (const std::string& address : {folder.file("socket"), own_address()}) {
    CAPTURE(address);
    std::string why;
    const Descriptor listener = listen_local(address, why);
    REQUIRE_MESSAGE(listener, why);
    if (address[0] != '@') {
      struct stat facts {};
      REQUIRE(::stat(address.c_str(), &facts) == 0);
      CHECK((facts.st_mode & 07777) == 0600);
    }
    Descriptor dialled = dial_local(address, why);
    REQUIRE_MESSAGE(dialled, why);
    Descriptor accepted(::accept(listener.number(), nullptr, nullptr));
    REQUIRE(accepted);
    LocalTransport left(std::move(dialled)), right(std::move(accepted));
    CHECK(left.handshake() == Moved::some);
    CHECK(right.handshake() == Moved::some);
    // Somebody listens there, so nobody else can.
    CHECK_FALSE(listen_local(address, why));
    CHECK(contains(why, "the address cannot be used"));
  }
}

TEST_CASE("a path that a dead process left is used again, and any other file is not") {
  const Folder folder;
  std::string why;
  { const Descriptor listener = listen_local(folder.file("socket"), why); }
  CHECK_FALSE(dial_local(folder.file("socket"), why));
  CHECK(contains(why, "nobody answers"));
  CHECK(listen_local(folder.file("socket"), why));
  std::ofstream(folder.file("file")) << "kept";
  CHECK_FALSE(listen_local(folder.file("file"), why));
  CHECK(std::filesystem::file_size(folder.file("file")) == 4);
}

TEST_CASE("an address that no socket can have is refused") {
  std::string why;
  for (const std::string& address : {std::string(), std::string("@"), std::string(108, 'a')}) {
    CHECK_FALSE(listen_local(address, why));
    CHECK(contains(why, "the address has to be"));
    CHECK_FALSE(dial_local(address, why));
  }
}

TEST_CASE("another user's process is refused") {
  if (::geteuid() != 0) {
    MESSAGE("Not tested: only root can be another user");
    return;
  }
  std::string why;
  const std::string address = own_address();
  const Descriptor listener = listen_local(address, why);
  REQUIRE(listener);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setuid(65534) != 0) _exit(1);
    const Descriptor socket = dial_local(address, why);
    char byte;
    _exit(socket && ::recv(socket.number(), &byte, 1, 0) <= 0 ? 0 : 1);
  }
  pollfd polled{listener.number(), POLLIN, 0};
  REQUIRE(::poll(&polled, 1, 10'000) == 1);
  {
    LocalTransport transport(Descriptor(::accept(listener.number(), nullptr, nullptr)));
    CHECK(transport.handshake() == Moved::failed);
    CHECK(transport.trouble() == Trouble::unknown_peer);
    CHECK(transport.why() == "the peer is a process of another user, whose number is 65534");
    std::byte room[1];
    CHECK(transport.read(room).moved == Moved::failed);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
}
