// Pumps bytes between transports and sessions, one thread for all links.
#include "net/system/reactor.h"

#include <sys/eventfd.h>

#include <array>
#include <atomic>
#include <boost/asio.hpp>
#include <mutex>
#include <thread>

#include "device/timeline.h"
#include "net/system/local.h"
#include "net/system/plain.h"
#include "net/system/socket_options.h"
#include "net/system/waiter.h"
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

size_t bytes_of(std::span<const Bytes> pieces) {
  size_t sum = 0;
  for (const Bytes piece : pieces) sum += piece.size();
  return sum;
}

// Values of which so much is left are written by the thread that rings: some 20 µs of its time.
constexpr size_t kWrittenHereBytesMax = 64 * kKiB;

// One thread at a time touches the links: their own, or one that rings while that sleeps. A mutex that may be
// tried by its holder: a run that is asked for a parcel may ring.
class Turn {
 public:
  bool try_lock() { return !is_wanted_.load(std::memory_order_relaxed) && take(); }
  // The link's thread alone. While it waits, threads that ring do not go before it.
  void lock() {
    if (take()) return;
    is_wanted_.store(true, std::memory_order_relaxed);
    while (!take()) taken_.wait(true, std::memory_order_relaxed);
    is_wanted_.store(false, std::memory_order_relaxed);
  }
  void unlock() {
    taken_.clear(std::memory_order_release);
    taken_.notify_one();
  }

 private:
  bool take() { return !taken_.test_and_set(std::memory_order_acquire); }

  std::atomic_flag taken_;
  std::atomic<bool> is_wanted_{false};
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
  void post(std::function<void()> work);

 private:
  struct Link;
  struct Connection;
  struct Dialling;
  using ConnectionPointer = std::shared_ptr<Connection>;

  int64_t now_ns() const { return time_.now_ns(); }
  // Each handler of Asio's is one of these.
  template <class Work>
  auto in_turn(Work work) {
    return [this, work = std::move(work)](auto&&... results) mutable {
      const std::lock_guard turn(turn_);
      work(std::forward<decltype(results)>(results)...);
    };
  }
  void listen_for_the_bell();
  bool write_here(Link& link);
  void settle(Link& link);
  void act(Link& link, const Event& event);
  void set_timer(Link& link);

  using DiallingPointer = std::shared_ptr<Dialling>;
  void dial(Link& link, uint32_t lane);
  void try_next(const DiallingPointer& dialling);
  void try_endpoint(const DiallingPointer& dialling);
  void look_up(const DiallingPointer& dialling, const Endpoint& endpoint);
  void connect(const DiallingPointer& dialling, const Tcp::endpoint& address);
  void give_up(const DiallingPointer& dialling, const std::string& why);
  void dialled(const DiallingPointer& dialling, Descriptor socket, bool is_local);
  void accept(Guest guest);
  void refuse(Guest guest, Fault fault, std::string_view sentence);

  void arm(const ConnectionPointer& connection, bool write);
  void pump_later(const ConnectionPointer& connection);
  void pump(const ConnectionPointer& connection);
  bool shake_hands(const ConnectionPointer& connection);
  void read(const ConnectionPointer& connection);
  void write(const ConnectionPointer& connection);
  void let_go(const ConnectionPointer& connection);
  void lose(const ConnectionPointer& connection);
  void end(const ConnectionPointer& connection);
  void go_on_ending(const ConnectionPointer& connection);

  asio::io_context context_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{context_.get_executor()};
  device::MonotonicTime time_;
  Tcp::resolver resolver_{context_};
  asio::posix::stream_descriptor bell_;
  std::atomic<bool> rung_{false};
  Turn turn_;
  std::vector<std::unique_ptr<Link>> links_;
  std::thread thread_;
};

struct Reactor::Thread::Link {
  Link(asio::io_context& context, const LinkOptions& given) : options(given), session(given.session), timer(context) {}

  LinkOptions options;
  Session session;
  std::array<ConnectionPointer, kLanesMax> lanes{};
  std::array<std::string, kLanesMax> why{};
  size_t control_endpoint = 0; // the control connection's, at which data connections begin to dial
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
  Waiter waiter;                      // let go before the transport closes its descriptor
  std::shared_ptr<Dialling> dialling; // during the handshake of a side that dials
  bool waits_to_read = false, waits_to_write = false;
  bool is_posted = false;                 // a pump is on its way
  bool owes_bytes = false;                // the last write took a part: the stream cannot end in order here
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
    in_turn([this] {
      listen_for_the_bell();
      for (const auto& link : links_) settle(*link);
    })();
    context_.run();
  });
}

