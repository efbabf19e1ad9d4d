// The context of TLS, by which a server is reached by https. Private to runtime/http.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>

#include "http/server.h"

namespace millrace::http {

// Null if the certificate is empty. Throws Failure: MR0126.
std::unique_ptr<boost::asio::ssl::context> tls_of(const Certificate& certificate);

} // namespace millrace::http
