// A page's end of the conversation: lets it in if it has a token, and then carries messages between it and the run.
#pragma once

#include <cstdint>
#include <string_view>

#include "http/server.h"
#include "serve/control.h"
#include "serve/guest.h"

namespace millrace::serve {

class PageChannel : public http::Channel {
 public:
  // All three outlive it.
  PageChannel(Pages& pages, Control& control, http::Peer& peer);
  PageChannel(const PageChannel&) = delete;
  PageChannel& operator=(const PageChannel&) = delete;

  void take(std::string_view message) override;
  int64_t due_ms() const override;
  void give(int64_t now_ms) override;

 private:
  void greet(std::string_view message);
  void say(const Control::Answer& answer);

  Control& control_;
  http::Peer& peer_;
  const http::Peer::Then then_;
  Control::Client client_;
  Guest guest_;
};

} // namespace millrace::serve
