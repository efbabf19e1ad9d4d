// The pages of handlers (mr_site in abi.h): their files, and the WebSockets by which they talk with browsers.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "http/server.h"
#include "millrace/abi.h"
#include "serve/guest.h"

namespace millrace::serve {

struct HandlerPage {
  std::string title, path; // the path as a link has it: "/view/main/"
};

// A JSON array for the answer to describe: [{"title", "path"}].
std::string pages_json(const std::vector<HandlerPage>& pages);

// Any thread may call it.
class HandlerPages {
 public:
  explicit HandlerPages(Pages& pages); // they outlive it

  // The page is there until what is returned is gone; no function of `site` is called from then on. Throws Failure,
  // MR0613: the path is taken, or it cannot be part of an address.
  std::shared_ptr<void> add(const mr_site& site);
  std::vector<HandlerPage> all() const; // by path
  // The file at a path; status 404 if there is none.
  http::Reply file_at(const std::string& path) const;
  bool has_channel(const std::string& path) const;
  // Called by the server's thread. Null: the page is gone.
  std::unique_ptr<http::Channel> open(const std::string& path, http::Peer& peer);

 private:
  class Page;
  class Channel;
  std::shared_ptr<Page> find(const std::string& path) const; // by the path of its channel

  struct Register {
    std::mutex mutex;
    std::map<std::string, std::shared_ptr<Page>> by_path; // "/view/main/"
  };

  Pages& pages_;
  const std::shared_ptr<Register> register_; // a page may be given back when this object is gone
  uint64_t peers_ = 0;                       // how many there have been; the server's thread
};

} // namespace millrace::serve
