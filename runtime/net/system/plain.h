// A byte stream over TCP as it is: IPv4 or IPv6, without encryption.
//
// The kernel ends the stream of a process that died as if it had been shut: `closed` means little here, and the session
// relies on its own records.
#pragma once

#include "net/system/descriptor.h"
#include "net/system/transport.h"

namespace millrace::net {

class PlainTransport : public Transport {
 public:
  // Takes a connected socket and makes it non-blocking.
  explicit PlainTransport(Descriptor socket);

  Moved handshake() override { return trouble_ == Trouble::none ? Moved::some : Moved::failed; }
  Transfer read(std::span<std::byte> room) override;
  Transfer write(std::span<const Bytes> pieces) override;
  Moved shut() override;

  int descriptor() const override { return socket_.number(); }
  bool checks_bytes() const override { return false; } // TCP's own sum misses one error in 65,536
  const NodeId* peer() const override { return nullptr; }
  Trouble trouble() const override { return trouble_; }
  const std::string& why() const override { return why_; }

 protected:
  Moved fail(Trouble trouble, std::string why);
  Moved fail_by_system(int error);

 private:
  Descriptor socket_;
  Trouble trouble_ = Trouble::none;
  std::string why_;
};

// The sentence for an error of a connection that the system told.
std::string connection_sentence(int error);

} // namespace millrace::net
