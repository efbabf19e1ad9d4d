// A byte stream over a Unix socket between two processes of one user.
//
// An address that begins with '@' is abstract: it is in no folder and goes with the process. Any other is a path.
#pragma once

#include <string>

#include "net/system/plain.h"

namespace millrace::net {

class LocalTransport final : public PlainTransport {
 public:
  using PlainTransport::PlainTransport;

  // Fails with `unknown_peer` if the peer is another user's process.
  Moved handshake() override;
  bool checks_bytes() const override { return true; } // they stay in the kernel's memory
};

// A socket that listens, with mode 0600 where the address is a path, and one that is connected. Both hold nothing if
// that fails; `why` is then the rest of a sentence. A path that a dead process left is used again.
Descriptor listen_local(const std::string& address, std::string& why);
Descriptor dial_local(const std::string& address, std::string& why);
// The same; `error` is the system's number of the reason, 0 if there is none of the system's. ECONNREFUSED: nobody
// listens there. EAGAIN: too many others wait for the one who listens.
Descriptor dial_local(const std::string& address, std::string& why, int& error);
// True if a socket lies at the path and nobody listens there any more.
bool is_left_over(const std::string& path);

} // namespace millrace::net
