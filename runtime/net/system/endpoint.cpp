// Reads and writes addresses.
#include "net/system/endpoint.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "observe/error.h"
#include "observe/error_codes.h"

namespace millrace::net {
namespace {

constexpr size_t kHostBytesMax = 253;
constexpr size_t kLocalBytesMax = 107; // as sockaddr_un has it

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  Error error;
  error.code = code::link_address;
  error.what = "'" + std::string(text.substr(0, 300)) + "' is no address of a node: " + why;
  error.notes = {"expected: HOST:PORT, [IPV6]:PORT or local:PATH, such as 192.168.1.20:7433, [::1]:7433, local:@gpu"};
  throw Failure(error);
}

} // namespace

Endpoint parse_endpoint(std::string_view text) {
  Endpoint endpoint;
  if (text == "local" || text.substr(0, 6) == "local:") { // a host of this name could not be written with its port
    endpoint.local = text.substr(std::min<size_t>(6, text.size()));
    if (endpoint.local.empty() || endpoint.local == "@") refuse(text, "a local address has a path or a name");
    if (endpoint.local.size() > kLocalBytesMax) refuse(text, "a local address has at most 107 bytes");
    if (endpoint.local.find('\0') != std::string::npos) refuse(text, "a path has no zero byte");
    return endpoint;
  }
  std::string_view port;
  if (!text.empty() && text.front() == '[') {
    const size_t close = text.find(']');
    if (close == text.npos) refuse(text, "the bracket is not closed");
    endpoint.host = text.substr(1, close - 1);
    port = text.substr(close + 1);
  } else {
    const size_t colon = text.find(':');
    if (colon != text.npos && text.find(':', colon + 1) != text.npos) refuse(text, "an IPv6 address is in brackets");
    endpoint.host = text.substr(0, colon);
    port = colon == text.npos ? std::string_view() : text.substr(colon);
  }
  if (endpoint.host.empty()) refuse(text, "there is no host");
  if (endpoint.host.size() > kHostBytesMax) refuse(text, "a host has at most 253 bytes");
  for (const char letter : endpoint.host)
    if (static_cast<unsigned char>(letter) <= ' ' || letter == 0x7F)
      refuse(text, "a host has neither blanks nor control characters");
  if (port.empty()) return endpoint;
  unsigned number = 0;
  const char* const end = port.data() + port.size();
  const auto [stop, error] = std::from_chars(port.data() + 1, end, number);
  if (port.front() != ':' || error != std::errc() || stop != end || number > 65'535)
    refuse(text, "a port is a number up to 65535, after a colon");
  endpoint.port = static_cast<uint16_t>(number);
  return endpoint;
}

std::string to_text(const Endpoint& endpoint) {
  if (endpoint.is_local()) return "local:" + endpoint.local;
  const bool is_ipv6 = endpoint.host.find(':') != std::string::npos;
  return (is_ipv6 ? "[" + endpoint.host + "]" : endpoint.host) + ":" + std::to_string(endpoint.port);
}

std::string address_of_peer(int descriptor) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  const bool is_known = ::getpeername(descriptor, any, &size) == 0 && address.ss_family != AF_UNIX &&
                        ::getnameinfo(any, size, host.data(), host.size(), port.data(), port.size(),
                                      NI_NUMERICHOST | NI_NUMERICSERV) == 0;
  if (!is_known) return "";
  std::string text = host.data();
  constexpr std::string_view kMapped = "::ffff:"; // an IPv4 peer of a socket that listens at [::]
  if (text.starts_with(kMapped) && text.find('.') != std::string::npos) text.erase(0, kMapped.size());
  return (text.find(':') == std::string::npos ? text : "[" + text + "]") + ":" + port.data();
}

} // namespace millrace::net
