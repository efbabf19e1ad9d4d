// Reads addresses and hosts; see address.h.
#include "http/address.h"

#include <utility> // first: Asio 1.74 uses std::exchange without including this

#include <algorithm>
#include <boost/asio/io_context.hpp>

#include "observe/error.h"
#include "observe/error_codes.h"

namespace millrace::http {

namespace {

namespace asio = boost::asio;
using Tcp = asio::ip::tcp;
using boost::system::error_code;

[[noreturn]] void refuse(const Listen& listen) {
  throw Failure(
      Error{code::bad_command_line,
            listen.option + " takes HOST:PORT, not \"" + listen.address + "\"",
            {},
            {"such as 127.0.0.1:9090 or [::1]:9090; :9090 is every address of the machine, port 0 a free one"},
            "",
            listen.option + " 127.0.0.1:9090"});
}

std::string in_small_letters(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

// The host of "HOST:PORT" or "HOST", in small letters, without brackets and without the dot that ends a full name.
std::string host_of(std::string_view address) {
  std::string host(address);
  if (!host.empty() && host.front() == '[') {
    const size_t bracket = host.find(']');
    return bracket == std::string::npos ? "" : in_small_letters(host.substr(1, bracket - 1));
  }
  host.resize(std::min(host.find(':'), host.size()));
  if (!host.empty() && host.back() == '.') host.pop_back();
  return in_small_letters(std::move(host));
}

} // namespace

Tcp::endpoint endpoint_of(const Listen& listen) {
  const std::string& address = listen.address;
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) refuse(listen);
  std::string host = address.substr(0, colon);
  const std::string digits = address.substr(colon + 1);
  const bool is_number = !digits.empty() && digits.size() <= 5 &&
                         digits.find_first_not_of("0123456789") == std::string::npos &&
                         std::stoul(digits) <= UINT16_MAX;
  if (!is_number) refuse(listen);
  const auto port = static_cast<uint16_t>(std::stoul(digits));
  if (host.empty()) return {Tcp::v4(), port};
  const bool bracketed = host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (host.empty() || (!bracketed && host.find(':') != std::string::npos)) refuse(listen);
  error_code failed;
  const asio::ip::address known = asio::ip::make_address(host, failed);
  if (!failed) return {known, port};
  asio::io_context context;
  const auto found = Tcp::resolver(context).resolve(host, digits, failed);
  if (failed || found.empty())
    throw Failure(Error{code::bad_address,
                        listen.option + " names no address of this machine: " + host,
                        {},
                        {failed.message()},
                        "",
                        listen.option + " 127.0.0.1:" + digits});
  return found.begin()->endpoint();
}

Hosts::Hosts(const Listen& listen, const asio::ip::address& listens_at) : listens_at_(listens_at) {
  names_.push_back(host_of(listen.address));
  for (const std::string& name : listen.names) names_.push_back(host_of(name));
}

bool Hosts::answers(std::string_view host_header) const {
  const std::string host = host_of(host_header);
  if (host.empty()) return false;
  if (std::find(names_.begin(), names_.end(), host) != names_.end()) return true;
  const bool listens_at_all = listens_at_.is_unspecified();
  const bool is_near = listens_at_all || listens_at_.is_loopback();
  if (host == "localhost" || host.ends_with(".localhost")) return is_near; // RFC 6761: never another machine
  error_code failed;
  const asio::ip::address literal = asio::ip::make_address(host, failed);
  if (failed) return false;
  return listens_at_all || literal == listens_at_ || (listens_at_.is_loopback() && literal.is_loopback());
}

} // namespace millrace::http
