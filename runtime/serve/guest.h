// A page at the door: it is let in if its first message is a hello with a token of the run, and has a place until it is
// gone. Pages of the run (page_channel.h) and of handlers (handler_pages.h) come in the same way.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "http/server.h"

namespace millrace::serve {

struct Request;

// Closing codes of a page's WebSocket, besides those of RFC 6455. The message before says why.
inline constexpr uint16_t kCloseNotAdmitted = 4001, kCloseNoPlace = 4002;

// The pages of one run. The server's thread has it, but for the counts, which any thread may read.
struct Pages {
  std::string steer_token, watch_token;
  size_t admitted = 0;
  std::atomic<uint64_t> wrong_tokens{0}, without_place{0};
};

class Guest {
 public:
  explicit Guest(Pages& pages) : pages_(pages) {} // which outlive it
  ~Guest() {
    if (is_admitted_) --pages_.admitted;
  }
  Guest(const Guest&) = delete;
  Guest& operator=(const Guest&) = delete;

  // Reads the first message. If the page is let in, `hello` is its request without the token. Else the peer is told why
  // and closed, and this is false.
  bool greet(std::string_view message, Request& hello, http::Peer& peer);
  bool is_admitted() const { return is_admitted_; }
  bool steers() const { return steers_; } // by its token

 private:
  void admit(Request& hello);

  Pages& pages_;
  bool is_admitted_ = false, steers_ = false;
};

} // namespace millrace::serve
