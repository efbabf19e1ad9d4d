// An address of a node as people write it: "192.168.1.20:7433", "[::1]:7433", "gpu.local:7433", "local:@name".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace millrace::net {

inline constexpr uint16_t kDefaultPort = 7433;

struct Endpoint {
  std::string host; // a name or an address without brackets; "" for a Unix socket
  uint16_t port = kDefaultPort;
  std::string local; // a Unix socket: a path, or a name after '@'

  bool is_local() const { return !local.empty(); }
};

// Throws Failure (MR0816) with what was expected.
Endpoint parse_endpoint(std::string_view text);
std::string to_text(const Endpoint& endpoint);
// The other end of a connected socket; "" if it has no address.
std::string address_of_peer(int descriptor);

} // namespace millrace::net
