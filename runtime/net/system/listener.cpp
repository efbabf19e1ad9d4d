// The listener's thread: door, handshake and HELLO of everybody who connects.
#include "net/system/listener.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio.hpp>
#include <thread>

#include "device/timeline.h"
#include "net/crc32c.h"
#include "net/door.h"
#include "net/session.h"
#include "net/system/local.h"
#include "net/system/plain.h"
#include "net/system/received_bytes.h"
#include "net/system/socket_options.h"
#include "net/system/waiter.h"
#include "observe/error.h"
#include "observe/error_codes.h"
#include "observe/start_thread.h"

namespace millrace::net {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Tcp = asio::ip::tcp;
using Local = asio::local::stream_protocol;

// After a failure to accept (no descriptor is left) the listener waits before it tries again.
constexpr std::chrono::milliseconds kAcceptAgain{100};
constexpr int kTcpBacklog = 512;

IpAddress address_of(const Tcp::endpoint& endpoint) {
  const asio::ip::address address = endpoint.address();
  if (address.is_v6()) return address.to_v6().to_bytes(); // one of IPv4 that came to [::] is mapped already
  return asio::ip::make_address_v6(asio::ip::v4_mapped, address.to_v4()).to_bytes();
}

// True if an IPv6 socket takes IPv4 as well: [::] means every address of the machine, as with other programs, unless
// IPv4 is listened at by itself on the same port.
bool stands_for_all(const ListenOptions& options, const Endpoint& endpoint, const Tcp::endpoint& address) {
  if (!address.address().is_unspecified()) return false;
  return std::none_of(options.endpoints.begin(), options.endpoints.end(), [&](const Endpoint& other) {
    error_code no_address;
    const asio::ip::address ip = asio::ip::make_address(other.host, no_address);
    const bool is_ipv4 = no_address || ip.is_v4(); // a name may stand for one
    return !other.is_local() && other.port == endpoint.port && other.port != 0 && is_ipv4;
  });
}

[[noreturn]] void refuse_endpoint(const Endpoint& endpoint, const std::string& why) {
  throw Failure(code::link_not_listening, "this node cannot listen at " + to_text(endpoint) + ": " + why);
}

} // namespace

class Listener::Thread {
 public:
  Thread(const ListenOptions& options, TakeGuest take);
  ~Thread();

  const std::vector<Endpoint>& endpoints() const { return endpoints_; }
  Counts counts() const { return {accepted_, turned_away_, refused_, taken_, waiting_}; }

 private:
  struct Stranger;
  using StrangerPointer = std::shared_ptr<Stranger>;

  void listen(const Endpoint& endpoint);
  void listen_locally(const Endpoint& endpoint);
  template <class Acceptor>
  void accept_from(Acceptor& acceptor);
  void come(Tcp::socket socket);
  void come(Local::socket socket);
  void receive(std::unique_ptr<Transport> transport, const IpAddress& from);
  void pump(const StrangerPointer& stranger);
  bool wait(const StrangerPointer& stranger, Moved moved);
  void read_hello(const StrangerPointer& stranger);
  void finish(const StrangerPointer& stranger);
  void leave(const StrangerPointer& stranger, bool became_known);
  void refuse(const StrangerPointer& stranger);
  void drain(const StrangerPointer& stranger);

  ListenOptions options_;
  TakeGuest take_;
  device::MonotonicTime time_;
  Door door_;
  asio::io_context context_{1};
  std::vector<std::unique_ptr<Tcp::acceptor>> acceptors_;
  std::vector<std::unique_ptr<Local::acceptor>> local_acceptors_;
  std::vector<Endpoint> endpoints_;
  std::atomic<uint64_t> accepted_{0}, turned_away_{0}, refused_{0}, taken_{0};
  std::atomic<uint32_t> waiting_{0};
  std::thread thread_;
};

struct Listener::Thread::Stranger {
  Stranger(asio::io_context& context, std::unique_ptr<Transport> stream, const IpAddress& address)
      : transport(std::move(stream)), from(address), waiter(context, transport->descriptor()), deadline(context) {}

  std::unique_ptr<Transport> transport;
  IpAddress from;
  Waiter waiter; // let go before the transport closes its descriptor
  asio::steady_timer deadline;
  bool shook_hands = false, is_refused = false;
  // A HELLO and no byte more: what follows belongs to the session.
  std::array<std::byte, kHeadBytes + kHelloBytes + kLaterHelloBytesMax + kCrcBytes> bytes{};
  size_t size = 0, wanted = kHeadBytes;
  Head head;
};

