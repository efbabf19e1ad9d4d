// HTTP for metrics, on Boost.Beast; see metrics_server.h.
#include "cli/metrics_server.h"

#include <utility> // first: Asio 1.74 uses std::exchange without including this

#include <algorithm>
#include <boost/asio.hpp>
#include <boost/beast.hpp>
#include <chrono>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "observe/error.h"
#include "observe/error_codes.h"
#include "observe/start_thread.h"

namespace millrace::cli {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using Tcp = asio::ip::tcp;
using boost::system::error_code;

// A scraper's request has some hundred bytes.
constexpr uint32_t kRequestBytesMax = 8 * 1024;
// Prometheus itself gives up after ten seconds.
constexpr std::chrono::seconds kRequestTimeMax{5};
// One scraper uses one connection; the rest are for its successor and for people.
constexpr uint32_t kConnectionsMax = 16;
// A report costs some microseconds a handler, so requests share a report that is at most this old.
constexpr std::chrono::milliseconds kTextKept{100};
// The wait after accept has failed, for instance because the process has no more file descriptors.
constexpr std::chrono::milliseconds kAcceptAgain{100};

[[noreturn]] void refuse_address(const std::string& address) {
  throw Failure(
      Error{code::bad_command_line,
            "--metrics takes HOST:PORT, not \"" + address + "\"",
            {},
            {"such as 127.0.0.1:9090 or [::1]:9090; :9090 is every address of the machine, port 0 a free one"},
            "",
            "--metrics 127.0.0.1:9090"});
}

Tcp::endpoint endpoint_of(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) refuse_address(address);
  std::string host = address.substr(0, colon);
  const std::string digits = address.substr(colon + 1);
  const bool is_number = !digits.empty() && digits.size() <= 5 &&
                         digits.find_first_not_of("0123456789") == std::string::npos &&
                         std::stoul(digits) <= UINT16_MAX;
  if (!is_number) refuse_address(address);
  const auto port = static_cast<uint16_t>(std::stoul(digits));
  if (host.empty()) return {Tcp::v4(), port};
  const bool bracketed = host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (host.empty() || (!bracketed && host.find(':') != std::string::npos)) refuse_address(address);
  error_code failed;
  const asio::ip::address known = asio::ip::make_address(host, failed);
  if (!failed) return {known, port};
  asio::io_context context;
  const auto found = Tcp::resolver(context).resolve(host, digits, failed);
  if (failed || found.empty())
    throw Failure(Error{code::bad_address,
                        "--metrics names no address of this machine: " + host,
                        {},
                        {failed.message()},
                        "",
                        "--metrics 127.0.0.1:" + digits});
  return found.begin()->endpoint();
}

