// The address at which a server listens, as people write it, and the hosts by which requests may call it.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "http/server.h"

namespace millrace::http {

// Reads "HOST:PORT"; ":PORT" is every IPv4 address. Throws Failure: MR0105 if it cannot be read, MR0113 if this machine
// has no such address.
boost::asio::ip::tcp::endpoint endpoint_of(const Listen& listen);

// A page in a browser may have its own name resolve to this machine and then read whatever the server answers ("DNS
// rebinding"). Its requests name the page's host, so a name that nobody gave is refused.
class Hosts {
 public:
  Hosts(const Listen& listen, const boost::asio::ip::address& listens_at);
  // `host_header`: "HOST" or "HOST:PORT". The port is not looked at: a router, a container or a tunnel may map it.
  bool answers(std::string_view host_header) const;

 private:
  const boost::asio::ip::address listens_at_;
  std::vector<std::string> names_;
};

} // namespace millrace::http
