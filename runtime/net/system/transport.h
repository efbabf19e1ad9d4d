// A byte stream between two nodes: TCP, TLS over TCP, or a Unix socket. The session above it sees no difference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "net/bytes.h"
#include "net/node_id.h"

namespace millrace::net {

enum class Moved : uint8_t {
  some,       // bytes moved, or what was asked for is done
  want_read,  // nothing moved: wait until the descriptor is readable, and call again
  want_write, // nothing moved: wait until it is writable, and call again
  closed,     // read: the peer ended the stream in order, and all that it wrote was read
  failed      // the stream is of no further use; why() says why, and each later call fails too
};

struct Transfer {
  Moved moved = Moved::failed;
  size_t bytes = 0; // more than 0 with `some` alone
};

// Kinds of failures that a session treats differently.
enum class Trouble : uint8_t {
  none,
  connection,   // reset, cut or timed out: dialling again may help
  protocol,     // the peer speaks something else, or another TLS
  unknown_peer, // MR0807: we do not know the peer
  other_peer,   // MR0803: somebody else answers
  unknown_here, // MR0807, said by the peer: it does not know us
  not_expected  // MR0803, said by the peer: it expected another node than us
};

// Belongs to one thread at a time; no call blocks or raises a signal. The descriptor is closed with the object. A
// process that closes while bytes of the peer are unread may destroy what it wrote last: shut(), read until `closed`,
// then let go.
class Transport {
 public:
  virtual ~Transport() = default;

  // Makes the connection fit for use; called again until it is `some`. Never `closed`. Plain TCP is at once.
  virtual Moved handshake() = 0;
  // Reads what is there, up to the size of `room`. Wait only after `want_read`: bytes may lie in TLS's own buffer,
  // where poll does not see them.
  virtual Transfer read(std::span<std::byte> room) = 0;
  // Writes the pieces one after another, as far as they go at once. Up to kPiecesMax are looked at, and empty ones are
  // passed over. Bytes that did not go have to be first in the next call, and at least as many: TLS may have encrypted
  // them already. They may lie elsewhere.
  virtual Transfer write(std::span<const Bytes> pieces) = 0;
  // Ends our direction, once all that was offered to write() went. The peer reads `closed` after what we wrote; reading
  // goes on. Called again until it is `some` or `failed`.
  virtual Moved shut() = 0;

  // The socket, to be waited for.
  virtual int descriptor() const = 0;
  // True if damaged bytes make the stream fail; false where records need sums of their own.
  virtual bool checks_bytes() const = 0;
  // The peer's id once the handshake is done; null if nothing proves who the peer is.
  virtual const NodeId* peer() const = 0;
  // `none` and "" before a failure. The sentence has no full stop.
  virtual Trouble trouble() const = 0;
  virtual const std::string& why() const = 0;
};

} // namespace millrace::net