std::string in_small_letters(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

// The host of "HOST:PORT" or "HOST", in small letters, without brackets and without the dot that ends a full name. The
// port is not looked at: a router or a container may map it to another one.
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

// The hosts for which requests are answered. A page in a browser may have its own name resolve to this machine and then
// read whatever the server answers ("DNS rebinding"). Its requests name the page's host, so a name that nobody gave is
// refused.
class Hosts {
 public:
  Hosts(const std::string& address, const asio::ip::address& listens_at, const std::vector<std::string>& names)
      : listens_at_(listens_at) {
    names_.push_back(host_of(address));
    for (const std::string& name : names) names_.push_back(host_of(name));
  }

  bool answers(std::string_view host_header) const {
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

 private:
  const asio::ip::address listens_at_;
  std::vector<std::string> names_;
};

using Response = http::response<http::string_body>;

Response answer(http::status status, const std::string& body, const char* type = "text/plain; charset=utf-8") {
  Response response{status, 11};
  response.set(http::field::content_type, type);
  response.keep_alive(false);
  response.body() = body;
  response.prepare_payload();
  return response;
}

// One connection: one request, one answer. Lives as long as an operation on its socket is pending.
class Session : public std::enable_shared_from_this<Session> {
 public:
  using Answer = std::function<Response(const http::request<http::empty_body>&)>;
  Session(Tcp::socket socket, Answer answer, std::shared_ptr<uint32_t> open)
      : stream_(std::move(socket)), answer_(std::move(answer)), open_(std::move(open)), buffer_(kRequestBytesMax) {
    ++*open_;
    parser_.header_limit(kRequestBytesMax);
  }
  ~Session() { --*open_; }

  void begin() {
    stream_.expires_after(kRequestTimeMax); // for the whole request, however slowly it comes
    http::async_read(stream_, buffer_, parser_,
                     [self = shared_from_this()](error_code failed, size_t) { self->reply(failed); });
  }

 private:
  void reply(error_code failed) {
    if (failed == beast::error::timeout || failed == http::error::end_of_stream) return;
    response_ = failed
                    ? ::millrace::cli::answer(http::status::bad_request, "this is not a request that is understood\n")
                    : answer_(parser_.get());
    stream_.expires_after(kRequestTimeMax);
    http::async_write(stream_, response_, [self = shared_from_this()](error_code, size_t) {
      error_code ignored; // the peer may have gone
      self->stream_.socket().shutdown(Tcp::socket::shutdown_send, ignored);
    });
  }

  beast::tcp_stream stream_;
  Answer answer_;
  std::shared_ptr<uint32_t> open_;
  beast::flat_buffer buffer_;
  http::request_parser<http::empty_body> parser_;
  Response response_;
};

} // namespace

class MetricsServer::Server {
 public:
  Server(const std::string& address, const std::vector<std::string>& names)
      : endpoint_(endpoint_of(address)), hosts_(address, endpoint_.address(), names), acceptor_(context_) {
    try {
      acceptor_.open(endpoint_.protocol());
      acceptor_.set_option(asio::socket_base::reuse_address(true));
      acceptor_.bind(endpoint_);
      acceptor_.listen();
      endpoint_ = acceptor_.local_endpoint();
    } catch (const boost::system::system_error& failed) {
      throw Failure(Error{code::bad_address,
                          "--metrics cannot listen on " + address + ": " + failed.code().message(),
                          {},
                          {},
                          "",
                          "--metrics 127.0.0.1:0"});
    }
  }
  ~Server() { stop(); }

  std::string url() const {
    std::string host = endpoint_.address().to_string();
    if (endpoint_.address().is_v6()) host = "[" + host + "]";
    return "http://" + host + ":" + std::to_string(endpoint_.port()) + "/metrics";
  }

  void serve(std::function<std::string()> text) {
    text_ = std::move(text);
    accept();
    thread_ = start_thread("the thread that serves --metrics", [this] {
      for (;;) {
        try {
          context_.run();
          return;
        } catch (const std::exception&) { // no memory for one answer: that connection ends, the others go on
        }
      }
    });
  }

  void stop() {
    context_.stop();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void accept() {
    acceptor_.async_accept([this](error_code failed, Tcp::socket socket) {
      if (failed == asio::error::operation_aborted) return;
      if (failed) {
        again_.expires_after(kAcceptAgain);
        again_.async_wait([this](error_code stopped) {
          if (!stopped) accept();
        });
        return;
      }
      accept();                              // first: the next connection is accepted whatever happens to this one
      if (*open_ >= kConnectionsMax) return; // closes the socket
      const auto give = [this](const http::request<http::empty_body>& request) { return reply_to(request); };
      std::make_shared<Session>(std::move(socket), give, open_)->begin();
    });
  }

  // HEAD is answered as GET is, with the length of the body that is left out.
  Response reply_to(const http::request<http::empty_body>& request) {
    Response response = answer_to(request);
    if (request.method() == http::verb::head) response.body().clear();
    return response;
  }

  Response answer_to(const http::request<http::empty_body>& request) {
    // Browsers send one Host, always; HTTP 1.0 did not ask for it.
    const auto count = request.count(http::field::host);
    const auto named = request[http::field::host];
    const std::string_view host(named.data(), named.size());
    if (count > 1 || (count == 0 && request.version() > 10))
      return answer(http::status::bad_request, "a request names one Host\n");
    if (count == 1 && !hosts_.answers(host))
      return answer(http::status::misdirected_request,
                    "this server is not known by that name; `millrace run --metrics-host NAME` gives it a name\n");
    const std::string target(request.target().substr(0, request.target().find('?')));
    if (target != "/metrics" && target != "/healthz")
      return answer(http::status::not_found, "there are /metrics and /healthz\n");
    if (request.method() != http::verb::get && request.method() != http::verb::head) {
      Response response = answer(http::status::method_not_allowed, "only GET and HEAD are answered\n");
      response.set(http::field::allow, "GET, HEAD");
      return response;
    }
    if (target == "/healthz") return answer(http::status::ok, "ok\n");
    const auto now = std::chrono::steady_clock::now();
    if (!made_at_ || now - *made_at_ >= kTextKept) {
      made_ = text_();
      made_at_ = now;
    }
    return answer(http::status::ok, made_, "text/plain; version=0.0.4; charset=utf-8");
  }

  Tcp::endpoint endpoint_;
  const Hosts hosts_;
  std::shared_ptr<uint32_t> open_ = std::make_shared<uint32_t>(0); // used by the server's thread alone
  asio::io_context context_{1};
  Tcp::acceptor acceptor_;
  asio::steady_timer again_{context_};
  std::function<std::string()> text_;
  std::string made_;
  std::optional<std::chrono::steady_clock::time_point> made_at_;
  std::thread thread_;
};

MetricsServer::MetricsServer(const std::string& address, const std::vector<std::string>& names)
    : server_(std::make_unique<Server>(address, names)) {}
MetricsServer::~MetricsServer() = default;
std::string MetricsServer::url() const { return server_->url(); }
void MetricsServer::serve(std::function<std::string()> text) { server_->serve(std::move(text)); }
void MetricsServer::stop() { server_->stop(); }

} // namespace millrace::cli