Listener::Thread::Thread(const ListenOptions& options, TakeGuest take) : options_(options), take_(std::move(take)) {
  for (const Endpoint& endpoint : options.endpoints) endpoint.is_local() ? listen_locally(endpoint) : listen(endpoint);
  thread_ = start_thread("the thread that accepts connections", [this] {
    for (const auto& acceptor : acceptors_) accept_from(*acceptor);
    for (const auto& acceptor : local_acceptors_) accept_from(*acceptor);
    context_.run();
  });
}

Listener::Thread::~Thread() {
  context_.stop();
  thread_.join();
}

void Listener::Thread::listen(const Endpoint& endpoint) {
  error_code failed;
  Tcp::resolver resolver(context_);
  const auto found = resolver.resolve(endpoint.host, std::to_string(endpoint.port), Tcp::resolver::passive, failed);
  if (failed) refuse_endpoint(endpoint, failed.message());
  auto acceptor = std::make_unique<Tcp::acceptor>(context_);
  const Tcp::endpoint address = found.begin()->endpoint();
  acceptor->open(address.protocol(), failed);
  // A program that this process starts would keep the port.
  if (!failed) fcntl(acceptor->native_handle(), F_SETFD, FD_CLOEXEC);
  if (!failed) acceptor->set_option(asio::socket_base::reuse_address(true), failed);
  if (!failed && address.address().is_v6())
    acceptor->set_option(asio::ip::v6_only(!stands_for_all(options_, endpoint, address)), failed);
  if (!failed) acceptor->bind(address, failed);
  if (!failed) acceptor->listen(kTcpBacklog, failed);
  if (failed) refuse_endpoint(endpoint, failed.message());
  Endpoint bound = endpoint;
  bound.port = acceptor->local_endpoint().port();
  endpoints_.push_back(bound);
  acceptors_.push_back(std::move(acceptor));
}

void Listener::Thread::listen_locally(const Endpoint& endpoint) {
  std::string why;
  Descriptor socket = listen_local(endpoint.local, why);
  if (!socket) refuse_endpoint(endpoint, why);
  auto acceptor = std::make_unique<Local::acceptor>(context_);
  const int copy = fcntl(socket.number(), F_DUPFD_CLOEXEC, 0); // Asio closes its own
  error_code failed;
  if (copy < 0 || acceptor->assign(Local(), copy, failed)) refuse_endpoint(endpoint, "no descriptor is left");
  endpoints_.push_back(endpoint);
  local_acceptors_.push_back(std::move(acceptor));
}

template <class Acceptor>
void Listener::Thread::accept_from(Acceptor& acceptor) {
  acceptor.async_accept([this, &acceptor](error_code failed, auto socket) {
    if (failed == asio::error::operation_aborted) return;
    if (!failed) {
      ++accepted_;
      come(std::move(socket));
      return accept_from(acceptor);
    }
    const auto again = std::make_shared<asio::steady_timer>(context_, kAcceptAgain);
    again->async_wait([this, &acceptor, again](error_code) { accept_from(acceptor); });
  });
}

void Listener::Thread::come(Tcp::socket socket) {
  error_code failed;
  const Tcp::endpoint peer = socket.remote_endpoint(failed);
  if (failed) return; // gone already
  const IpAddress from = address_of(peer);
  if (!door_.enter(from, time_.now_ns())) {
    ++turned_away_;
    return;
  }
  set_link_options(socket.native_handle());
  Descriptor descriptor(socket.release());
  if (options_.tls)
    receive(std::make_unique<TlsTransport>(*options_.tls, std::move(descriptor), Side::listens,
                                           PeerTerms{options_.knows, {}, {}}),
            from);
  else
    receive(std::make_unique<PlainTransport>(std::move(descriptor)), from);
}

// Processes of this machine come from one address.
void Listener::Thread::come(Local::socket socket) {
  IpAddress here{};
  here[15] = 1;
  if (!door_.enter(here, time_.now_ns())) {
    ++turned_away_;
    return;
  }
  receive(std::make_unique<LocalTransport>(Descriptor(socket.release())), here);
}

void Listener::Thread::receive(std::unique_ptr<Transport> transport, const IpAddress& from) {
  ++waiting_;
  const auto stranger = std::make_shared<Stranger>(context_, std::move(transport), from);
  stranger->deadline.expires_after(std::chrono::nanoseconds(kStrangerNs));
  stranger->deadline.async_wait([this, stranger](error_code failed) {
    if (!failed && stranger->transport) leave(stranger, false);
  });
  pump(stranger);
}

