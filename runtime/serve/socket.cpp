// Serves clients on a Unix socket; see socket.h.
#include "serve/socket.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <list>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "net/system/descriptor.h"
#include "net/system/local.h"
#include "observe/error.h"
#include "observe/error_codes.h"
#include "observe/start_thread.h"
#include "observe/steady_ms.h"
#include "serve/lines.h"
#include "serve/message.h"
#include "serve/run_folder.h"
#include "serve/taps.h"

namespace millrace::serve {

namespace {

using net::Descriptor;

constexpr size_t kReadBytes = 16 << 10;
// The wait after accept has failed, for instance because the process has no more file descriptors.
constexpr int kAcceptAgainMs = 100;

std::string refusal_line(RpcCode code, const std::string& sentence) {
  return error_line(nullptr, Refused(code, sentence)) + "\n";
}

// Answers that threads of the run give, on their way to the thread that sends them. The run may hold it for longer than
// there is a socket.
class Mailbox {
 public:
  struct Letter {
    uint64_t client;
    std::string line;
  };

  Mailbox() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!wake_) throw Failure(code::control_not_open, "no file descriptor is left");
  }
  int descriptor() const { return wake_.number(); }

  void put(uint64_t client, const std::string& line) {
    {
      const std::lock_guard lock(mutex_);
      letters_.push_back({client, line});
    }
    ring();
  }
  // Makes the thread look what is due.
  void ring() { ::eventfd_write(wake_.number(), 1); }
  void end() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    ring();
  }
  // False: it is to end, and no further letters count.
  bool take(std::vector<Letter>& letters) {
    eventfd_t ignored = 0;
    ::eventfd_read(wake_.number(), &ignored);
    const std::lock_guard lock(mutex_);
    letters = std::exchange(letters_, {});
    return !ends_;
  }

 private:
  const Descriptor wake_;
  std::mutex mutex_;
  std::vector<Letter> letters_;
  bool ends_ = false;
};

