// Hides passwords, tokens and keys of addresses in text that leaves the program.
//
// An address may carry a secret: rtsp://admin:PASSWORD@camera/live, https://host/live.m3u8?token=TOKEN,
// srt://host:9000?passphrase=PHRASE, rtmp://host/app/STREAM-KEY. Such an address comes back in many sentences: of the
// runtime, of handlers, and of the libraries that they use. So secrets are hidden at the few places through which text
// leaves: format_error(), the log, printable(), and the JSON and the text of plans, reports and answers. Inside, and in
// what handlers and other nodes get, addresses stay whole.
//
// Text is searched for addresses, so nothing has to be registered, and the words of a library are covered too. Each
// secret becomes ***. Where an address can be read in two ways, more is hidden rather than less.
#pragma once

#include <string>
#include <string_view>

namespace millrace {

// The text with *** in place of
//   - user and password of an address, also if the password has '@', '/', '?', '#' or blanks, if the scheme is missing
//     or misspelled, or if the whole address is percent-encoded within another one,
//   - the value of a key such as token=, key=, secret=, sig=, auth=, password=, passphrase= or streamid= in an address,
//     or after '?' or '&' in any word,
//   - the path of an RTMP address from its second part on, which is the stream's key,
//   - the value of an Authorization header.
// Hiding twice changes nothing more.
std::string without_secrets(std::string_view text);

// False: without_secrets() would change nothing. Allocates nothing.
bool may_have_secrets(std::string_view text) noexcept;

// Hides the secrets in all texts of a JSON document of any type of nlohmann's.
template <class Json>
void hide_secrets(Json& json) {
  if (json.is_string()) {
    const auto& text = json.template get_ref<const std::string&>();
    if (may_have_secrets(text)) json = without_secrets(text);
  } else if (json.is_structured()) {
    for (Json& item : json) hide_secrets(item);
  }
}

} // namespace millrace
