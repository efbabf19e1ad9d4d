// Reads and makes certificates; see web_certificate.h.
#include "serve/web_certificate.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <memory>
#include <sstream>

#include "net/system/private_file.h"
#include "observe/error.h"
#include "observe/error_codes.h"

namespace millrace::serve {

namespace {

constexpr size_t kFileBytesMax = 64 * 1024; // a chain has some kilobytes
constexpr const char* kFileName = "web.pem";
// The longest that browsers take.
constexpr long kSecondsOfDay = 86'400, kDays = 397, kDaysLeftMin = 30;

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using X509Owned = std::unique_ptr<X509, decltype(&X509_free)>;
using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;

[[noreturn]] void fail_by_openssl(const std::string& sentence) {
  std::array<char, 256> reason = {"no reason given"};
  if (const unsigned long error = ERR_get_error()) ERR_error_string_n(error, reason.data(), reason.size());
  ERR_clear_error();
  throw Failure(code::bad_certificate, sentence + ": " + reason.data());
}

std::string text_of(BIO* memory) {
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(memory, &bytes);
  return {bytes, static_cast<size_t>(size)};
}

bool is_address(const std::string& name) {
  std::array<unsigned char, sizeof(in6_addr)> address;
  return inet_pton(AF_INET, name.c_str(), address.data()) == 1 ||
         inet_pton(AF_INET6, name.c_str(), address.data()) == 1;
}

std::vector<std::string> all_names(std::vector<std::string> names) {
  names.insert(names.begin(), {"localhost", "127.0.0.1", "::1"});
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) == 0 && host[0]) names.emplace_back(host.data());
  return names;
}

bool is_for(X509* certificate, const std::string& name) {
  return is_address(name) ? X509_check_ip_asc(certificate, name.c_str(), 0) == 1
                          : X509_check_host(certificate, name.c_str(), name.size(), 0, nullptr) == 1;
}

// True if it is for all names, for some weeks more.
bool is_good(const std::string& pem, const std::vector<std::string>& names) {
  const Bio memory(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  const X509Owned certificate(PEM_read_bio_X509(memory.get(), nullptr, nullptr, nullptr), X509_free);
  ERR_clear_error();
  if (!certificate) return false;
  int days = 0, seconds = 0;
  if (ASN1_TIME_diff(&days, &seconds, nullptr, X509_get0_notAfter(certificate.get())) != 1 || days < kDaysLeftMin)
    return false;
  for (const std::string& name : names)
    if (!is_for(certificate.get(), name)) return false;
  return true;
}

bool add_extension(X509* certificate, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  const bool added = extension && X509_add_ext(certificate, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  return added;
}

bool fill(X509* certificate, EVP_PKEY* key, const std::vector<std::string>& names) {
  uint64_t serial = 0;
  std::string alternatives;
  for (const std::string& name : names)
    alternatives += (alternatives.empty() ? "" : ",") + std::string(is_address(name) ? "IP:" : "DNS:") + name;
  X509_NAME* const subject = X509_get_subject_name(certificate);
  const auto* title = reinterpret_cast<const unsigned char*>("millrace");
  return RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial) == 1 &&
         X509_set_version(certificate, X509_VERSION_3) == 1 &&
         ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial >> 1) == 1 &&
         X509_gmtime_adj(X509_getm_notBefore(certificate), -kSecondsOfDay) &&
         X509_gmtime_adj(X509_getm_notAfter(certificate), (kDays - 1) * kSecondsOfDay) &&
         X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, title, -1, -1, 0) == 1 &&
         X509_set_issuer_name(certificate, subject) == 1 && X509_set_pubkey(certificate, key) == 1 &&
         add_extension(certificate, NID_subject_alt_name, alternatives) &&
         add_extension(certificate, NID_basic_constraints, "critical,CA:FALSE") &&
         add_extension(certificate, NID_ext_key_usage, "serverAuth") && X509_sign(certificate, key, EVP_sha256()) > 0;
}

http::Certificate make_certificate(const std::vector<std::string>& names) {
  const Key key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const X509Owned certificate(X509_new(), X509_free);
  if (!key || !certificate || !fill(certificate.get(), key.get(), names))
    fail_by_openssl("OpenSSL cannot make a certificate");
  const Bio chain(BIO_new(BIO_s_mem()), BIO_free), secret(BIO_new(BIO_s_mem()), BIO_free);
  if (PEM_write_bio_X509(chain.get(), certificate.get()) != 1 ||
      PEM_write_bio_PKCS8PrivateKey(secret.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1)
    fail_by_openssl("OpenSSL cannot write a certificate");
  return {text_of(chain.get()), text_of(secret.get())};
}

std::string read_file(const char* option, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file || text.str().empty())
    throw Failure(Error{
        code::bad_certificate, std::string(option) + " names a file that cannot be read", {path, 0, 0}, {}, "", ""});
  return text.str();
}

} // namespace

http::Certificate read_certificate(const std::string& chain_file, const std::string& key_file) {
  return {read_file("--tls-cert", chain_file), read_file("--tls-key", key_file)};
}

http::Certificate own_certificate(const std::filesystem::path& folder, const std::vector<std::string>& more_names) {
  const std::vector<std::string> names = all_names(more_names);
  net::make_private_folder(folder);
  const net::FolderLock lock(folder);
  const std::filesystem::path path = folder / kFileName;
  std::string pem;
  if (net::read_private_file(path, kFileBytesMax, pem) && is_good(pem, names)) return {pem, pem};
  const http::Certificate made = make_certificate(names);
  net::write_private_file(path, made.chain + made.key);
  return made;
}

} // namespace millrace::serve
