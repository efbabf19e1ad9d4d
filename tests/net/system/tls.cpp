// TLS: only peers whose key is known, whatever else their certificates say; strangers are refused with a reason.
#include "net/system/tls.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <atomic>
#include <thread>

#include "observe/error.h"
#include "tests/contains.h"
#include "tests/net/system/sockets.h"
#include "tests/net/system/transport_suite.h"

using namespace millrace;
using namespace millrace::net;
using namespace millrace::net::test;

namespace {

PeerTerms everybody() { return {}; }
PeerTerms nobody() {
  return {[](const NodeId&) { return false; }};
}
PeerTerms only(const NodeId& known) {
  return {[known](const NodeId& id) { return id == known; }};
}

// Two nodes, the left one dials.
struct Nodes {
  Identity left_identity = Identity::generate(), right_identity = Identity::generate();
  TlsContext left{left_identity}, right{right_identity};
  NodeId left_id() const { return left.id(); }
  NodeId right_id() const { return right.id(); }

  Ends connect(PeerTerms left_takes, PeerTerms right_takes, Sockets sockets = tcp_sockets(AF_INET)) const {
    return {std::make_unique<TlsTransport>(left, std::move(sockets.dialled), Side::dials, std::move(left_takes)),
            std::make_unique<TlsTransport>(right, std::move(sockets.accepted), Side::listens, std::move(right_takes))};
  }
};

// Handshakes, until both sides are done with theirs or have failed.
std::pair<Moved, Moved> shake(const Ends& ends) {
  const auto is_over = [](Moved moved) { return moved == Moved::some || moved == Moved::failed; };
  Moved left = Moved::want_write, right = Moved::want_write;
  for (int step = 0; !is_over(left) || !is_over(right); ++step) {
    REQUIRE(step < kStepsMax);
    if (!is_over(left)) left = ends.left->handshake();
    if (!is_over(right)) right = ends.right->handshake();
    if (is_over(left) && !is_over(right)) wait_for_ends(*ends.left, Moved::closed, *ends.right, right);
    if (!is_over(left) && is_over(right)) wait_for_ends(*ends.left, left, *ends.right, Moved::closed);
  }
  return {left, right};
}

// One read that has something to tell.
Transfer read_something(Transport& end) {
  std::byte room[100];
  for (int step = 0; step < kStepsMax; ++step) {
    const Transfer transfer = end.read(room);
    if (transfer.moved != Moved::want_read) return transfer;
    wait_for_ends(end, Moved::want_read, end, Moved::closed);
  }
  return {};
}

// A peer that OpenSSL makes by itself, with whatever settings and certificate a test wants.
class BareClient {
 public:
  explicit BareClient(Descriptor socket)
      : socket_(std::move(socket)), context_(SSL_CTX_new(TLS_method()), SSL_CTX_free) {
    REQUIRE(context_);
  }
  SSL_CTX* context() { return context_.get(); }

  void show(EVP_PKEY* key, X509* certificate) {
    REQUIRE(SSL_CTX_use_certificate(context(), certificate) == 1);
    REQUIRE(SSL_CTX_use_PrivateKey(context(), key) == 1);
  }

  // Handshakes with `end`, which listens: the last that `end` said.
  Moved shake(TlsTransport& end) {
    ssl_.reset(SSL_new(context()));
    REQUIRE(ssl_);
    SSL_set_fd(ssl_.get(), socket_.number());
    Moved moved = Moved::want_read;
    bool waits = true;
    for (int step = 0; moved != Moved::some && moved != Moved::failed; ++step) {
      REQUIRE(step < kStepsMax);
      ERR_clear_error();
      const int result = waits ? SSL_connect(ssl_.get()) : 1;
      waits = result <= 0 && SSL_get_error(ssl_.get(), result) == SSL_ERROR_WANT_READ;
      connected_ = connected_ || result == 1;
      moved = end.handshake();
      if (moved == Moved::want_read && waits)
        wait_for(socket_.number(), Moved::want_read, end.descriptor(), Moved::want_read);
    }
    return moved;
  }
  bool is_connected() const { return connected_; }
  SSL* ssl() { return ssl_.get(); }

