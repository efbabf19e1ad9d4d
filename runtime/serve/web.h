// The page of a run: its files and its WebSocket, which carries the messages of control.h.
//
// The run prints a link to the page. The link has a token in its fragment, which browsers send to no server, and the
// page says the token in its first message. There are two tokens: with one a page may steer, with the other it watches.
// Everything that a peer may do is bounded (http/server.h). At most kPagesMax pages are let in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "http/server.h"

namespace millrace::serve {

class Control;

// A page costs the run a snapshot of its counters; so many people look at one run.
inline constexpr size_t kPagesMax = 16;

// A free port of the loopback, which --web means.
inline constexpr const char* kWebAddress = "127.0.0.1:0";

struct WebOptions {
  std::string address = kWebAddress; // "HOST:PORT", as --web-listen gives it
  std::vector<std::string> names{};  // further hosts by which requests may call this machine, as --web-host gives them
};

// Requests, connections and pages that were refused, by cause.
struct WebRefusals : http::Refusals {
  uint64_t token = 0, no_place = 0;
};

class Web {
 public:
  // Listens from now on; pages wait until serve(). Throws Failure as http::Server does.
  explicit Web(const WebOptions& options);
  ~Web(); // as stop()
  Web(const Web&) = delete;
  Web& operator=(const Web&) = delete;

  std::string link() const; // with the token that steers
  std::string watch_link() const;
  bool is_on_loopback() const;
  // `control` outlives this object, or stop().
  void serve(Control& control);
  // Pages are told that the run is over.
  void stop();
  WebRefusals refusals() const; // any thread

 private:
  class Site;
  std::unique_ptr<Site> site_;
};

} // namespace millrace::serve
