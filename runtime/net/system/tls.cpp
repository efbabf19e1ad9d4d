// TLS 1.3 on OpenSSL: settings, the check of the peer's key, and what failures mean.
#include "net/system/tls.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "net/limits.h"
#include "net/system/plain.h"
#include "net/system/private_file.h"
#include "net/system/quiet_bio.h"
#include "net/system/socket_options.h"
#include "observe/error.h"
#include "observe/error_codes.h"

namespace millrace::net {

namespace {

// AES-128 is the fastest where the processor has AES. A peer without it puts ChaCha20 first, and gets it.
constexpr const char* kSuites = "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_256_GCM_SHA384";
constexpr const char* kGroups = "X25519:P-256"; // larger ones cost a stranger nothing and us milliseconds
constexpr long kCertificateBytesMax = 4096;     // the peer's chain; ours has some 300

bool apply_settings(SSL_CTX* context, const Identity& identity) {
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_ENABLE_KTLS |
                                   SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_read_ahead(context, 1); // else it reads twice a record; a larger buffer than OpenSSL's own saves nothing
  SSL_CTX_set_max_cert_list(context, kCertificateBytesMax);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
         SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) == 1 && SSL_CTX_set_num_tickets(context, 0) == 1 &&
         SSL_CTX_set_ciphersuites(context, kSuites) == 1 && SSL_CTX_set1_groups_list(context, kGroups) == 1 &&
         SSL_CTX_use_certificate(context, identity.certificate()) == 1 &&
         SSL_CTX_use_PrivateKey(context, identity.key()) == 1;
}

std::string last_openssl_reason() {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  std::string text = reason ? reason : "no reason given";
  ERR_clear_error();
  return text;
}

} // namespace

TlsContext::TlsContext(const Identity& identity)
    : context_(SSL_CTX_new(TLS_method()), SSL_CTX_free), id_(identity.id()) {
  ERR_clear_error();
  if (!context_ || !apply_settings(context_.get(), identity))
    throw Failure(code::bad_identity, "OpenSSL cannot be set up for TLS 1.3: " + last_openssl_reason());
  SSL_CTX_set_cert_verify_callback(context_.get(), &TlsTransport::verify, nullptr);
}

// ---- a connection --------------------------------------------------------------------------------------------------

TlsTransport::TlsTransport(const TlsContext& context, Descriptor socket, Side side, PeerTerms terms)
    : socket_(std::move(socket)), terms_(std::move(terms)), own_(context.id()), ssl_(SSL_new(context.get()), SSL_free) {
  BIO* bio = ssl_ ? new_quiet_bio(socket_.number()) : nullptr;
  if (!bio || SSL_set_ex_data(ssl_.get(), 0, this) != 1) throw std::bad_alloc();
  SSL_set_bio(ssl_.get(), bio, bio);
  side == Side::dials ? SSL_set_connect_state(ssl_.get()) : SSL_set_accept_state(ssl_.get());
  if (!make_non_blocking(socket_.number())) fail(Trouble::connection, connection_sentence(errno));
}

Moved TlsTransport::fail(Trouble trouble, std::string why) {
  if (trouble_ == Trouble::none) {
    trouble_ = trouble;
    why_ = std::move(why);
  }
  return Moved::failed;
}