 private:
  Descriptor socket_;
  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context_;
  std::unique_ptr<SSL, void (*)(SSL*)> ssl_{nullptr, SSL_free};
  bool connected_ = false;
};

struct Visit {
  BareClient client;
  TlsTransport end;
};

// A bare client that dialled a node which takes everybody, or what `terms` say.
Visit visit(const Nodes& nodes, PeerTerms terms = everybody()) {
  Sockets sockets = tcp_sockets(AF_INET);
  ::fcntl(sockets.dialled.number(), F_SETFL, O_NONBLOCK);
  return {BareClient(std::move(sockets.dialled)),
          TlsTransport(nodes.right, std::move(sockets.accepted), Side::listens, std::move(terms))};
}

using Certificate = std::unique_ptr<X509, void (*)(X509*)>;

Certificate certificate_of(EVP_PKEY* key, const char* from, const char* until, const EVP_MD* digest) {
  Certificate made(X509_new(), X509_free);
  REQUIRE(made);
  CHECK(ASN1_TIME_set_string_X509(X509_getm_notBefore(made.get()), from) == 1);
  CHECK(ASN1_TIME_set_string_X509(X509_getm_notAfter(made.get()), until) == 1);
  CHECK(X509_set_pubkey(made.get(), key) == 1);
  CHECK(X509_sign(made.get(), key, digest) > 0);
  return made;
}

// Plain bytes come to a node that expects TLS; the sentence.
std::string said_to(const std::string& bytes, const Nodes& nodes) {
  Sockets sockets = tcp_sockets(AF_INET);
  TlsTransport end(nodes.right, std::move(sockets.accepted), Side::listens, everybody());
  CHECK(end.handshake() == Moved::want_read);
  REQUIRE(::send(sockets.dialled.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(bytes.size()));
  Moved moved = Moved::want_read;
  while (moved == Moved::want_read) {
    wait_for_ends(end, Moved::want_read, end, Moved::closed);
    moved = end.handshake();
  }
  CHECK(moved == Moved::failed);
  CHECK(end.trouble() == Trouble::protocol);
  CHECK(end.peer() == nullptr);
  return end.why();
}

} // namespace

TEST_CASE("two nodes that know each other are connected, and each knows the other's id") {
  const Nodes nodes;
  const Ends ends = nodes.connect(only(nodes.right_id()), only(nodes.left_id()));
  CHECK(ends.left->peer() == nullptr);
  CHECK(shake(ends) == std::pair(Moved::some, Moved::some));
  REQUIRE(ends.left->peer() != nullptr);
  REQUIRE(ends.right->peer() != nullptr);
  CHECK(*ends.left->peer() == nodes.right_id());
  CHECK(*ends.right->peer() == nodes.left_id());
  CHECK(static_cast<TlsTransport&>(*ends.left).cipher() == "TLS_AES_128_GCM_SHA256");
}

TEST_CASE("a node that is not known is refused within the handshake, and reads why") {
  const Nodes nodes;
  const Ends ends = nodes.connect(everybody(), nobody());
  CHECK(shake(ends).second == Moved::failed);
  CHECK(ends.right->trouble() == Trouble::unknown_peer);
  CHECK(ends.right->why() == short_text(nodes.left_id()) + " is not known here");
  CHECK(ends.right->peer() == nullptr);
  CHECK(read_something(*ends.left).moved == Moved::failed);
  CHECK(ends.left->trouble() == Trouble::unknown_here);
  CHECK(ends.left->why() == "the peer does not know this node, " + short_text(nodes.left_id()));
}

TEST_CASE("a node that was refused learns why by a write too, and though the other end is gone") {
  const Nodes nodes;
  Ends ends = nodes.connect(everybody(), nobody());
  shake(ends);
  ends.right.reset();
  std::vector<std::byte> bytes(1000);
  const Bytes piece = bytes;
  Transfer transfer{Moved::some, 0};
  for (int step = 0; transfer.moved == Moved::some && step < 1000; ++step) transfer = ends.left->write({&piece, 1});
  CHECK(transfer.moved == Moved::failed);
  CHECK(ends.left->trouble() == Trouble::unknown_here);
}

TEST_CASE("a node refuses to talk to one that it dialled and does not know") {
  const Nodes nodes;
  const Ends ends = nodes.connect(nobody(), everybody());
  CHECK(shake(ends) == std::pair(Moved::failed, Moved::failed));
  CHECK(ends.left->trouble() == Trouble::unknown_peer);
  CHECK(ends.left->why() == short_text(nodes.right_id()) + " is not known here");
  CHECK(ends.right->trouble() == Trouble::unknown_here);
  CHECK(ends.right->why() == "the peer does not know this node, " + short_text(nodes.right_id()));
}

TEST_CASE("a known node that answers in another's place is refused") {
  const Nodes nodes;
  PeerTerms terms = everybody();
  terms.expected = Identity::generate().id();
  terms.expected_name = "shelf";
  const Ends ends = nodes.connect(terms, everybody());
  CHECK(shake(ends) == std::pair(Moved::failed, Moved::failed));
  CHECK(ends.left->trouble() == Trouble::other_peer);
  CHECK(ends.left->why() ==
        "another node than shelf answers: " + short_text(nodes.right_id()) + ", not " + short_text(*terms.expected));
  CHECK(ends.right->trouble() == Trouble::not_expected);
  CHECK(ends.right->why() == "the peer expects another node here than " + short_text(nodes.right_id()));
}

TEST_CASE("a known key is served though its certificate's dates are years off") {
  const Nodes nodes;
  for (const auto& [from, until] :
       {std::pair("20010101000000Z", "20020101000000Z"), {"29990101000000Z", "30000101000000Z"}}) {
    Visit guest = visit(nodes, only(nodes.left_id()));
    EVP_PKEY* key = nodes.left_identity.key();
    guest.client.show(key, certificate_of(key, from, until, nullptr).get());
    CHECK(guest.client.shake(guest.end) == Moved::some);
    CHECK(guest.client.is_connected());
    REQUIRE(guest.end.peer() != nullptr);
    CHECK(*guest.end.peer() == nodes.left_id());
  }
}

TEST_CASE("a key in a certificate that somebody else signed proves nothing: its owner has to sign the handshake") {
  const Nodes nodes;
  // The certificate of the left node, shown by one that has another key.
  Visit guest = visit(nodes, only(nodes.left_id()));
  const Identity thief = Identity::generate();
  REQUIRE(SSL_CTX_use_PrivateKey(guest.client.context(), thief.key()) == 1);
  // OpenSSL drops a key that does not fit the certificate, so the thief has none to sign with.
  SSL_CTX_use_certificate(guest.client.context(), nodes.left_identity.certificate());
  CHECK(guest.client.shake(guest.end) == Moved::failed);
  CHECK(guest.end.peer() == nullptr);
}

TEST_CASE("a key of another kind is refused") {
  const Nodes nodes;
  Visit guest = visit(nodes);
  EVP_PKEY* key = EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256");
  guest.client.show(key, certificate_of(key, "20200101000000Z", "20990101000000Z", EVP_sha256()).get());
  EVP_PKEY_free(key);
  CHECK(guest.client.shake(guest.end) == Moved::failed);
  CHECK(guest.end.trouble() == Trouble::protocol);
  CHECK(guest.end.why() == "the peer's key is no Ed25519 key");
}

TEST_CASE("a peer that shows no key is refused") {
  const Nodes nodes;
  Visit guest = visit(nodes);
  CHECK(guest.client.shake(guest.end) == Moved::failed);
  CHECK(guest.end.why() == "the peer shows no key");
}

TEST_CASE("a peer that speaks TLS 1.2 alone is refused") {
  const Nodes nodes;
  Visit guest = visit(nodes);
  SSL_CTX_set_max_proto_version(guest.client.context(), TLS1_2_VERSION);
  guest.client.show(nodes.left_identity.key(), nodes.left_identity.certificate());
  CHECK(guest.client.shake(guest.end) == Moved::failed);
  CHECK(guest.end.trouble() == Trouble::protocol);
  CHECK(guest.end.why() == "the peer does not speak TLS 1.3");
}

TEST_CASE("bytes that are no TLS are refused, on both sides of a connection") {
  const Nodes nodes;
  CHECK(said_to("GET / HTTP/1.1\r\nHost: here\r\n\r\n", nodes) == "the peer does not speak TLS");
  CHECK(said_to(std::string(24, '\x01'), nodes) == "the peer does not speak TLS");
  CHECK(said_to("SSH-2.0-OpenSSH_9.2\r\n", nodes) == "the peer does not speak TLS");
  Sockets sockets = tcp_sockets(AF_INET);
  TlsTransport end(nodes.left, std::move(sockets.dialled), Side::dials, everybody());
  CHECK(end.handshake() == Moved::want_read);
  REQUIRE(::send(sockets.accepted.number(), "220 mail ready\r\n", 16, MSG_NOSIGNAL) == 16);
  wait_for_ends(end, Moved::want_read, end, Moved::closed);
  CHECK(end.handshake() == Moved::failed);
  CHECK(end.why() == "the peer does not speak TLS");
}

TEST_CASE("a stranger that sends much before it says who it is is refused") {
  const Nodes nodes;
  // Records of a greeting of 128,000 bytes, the most that OpenSSL would take.
  std::string bytes;
  for (int i = 0; i < 3; ++i) {
    bytes += std::string("\x16\x03\x01\x40\x00", 5);
    if (i == 0) bytes += std::string("\x01\x01\xF4\x00", 4);
    bytes += std::string(i == 0 ? 16'380 : 16'384, 'x');
  }
  CHECK(said_to(bytes, nodes) == "the peer sent more than 16384 bytes before it said who it is");
}

TEST_CASE("a peer that goes away in the middle of the handshake is told as a connection that failed") {
  const Nodes nodes;
  Sockets sockets = tcp_sockets(AF_INET);
  TlsTransport end(nodes.right, std::move(sockets.accepted), Side::listens, everybody());
  CHECK(end.handshake() == Moved::want_read);
  sockets.dialled = Descriptor();
  wait_for_ends(end, Moved::want_read, end, Moved::closed);
  CHECK(end.handshake() == Moved::failed);
  CHECK(end.trouble() == Trouble::connection);
  CHECK(end.why() == "the peer closed the connection without ending the stream");
}

TEST_CASE("a stream that is cut without its end has failed, and what came before was read") {
  const Nodes nodes;
  const Ends ends = nodes.connect(everybody(), everybody());
  CHECK(shake(ends) == std::pair(Moved::some, Moved::some));
  const std::byte bytes[10]{};
  write_all(*ends.left, bytes);
  ::shutdown(ends.left->descriptor(), SHUT_WR); // TCP's end, and none of TLS
  CHECK(read_something(*ends.right).bytes == 10);
  CHECK(read_something(*ends.right).moved == Moved::failed);
  CHECK(ends.right->trouble() == Trouble::connection);
  CHECK(ends.right->why() == "the peer closed the connection without ending the stream");
}

TEST_CASE("a byte that was changed on the way makes the stream fail") {
  const Nodes nodes;
  // left — near ═ far — right, and the test carries bytes between near and far.
  Sockets left = local_sockets(), right = local_sockets();
  const Descriptor near = std::move(left.accepted), far = std::move(right.dialled);
  const Ends ends = nodes.connect(everybody(), everybody(), {std::move(left.dialled), std::move(right.accepted)});
  char bytes[65'536];
  bool change = false;
  const auto carry = [&](int from, int to) {
    const ssize_t got = ::recv(from, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got <= 0) return;
    if (change) bytes[got / 2] = static_cast<char>(bytes[got / 2] ^ 1);
    CHECK(::send(to, bytes, static_cast<size_t>(got), MSG_NOSIGNAL) == got);
  };
  for (int i = 0; i < 5; ++i) {
    ends.left->handshake();
    carry(near.number(), far.number());
    ends.right->handshake();
    carry(far.number(), near.number());
  }
  const std::byte sent[1000]{};
  write_all(*ends.left, sent);
  carry(near.number(), far.number());
  std::byte room[2000];
  CHECK(ends.right->read(room).bytes == 1000);
  change = true;
  write_all(*ends.left, sent);
  carry(near.number(), far.number());
  CHECK(ends.right->read(room).moved == Moved::failed);
  CHECK(ends.right->trouble() == Trouble::protocol);
}

TEST_CASE("a peer without AES in its processor gets ChaCha20") {
  const Nodes nodes;
  Visit guest = visit(nodes);
  REQUIRE(SSL_CTX_set_ciphersuites(guest.client.context(), "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256") == 1);
  guest.client.show(nodes.left_identity.key(), nodes.left_identity.certificate());
  CHECK(guest.client.shake(guest.end) == Moved::some);
  CHECK(guest.end.cipher() == "TLS_CHACHA20_POLY1305_SHA256");
}

TEST_CASE("no session is kept for later") {
  const Nodes nodes;
  Visit guest = visit(nodes);
  guest.client.show(nodes.left_identity.key(), nodes.left_identity.certificate());
  REQUIRE(guest.client.shake(guest.end) == Moved::some);
  const std::byte byte{};
  write_all(guest.end, {&byte, 1});
  char got = 1;
  while (SSL_read(guest.client.ssl(), &got, 1) < 1)
    REQUIRE(SSL_get_error(guest.client.ssl(), -1) == SSL_ERROR_WANT_READ);
  CHECK(SSL_SESSION_is_resumable(SSL_get0_session(guest.client.ssl())) == 0);
}

TEST_CASE("a peer that renews its keys is followed") {
  const Nodes nodes;
  Visit guest = visit(nodes);
  guest.client.show(nodes.left_identity.key(), nodes.left_identity.certificate());
  REQUIRE(guest.client.shake(guest.end) == Moved::some);
  const char sent[] = "before and after";
  std::byte room[100];
  for (int i = 0; i < 3; ++i) {
    REQUIRE(SSL_write(guest.client.ssl(), sent, sizeof sent) == sizeof sent);
    CHECK(read_something(guest.end).bytes == sizeof sent);
    REQUIRE(SSL_key_update(guest.client.ssl(), SSL_KEY_UPDATE_REQUESTED) == 1);
  }
  CHECK(guest.end.read(room).moved == Moved::want_read);
  const std::byte byte{7};
  write_all(guest.end, {&byte, 1});
  char got = 0;
  while (SSL_read(guest.client.ssl(), &got, 1) < 1)
    REQUIRE(SSL_get_error(guest.client.ssl(), -1) == SSL_ERROR_WANT_READ);
  CHECK(got == 7);
}

TEST_CASE("many small pieces go as few records") {
  const Nodes nodes;
  const Ends ends = nodes.connect(everybody(), everybody(), local_sockets());
  CHECK(shake(ends) == std::pair(Moved::some, Moved::some));
  const std::vector<std::byte> bytes(64);
  const std::vector<Bytes> pieces(kPiecesMax, Bytes(bytes)); // 32 KiB
  CHECK(ends.left->write(pieces).bytes == 32'768);
  // Two records, each of 5 bytes before and 17 after what it carries.
  std::vector<std::byte> wire(100'000);
  CHECK(::recv(ends.right->descriptor(), wire.data(), wire.size(), MSG_PEEK | MSG_DONTWAIT) == 32'768 + 2 * 22);
}

TEST_CASE("threads make connections from one context at the same time") {
  const Nodes nodes;
  std::vector<std::thread> threads;
  std::atomic<int> connected = 0;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int n = 0; n < 5; ++n) {
        const Ends ends = nodes.connect(only(nodes.right_id()), only(nodes.left_id()), local_sockets());
        connected += shake(ends) == std::pair(Moved::some, Moved::some);
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(connected == 20);
}
