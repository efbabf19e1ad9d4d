// A bare loop of OpenSSL over TCP: TLS 1.3 with AES-128-GCM on blocking sockets (SSL_set_fd), without a protocol.
//
// Forms: `plain`, as it comes: records are decrypted straight into the block, after two reads each; `ahead`, with
// SSL_CTX_set_read_ahead, which reads several records at once into a buffer of OpenSSL's. The better one counts.
#include <openssl/ssl.h>

#include <thread>

#include "net/system/identity.h"
#include "tests/peers/net/sockets.h"

namespace {

using namespace peers::net;

constexpr size_t kReadAheadBytes = 64 * 1024;

SSL* connection(const millrace::net::Identity& identity, int socket) {
  SSL_CTX* context = SSL_CTX_new(TLS_method());
  require(context && SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
              SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256") == 1 &&
              SSL_CTX_use_certificate(context, identity.certificate()) == 1 &&
              SSL_CTX_use_PrivateKey(context, identity.key()) == 1,
          "setting OpenSSL up");
  if (form() == "ahead") {
    SSL_CTX_set_read_ahead(context, 1);
    SSL_CTX_set_default_read_buffer_len(context, kReadAheadBytes);
  }
  SSL* ssl = SSL_new(context);
  require(ssl && SSL_set_fd(ssl, socket) == 1, "SSL_set_fd");
  SSL_CTX_free(context);
  return ssl;
}

void send_message(SSL* ssl, const uint8_t* data, uint64_t bytes) {
  for (uint64_t sent = 0; sent < bytes;) {
    size_t here = 0;
    require(SSL_write_ex(ssl, data + sent, std::min(bytes - sent, kCallBytes), &here) == 1, "SSL_write_ex");
    sent += here;
  }
}

void receive_message(SSL* ssl, uint8_t* data, uint64_t bytes) {
  for (uint64_t got = 0; got < bytes;) {
    size_t here = 0;
    require(SSL_read_ex(ssl, data + got, bytes - got, &here) == 1, "SSL_read_ex");
    got += here;
  }
}

} // namespace

int main(int argc, char** argv) {
  const Job job = job_of(argc, argv);
  const Sockets sockets = connected_sockets();
  const auto identity = millrace::net::Identity::generate();
  SSL* const sender = connection(identity, sockets.sender);
  SSL* const taker = connection(identity, sockets.receiver);
  Meter meter(job);
  Blocks sent(job.bytes), received(job.bytes);
  std::thread receiver([&] {
    require(SSL_accept(taker) == 1, "SSL_accept");
    meter.receive([&] { receive_message(taker, received.next(), job.bytes); });
  });
  require(SSL_connect(sender) == 1, "SSL_connect");
  meter.send([&](bool) { send_message(sender, sent.next(), job.bytes); });
  receiver.join();
  SSL_free(sender);
  SSL_free(taker);
}
