// Computes SHA-256 by OpenSSL; see digest.h.
#include "net/system/digest.h"

#include <openssl/evp.h>

#include <new>

namespace millrace::net {

std::array<std::byte, 32> sha256(Bytes bytes) {
  std::array<std::byte, 32> digest{};
  size_t size = 0;
  if (EVP_Q_digest(nullptr, "SHA256", nullptr, bytes.data(), bytes.size(),
                   reinterpret_cast<unsigned char*>(digest.data()), &size) != 1)
    throw std::bad_alloc();
  return digest;
}

} // namespace millrace::net
