// Lets pages in and carries their messages; see page_channel.h.
#include "serve/page_channel.h"

#include <utility>

#include "serve/message.h"
#include "serve/taps.h"

namespace millrace::serve {

using nlohmann::ordered_json;

PageChannel::PageChannel(Pages& pages, Control& control, http::Peer& peer)
    : control_(control), peer_(peer), then_(peer.then()), guest_(pages) {
  client_.wake = [then = then_] { then([] {}); }; // the server's thread looks what is due
}

void PageChannel::take(std::string_view message) {
  if (!guest_.is_admitted()) return greet(message);
  // `then` does nothing once the peer is gone, and this channel with it.
  say(control_.take(client_, message,
                    [this, then = then_](const std::string& line) { then([this, line] { peer_.send(line); }); }));
}

int64_t PageChannel::due_ms() const { return Control::due_ms(client_); }

// One sample: the next goes once the page has read this one.
void PageChannel::give(int64_t now_ms) {
  for (std::string& line : control_.events(client_, now_ms)) peer_.send(std::move(line));
  if (const std::optional<Sample> sample = Control::sample(client_, now_ms)) peer_.send_bytes(sample_bytes(*sample));
}

void PageChannel::say(const Control::Answer& answer) {
  if (!answer.line.empty()) peer_.send(answer.line);
}

// Gives the hello of a page that is let in to the run, which answers it.
void PageChannel::greet(std::string_view message) {
  Request hello;
  if (!guest_.greet(message, hello, peer_)) return;
  client_.may_steer = guest_.steers();
  const ordered_json rest = {
      {"jsonrpc", "2.0"}, {"id", hello.id}, {"method", "hello"}, {"params", std::move(hello.params)}};
  say(control_.take(client_, rest.dump(), {}));
}

} // namespace millrace::serve