bool is_same_user(const Descriptor& socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(socket.number(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::geteuid();
}

// One client, as the serving thread knows it.
struct Connection {
  Connection(uint64_t the_number, Descriptor the_socket) : number(the_number), socket(std::move(the_socket)) {}

  bool has_room() const { return waiting.size() < kWaitingBytesMax; }
  // The time of its next event or sample; INT64_MAX while it has text to read.
  int64_t told_due_ms() const { return dismissed || !waiting.empty() ? INT64_MAX : Control::due_ms(client); }
  bool reads() const { return !dismissed && !said_all && !has_more && has_room(); }
  // Sends as much as the client takes at once. False: it is gone.
  bool send() {
    size_t sent = 0;
    while (sent < waiting.size()) {
      const ssize_t taken =
          ::send(socket.number(), waiting.data() + sent, waiting.size() - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (taken > 0) sent += static_cast<size_t>(taken);
      if (taken < 0 && errno != EINTR) {
        if (errno != EAGAIN && errno != EWOULDBLOCK) return false;
        break;
      }
    }
    waiting.erase(0, sent);
    return true;
  }

  const uint64_t number;
  const Descriptor socket;
  Control::Client client;
  Lines lines{kMessageBytesMax};
  std::string waiting;    // for the client to read
  size_t owed = 0;        // answers that come later
  bool has_more = false;  // its turn was over before its messages were
  bool said_all = false;  // it sends no more, but may still read
  bool dismissed = false; // it has to go
};

} // namespace

class ControlSocket::Thread {
 public:
  Thread(Control& control, Descriptor listener, SocketOptions options)
      : control_(control),
        listener_(std::move(listener)),
        now_ms_(options.now_ms ? std::move(options.now_ms) : steady_ms),
        limits_(options.limits),
        places_(options.limits),
        thread_(start_thread("the thread of the control socket", [this] { run(); })) {}
  ~Thread() {
    mailbox_->end();
    thread_.join();
  }

 private:
  void run();
  void loop();
  void deliver(const std::vector<Mailbox::Letter>& letters);
  int patience_ms() const;
  void accept_one();
  void dismiss(uint64_t client, const std::string& sentence);
  void dismiss_overdue();
  void tell();
  void sweep();
  bool send(Connection& connection);                // false: the client is gone
  bool serve(Connection& connection, short events); // false: it is over
  bool read(Connection& connection);
  bool answer(Connection& connection);
  void answer_line(Connection& connection, const Lines::Line& line);

  Control& control_;
  const Descriptor listener_;
  const std::function<int64_t()> now_ms_;
  const ClientLimits limits_;
  ClientPlaces places_;
  const std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>();
  std::list<Connection> connections_;
  uint64_t last_number_ = 0;
  bool accepts_ = true; // false: accept has failed, and is tried again after a while
  std::thread thread_;  // last: it uses all of the above
};

void ControlSocket::Thread::run() {
  for (;;) {
    try {
      loop();
      return;
    } catch (const std::bad_alloc&) { // no memory for one round: the next one may have it
    }
  }
}

// For the kernel: until an arrival has been silent for too long, accept is tried again, or a client is to be told
// something; -1: for ever.
int ControlSocket::Thread::patience_ms() const {
  const int64_t now_ms = now_ms_();
  const auto least = [](int64_t a, int64_t b) { return a < 0 || b < 0 ? std::max(a, b) : std::min(a, b); };
  int64_t patience_ms = least(places_.until_overdue_ms(now_ms), accepts_ ? -1 : kAcceptAgainMs);
  for (const Connection& one : connections_)
    if (one.told_due_ms() < INT64_MAX)
      patience_ms = least(patience_ms, std::max<int64_t>(one.told_due_ms() - now_ms, 0));
  return static_cast<int>(patience_ms);
}

void ControlSocket::Thread::loop() {
  std::vector<pollfd> watched;
  std::vector<Mailbox::Letter> letters;
  while (true) {
    watched = {{mailbox_->descriptor(), POLLIN, 0}, {accepts_ ? listener_.number() : -1, POLLIN, 0}};
    for (const Connection& one : connections_) {
      const int events = (one.reads() ? POLLIN : 0) | (one.waiting.empty() ? 0 : POLLOUT);
      watched.push_back({one.socket.number(), static_cast<short>(events), 0});
    }
    const bool has_more =
        std::any_of(connections_.begin(), connections_.end(), [](const auto& one) { return one.has_more; });
    const int ready = ::poll(watched.data(), watched.size(), has_more ? 0 : patience_ms());
    if (ready < 0 && errno != EINTR) return;
    accepts_ = true;
    if (ready > 0 || has_more) {
      const bool goes_on = mailbox_->take(letters);
      deliver(letters);
      if (!goes_on) break;
      size_t place = 2;
      for (Connection& one : connections_) {
        const short events = watched[place++].revents;
        if ((events != 0 || one.has_more) && !one.dismissed && !serve(one, events)) one.dismissed = true;
      }
      // One at a time: those that have come are read before they make way for others.
      if (watched[1].revents) accept_one();
    }
    tell();
    dismiss_overdue(); // all that they have said by now was read above
    sweep();
  }
  for (Connection& one : connections_) one.send();
}

void ControlSocket::Thread::deliver(const std::vector<Mailbox::Letter>& letters) {
  for (const Mailbox::Letter& letter : letters)
    for (Connection& one : connections_) {
      if (one.number != letter.client) continue;
      one.waiting += letter.line + "\n";
      places_.owe(one.number, --one.owed);
      places_.moved(one.number, now_ms_());
    }
}

void ControlSocket::Thread::accept_one() {
  Descriptor socket(::accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket) {
    accepts_ = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR || errno == ECONNABORTED;
    return;
  }
  if (!is_same_user(socket)) return; // closes it
  const uint64_t number = ++last_number_;
  connections_.emplace_back(number, std::move(socket));
  connections_.back().client.wake = [mailbox = mailbox_] { mailbox->ring(); };
  if (const std::optional<uint64_t> crowded_out = places_.come(number, now_ms_()))
    dismiss(*crowded_out, "more than " + std::to_string(limits_.arrivals) + " clients have come that have no place");
}

// Tells the client why it has to go, if it takes that at once.
void ControlSocket::Thread::dismiss(uint64_t client, const std::string& sentence) {
  for (Connection& one : connections_) {
    if (one.number != client || one.dismissed) continue;
    one.waiting += refusal_line(RpcCode::busy, sentence);
    one.send();
    one.dismissed = true;
  }
}

void ControlSocket::Thread::dismiss_overdue() {
  while (const std::optional<uint64_t> client = places_.overdue(now_ms_())) {
    places_.leave(*client);
    const auto one = std::find_if(connections_.begin(), connections_.end(),
                                  [&](const Connection& connection) { return connection.number == *client; });
    if (one == connections_.end()) continue;
    if (one->client.no_place.empty())
      dismiss(*client, "no message came within " + std::to_string(limits_.arrives_ms) + " ms");
    else
      dismiss(*client, one->client.no_place);
  }
}

// Sends events that are due, and one sample: the next goes once the client has read this one.
void ControlSocket::Thread::tell() {
  const int64_t now_ms = now_ms_();
  for (Connection& one : connections_) {
    if (one.told_due_ms() > now_ms) continue;
    try {
      for (const std::string& line : control_.events(one.client, now_ms)) one.waiting += line + "\n";
      if (const std::optional<Sample> sample = Control::sample(one.client, now_ms))
        one.waiting += sample_line(*sample) + "\n";
      if (!send(one)) one.dismissed = true;
    } catch (const std::bad_alloc&) { // as serve() has it
      one.dismissed = true;
    }
  }
}

void ControlSocket::Thread::sweep() {
  connections_.remove_if([&](const Connection& one) {
    if (one.dismissed) places_.leave(one.number);
    return one.dismissed;
  });
}

bool ControlSocket::Thread::send(Connection& connection) {
  const size_t before = connection.waiting.size();
  if (!connection.send()) return false;
  if (connection.waiting.size() < before) places_.moved(connection.number, now_ms_());
  return true;
}

bool ControlSocket::Thread::serve(Connection& connection, short events) {
  try {
    if (!send(connection) || !answer(connection)) return false;
    if (connection.reads() && (events & (POLLIN | POLLHUP)) && (!read(connection) || !answer(connection))) return false;
  } catch (const std::bad_alloc&) { // this client has to go; the others stay
    return false;
  }
  // Nobody is there to read what is left.
  if ((events & (POLLHUP | POLLERR)) && !connection.has_more && !connection.reads()) return false;
  return !connection.said_all || connection.has_more || !connection.waiting.empty() || connection.owed > 0 ||
         Control::events_due_ms(connection.client) < INT64_MAX;
}

// False: the client is gone.
bool ControlSocket::Thread::read(Connection& connection) {
  std::array<char, kReadBytes> bytes;
  const ssize_t got = ::recv(connection.socket.number(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
  connection.said_all = got == 0;
  if (got > 0) connection.lines.add({bytes.data(), static_cast<size_t>(got)});
  return true;
}

// Answers the lines that are there, as many as a turn has, and sends. False: the client is gone.
bool ControlSocket::Thread::answer(Connection& connection) {
  size_t left = kMessagesATurn;
  connection.has_more = false;
  do {
    while (connection.has_room()) {
      if (left == 0) {
        connection.has_more = true;
        return send(connection);
      }
      const std::optional<Lines::Line> line = connection.lines.next();
      if (line) {
        --left;
        answer_line(connection, *line);
        continue;
      }
      if (connection.said_all && connection.lines.end())
        connection.waiting += refusal_line(RpcCode::no_request, "the last message has no line end");
      return send(connection);
    }
    if (!send(connection)) return false;
  } while (connection.has_room());
  return true;
}

// A message of any kind is enough for a place. Without one, Control answers but a few methods.
void ControlSocket::Thread::answer_line(Connection& connection, const Lines::Line& line) {
  if (!line.too_long && line.text.find_first_not_of(" \t\r") == std::string::npos) return;
  const int64_t now_ms = now_ms_();
  const ClientPlaces::Place place = places_.take(connection.number, now_ms);
  places_.moved(connection.number, now_ms);
  if (place.gives_way) dismiss(*place.gives_way, "another client needs the place, and this one is idle");
  connection.client.no_place =
      place.has ? "" : std::to_string(limits_.clients) + " clients are connected, and none of them is idle";
  if (line.too_long) {
    const std::string sentence = "a message has at most " + std::to_string(kMessageBytesMax) + " bytes";
    connection.waiting += refusal_line(RpcCode::no_request, sentence);
    return;
  }
  const Control::Later later = [mailbox = mailbox_, number = connection.number](const std::string& answer) {
    mailbox->put(number, answer);
  };
  const Control::Answer answer = control_.take(connection.client, line.text, later);
  if (answer.comes_later) places_.owe(connection.number, ++connection.owed); // this thread takes its letter later
  if (!answer.line.empty()) connection.waiting += answer.line + "\n";
}

ControlSocket::ControlSocket(Control& control, const std::filesystem::path& folder, SocketOptions options)
    : path_(socket_in(folder)) {
  sockets_in(folder); // removes those of dead processes
  std::string why;
  Descriptor listener = net::listen_local(path_.string(), why);
  if (!listener) throw Failure(Error{code::control_not_open, why, {path_.string(), 0, 0}, {}, "", ""});
  try {
    thread_ = std::make_unique<Thread>(control, std::move(listener), std::move(options));
  } catch (const Failure&) {
    withdraw();
    throw;
  }
}

ControlSocket::~ControlSocket() { withdraw(); }

void ControlSocket::withdraw() noexcept { ::unlink(path_.c_str()); }

} // namespace millrace::serve
