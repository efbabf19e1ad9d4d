// A node's identity: an Ed25519 key, the certificate that TLS shows of it, and the id by which other nodes know it.
//
// The id is SHA-256 of the public key's SubjectPublicKeyInfo in DER, not of its bare 32 bytes: it names the algorithm,
// so a key of another kind never has the same id, and anybody can compute it:
//   openssl pkey -in key.pem -pubout -outform DER | sha256sum
//
// The key alone is kept. The certificate is made from it at each start and is always the same, for its serial number
// and its dates (1970 to 9999) are fixed and Ed25519 signs without randomness. Peers compare the key and nothing else.
#pragma once

#include <filesystem>
#include <memory>

#include "net/node_id.h"

// OpenSSL's names for EVP_PKEY and X509.
struct evp_pkey_st;
struct x509_st;

namespace millrace::net {

// Immutable; any thread may read it.
class Identity {
 public:
  // The identity that `folder` keeps in key.pem; it is made there on first use. Two processes that come first at the
  // same time get the same one. Throws Failure: MR0815, with what to do.
  static Identity open(const std::filesystem::path& folder);
  // A new one, which nothing keeps.
  static Identity generate();

  const NodeId& id() const { return id_; }
  evp_pkey_st* key() const { return key_.get(); }
  x509_st* certificate() const { return certificate_.get(); }

 private:
  explicit Identity(std::shared_ptr<evp_pkey_st> key);

  std::shared_ptr<evp_pkey_st> key_;
  std::shared_ptr<x509_st> certificate_;
  NodeId id_;
};

// The id of whoever has this public key. Throws std::bad_alloc.
NodeId node_id_of(evp_pkey_st* key);

} // namespace millrace::net
