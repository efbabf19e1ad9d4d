// A byte stream over a Unix socket between two processes of one user, which may pass descriptors to each other.
//
// An address that begins with '@' is abstract: it is in no folder and goes with the process. Any other is a path.
#pragma once

#include <deque>
#include <string>

#include "net/system/plain.h"

struct msghdr;

namespace millrace::net {

// Descriptors that came and were not taken yet. A peer that sends more than it was asked for is cut off.
inline constexpr size_t kDescriptorsMax = 16;

class LocalTransport final : public PlainTransport {
 public:
  using PlainTransport::PlainTransport;

  // Fails with `unknown_peer` if the peer is another user's process.
  Moved handshake() override;
  Transfer read(std::span<std::byte> room) override;
  bool checks_bytes() const override { return true; } // they stay in the kernel's memory

  // Writes the bytes as write() does, and passes `descriptor` with the first of them; the caller keeps its own. There
  // is at least one byte. If the result has no bytes, the descriptor did not go either.
  Transfer send_descriptor(int descriptor, Bytes bytes);
  // The oldest descriptor that came with the bytes that were read so far; none if it holds nothing.
  Descriptor take_descriptor();

 private:
  bool keep_descriptors(msghdr& message);

  std::deque<Descriptor> descriptors_;
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