void Reactor::Thread::stop() {
  if (!thread_.joinable()) return;
  post([this] {
    for (const auto& link : links_)
      for (const ConnectionPointer& connection : link->lanes)
        if (connection) connection->let_go(); // waits hold it until the reactor is destroyed
    context_.stop();
  });
  thread_.join();
}

void Reactor::Thread::post(std::function<void()> work) { asio::post(context_, in_turn(std::move(work))); }

void Reactor::Thread::ring() {
  // Either this thread sees that the bell was answered, or the link's thread sees what was written before the ring.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (rung_.load()) return; // it will look
  if (std::unique_lock turn(turn_, std::try_to_lock); turn) {
    bool is_done = true;
    for (const auto& link : links_) is_done = write_here(*link) && is_done;
    if (is_done) return;
  }
  if (rung_.exchange(true)) return;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t wrote = ::write(bell_.native_handle(), &one, sizeof one); // full: it rings already
}

// Small parcels, on the thread that rings. False if the link's thread has to go on.
bool Reactor::Thread::write_here(Link& link) {
  bool is_done = true;
  for (uint32_t lane = 1; lane < link.lanes.size(); ++lane) {
    const ConnectionPointer& connection = link.lanes[lane];
    if (!connection || connection->stage != Connection::Stage::joined || !link.session.is_up(lane)) continue;
    if (connection->waits_to_write || connection->owes_bytes) return false;
    const std::span<const Bytes> pieces = link.session.gather(lane, now_ns(), kWrittenHereBytesMax);
    if (!pieces.empty()) {
      const Transfer transfer = connection->transport->write(pieces);
      connection->owes_bytes = transfer.bytes < bytes_of(pieces);
      if (transfer.moved == Moved::some) link.session.sent(lane, transfer.bytes, now_ns());
    }
    is_done = is_done && !link.session.is_in_the_middle(lane);
  }
  return is_done && link.session.next_timer(now_ns()) >= link.timer_ns;
}

void Reactor::Thread::listen_for_the_bell() {
  bell_.async_wait(asio::posix::descriptor_base::wait_read, in_turn([this](error_code failed) {
                     if (failed) return;
                     uint64_t rings = 0;
                     [[maybe_unused]] const ssize_t got = ::read(bell_.native_handle(), &rings, sizeof rings);
                     rung_.exchange(false);
                     std::atomic_thread_fence(std::memory_order_seq_cst); // as in ring()
                     for (const auto& link : links_) settle(*link);
                     listen_for_the_bell();
                   }));
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
  link.timer.async_wait(in_turn([this, &link](error_code failed) {
    if (failed) return;
    link.timer_ns = INT64_MAX;
    settle(link);
  }));
}

// ---- dialling ------------------------------------------------------------------------------------------------------

// One attempt: all endpoints of the peer in turn, and of each all its addresses. A handshake that fails belongs to the
// attempt, since another machine may have the first address by now.
struct Reactor::Thread::Dialling {
  Dialling(asio::io_context& context, Link& of, uint32_t number)
      : link(of), lane(number), socket(context), deadline(context) {}

  Link& link;
  uint32_t lane;
  size_t endpoint = 0, tried = 0;
  std::vector<Tcp::endpoint> addresses;
  size_t address = 0; // the next one
  Tcp::socket socket;
  std::weak_ptr<Connection> connection; // in its handshake
  asio::steady_timer deadline;          // one address has this long
};

void Reactor::Thread::dial(Link& link, uint32_t lane) {
  link.why[lane].clear();
  try_next(std::make_shared<Dialling>(context_, link, lane));
}

// The next address, or back to the session where there is none left.
void Reactor::Thread::try_next(const DiallingPointer& dialling) {
  Link& link = dialling->link;
  if (link.lanes[dialling->lane]) return; // the peer has dialled meanwhile
  if (dialling->address < dialling->addresses.size())
    return connect(dialling, dialling->addresses[dialling->address++]);
  if (dialling->tried < link.options.endpoints.size()) return try_endpoint(dialling);
  link.session.cut(dialling->lane, now_ns());
  settle(link);
}

void Reactor::Thread::give_up(const DiallingPointer& dialling, const std::string& why) {
  Link& link = dialling->link;
  dialling->deadline.cancel();
  const std::string here = to_text(link.options.endpoints[dialling->endpoint]) + ": " + why;
  std::string& all = link.why[dialling->lane];
  if (all.find(here) == std::string::npos) all += (all.empty() ? "" : "; ") + here; // a name may have many addresses
  try_next(dialling);
}