int TlsTransport::verify(X509_STORE_CTX* store, void*) {
  auto* ssl = static_cast<SSL*>(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
  return static_cast<TlsTransport*>(SSL_get_ex_data(ssl, 0))->accept(*store) ? 1 : 0;
}

// The error that is set here chooses the alert, by which the peer learns the reason (fail_by_protocol).
bool TlsTransport::accept(X509_STORE_CTX& store) {
  const auto refuse = [&](int error, Trouble trouble, std::string why) {
    X509_STORE_CTX_set_error(&store, error);
    fail(trouble, std::move(why));
    return false;
  };
  const X509* certificate = X509_STORE_CTX_get0_cert(&store);
  EVP_PKEY* key = certificate ? X509_get0_pubkey(certificate) : nullptr;
  if (!key || EVP_PKEY_get_base_id(key) != EVP_PKEY_ED25519)
    return refuse(X509_V_ERR_INVALID_PURPOSE, Trouble::protocol, "the peer's key is no Ed25519 key");
  peer_ = node_id_of(key);
  if (terms_.expected && peer_ != *terms_.expected)
    return refuse(X509_V_ERR_CERT_REJECTED, Trouble::other_peer,
                  "another node than " + terms_.expected_name + " answers: " + short_text(peer_) + ", not " +
                      short_text(*terms_.expected));
  if (terms_.knows && !terms_.knows(peer_))
    return refuse(X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, Trouble::unknown_peer,
                  short_text(peer_) + " is not known here");
  X509_STORE_CTX_set_error(&store, X509_V_OK);
  return true;
}

Moved TlsTransport::fail_by_protocol(unsigned long error) {
  switch (ERR_GET_REASON(error)) {
    case SSL_R_UNEXPECTED_EOF_WHILE_READING: return fail(Trouble::connection, connection_sentence(ECONNRESET));
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
      return fail(Trouble::unknown_here, "the peer does not know this node, " + short_text(own_));
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
      return fail(Trouble::not_expected, "the peer expects another node here than " + short_text(own_));
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_HTTP_REQUEST:
    case SSL_R_HTTPS_PROXY_REQUEST: return fail(Trouble::protocol, "the peer does not speak TLS");
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_NO_PROTOCOLS_AVAILABLE:
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION: return fail(Trouble::protocol, "the peer does not speak TLS 1.3");
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE: return fail(Trouble::protocol, "the peer shows no key");
    default: break;
  }
  const char* reason = ERR_reason_error_string(error);
  return fail(Trouble::protocol, std::string("TLS failed: ") + (reason ? reason : "no reason given"));
}

Moved TlsTransport::judge(int result, int system_error) {
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ: return Moved::want_read;
    case SSL_ERROR_WANT_WRITE: return Moved::want_write;
    case SSL_ERROR_ZERO_RETURN: return Moved::closed;
    case SSL_ERROR_SYSCALL:
      return fail(Trouble::connection, connection_sentence(system_error ? system_error : ECONNRESET));
    default: return fail_by_protocol(ERR_peek_last_error());
  }
}

Moved TlsTransport::handshake() {
  if (trouble_ != Trouble::none) return Moved::failed;
  if (done_) return Moved::some;
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_.get());
  const int system_error = errno;
  done_ = result == 1;
  if (done_) return Moved::some;
  if (BIO_number_read(SSL_get_rbio(ssl_.get())) > kStrangerBytesMax)
    return fail(Trouble::protocol,
                "the peer sent more than " + std::to_string(kStrangerBytesMax) + " bytes before it said who it is");
  const Moved moved = judge(result, system_error);
  return moved == Moved::closed ? fail(Trouble::connection, connection_sentence(ECONNRESET)) : moved;
}

Transfer TlsTransport::read(std::span<std::byte> room) {
  if (trouble_ != Trouble::none) return {Moved::failed, 0};
  MR_ASSERT(done_, "the handshake comes before the first read");
  size_t got = 0;
  while (got < room.size()) {
    size_t bytes = 0;
    ERR_clear_error();
    const int result = SSL_read_ex(ssl_.get(), room.data() + got, room.size() - got, &bytes);
    const int system_error = errno;
    if (result != 1) {
      const Moved moved = judge(result, system_error);
      if (got == 0) return {moved, 0};
      break; // the next call says it
    }
    got += bytes;
  }
  return {Moved::some, got};
}

// ---- writing -------------------------------------------------------------------------------------------------------

void TlsTransport::Cursor::pass_empty() {
  while (!pieces.empty() && first().empty()) {
    pieces = pieces.subspan(1);
    offset = 0;
  }
}

