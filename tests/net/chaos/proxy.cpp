// Accepts connections, keeps them, and changes what they meet as faults begin and end.
#include "proxy.h"

#include <algorithm>
#include <utility>

namespace millrace::chaos {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

// Without a file descriptor left, accepting is tried again after this.
constexpr std::chrono::milliseconds kAcceptAgain{20};

Tcp::endpoint resolved(asio::io_context& io, const Address& address) {
  Tcp::resolver resolver(io);
  return resolver.resolve(address.host, address.port, Tcp::resolver::passive).begin()->endpoint();
}

} // namespace

std::optional<Address> read_address(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon + 1 == text.size()) return std::nullopt;
  Address address{text.substr(0, colon), text.substr(colon + 1)};
  const bool is_port = address.port.size() <= 5 && std::all_of(address.port.begin(), address.port.end(),
                                                               [](char c) { return c >= '0' && c <= '9'; });
  if (!is_port || std::stoi(address.port) > 65535) return std::nullopt;
  const bool in_brackets = address.host.size() >= 2 && address.host.front() == '[' && address.host.back() == ']';
  if (in_brackets) address.host = address.host.substr(1, address.host.size() - 2);
  // Two colons without brackets may be an address without a port.
  if (address.host.empty() || (!in_brackets && address.host.find(':') != std::string::npos)) return std::nullopt;
  return address;
}

Proxy::Proxy(asio::io_context& io, ProxyOptions options, Schedule schedule)
    : io_(io),
      options_(std::move(options)),
      schedule_(std::move(schedule)),
      server_(Tcp::resolver(io).resolve(options_.to.host, options_.to.port)),
      now_ns_([this] {
        return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - started_)
            .count();
      }),
      reservation_(io),
      acceptor_(io),
      endpoint_(resolved(io, options_.listen)),
      timer_(io),
      accept_again_(io) {
  reservation_.open(endpoint_.protocol());
  reservation_.set_option(Tcp::socket::reuse_address(true));
  reservation_.bind(endpoint_);
  endpoint_ = reservation_.local_endpoint();
  listen();
}

// Linux lets two sockets share a port if both ask for it and the other one does not listen.
void Proxy::listen() {
  acceptor_.open(endpoint_.protocol());
  acceptor_.set_option(Tcp::acceptor::reuse_address(true));
  acceptor_.bind(endpoint_);
  acceptor_.listen();
}

void Proxy::start() {
  started_ = std::chrono::steady_clock::now();
  on_time();
  if (acceptor_.is_open()) accept();
}

void Proxy::stop() {
  is_stopped_ = true;
  error_code ignored;
  acceptor_.close(ignored);
  reservation_.close(ignored);
  timer_.cancel();
  accept_again_.cancel();
  for (const auto& [number, connection] : connections_) connection->close();
}

void Proxy::accept() {
  acceptor_.async_accept([this](const error_code& error, Tcp::socket dialler) {
    if (is_stopped_ || error == asio::error::operation_aborted || !acceptor_.is_open()) return;
    if (!error) {
      taken(std::move(dialler));
      accept();
      return;
    }
    accept_again_.expires_after(kAcceptAgain);
    accept_again_.async_wait([this](const error_code& cancelled) {
      if (!cancelled && acceptor_.is_open()) accept();
    });
  });
}

void Proxy::taken(Tcp::socket dialler) {
  const size_t number = ++totals_.connections;
  const auto connection =
      std::make_shared<Connection>(io_, std::move(dialler), number, options_.seed, now_ns_, totals_);
  connections_[number] = connection;
  for (const Direction direction : {Direction::up, Direction::down})
    connection->set(direction, rules_.conditions(number, direction));
  connection->start(server_, rules_.is_blackhole(number), [this, number] { connections_.erase(number); });
}

void Proxy::begin(const Fault& fault) {
  apply({.at_ns = now_ns_(), .fault = fault});
  on_time();
}

void Proxy::apply(const Event& event) {
  const Fault& fault = event.fault;
  ++totals_.faults[static_cast<size_t>(fault.kind)];
  if (options_.told) options_.told(event);
  rules_.add(event);
  if (fault.kind != Kind::cut && fault.kind != Kind::reset) return;
  for (const auto& [number, connection] : connections_) {
    if (!fault.scope.has(number)) continue;
    if (fault.kind == Kind::cut) {
      connection->cut(fault.scope);
    } else {
      connection->reset(fault.scope);
    }
  }
}

// Tells connections and the listening socket what the rules are now.
void Proxy::update() {
  for (const auto& [number, connection] : connections_)
    for (const Direction direction : {Direction::up, Direction::down})
      connection->set(direction, rules_.conditions(number, direction));
  const bool is_refusing = rules_.is_refusing();
  if (is_refusing && acceptor_.is_open()) {
    acceptor_.close();
    accept_again_.cancel();
  } else if (!is_refusing && !acceptor_.is_open()) {
    listen();
    accept();
  }
}

void Proxy::on_time() {
  const int64_t now = now_ns_();
  for (std::optional<int64_t> at; (at = schedule_.next_at()) && *at <= now;) {
    rules_.end_until(*at);
    apply(*schedule_.next());
  }
  rules_.end_until(now);
  update();
  std::optional<int64_t> wake = schedule_.next_at();
  if (const auto end = rules_.next_end(); end && (!wake || *end < *wake)) wake = end;
  if (!wake) return;
  timer_.expires_at(started_ + std::chrono::nanoseconds(*wake));
  timer_.async_wait([this](const error_code& error) {
    if (!error && !is_stopped_) on_time();
  });
}

} // namespace millrace::chaos
