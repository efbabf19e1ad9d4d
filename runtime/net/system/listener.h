// Accepts connections, and finds out who they are, on a thread of its own: strangers cost the links no time.
//
// A connection passes the door (net/door.h), the transport's handshake and its HELLO. Until then it has 5 s and 16 KiB.
// One that is refused is told why if it got as far as its HELLO, and is closed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "net/system/endpoint.h"
#include "net/system/guest.h"
#include "net/system/tls.h"

namespace millrace::net {

struct ListenOptions {
  std::vector<Endpoint> endpoints;                          // port 0: any free one
  const TlsContext* tls = nullptr;                          // null: TCP without encryption; Unix sockets never have it
  std::function<bool(const NodeId&)> knows;                 // called on the listener's thread
  std::function<void(const std::string& why)> on_unknown{}; // the same: a key was shown that nobody knows; not proved
};

class Listener {
 public:
  // Listens from now on. `take` is called on the listener's thread. Throws Failure MR0817 if an endpoint cannot be
  // listened at, with the system's reason.
  Listener(const ListenOptions& options, TakeGuest take);
  ~Listener();

  // Its addresses, with the ports that were found.
  const std::vector<Endpoint>& endpoints() const;

  struct Counts {
    uint64_t accepted = 0, turned_away = 0, refused = 0, taken = 0;
    uint32_t waiting = 0;
  };
  Counts counts() const; // any thread

 private:
  class Thread;
  std::unique_ptr<Thread> thread_;
};

} // namespace millrace::net
