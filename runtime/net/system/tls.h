// A byte stream over TLS 1.3 in which each side proves who it is by its key.
//
// No authority and no names: a certificate's key has an id (identity.h), and our side says which ids it takes. Dates
// and names in a certificate are not looked at. OpenSSL reads and writes the socket itself: it decrypts straight into
// the block that the caller gives, where a pair of memory BIOs would copy once more.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "net/system/descriptor.h"
#include "net/system/identity.h"
#include "net/system/transport.h"

// OpenSSL's names for SSL_CTX, SSL, X509_STORE_CTX.
struct ssl_ctx_st;
struct ssl_st;
struct x509_store_ctx_st;

namespace millrace::net {

// Settings, key and certificate of all TLS connections of a node. Any thread may make transports from it.
class TlsContext {
 public:
  // Throws Failure (MR0815) if this machine's OpenSSL lacks TLS 1.3 or is set up without it.
  explicit TlsContext(const Identity& identity);

  ssl_ctx_st* get() const { return context_.get(); }
  const NodeId& id() const { return id_; }

 private:
  std::shared_ptr<ssl_ctx_st> context_;
  NodeId id_;
};

enum class Side : uint8_t { dials, listens };

// The peers that one connection takes.
struct PeerTerms {
  // Called once within the handshake, on its thread; unset: everybody is taken.
  std::function<bool(const NodeId&)> knows;
  // On the dialling side: this node and no other, by the name that people know it by.
  std::optional<NodeId> expected{};
  std::string expected_name{};
};

// The largest record of TLS. Smaller pieces are gathered into one, because a record costs a system call at each end.
inline constexpr size_t kTlsRecordBytes = 16 * 1024;

// The side that dials is done with its handshake before the other side has looked at its certificate: it learns that it
// was refused by its first read() (`unknown_here` or `not_expected`).
class TlsTransport final : public Transport {
 public:
  // Takes a connected socket and makes it non-blocking.
  TlsTransport(const TlsContext& context, Descriptor socket, Side side, PeerTerms terms);
  TlsTransport(const TlsTransport&) = delete; // OpenSSL keeps a pointer to it
  TlsTransport& operator=(const TlsTransport&) = delete;

  Moved handshake() override;
  Transfer read(std::span<std::byte> room) override;
  Transfer write(std::span<const Bytes> pieces) override;
  Moved shut() override;

  int descriptor() const override { return socket_.number(); }
  bool checks_bytes() const override { return true; }
  const NodeId* peer() const override { return done_ ? &peer_ : nullptr; }
  Trouble trouble() const override { return trouble_; }
  const std::string& why() const override { return why_; }

  // "TLS_AES_128_GCM_SHA256"; "" before the handshake.
  std::string cipher() const;

 private:
  friend class TlsContext;
  // Bytes of the caller's pieces that go next, and how far they went.
  struct Cursor {
    std::span<const Bytes> pieces;
    size_t offset = 0; // within the first piece
    Bytes first() const { return pieces.front().subspan(offset); }
    void pass_empty();
    void advance(size_t bytes);
  };

  static int verify(x509_store_ctx_st* store, void*);
  bool accept(x509_store_ctx_st& store);
  size_t gather(Cursor cursor);
  Moved judge(int result, int system_error);
  Moved fail(Trouble trouble, std::string why);
  Moved fail_by_protocol(unsigned long error);
  void look_for_alert();

  Descriptor socket_;
  PeerTerms terms_;
  NodeId own_, peer_;
  bool done_ = false;
  Trouble trouble_ = Trouble::none;
  std::string why_;
  size_t gathered_ = 0; // bytes in record_ that OpenSSL has encrypted and not sent yet
  size_t begun_ = 0;    // the same, where they are the caller's own; the next call may have them in smaller pieces
  std::array<std::byte, kTlsRecordBytes> record_;
  std::unique_ptr<ssl_st, void (*)(ssl_st*)> ssl_; // gone before the socket is
};

} // namespace millrace::net
