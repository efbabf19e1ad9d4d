// Serves pages of handlers; see handler_pages.h.
#include "serve/handler_pages.h"

#include <algorithm>
#include <optional>
#include <set>

#include "observe/error.h"
#include "observe/error_codes.h"
#include "serve/message.h"
#include "serve/page_files.h"

namespace millrace::serve {

namespace {

constexpr const char* kChannelName = "channel";
constexpr uint16_t kGoingAway = 1001;

// Letters, digits, '-', '_', '.' and '/', and no part of it empty or of dots alone.
bool is_path(const std::string& path) {
  size_t begin = 0;
  while (begin <= path.size()) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string part = path.substr(begin, end - begin);
    if (part.find_first_not_of('.') == std::string::npos) return false;
    begin = end + 1;
  }
  return path.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./") ==
         std::string::npos;
}

// A page that was let in, as its handler sees it.
struct SitePeer : mr_peer {
  SitePeer(http::Peer& the_peer, bool may_steer, uint64_t the_number)
      : mr_peer{sizeof(mr_peer), may_steer, the_number, &send_message, &end_peer},
        peer(the_peer),
        then(the_peer.then()) {}

  static void send_message(mr_peer* self, const mr_message* message) {
    auto& to = *static_cast<SitePeer*>(self);
    std::string head(reinterpret_cast<const char*>(message->head), message->head_bytes);
    http::SharedBytes body;
    if (message->release && !message->is_text) {
      body = {std::shared_ptr<const void>(message->context, message->release), message->body, message->body_bytes};
    } else {
      head.append(reinterpret_cast<const char*>(message->body), message->body_bytes);
      if (message->release) message->release(message->context);
    }
    to.then([&peer = to.peer, is_text = message->is_text != 0, head = std::move(head), body = std::move(body)] {
      is_text ? peer.send(head) : peer.send_bytes(head, body);
    });
  }
  static void end_peer(mr_peer* self, uint32_t code, const char* reason) {
    auto& to = *static_cast<SitePeer*>(self);
    to.then([&peer = to.peer, code, words = std::string(reason)] { peer.close(static_cast<uint16_t>(code), words); });
  }

  http::Peer& peer;
  const http::Peer::Then then;
};

} // namespace

// One page. Its site's functions are called under the mutex, so that none is under way once it has ended.
class HandlerPages::Page {
 public:
  explicit Page(const mr_site& the_site) : site_(the_site), title_(the_site.title) {
    for (uint32_t f = 0; f < site_.file_count; ++f) {
      const mr_site_file& file = site_.files[f];
      files_.emplace(file.name, std::string(reinterpret_cast<const char*>(file.bytes), file.size));
    }
  }

  const std::string& title() const { return title_; }
  const std::string* file(const std::string& name) const {
    const auto found = files_.find(name.empty() ? "index.html" : name);
    return found == files_.end() ? nullptr : &found->second;
  }

  bool open(SitePeer& peer) {
    const std::lock_guard lock(mutex_);
    if (is_over_) return false;
    peers_.insert(&peer);
    site_.open(site_.context, &peer);
    return true;
  }
  void take(SitePeer& peer, std::string_view message, bool is_text) {
    const std::lock_guard lock(mutex_);
    if (!is_over_)
      site_.take(site_.context, &peer, reinterpret_cast<const uint8_t*>(message.data()), message.size(), is_text);
  }
  void close(SitePeer& peer) {
    const std::lock_guard lock(mutex_);
    if (peers_.erase(&peer) > 0) site_.close(site_.context, &peer);
  }
  // Closes its peers and calls the site no more.
  void end() {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    for (SitePeer* const peer : peers_) {
      site_.close(site_.context, peer);
      SitePeer::end_peer(peer, kGoingAway, (format_code(code::run_is_over) + ": the page has ended").c_str());
    }
    peers_.clear();
  }

 private:
  const mr_site site_;
  const std::string title_;
  std::map<std::string, std::string> files_;
  std::mutex mutex_;
  std::set<SitePeer*> peers_;
  bool is_over_ = false;
};

