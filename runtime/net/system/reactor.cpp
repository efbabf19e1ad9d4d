// Pumps bytes between transports and sessions, one thread for all links.
#include "net/system/reactor.h"

#include <sys/eventfd.h>

#include <array>
#include <atomic>
#include <boost/asio.hpp>
#include <thread>

#include "device/timeline.h"
#include "net/system/local.h"
#include "net/system/plain.h"
#include "net/system/socket_options.h"
#include "observe/error.h"
#include "observe/start_thread.h"

namespace millrace::net {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Tcp = asio::ip::tcp;

// Reads or writes of one connection before the others have their turn: 16 MiB at most, 4 ms.
constexpr int kMovesInTurn = 16;
// A connection that ends has this long to be read to its end.
constexpr int64_t kEndingNs = kSecond;

// Waits for a descriptor that a transport owns.
class Waiter {
 public:
  Waiter(asio::io_context& context, int descriptor) : waiter_(context, descriptor) {}
  ~Waiter() { release(); }

  void release() {
    if (waiter_.is_open()) waiter_.release(); // waits end, and the descriptor stays open
  }

  template <class Then>
  void wait(asio::posix::descriptor_base::wait_type type, Then then) {
    waiter_.async_wait(type, std::move(then));
  }

 private:
  asio::posix::stream_descriptor waiter_;
};

} // namespace

class Reactor::Thread {
 public:
  Thread() : bell_(context_, eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
  ~Thread() { stop(); }

  Session& add(const LinkOptions& options);
  void start();
  void stop();
  void give(Guest guest);
  void ring();
  void post(std::function<void()> work) { asio::post(context_, std::move(work)); }

 private:
  struct Link;
  struct Connection;
  struct Dialling;
  using ConnectionPointer = std::shared_ptr<Connection>;

  int64_t now_ns() const { return time_.now_ns(); }
  void listen_for_the_bell();
  void settle(Link& link);
  void act(Link& link, const Event& event);
  void set_timer(Link& link);

  void dial(Link& link, uint32_t lane);
  void try_next(const std::shared_ptr<Dialling>& dialling);
  void connect(const std::shared_ptr<Dialling>& dialling, const Tcp::resolver::results_type& found);
  void dialled(const std::shared_ptr<Dialling>& dialling, Descriptor socket, bool is_local);
  void accept(Guest guest);
  void refuse(Guest guest, Fault fault);

  void arm(const ConnectionPointer& connection, bool write);
  void pump(const ConnectionPointer& connection);
  bool shake_hands(const ConnectionPointer& connection);
  void read(const ConnectionPointer& connection);
  void write(const ConnectionPointer& connection);
  void lose(const ConnectionPointer& connection);
  void end(const ConnectionPointer& connection);
  void go_on_ending(const ConnectionPointer& connection);

  asio::io_context context_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{context_.get_executor()};
  device::MonotonicTime time_;
  Tcp::resolver resolver_{context_};
  asio::posix::stream_descriptor bell_;
  std::atomic<bool> rung_{false};
  std::vector<std::unique_ptr<Link>> links_;
  std::thread thread_;
};

struct Reactor::Thread::Link {
  Link(asio::io_context& context, const LinkOptions& given) : options(given), session(given.session), timer(context) {}

  LinkOptions options;
  Session session;
  std::array<ConnectionPointer, kLanesMax> lanes{};
  std::array<std::string, kLanesMax> why{};
  asio::steady_timer timer;
  int64_t timer_ns = INT64_MAX; // when it goes off
};

struct Reactor::Thread::Connection {
  enum class Stage : uint8_t { handshake, joined, ending, gone };

  Connection(asio::io_context& context, Link* of, uint32_t number, std::unique_ptr<Transport> stream)
      : link(of), lane(number), transport(std::move(stream)), waiter(context, transport->descriptor()) {}

  void let_go() {
    stage = Stage::gone;
    waiter.release();
    transport.reset();
  }

