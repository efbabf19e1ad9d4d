// Looks at tokens and counts places; see guest.h.
#include "serve/guest.h"

#include <openssl/crypto.h>

#include "observe/error.h"
#include "observe/error_codes.h"
#include "serve/message.h"
#include "serve/web.h"

namespace millrace::serve {

using nlohmann::ordered_json;

namespace {

// Compares in a time that does not tell how much of `given` is right.
bool is_token(std::string_view given, std::string_view token) {
  return given.size() == token.size() && CRYPTO_memcmp(given.data(), token.data(), token.size()) == 0;
}

} // namespace

bool Guest::greet(std::string_view message, Request& hello, http::Peer& peer) {
  try {
    read_request(message, hello);
    if (hello.method != "hello") throw Refused(RpcCode::no_hello, "hello comes first, with the token of the link");
    admit(hello);
    return true;
  } catch (const Refused& refused) {
    peer.send(error_line(hello.id, refused));
    peer.close(refused.code() == RpcCode::busy ? kCloseNoPlace : kCloseNotAdmitted, refused.what());
    return false;
  }
}

// Throws Refused: the token is not one of this run, the page is of another version, or there is no place.
void Guest::admit(Request& hello) {
  const auto given = hello.params.find("token");
  const std::string token = given != hello.params.end() && given->is_string() ? given->get<std::string>() : "";
  steers_ = is_token(token, pages_.steer_token);
  if (!steers_ && !is_token(token, pages_.watch_token)) {
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
}

} // namespace millrace::serve
