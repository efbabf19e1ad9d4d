// The link's one thread: it joins sessions to transports, dials, keeps their time, and wakes when a run has something.
//
// Asio waits for sockets and timers and looks up names. Reads and writes are the transports' own: Asio's pass 64 KiB a
// call, and its TLS copies once more (docs/decisions/0058).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/session.h"
#include "net/system/endpoint.h"
#include "net/system/guest.h"
#include "net/system/tls.h"

namespace millrace::net {

struct LinkOptions {
  SessionOptions session;
  std::string peer_name;           // as people call it
  std::vector<Endpoint> endpoints; // to dial, in this order; session.dials is set if there are any
  const TlsContext* tls = nullptr; // null: TCP without encryption
  std::string congestion_control;  // "": the system's
  // Each event of the session, on the link's thread. `why` is the transport's sentence if it has one.
  std::function<void(const Event&, const std::string& why)> tell;
  // Another node than the peer answered at an address that was dialled for the control connection. On the link's
  // thread.
  std::function<void(const std::string& why)> on_other;
};

class Reactor {
 public:
  Reactor();
  ~Reactor(); // stops

  // Before start(). The session's crossings are added by the caller. It lives as long as the reactor.
  Session& add(const LinkOptions& options);

  void start();
  // Ends all connections, without waiting for what is under way, and the thread.
  void stop();

  // Any thread: a connection for one of the links; it is refused if it is for none.
  void give(Guest guest);
  // Any thread: a run has given or taken parcels. If the link's thread sleeps, small parcels are written at once, by
  // the calling thread: to wake another one first would double the time of an idle link. The rest is left to the link's
  // thread. Never waits.
  void ring();
  // Any thread: runs `work` on the link's thread, where sessions may be looked at.
  void post(std::function<void()> work);

 private:
  class Thread;
  std::unique_ptr<Thread> thread_;
};

} // namespace millrace::net
