// Serves pages; see web.h.
#include "serve/web.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <utility>

#include "http/server.h"
#include "observe/error.h"
#include "observe/error_codes.h"
#include "serve/page_channel.h"
#include "serve/page_files.h"

namespace millrace::serve {

namespace {

// Browsers open up to six connections for a page's files, beside the one that stays.
constexpr uint32_t kConnectionsMax = 64;

// Nothing runs or is loaded that this server has not given, and no other page may show or read it.
const std::vector<std::pair<std::string, std::string>> kHeaders = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
     "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Embedder-Policy", "require-corp"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cache-Control", "no-store"}};

// 128 bits from the system, as 32 letters.
std::string new_token() {
  std::array<unsigned char, 16> bytes;
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw Failure(code::page_not_admitted, "the system gave no random bytes for the page's token");
  std::string token;
  for (const unsigned char byte : bytes) {
    token += "0123456789abcdef"[byte >> 4];
    token += "0123456789abcdef"[byte & 15];
  }
  return token;
}

http::Reply file_at(const std::string& path) {
  const std::string_view name = path == "/" ? "index.html" : std::string_view(path).substr(path.starts_with('/'));
  for (const PageFile& file : page_files())
    if (file.name == name) return {200, std::string(file.bytes), std::string(content_type(name))};
  return {404, "there is no such file; the page is at /\n"};
}

} // namespace

std::string_view content_type(std::string_view name) {
  const std::string_view kind = name.substr(std::min(name.rfind('.'), name.size()));
  if (kind == ".html") return "text/html; charset=utf-8";
  if (kind == ".js") return "text/javascript; charset=utf-8";
  if (kind == ".css") return "text/css; charset=utf-8";
  return kind == ".svg" ? "image/svg+xml" : "application/octet-stream";
}

class Web::Site {
 public:
  explicit Site(const WebOptions& options)
      : server_({"--web-listen", options.address, options.names, "--web-host"}, {kConnectionsMax}) {
    pages_.steer_token = new_token();
    pages_.watch_token = new_token();
  }

  std::string link(const std::string& token) const { return server_.url() + "/#token=" + token; }
  const Pages& pages() const { return pages_; }
  bool is_on_loopback() const { return server_.is_on_loopback(); }

  void serve(Control& control) {
    http::Site site;
    site.get = file_at;
    site.headers = kHeaders;
    site.channel_path = "/control";
    site.open = [this, &control](http::Peer& peer) { return std::make_unique<PageChannel>(pages_, control, peer); };
    server_.serve(std::move(site));
  }
  void stop() { server_.stop(format_code(code::run_is_over) + ": the run is over"); }

  WebRefusals refusals() const { return {server_.refusals(), pages_.wrong_tokens, pages_.without_place}; }

 private:
  Pages pages_;
  http::Server server_; // last: its thread uses the pages
};

Web::Web(const WebOptions& options) : site_(std::make_unique<Site>(options)) {}
Web::~Web() = default;
std::string Web::link() const { return site_->link(site_->pages().steer_token); }
std::string Web::watch_link() const { return site_->link(site_->pages().watch_token) + "&role=watch"; }
bool Web::is_on_loopback() const { return site_->is_on_loopback(); }
void Web::serve(Control& control) { site_->serve(control); }
void Web::stop() { site_->stop(); }
WebRefusals Web::refusals() const { return site_->refusals(); }

} // namespace millrace::serve
