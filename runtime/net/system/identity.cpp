// Makes, keeps and reads a node's key, and makes its certificate.
#include "net/system/identity.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <new>
#include <string>

#include "net/system/digest.h"
#include "net/system/private_file.h"
#include "observe/error.h"
#include "observe/error_codes.h"

namespace millrace::net {

namespace {

constexpr size_t kKeyFileBytesMax = 4096; // an Ed25519 key takes 119

using Key = std::shared_ptr<EVP_PKEY>;
using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;

[[noreturn]] void fail_by_openssl(const std::string& sentence) {
  char reason[256] = "no reason given";
  if (const unsigned long error = ERR_get_error()) ERR_error_string_n(error, reason, sizeof reason);
  ERR_clear_error();
  throw Failure(code::bad_identity, sentence + ": " + reason);
}

Key new_key() {
  Key key(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"), EVP_PKEY_free);
  if (!key) fail_by_openssl("OpenSSL cannot make an Ed25519 key");
  return key;
}

std::string pem_of(const Key& key) {
  const Bio memory(BIO_new(BIO_s_mem()), BIO_free);
  if (!memory || PEM_write_bio_PKCS8PrivateKey(memory.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1)
    fail_by_openssl("OpenSSL cannot write a key");
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &bytes);
  return {bytes, static_cast<size_t>(size)};
}

// Without this OpenSSL asks for a password on the terminal.
int no_password(char*, int, int, void*) { return -1; }

Key parse_key(const std::string& pem, const std::filesystem::path& path) {
  const Bio memory(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  if (!memory) throw std::bad_alloc();
  Key key(PEM_read_bio_PrivateKey(memory.get(), nullptr, no_password, nullptr), EVP_PKEY_free);
  ERR_clear_error();
  if (key && EVP_PKEY_get_base_id(key.get()) == EVP_PKEY_ED25519) return key;
  const std::string sentence = key ? "the key is no Ed25519 key" : "the file holds no key that can be read";
  throw Failure(Error{code::bad_identity,
                      sentence,
                      {path.string(), 0, 0},
                      {"without the file this node makes a new key, and its peers have to be invited anew"},
                      {},
                      "mv " + path.string() + " " + path.string() + ".damaged"});
}

// Fields that peers do not look at, and OpenSSL wants.
bool fill(X509& certificate, EVP_PKEY& key) {
  X509_NAME* name = X509_get_subject_name(&certificate);
  const auto* title = reinterpret_cast<const unsigned char*>("millrace");
  return X509_set_version(&certificate, X509_VERSION_3) == 1 &&
         ASN1_INTEGER_set(X509_get_serialNumber(&certificate), 1) == 1 &&
         ASN1_TIME_set_string_X509(X509_getm_notBefore(&certificate), "19700101000000Z") == 1 &&
         ASN1_TIME_set_string_X509(X509_getm_notAfter(&certificate), "99991231235959Z") == 1 &&
         X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, title, -1, -1, 0) == 1 &&
         X509_set_issuer_name(&certificate, name) == 1 && X509_set_pubkey(&certificate, &key) == 1;
}

} // namespace

NodeId node_id_of(EVP_PKEY* key) {
  unsigned char* der = nullptr;
  const int size = i2d_PUBKEY(key, &der);
  const std::unique_ptr<unsigned char, void (*)(void*)> owned(der, [](void* bytes) { OPENSSL_free(bytes); });
  if (size <= 0) throw std::bad_alloc();
  return {sha256(Bytes(reinterpret_cast<const std::byte*>(der), static_cast<size_t>(size)))};
}

Identity::Identity(Key key) : key_(std::move(key)), certificate_(X509_new(), X509_free), id_(node_id_of(key_.get())) {
  if (!certificate_ || !fill(*certificate_, *key_) || X509_sign(certificate_.get(), key_.get(), nullptr) == 0)
    fail_by_openssl("OpenSSL cannot make a certificate");
}

Identity Identity::generate() { return Identity(new_key()); }

Identity Identity::open(const std::filesystem::path& folder) {
  make_private_folder(folder);
  const FolderLock lock(folder);
  const std::filesystem::path path = folder / "key.pem";
  std::string pem;
  Key key;
  if (read_private_file(path, kKeyFileBytesMax, pem)) {
    key = parse_key(pem, path);
  } else {
    key = new_key();
    pem = pem_of(key);
    write_private_file(path, pem);
  }
  OPENSSL_cleanse(pem.data(), pem.size());
  return Identity(std::move(key));
}

} // namespace millrace::net