void TlsTransport::Cursor::advance(size_t bytes) {
  while (bytes > 0) {
    pass_empty();
    MR_ASSERT(!pieces.empty(), "bytes that did not go are offered again");
    const size_t here = std::min(bytes, first().size());
    offset += here;
    bytes -= here;
  }
  pass_empty();
}

// Fills record_ from the pieces at the cursor; the bytes that it took.
size_t TlsTransport::gather(Cursor cursor) {
  size_t size = 0;
  for (; !cursor.pieces.empty() && size < record_.size(); cursor.pass_empty()) {
    const Bytes piece = cursor.first();
    const size_t here = std::min(piece.size(), record_.size() - size);
    std::memcpy(record_.data() + size, piece.data(), here);
    size += here;
    cursor.offset += here;
  }
  return size;
}

Transfer TlsTransport::write(std::span<const Bytes> pieces) {
  if (trouble_ != Trouble::none) return {Moved::failed, 0};
  MR_ASSERT(done_, "the handshake comes before the first write");
  Cursor cursor{pieces.first(std::min(pieces.size(), kPiecesMax))};
  cursor.pass_empty();
  // OpenSSL sends what it has encrypted, not what it is given the second time.
  if (const size_t owed = std::max(gathered_, begun_); owed > 0) Cursor(cursor).advance(owed);
  size_t taken = 0, left = 0;
  for (Cursor rest = cursor; !rest.pieces.empty(); rest.advance(rest.first().size())) left += rest.first().size();
  while (!cursor.pieces.empty()) {
    const bool is_short = cursor.first().size() < kTlsRecordBytes && cursor.pieces.size() > 1;
    if (gathered_ == 0 && is_short) gathered_ = gather(cursor);
    const Bytes next = gathered_ > 0 ? Bytes(record_).first(gathered_) : cursor.first();
    size_t bytes = 0;
    set_more_follows(SSL_get_wbio(ssl_.get()), left > std::min(next.size(), kTlsRecordBytes));
    ERR_clear_error();
    const int result = SSL_write_ex(ssl_.get(), next.data(), next.size(), &bytes);
    const int system_error = errno;
    if (result != 1) {
      const Moved moved = judge(result, system_error);
      if (moved == Moved::failed) look_for_alert();
      if (gathered_ == 0) begun_ = std::max(begun_, std::min(next.size(), kTlsRecordBytes));
      if (taken == 0) return {moved, 0};
      break; // the next call says it
    }
    gathered_ = begun_ = 0;
    cursor.advance(bytes);
    taken += bytes;
    left -= bytes;
  }
  return {Moved::some, taken};
}

// A peer that refused us has closed, and a write fails before its reason is read.
void TlsTransport::look_for_alert() {
  if (trouble_ != Trouble::connection) return;
  std::byte byte;
  size_t bytes = 0;
  ERR_clear_error();
  if (SSL_peek_ex(ssl_.get(), &byte, 1, &bytes) == 1 || SSL_get_error(ssl_.get(), 0) != SSL_ERROR_SSL) return;
  const int reason = ERR_GET_REASON(ERR_peek_last_error());
  if (reason != SSL_R_TLSV1_ALERT_UNKNOWN_CA && reason != SSL_R_SSLV3_ALERT_BAD_CERTIFICATE) return;
  trouble_ = Trouble::none;
  fail_by_protocol(ERR_peek_last_error());
}

Moved TlsTransport::shut() {
  if (trouble_ != Trouble::none) return Moved::failed;
  MR_ASSERT(gathered_ + begun_ == 0, "a stream is shut once all that was offered went");
  if (done_) {
    ERR_clear_error();
    const int result = SSL_shutdown(ssl_.get());
    const int system_error = errno;
    if (result < 0) return judge(result, system_error);
  }
  if (::shutdown(socket_.number(), SHUT_WR) != 0) return fail(Trouble::connection, connection_sentence(errno));
  return Moved::some;
}

std::string TlsTransport::cipher() const { return done_ ? SSL_get_cipher_name(ssl_.get()) : ""; }

} // namespace millrace::net