  Stage stage = Stage::handshake;
  Link* link; // null: a guest that was refused
  uint32_t lane;
  std::unique_ptr<Transport> transport;
  Waiter waiter; // let go before the transport closes its descriptor
  bool waits_to_read = false, waits_to_write = false;
  std::array<std::byte, 2048> farewell{}; // a refusal that is being written
  size_t farewell_bytes = 0;
};

// ---- the thread ----------------------------------------------------------------------------------------------------

Session& Reactor::Thread::add(const LinkOptions& options) {
  LinkOptions given = options;
  given.session.dials = !options.endpoints.empty();
  links_.push_back(std::make_unique<Link>(context_, given));
  return links_.back()->session;
}

void Reactor::Thread::start() {
  thread_ = start_thread("the thread of the links", [this] {
    listen_for_the_bell();
    for (const auto& link : links_) settle(*link);
    context_.run();
  });
}

void Reactor::Thread::stop() {
  if (!thread_.joinable()) return;
  asio::post(context_, [this] {
    for (const auto& link : links_)
      for (ConnectionPointer& connection : link->lanes) connection.reset();
    context_.stop();
  });
  thread_.join();
}

void Reactor::Thread::ring() {
  if (rung_.exchange(true)) return;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t wrote = ::write(bell_.native_handle(), &one, sizeof one); // full: it rings already
}

void Reactor::Thread::listen_for_the_bell() {
  bell_.async_wait(asio::posix::descriptor_base::wait_read, [this](error_code failed) {
    if (failed) return;
    uint64_t rings = 0;
    [[maybe_unused]] const ssize_t got = ::read(bell_.native_handle(), &rings, sizeof rings);
    rung_.store(false);
    for (const auto& link : links_) settle(*link);
    listen_for_the_bell();
  });
}

// After anything that a session was told: what it wants to say and do, until there is nothing left.
void Reactor::Thread::settle(Link& link) {
  link.session.on_time(now_ns());
  for (bool busy = true; busy;) {
    busy = false;
    for (size_t lane = 0; lane < link.lanes.size(); ++lane) {
      const ConnectionPointer connection = link.lanes[lane]; // a write may find that it is gone
      if (connection && connection->stage == Connection::Stage::joined && !connection->waits_to_write)
        write(connection);
    }
    for (Event event; link.session.poll(event); busy = true) act(link, event);
  }
  set_timer(link);
}

void Reactor::Thread::act(Link& link, const Event& event) {
  if (link.options.tell) link.options.tell(event, link.why[event.lane]);
  const ConnectionPointer connection = link.lanes[event.lane];
  if (event.type == EventType::dial) dial(link, event.lane);
  if (event.type == EventType::close && connection) end(connection);
}

void Reactor::Thread::set_timer(Link& link) {
  const int64_t next_ns = link.session.next_timer(now_ns());
  if (next_ns >= link.timer_ns) return; // it goes off early enough
  link.timer_ns = next_ns;
  link.timer.expires_at(asio::steady_timer::time_point(std::chrono::nanoseconds(next_ns)));
  link.timer.async_wait([this, &link](error_code failed) {
    if (failed) return;
    link.timer_ns = INT64_MAX;
    settle(link);
  });
}

// ---- dialling ------------------------------------------------------------------------------------------------------

struct Reactor::Thread::Dialling {
  Dialling(asio::io_context& context, Link& of, uint32_t number)
      : link(of), lane(number), socket(context), give_up(context) {}