void Listener::Thread::leave(const StrangerPointer& stranger, bool became_known) {
  if (!became_known) ++refused_;
  --waiting_;
  door_.leave(stranger->from, became_known);
  stranger->deadline.cancel();
  stranger->waiter.release();
  stranger->transport.reset();
}

// Waits, or ends it where there is nothing to be waited for. True: bytes have moved.
bool Listener::Thread::wait(const StrangerPointer& stranger, Moved moved) {
  if (moved == Moved::some) return true;
  if (moved != Moved::want_read && moved != Moved::want_write) {
    refuse(stranger);
    return false;
  }
  stranger->waiter.wait(moved == Moved::want_write, [this, stranger](error_code failed) {
    if (!failed && stranger->transport) pump(stranger);
  });
  return false;
}

// TLS has told a peer why it is refused. A close with unread bytes would destroy that, so the peer closes first.
void Listener::Thread::refuse(const StrangerPointer& stranger) {
  const Trouble trouble = stranger->transport->trouble();
  if (trouble != Trouble::unknown_peer && trouble != Trouble::other_peer) return leave(stranger, false);
  if (trouble == Trouble::unknown_peer && options_.on_unknown) options_.on_unknown(stranger->transport->why());
  stranger->is_refused = true;
  ::shutdown(stranger->transport->descriptor(), SHUT_WR);
  drain(stranger);
}

void Listener::Thread::drain(const StrangerPointer& stranger) {
  std::array<std::byte, 4096> unread;
  ssize_t got = 1;
  for (uint64_t sum = 0; got > 0 && !Door::is_too_much(sum); sum += unread.size())
    got = ::recv(stranger->transport->descriptor(), unread.data(), unread.size(), MSG_DONTWAIT);
  if (got >= 0 || errno != EAGAIN) return leave(stranger, false);
  wait(stranger, Moved::want_read);
}

void Listener::Thread::pump(const StrangerPointer& stranger) {
  if (Door::is_too_much(received_bytes(stranger->transport->descriptor()))) return leave(stranger, false);
  if (stranger->is_refused) return drain(stranger);
  if (!stranger->shook_hands) {
    if (!wait(stranger, stranger->transport->handshake())) return;
    stranger->shook_hands = true;
  }
  read_hello(stranger);
}

void Listener::Thread::read_hello(const StrangerPointer& stranger) {
  while (true) {
    if (stranger->size == kHeadBytes && stranger->wanted == kHeadBytes) {
      const Fault fault = read_head(std::span(stranger->bytes).first<kHeadBytes>(), stranger->head);
      if (fault != Fault::none || stranger->head.type != RecordType::hello) return leave(stranger, false);
      stranger->wanted += stranger->head.length + (stranger->transport->checks_bytes() ? 0 : kCrcBytes);
    }
    if (stranger->size == stranger->wanted) return finish(stranger);
    const auto room = std::span(stranger->bytes).subspan(stranger->size, stranger->wanted - stranger->size);
    const Transfer transfer = stranger->transport->read(room);
    if (!wait(stranger, transfer.moved)) return;
    stranger->size += transfer.bytes;
  }
}

// Its HELLO is whole: the link's thread goes on with it, and tells it if it is refused.
void Listener::Thread::finish(const StrangerPointer& stranger) {
  Guest guest;
  const Bytes rest = Bytes(stranger->bytes).subspan(kHeadBytes, stranger->wanted - kHeadBytes);
  const Bytes body = rest.first(stranger->head.length);
  const bool is_damaged =
      rest.size() > body.size() && ByteReader(rest.subspan(body.size())).get<uint32_t>() != crc32c(body);
  if (is_damaged || net::read_hello(body, guest.hello) != Fault::none) return leave(stranger, false);
  stranger->waiter.release();
  guest.transport = std::move(stranger->transport);
  ++taken_;
  --waiting_;
  door_.leave(stranger->from, true);
  stranger->deadline.cancel();
  take_(std::move(guest));
}

Listener::Listener(const ListenOptions& options, TakeGuest take)
    : thread_(std::make_unique<Thread>(options, std::move(take))) {}
Listener::~Listener() = default;
const std::vector<Endpoint>& Listener::endpoints() const { return thread_->endpoints(); }
Listener::Counts Listener::counts() const { return thread_->counts(); }

} // namespace millrace::net