void Reactor::Thread::try_endpoint(const DiallingPointer& dialling) {
  Link& link = dialling->link;
  const size_t first = dialling->lane == 0 ? 0 : link.control_endpoint;
  dialling->endpoint = (first + dialling->tried++) % link.options.endpoints.size();
  const Endpoint& endpoint = link.options.endpoints[dialling->endpoint];
  dialling->addresses.clear();
  dialling->address = 0;
  if (endpoint.is_local()) {
    std::string why;
    Descriptor socket = dial_local(endpoint.local, why);
    return socket ? dialled(dialling, std::move(socket), true) : give_up(dialling, why);
  }
  // The resolver looks up one name after another, so an address does not wait for it.
  error_code is_name;
  const asio::ip::address address = asio::ip::make_address(endpoint.host, is_name);
  if (is_name) return look_up(dialling, endpoint);
  connect(dialling, {address, endpoint.port});
}

void Reactor::Thread::look_up(const DiallingPointer& dialling, const Endpoint& endpoint) {
  resolver_.async_resolve(endpoint.host, std::to_string(endpoint.port),
                          in_turn([this, dialling](error_code error, const Tcp::resolver::results_type& found) {
                            if (error) return give_up(dialling, error.message());
                            for (const auto& each : found) dialling->addresses.push_back(each.endpoint());
                            try_next(dialling);
                          }));
}

void Reactor::Thread::connect(const DiallingPointer& dialling, const Tcp::endpoint& address) {
  dialling->deadline.expires_after(std::chrono::nanoseconds(kGreetingNs));
  dialling->deadline.async_wait(in_turn([this, dialling](error_code error) {
    if (error) return;
    error_code ignored;
    dialling->socket.close(ignored); // its wait ends; after that it is closed already
    const ConnectionPointer connection = dialling->connection.lock();
    if (connection && connection->stage == Connection::Stage::handshake) {
      let_go(connection);
      give_up(dialling, "it did not say who it is in time");
    }
  }));
  dialling->socket.async_connect(address, in_turn([this, dialling](error_code error) {
                                   if (!error) return dialled(dialling, Descriptor(dialling->socket.release()), false);
                                   error_code ignored;
                                   dialling->socket.close(ignored);
                                   give_up(dialling,
                                           error == asio::error::operation_aborted ? "no answer" : error.message());
                                 }));
}

void Reactor::Thread::dialled(const DiallingPointer& dialling, Descriptor socket, bool is_local) {
  Link& link = dialling->link;
  if (link.lanes[dialling->lane]) { // the peer has dialled meanwhile
    dialling->deadline.cancel();
    return;
  }
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
  connection->dialling = dialling;
  dialling->connection = connection;
  link.lanes[dialling->lane] = connection;
  pump(connection);
}

// ---- being dialled -------------------------------------------------------------------------------------------------

void Reactor::Thread::give(Guest guest) {
  // A std::function has to be copied, a guest cannot be.
  auto shared = std::make_shared<Guest>(std::move(guest));
  post([this, shared] { accept(std::move(*shared)); });
}

void Reactor::Thread::accept(Guest guest) {
  const NodeId* const proven = guest.transport->peer();
  if (proven && proven->bytes != guest.hello.node)
    return refuse(std::move(guest), Fault::node, sentence_of(Fault::node));
  for (const auto& link : links_) {
    if (link->options.session.peer != guest.hello.node) continue;
    // Over TCP without TLS anybody may say that it is this node.
    if (link->options.tls && !guest.transport->checks_bytes()) break;
    const uint32_t lane = guest.hello.lane;
    const Fault fault = link->session.accept(guest.hello, !guest.transport->checks_bytes(), now_ns());
    if (fault != Fault::none) {
      refuse(std::move(guest), fault, link->session.refusal(fault));
      return settle(*link);
    }
    if (ConnectionPointer before = std::move(link->lanes[lane])) before->let_go();
    const auto connection = std::make_shared<Connection>(context_, link.get(), lane, std::move(guest.transport));
    connection->stage = Connection::Stage::joined;
    link->lanes[lane] = connection;
    return pump(connection);
  }
  refuse(std::move(guest), Fault::node, sentence_of(Fault::node));
}

void Reactor::Thread::refuse(Guest guest, Fault fault, std::string_view sentence) {
  const bool checks_bodies = !guest.transport->checks_bytes();
  const auto connection = std::make_shared<Connection>(context_, nullptr, 0, std::move(guest.transport));
  connection->farewell_bytes = write_refusal(fault, sentence, checks_bodies, connection->farewell);
  end(connection);
}

