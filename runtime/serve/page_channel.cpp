// Lets pages in and carries their messages; see page_channel.h.
#include "serve/page_channel.h"

#include <openssl/crypto.h>

#include <utility>

#include "observe/error.h"
#include "observe/error_codes.h"
#include "serve/message.h"
#include "serve/taps.h"
#include "serve/web.h"

namespace millrace::serve {

using nlohmann::ordered_json;

namespace {

// Compares in a time that does not tell how much of `given` is right.
bool is_token(std::string_view given, std::string_view token) {
  return given.size() == token.size() && CRYPTO_memcmp(given.data(), token.data(), token.size()) == 0;
}

} // namespace

PageChannel::PageChannel(Pages& pages, Control& control, http::Peer& peer)
    : pages_(pages), control_(control), peer_(peer), then_(peer.then()) {
  client_.wake = [then = then_] { then([] {}); }; // the server's thread looks what is due
}

PageChannel::~PageChannel() {
  if (is_admitted_) --pages_.admitted;
}

void PageChannel::take(std::string_view message) {
  if (!is_admitted_) return greet(message);
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

// Reads the first message, which has to be a hello with a token, and gives the rest of it to the run.
void PageChannel::greet(std::string_view message) {
  Request hello;
  try {
    read_request(message, hello);
    if (hello.method != "hello") throw Refused(RpcCode::no_hello, "hello comes first, with the token of the link");
    admit(hello);
  } catch (const Refused& refused) {
    peer_.send(error_line(hello.id, refused));
    return peer_.close(refused.code() == RpcCode::busy ? kCloseNoPlace : kCloseNotAdmitted, refused.what());
  }
  const ordered_json rest = {
      {"jsonrpc", "2.0"}, {"id", hello.id}, {"method", "hello"}, {"params", std::move(hello.params)}};
  say(control_.take(client_, rest.dump(), {}));
}

// Throws Refused: the token is not one of this run, the page is of another version, or there is no place.
void PageChannel::admit(Request& hello) {
  const auto given = hello.params.find("token");
  const std::string token = given != hello.params.end() && given->is_string() ? given->get<std::string>() : "";
  const bool steers = is_token(token, pages_.steer_token);
  if (!steers && !is_token(token, pages_.watch_token)) {
    ++pages_.wrong_tokens;
    throw Refused(Error{code::page_not_admitted,
                        token.empty() ? "the page was opened without a token" : "the token is not one of this run",
                        {},
                        {"each run prints a link of its own: open that one"},
                        "",
                        ""});
  }
  hello.params.erase("token");
  if (hello.params.value("protocol", ordered_json()) != kProtocol)
    throw Refused(Error{code::old_page,
                        "the page is of another version of millrace than the run",
                        {},
                        {"reload the page: the run gives its own"},
                        "",
                        ""});
  if (pages_.admitted >= kPagesMax) {
    ++pages_.without_place;
    throw Refused(RpcCode::busy, format_code(code::page_without_place) + ": " + std::to_string(kPagesMax) +
                                     " pages show this run, as many as it serves");
  }
  ++pages_.admitted;
  is_admitted_ = true;
  client_.may_steer = steers;
}

} // namespace millrace::serve