  Link& link;
  uint32_t lane;
  size_t endpoint = 0;
  Tcp::socket socket;
  asio::steady_timer give_up;
};

void Reactor::Thread::dial(Link& link, uint32_t lane) {
  link.why[lane].clear();
  try_next(std::make_shared<Dialling>(context_, link, lane));
}

// The next endpoint of the peer, or back to the session where there is none left.
void Reactor::Thread::try_next(const std::shared_ptr<Dialling>& dialling) {
  Link& link = dialling->link;
  if (dialling->endpoint == link.options.endpoints.size()) {
    link.session.cut(dialling->lane, now_ns());
    settle(link);
    return;
  }
  const Endpoint& endpoint = link.options.endpoints[dialling->endpoint++];
  if (endpoint.is_local()) {
    std::string why;
    Descriptor socket = dial_local(endpoint.local, why);
    if (socket) return dialled(dialling, std::move(socket), true);
    link.why[dialling->lane] = to_text(endpoint) + ": " + why;
    return try_next(dialling);
  }
  dialling->give_up.expires_after(std::chrono::nanoseconds(kGreetingNs));
  dialling->give_up.async_wait([dialling](error_code failed) {
    error_code ignored;
    if (!failed) dialling->socket.close(ignored);
  });
  resolver_.async_resolve(endpoint.host, std::to_string(endpoint.port),
                          [this, dialling, endpoint](error_code failed, const Tcp::resolver::results_type& found) {
                            if (!failed) return connect(dialling, found);
                            dialling->give_up.cancel();
                            dialling->link.why[dialling->lane] = to_text(endpoint) + ": " + failed.message();
                            try_next(dialling);
                          });
}

void Reactor::Thread::connect(const std::shared_ptr<Dialling>& dialling, const Tcp::resolver::results_type& found) {
  asio::async_connect(dialling->socket, found, [this, dialling](error_code failed, const Tcp::endpoint&) {
    dialling->give_up.cancel();
    if (!failed) return dialled(dialling, Descriptor(dialling->socket.release()), false);
    const Endpoint& endpoint = dialling->link.options.endpoints[dialling->endpoint - 1];
    dialling->link.why[dialling->lane] = to_text(endpoint) + ": " + failed.message();
    error_code ignored;
    dialling->socket.close(ignored);
    try_next(dialling);
  });
}

void Reactor::Thread::dialled(const std::shared_ptr<Dialling>& dialling, Descriptor socket, bool is_local) {
  Link& link = dialling->link;
  std::unique_ptr<Transport> transport;
  if (is_local) {
    transport = std::make_unique<LocalTransport>(std::move(socket));
  } else {
    set_link_options(socket.number());
    if (!link.options.congestion_control.empty())
      link.why[dialling->lane] = choose_congestion_control(socket.number(), link.options.congestion_control);
    if (link.options.tls)
      transport =
          std::make_unique<TlsTransport>(*link.options.tls, std::move(socket), Side::dials,
                                         PeerTerms{{}, NodeId{link.options.session.peer}, link.options.peer_name});
    else
      transport = std::make_unique<PlainTransport>(std::move(socket));
  }
  const auto connection = std::make_shared<Connection>(context_, &link, dialling->lane, std::move(transport));
  link.lanes[dialling->lane] = connection;
  pump(connection);
}

// ---- being dialled -------------------------------------------------------------------------------------------------

void Reactor::Thread::give(Guest guest) {
  // A std::function has to be copied, a guest cannot be.
  auto shared = std::make_shared<Guest>(std::move(guest));
  asio::post(context_, [this, shared] { accept(std::move(*shared)); });
}

void Reactor::Thread::accept(Guest guest) {
  const NodeId* const proven = guest.transport->peer();
  if (proven && proven->bytes != guest.hello.node) return refuse(std::move(guest), Fault::node);
  for (const auto& link : links_) {
    if (link->options.session.peer != guest.hello.node) continue;
    const uint32_t lane = guest.hello.lane;
    const Fault fault = link->session.accept(guest.hello, !guest.transport->checks_bytes(), now_ns());
    if (fault != Fault::none) return refuse(std::move(guest), fault);
    if (ConnectionPointer before = std::move(link->lanes[lane])) before->let_go();
    const auto connection = std::make_shared<Connection>(context_, link.get(), lane, std::move(guest.transport));
    connection->stage = Connection::Stage::joined;
    link->lanes[lane] = connection;
    return pump(connection);
  }
  refuse(std::move(guest), Fault::node);
}

void Reactor::Thread::refuse(Guest guest, Fault fault) {
  const bool checks_bodies = !guest.transport->checks_bytes();
  const auto connection = std::make_shared<Connection>(context_, nullptr, 0, std::move(guest.transport));
  connection->farewell_bytes = write_refusal(fault, checks_bodies, connection->farewell);
  end(connection);
}

// ---- one connection ------------------------------------------------------------------------------------------------

void Reactor::Thread::arm(const ConnectionPointer& connection, bool write) {
  bool& waits = write ? connection->waits_to_write : connection->waits_to_read;
  if (waits) return;
  waits = true;
  connection->waiter.wait(write ? asio::posix::descriptor_base::wait_write : asio::posix::descriptor_base::wait_read,
                          [this, connection, write](error_code failed) {
                            (write ? connection->waits_to_write : connection->waits_to_read) = false;
                            if (!failed) pump(connection);
                          });
}

void Reactor::Thread::pump(const ConnectionPointer& connection) {
  if (connection->stage == Connection::Stage::gone) return;
  if (connection->stage == Connection::Stage::ending) return go_on_ending(connection);
  if (connection->stage == Connection::Stage::handshake && !shake_hands(connection)) return;
  if (!connection->waits_to_read) read(connection);
  settle(*connection->link);
}

bool Reactor::Thread::shake_hands(const ConnectionPointer& connection) {
  switch (connection->transport->handshake()) {
    case Moved::some:
      connection->stage = Connection::Stage::joined;
      connection->link->session.dialled(connection->lane, !connection->transport->checks_bytes(), now_ns());
      return true;
    case Moved::want_read: arm(connection, false); return false;
    case Moved::want_write: arm(connection, true); return false;
    default: break;
  }
  lose(connection);
  settle(*connection->link);
  return false;
}

void Reactor::Thread::read(const ConnectionPointer& connection) {
  Session& session = connection->link->session;
  for (int moves = 0; moves < kMovesInTurn && connection->stage == Connection::Stage::joined; ++moves) {
    if (!session.wants_bytes(connection->lane)) return; // its `close` comes
    const Transfer transfer = connection->transport->read(session.room(connection->lane));
    switch (transfer.moved) {
      case Moved::some: session.received(connection->lane, transfer.bytes, now_ns()); continue;
      case Moved::want_read: return arm(connection, false);
      case Moved::want_write: return arm(connection, true);
      default: return lose(connection);
    }
  }
  if (connection->stage == Connection::Stage::joined) asio::post(context_, [this, connection] { pump(connection); });
}

void Reactor::Thread::write(const ConnectionPointer& connection) {
  Session& session = connection->link->session;
  for (int moves = 0; moves < kMovesInTurn; ++moves) {
    const std::span<const Bytes> pieces = session.gather(connection->lane, now_ns());
    if (pieces.empty()) return;
    const Transfer transfer = connection->transport->write(pieces);
    switch (transfer.moved) {
      case Moved::some: session.sent(connection->lane, transfer.bytes, now_ns()); continue;
      case Moved::want_write: return arm(connection, true);
      case Moved::want_read: return arm(connection, false);
      default: return lose(connection);
    }
  }
  asio::post(context_, [this, connection] { pump(connection); });
}

// The connection has ended by itself.
void Reactor::Thread::lose(const ConnectionPointer& connection) {
  Link& link = *connection->link;
  link.why[connection->lane] = connection->transport->why();
  connection->let_go();
  if (link.lanes[connection->lane] != connection) return;
  link.lanes[connection->lane].reset();
  link.session.cut(connection->lane, now_ns());
}

// The session has let the connection go. A close with unread bytes would destroy what was written last, so it is read
// to its end.
void Reactor::Thread::end(const ConnectionPointer& connection) {
  if (connection->link && connection->link->lanes[connection->lane] == connection)
    connection->link->lanes[connection->lane].reset();
  connection->stage = Connection::Stage::ending;
  const auto timer = std::make_shared<asio::steady_timer>(context_, std::chrono::nanoseconds(kEndingNs));
  timer->async_wait([connection, timer](error_code) { connection->let_go(); });
  go_on_ending(connection);
}

void Reactor::Thread::go_on_ending(const ConnectionPointer& connection) {
  Transport& transport = *connection->transport;
  while (connection->farewell_bytes > 0) {
    const Bytes rest(connection->farewell.data(), connection->farewell_bytes);
    const Transfer transfer = transport.write({&rest, 1});
    if (transfer.moved == Moved::want_write) return arm(connection, true);
    if (transfer.moved != Moved::some) break;
    std::copy(rest.begin() + static_cast<std::ptrdiff_t>(transfer.bytes), rest.end(), connection->farewell.begin());
    connection->farewell_bytes -= transfer.bytes;
  }
  if (transport.shut() == Moved::want_write) return arm(connection, true);
  std::array<std::byte, 4096> unread;
  for (int moves = 0; moves < kMovesInTurn; ++moves) {
    const Transfer transfer = transport.read(unread);
    if (transfer.moved == Moved::some) continue;
    if (transfer.moved == Moved::want_read) return arm(connection, false);
    break;
  }
  connection->let_go();
}

// ---- the interface -------------------------------------------------------------------------------------------------

Reactor::Reactor() : thread_(std::make_unique<Thread>()) {}
Reactor::~Reactor() = default;
Session& Reactor::add(const LinkOptions& options) { return thread_->add(options); }
void Reactor::start() { thread_->start(); }
void Reactor::stop() { thread_->stop(); }
void Reactor::give(Guest guest) { thread_->give(std::move(guest)); }
void Reactor::ring() { thread_->ring(); }
void Reactor::post(std::function<void()> work) { thread_->post(std::move(work)); }

} // namespace millrace::net