// ---- one connection ------------------------------------------------------------------------------------------------

void Reactor::Thread::arm(const ConnectionPointer& connection, bool write) {
  bool& waits = write ? connection->waits_to_write : connection->waits_to_read;
  if (waits) return;
  waits = true;
  connection->waiter.wait(write, in_turn([this, connection, write](error_code failed) {
                            (write ? connection->waits_to_write : connection->waits_to_read) = false;
                            if (!failed) pump(connection);
                          }));
}

// Once the others had their turn. A second pump on its way would beget two more.
void Reactor::Thread::pump_later(const ConnectionPointer& connection) {
  if (std::exchange(connection->is_posted, true)) return;
  post([this, connection] {
    connection->is_posted = false;
    pump(connection);
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
      connection->dialling->deadline.cancel();
      if (connection->lane == 0) connection->link->control_endpoint = connection->dialling->endpoint;
      connection->dialling.reset();
      connection->link->session.dialled(connection->lane, !connection->transport->checks_bytes(), now_ns());
      return true;
    case Moved::want_read: arm(connection, false); return false;
    case Moved::want_write: arm(connection, true); return false;
    default: break;
  }
  const DiallingPointer dialling = connection->dialling;
  const std::string why = connection->transport->why();
  const bool is_other = connection->lane == 0 && connection->transport->trouble() == Trouble::other_peer;
  let_go(connection);
  if (is_other && dialling->link.options.on_other)
    dialling->link.options.on_other(to_text(dialling->link.options.endpoints[dialling->endpoint]) + ": " + why);
  give_up(dialling, why);
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
  if (connection->stage == Connection::Stage::joined) pump_later(connection);
}

void Reactor::Thread::write(const ConnectionPointer& connection) {
  Session& session = connection->link->session;
  for (int moves = 0; moves < kMovesInTurn; ++moves) {
    const std::span<const Bytes> pieces = session.gather(connection->lane, now_ns());
    if (pieces.empty()) return;
    const Transfer transfer = connection->transport->write(pieces);
    connection->owes_bytes = transfer.bytes < bytes_of(pieces);
    switch (transfer.moved) {
      case Moved::some: session.sent(connection->lane, transfer.bytes, now_ns()); continue;
      case Moved::want_write: return arm(connection, true);
      case Moved::want_read: return arm(connection, false);
      default: return lose(connection);
    }
  }
  pump_later(connection);
}

// The connection has ended by itself.
void Reactor::Thread::lose(const ConnectionPointer& connection) {
  Link& link = *connection->link;
  std::string& why = link.why[connection->lane];
  why = connection->transport->why();
  // The handshake does not say which peer it was that refuses this node.
  if (connection->lane == 0 && !why.empty() && !link.options.endpoints.empty())
    why = to_text(link.options.endpoints[link.control_endpoint]) + ": " + why;
  const bool is_current = link.lanes[connection->lane] == connection;
  let_go(connection);
  if (is_current) link.session.cut(connection->lane, now_ns());
}

void Reactor::Thread::let_go(const ConnectionPointer& connection) {
  connection->let_go();
  ConnectionPointer& current = connection->link->lanes[connection->lane];
  if (current == connection) current.reset();
}

// The session has let the connection go. A close with unread bytes would destroy what was written last, so it is read
// to its end. A record that was written in part goes no further: its bytes are no longer the link's.
void Reactor::Thread::end(const ConnectionPointer& connection) {
  if (connection->link && connection->link->lanes[connection->lane] == connection)
    connection->link->lanes[connection->lane].reset();
  if (connection->owes_bytes) return connection->let_go();
  connection->stage = Connection::Stage::ending;
  const auto timer = std::make_shared<asio::steady_timer>(context_, std::chrono::nanoseconds(kEndingNs));
  timer->async_wait(in_turn([connection, timer](error_code) { connection->let_go(); }));
  go_on_ending(connection);
}

void Reactor::Thread::go_on_ending(const ConnectionPointer& connection) {
  Transport& transport = *connection->transport;
  while (connection->farewell_bytes > 0) {
    const Bytes rest(connection->farewell.data(), connection->farewell_bytes);
    const Transfer transfer = transport.write({&rest, 1});
    if (transfer.moved == Moved::want_write) return arm(connection, true);
    if (transfer.moved != Moved::some) return connection->let_go();
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
