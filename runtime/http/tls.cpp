// Makes the context of TLS connections; see tls.h.
#include "http/tls.h"

#include <boost/asio/buffer.hpp>

#include "observe/error.h"
#include "observe/error_codes.h"

namespace millrace::http {

namespace ssl = boost::asio::ssl;

std::unique_ptr<ssl::context> tls_of(const Certificate& certificate) {
  if (certificate.chain.empty()) return nullptr;
  auto tls = std::make_unique<ssl::context>(ssl::context::tls_server);
  tls->set_options(ssl::context::default_workarounds | ssl::context::no_sslv2 | ssl::context::no_sslv3 |
                   ssl::context::no_tlsv1 | ssl::context::no_tlsv1_1);
  const auto use = [&](const char* what, auto&& how) {
    boost::system::error_code failed;
    how(failed);
    if (failed) throw Failure(code::bad_certificate, std::string(what) + " cannot be used: " + failed.message());
  };
  tls->set_password_callback([](size_t, ssl::context::password_purpose) { return std::string(); }); // asks nobody
  use("the certificate",
      [&](auto& failed) { tls->use_certificate_chain(boost::asio::buffer(certificate.chain), failed); });
  use("the certificate's key",
      [&](auto& failed) { tls->use_private_key(boost::asio::buffer(certificate.key), ssl::context::pem, failed); });
  return tls;
}

} // namespace millrace::http
