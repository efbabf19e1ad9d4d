// Serves pages; see web.h.
#include "serve/web.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
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
constexpr const char* kControlPath = "/control"; // the WebSocket of the page of the run

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
  explicit Site(WebOptions options) : options_(std::move(options)) {
    pages_.steer_token = new_token();
    pages_.watch_token = new_token();
    if (!options_.address.empty()) listen("--web-listen", options_.address);
  }

  std::string link(const std::string& path, bool steers) const {
    return server()->url() + path + "#token=" + (steers ? pages_.steer_token : pages_.watch_token + "&role=watch");
  }
  bool listens() const { return server() != nullptr; }
  bool is_readable_on_the_way() const {
    return server() && !server()->is_on_loopback() && options_.certificate.chain.empty();
  }
  std::vector<HandlerPage> pages() const { return handlers_.all(); }

  void serve(Control& control) {
    control_ = &control;
    begin();
  }

  std::shared_ptr<void> serve(const mr_site& site) {
    const std::string wanted = site.listen;
    {
      const std::lock_guard lock(mutex_);
      if (!server_) {
        listen("listen:", wanted.empty() ? kWebAddress : wanted);
      } else if (!wanted.empty() && !server_->listens_at(wanted)) {
        throw Failure(code::page_not_served, "it is to listen at " + wanted +
                                                 ", and the one server of this program is at " + server_->url() +
                                                 " already");
      }
    }
    std::shared_ptr<void> page = handlers_.add(site);
    begin();
    const HandlerPage added = {site.title, std::string("/") + site.path + "/"};
    if (options_.on_page) options_.on_page(added, link(added.path, true), link(added.path, false));
    return page;
  }

  void stop() {
    if (http::Server* const listening = server()) listening->stop(format_code(code::run_is_over) + ": the run is over");
  }

  WebRefusals refusals() const {
    const http::Server* const listening = server();
    return {listening ? listening->refusals() : http::Refusals(), pages_.wrong_tokens, pages_.without_place};
  }

 private:
  http::Server* server() const {
    const std::lock_guard lock(mutex_);
    return server_.get();
  }
  void listen(const char* option, const std::string& address) {
    server_ = std::make_unique<http::Server>(
        http::Listen{option, address, options_.names, "--web-host", options_.certificate},
        http::Limits{kConnectionsMax});
  }

  // The server's thread begins with the first page.
  void begin() {
    const std::lock_guard lock(mutex_);
    if (std::exchange(serves_, true)) return;
    http::Site site;
    site.get = [this](const std::string& path) { return reply_to(path); };
    site.headers = kHeaders;
    site.has_channel = [this](const std::string& path) {
      return path == kControlPath ? control_ != nullptr : handlers_.has_channel(path);
    };
    site.open = [this](const std::string& path, http::Peer& peer) -> std::unique_ptr<http::Channel> {
      if (path == kControlPath) return std::make_unique<PageChannel>(pages_, *control_, peer);
      return handlers_.open(path, peer);
    };
    server_->serve(std::move(site));
  }

  http::Reply reply_to(const std::string& path) const {
    http::Reply of_handler = handlers_.file_at(path);
    if (of_handler.status == 200) return of_handler;
    if (control_) return file_at(path);
    return {404, "there is no such page; `millrace run --web` has one of the whole run\n"};
  }

  const WebOptions options_;
  Pages pages_;
  HandlerPages handlers_{pages_};
  std::atomic<Control*> control_{nullptr};
  mutable std::mutex mutex_; // guards what follows
  bool serves_ = false;
  std::unique_ptr<http::Server> server_; // last: its thread uses all of the above
};

Web::Web(WebOptions options) : site_(std::make_unique<Site>(std::move(options))) {}
Web::~Web() = default;
std::string Web::link() const { return site_->link("/", true); }
std::string Web::watch_link() const { return site_->link("/", false); }
bool Web::listens() const { return site_->listens(); }
bool Web::is_readable_on_the_way() const { return site_->is_readable_on_the_way(); }
void Web::serve(Control& control) { site_->serve(control); }
std::shared_ptr<void> Web::serve(const mr_site& site) { return site_->serve(site); }
std::vector<HandlerPage> Web::pages() const { return site_->pages(); }
void Web::stop() { site_->stop(); }
WebRefusals Web::refusals() const { return site_->refusals(); }

} // namespace millrace::serve
