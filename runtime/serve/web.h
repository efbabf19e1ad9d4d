// The program's one web server: the page of the run, whose WebSocket carries the messages of control.h, and the pages
// of handlers.
//
// The run prints a link to each page. The link has a token in its fragment, which browsers send to no server, and the
// page says the token in its first message. There are two tokens: with one a page may steer, with the other it watches.
// Everything that a peer may do is bounded (http/server.h). At most kPagesMax pages are let in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "exec/page_server.h"
#include "http/server.h"
#include "serve/handler_pages.h"

namespace millrace::serve {

class Control;

// A page costs the run a snapshot of its counters; so many people look at one run.
inline constexpr size_t kPagesMax = 16;

// A free port of the loopback, which --web means.
inline constexpr const char* kWebAddress = "127.0.0.1:0";

struct WebOptions {
  // "HOST:PORT", as --web-listen gives it; "": there is no page of the run, and the first page of a handler says where
  // the server listens.
  std::string address = kWebAddress;
  // Further hosts by which requests may call this machine, as --web-host gives them.
  std::vector<std::string> names{};
  http::Certificate certificate{}; // for https; empty: plain HTTP
  // Called for each page of a handler, with its link.
  std::function<void(const HandlerPage&, const std::string& link, const std::string& watch_link)> on_page{};
};

// Requests, connections and pages that were refused, by cause.
struct WebRefusals : http::Refusals {
  uint64_t token = 0, no_place = 0;
};

class Web final : public exec::PageServer {
 public:
  // Listens from now on, if it has an address; pages wait until a page is served. Throws Failure as http::Server does.
  explicit Web(WebOptions options);
  ~Web() override; // as stop()
  Web(const Web&) = delete;
  Web& operator=(const Web&) = delete;

  // Leads to the page of the run, with the token that steers.
  std::string link() const;
  std::string watch_link() const;
  bool listens() const; // anywhere
  // True if what goes over the wire can be read by others: plain HTTP, and not on the loopback.
  bool is_readable_on_the_way() const;
  // The page of the run, from now on. `control` outlives this object, or stop().
  void serve(Control& control);
  // The page of a handler. Throws Failure: MR0613, and what http::Server throws.
  std::shared_ptr<void> serve(const mr_site& site) override;
  std::vector<HandlerPage> pages() const; // those of handlers
  // Pages are told that the run is over.
  void stop();
  WebRefusals refusals() const; // any thread

 private:
  class Site;
  std::unique_ptr<Site> site_;
};

} // namespace millrace::serve
