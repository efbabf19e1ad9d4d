// A page's end of the conversation: lets it in if it has a token, and then carries messages between it and the run.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "http/server.h"
#include "serve/control.h"

namespace millrace::serve {

struct Request;

// Closing codes of the page's WebSocket, besides those of RFC 6455. The message before says why.
inline constexpr uint16_t kCloseNotAdmitted = 4001, kCloseNoPlace = 4002;

// The pages of one run. The server's thread has it, but for the counts, which any thread may read.
struct Pages {
  std::string steer_token, watch_token;
  size_t admitted = 0;
  std::atomic<uint64_t> wrong_tokens{0}, without_place{0};
};

class PageChannel : public http::Channel {
 public:
  // All three outlive it.
  PageChannel(Pages& pages, Control& control, http::Peer& peer);
  ~PageChannel() override;
  PageChannel(const PageChannel&) = delete;
  PageChannel& operator=(const PageChannel&) = delete;

  void take(std::string_view message) override;
  int64_t due_ms() const override;
  void give(int64_t now_ms) override;

 private:
  void greet(std::string_view message);
  void admit(Request& hello);
  void say(const Control::Answer& answer);

  Pages& pages_;
  Control& control_;
  http::Peer& peer_;
  const http::Peer::Then then_;
  Control::Client client_;
  bool is_admitted_ = false;
};

} // namespace millrace::serve