class HandlerPages::Channel : public http::Channel {
 public:
  Channel(std::shared_ptr<Page> page, Pages& pages, http::Peer& peer, uint64_t number)
      : page_(std::move(page)), http_peer_(peer), guest_(pages), number_(number) {}
  ~Channel() override {
    if (peer_) page_->close(*peer_);
  }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  void take(std::string_view message) override {
    if (!guest_.is_admitted()) return greet(message);
    if (peer_) page_->take(*peer_, message, true);
  }
  void take_bytes(std::string_view message) override {
    if (!guest_.is_admitted()) return greet(message);
    if (peer_) page_->take(*peer_, message, false);
  }
  int64_t due_ms() const override { return INT64_MAX; }
  void give(int64_t) override {}

 private:
  void greet(std::string_view message) {
    Request hello;
    if (!guest_.greet(message, hello, http_peer_)) return;
    const bool steers = guest_.steers() && hello.params.value("role", nlohmann::ordered_json()) != "watch";
    http_peer_.send(result_line(hello.id, {{"role", steers ? "steer" : "watch"}, {"number", number_}}));
    peer_.emplace(http_peer_, steers, number_);
    if (page_->open(*peer_)) return;
    peer_.reset();
    http_peer_.close(kGoingAway, format_code(code::run_is_over) + ": the page has ended");
  }

  const std::shared_ptr<Page> page_;
  http::Peer& http_peer_;
  Guest guest_;
  const uint64_t number_;
  std::optional<SitePeer> peer_; // once it was let in
};

std::string pages_json(const std::vector<HandlerPage>& pages) {
  auto json = nlohmann::ordered_json::array();
  for (const HandlerPage& page : pages) json.push_back({{"title", page.title}, {"path", page.path}});
  return json.dump();
}

HandlerPages::HandlerPages(Pages& pages) : pages_(pages), register_(std::make_shared<Register>()) {}

std::shared_ptr<void> HandlerPages::add(const mr_site& site) {
  const std::string path = site.path;
  if (!is_path(path))
    throw Failure(code::page_not_served, "the path \"" + path +
                                             "\" of a page is no path: it has letters, digits, '-', "
                                             "'_', '.' and '/'");
  auto page = std::make_shared<Page>(site);
  const std::string key = "/" + path + "/";
  {
    const std::lock_guard lock(register_->mutex);
    if (!register_->by_path.emplace(key, page).second)
      throw Failure(code::page_not_served, "there is a page at " + key + " already");
  }
  return {page.get(), [known = register_, key, page](void*) {
            page->end();
            const std::lock_guard lock(known->mutex);
            known->by_path.erase(key);
          }};
}

std::vector<HandlerPage> HandlerPages::all() const {
  const std::lock_guard lock(register_->mutex);
  std::vector<HandlerPage> pages;
  for (const auto& [path, page] : register_->by_path) pages.push_back({page->title(), path});
  return pages;
}

std::shared_ptr<HandlerPages::Page> HandlerPages::find(const std::string& path) const {
  const size_t end = path.rfind('/');
  if (end == std::string::npos) return nullptr;
  const std::lock_guard lock(register_->mutex);
  const auto found = register_->by_path.find(path.substr(0, end + 1));
  return found == register_->by_path.end() ? nullptr : found->second;
}

http::Reply HandlerPages::file_at(const std::string& path) const {
  const std::string name = path.substr(path.rfind('/') + 1);
  const std::shared_ptr<Page> page = find(path);
  const std::string* const bytes = page ? page->file(name) : nullptr;
  if (!bytes) return {404, "there is no such file\n"};
  return {200, *bytes, std::string(content_type(name.empty() ? "index.html" : name))};
}

bool HandlerPages::has_channel(const std::string& path) const {
  return path.substr(path.rfind('/') + 1) == kChannelName && find(path);
}

std::unique_ptr<http::Channel> HandlerPages::open(const std::string& path, http::Peer& peer) {
  const std::shared_ptr<Page> page = find(path);
  return page ? std::make_unique<Channel>(page, pages_, peer, ++peers_) : nullptr;
}

} // namespace millrace::serve
