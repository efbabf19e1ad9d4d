// Finds addresses in text, and the secrets in them; see secrets.h.
#include "observe/secrets.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

namespace millrace {

namespace {

constexpr std::string_view kHidden = "***";
// More than any address of a host and its port have.
constexpr size_t kHostMax = 80;
// A password with a blank or a quote is looked for no farther than this. Longer ones are not typed by people.
constexpr size_t kPasswordMax = 256;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_scheme_char(char c) { return is_letter(c) || is_digit(c) || c == '+' || c == '-' || c == '.'; }
bool is_quote(char c) { return c == '\'' || c == '"' || c == '`'; }
bool ends_word(char c) {
  return static_cast<unsigned char>(c) <= ' ' || c == '\x7f' || is_quote(c) || c == '<' || c == '>';
}

char in_lower_case(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
std::string in_lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = in_lower_case(c);
  return lower;
}

int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  c = in_lower_case(c);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// The text with its %40 as '@' and the like, and the place in the source of each of its characters. Codes of blanks,
// quotes and bytes that are not ASCII stay as they are: they would end a word that goes on.
struct Decoded {
  std::string text;
  std::vector<size_t> from; // one more than characters: the source's end
};
Decoded decoded(std::string_view source) {
  Decoded out;
  out.text.reserve(source.size());
  out.from.reserve(source.size() + 1);
  for (size_t at = 0; at < source.size();) {
    out.from.push_back(at);
    const int high = source[at] == '%' && at + 2 < source.size() ? hex_value(source[at + 1]) : -1;
    const int low = high < 0 ? -1 : hex_value(source[at + 2]);
    const auto code = static_cast<char>(low < 0 ? 0 : high * 16 + low);
    const bool is_code = low >= 0 && code > ' ' && code < '\x7f' && !ends_word(code);
    out.text += is_code ? code : source[at];
    at += is_code ? 3 : 1;
  }
  out.from.push_back(source.size());
  return out;
}

// Keys of an address whose values are secret, in lower case, without '-', '_', '.' and brackets. A key that ends with
// one of the first is meant too: access_token, X-Amz-Signature, stream-key.
constexpr std::array<std::string_view, 18> kEndings = {
    "token",    "key",  "secret", "sig",           "signature", "auth",       "password", "passwd",  "passphrase",
    "passwort", "pass", "pwd",    "authorization", "jwt",       "credential", "hmac",     "session", "sessionid"};
constexpr std::array<std::string_view, 10> kKeys = {"pw",    "psw",   "pin",   "sid",      "hash",
                                                    "hdnts", "hdnea", "hdntl", "streamid", "credentials"};
bool is_secret_key(std::string_view written) {
  std::string key;
  for (const char c : written)
    if (is_letter(c) || is_digit(c)) key += in_lower_case(c);
  const auto ends_so = [&](std::string_view ending) { return key.ends_with(ending); };
  return std::any_of(kEndings.begin(), kEndings.end(), ends_so) ||
         std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end();
}

constexpr std::array<std::string_view, 7> kWithStreamKeys = {"rtmp",  "rtmps",  "rtmpt",     "rtmpts",
                                                             "rtmpe", "rtmpte", "ffrtmphttp"};

class Search {
 public:
  explicit Search(std::string_view text) : text_(text) {}

  // Begin and end of each secret, in the order of the text; they do not overlap.
  std::vector<std::pair<size_t, size_t>> secrets() {
    find_addresses();
    find_words();
    find_headers();
    std::sort(found_.begin(), found_.end());
    std::vector<std::pair<size_t, size_t>> merged;
    for (const auto& [begin, end] : found_) {
      if (begin >= end) continue;
      if (!merged.empty() && begin <= merged.back().second)
        merged.back().second = std::max(merged.back().second, end);
      else
        merged.emplace_back(begin, end);
    }
    return merged;
  }

 private:
  static constexpr size_t kNone = std::string_view::npos;

  size_t word_end(size_t at, size_t limit) const {
    while (at < limit && !ends_word(text_[at])) ++at;
    return at;
  }
  // The first of these characters in [at, end); `end` if there is none.
  size_t first_of(const char* characters, size_t at, size_t end) const {
    return std::min(text_.substr(0, end).find_first_of(characters, at), end);
  }
  bool is_port(size_t begin, size_t end) const {
    return end - begin <= 5 && std::all_of(text_.begin() + static_cast<std::ptrdiff_t>(begin),
                                           text_.begin() + static_cast<std::ptrdiff_t>(end), is_digit);
  }

  // True if a host certainly begins at `at`: an IP address or localhost, and then nothing but a port.
  bool is_sure_host(size_t at, size_t text_end) const {
    const size_t end = std::min(text_end, at + kHostMax);
    size_t after = at;
    if (after < end && text_[after] == '[') {
      after = first_of("]", after, end);
      if (after == end) return false;
      ++after;
    } else {
      after = first_of("/?#:", at, end);
      const std::string_view host = text_.substr(at, after - at);
      const bool has_digits = std::all_of(host.begin(), host.end(), [](char c) { return is_digit(c) || c == '.'; });
      const bool is_ip = has_digits && std::count(host.begin(), host.end(), '.') == 3;
      if (!is_ip && in_lower_case(host) != "localhost") return false;
    }
    if (after < end && text_[after] == ':') {
      const size_t port = after + 1;
      after = first_of("/?#", port, end);
      if (!is_port(port, after)) return false;
    }
    return after == end || std::string_view("/?#").find(text_[after]) != kNone;
  }

  void find_addresses() {
    size_t next = text_.find("://");
    while (next != kNone) {
      const size_t mark = next, begin = mark + 3;
      size_t scheme = mark;
      while (scheme > 0 && is_scheme_char(text_[scheme - 1])) --scheme;
      while (scheme < mark && !is_letter(text_[scheme])) ++scheme; // "--rtmp://…"
      next = text_.find("://", begin);
      size_t limit = std::min(next, text_.size()); // an address within the address, or beside it
      while (next != kNone && limit > begin && is_scheme_char(text_[limit - 1])) --limit;
      const size_t end = end_of_address(scheme, begin, limit);
      const size_t host = find_user(begin, end);
      find_keys(begin, end);
      if (const std::string name = in_lower_case(text_.substr(scheme, mark - scheme));
          std::find(kWithStreamKeys.begin(), kWithStreamKeys.end(), name) != kWithStreamKeys.end())
        find_stream_key(host, end);
    }
  }

  // A quoted address goes to the other quote, since it may have blanks.
  size_t end_of_address(size_t scheme, size_t begin, size_t limit) const {
    const size_t end = word_end(begin, limit);
    if (scheme == 0 || !is_quote(text_[scheme - 1])) return end;
    const char others[] = {text_[scheme - 1], '\n', '\0'};
    const size_t quote = first_of(others, begin, limit);
    return quote < limit && text_[quote] != '\n' ? quote : end;
  }

  // Finds user and password of the address whose part after "://" is [begin, end). Returns where its host begins.
  size_t find_user(size_t begin, size_t end) {
    if (is_sure_host(begin, end)) return begin;
    const size_t authority = first_of("/?#", begin, end);
    const size_t colon = first_of(":", begin, authority);
    size_t last = first_of("@", begin, end);
    if (last == end) {
      if (colon == authority || colon + 1 == authority || is_port(colon + 1, authority)) return begin;
      return find_cut_user(begin, colon, authority, end);
    }
    if (last > authority && colon == authority) return begin; // https://host/@name
    for (size_t more = first_of("@", last + 1, end); more < end; more = first_of("@", more + 1, end)) {
      if (is_sure_host(last + 1, end)) break;
      last = more;
    }
    found_.emplace_back(begin, last);
    return last + 1;
  }

  // "admin:my" is no host and port: a blank or a quote is in the password, or the text ends within it.
  size_t find_cut_user(size_t begin, size_t colon, size_t authority, size_t end) {
    if (in_lower_case(text_.substr(colon + 1, authority - colon - 1)) == "port") return begin; // a placeholder
    if (end < text_.size() && ends_word(text_[end])) {
      const std::string_view line = text_.substr(end, kPasswordMax);
      const size_t at = line.find_first_of("@\n");
      if (at != kNone && line[at] == '@' && line.substr(0, at).find("://") == kNone) {
        found_.emplace_back(begin, end + at);
        return end + at + 1;
      }
    }
    const std::string_view rest = text_.substr(authority);
    if (rest.empty() || rest.starts_with("…") || text_.substr(begin, authority - begin).find("…") != kNone)
      found_.emplace_back(colon + 1, authority);
    return begin;
  }

  void find_keys(size_t begin, size_t end) {
    for (size_t equals = first_of("=", begin, end); equals < end; equals = first_of("=", equals + 1, end)) {
      size_t key = equals;
      const auto is_key_char = [](char c) {
        return is_letter(c) || is_digit(c) || std::string_view("-_.[]").find(c) != kNone;
      };
      while (key > begin && is_key_char(text_[key - 1])) --key;
      if (!is_secret_key(text_.substr(key, equals - key))) continue;
      size_t value_end = first_of("&", equals, end);
      if (value_end == end) // the punctuation of the sentence
        while (value_end > equals + 1 && std::string_view(":,.;)]}").find(text_[value_end - 1]) != kNone) --value_end;
      found_.emplace_back(equals + 1, value_end);
      equals = value_end - 1;
    }
  }

  void find_stream_key(size_t host, size_t end) {
    const size_t app = first_of("/", host, end);
    const size_t key = app == end ? end : first_of("/", app + 1, end);
    if (key < end) found_.emplace_back(key + 1, end);
  }

  // Words without "://": an address whose scheme is missing or misspelled, or the end of one.
  void find_words() {
    for (size_t begin = 0; begin < text_.size();) {
      const size_t end = word_end(begin, text_.size());
      const std::string_view word = text_.substr(begin, end - begin);
      if (word.size() > 2 && word.find("://") == kNone) {
        find_bare_user(begin, end);
        if (const size_t query = first_of("?&", begin, end); query < end) find_keys(query, end);
      }
      begin = end + 1;
    }
  }

  // admin:password@camera/live. An instance such as draw@gate7 is none: a host has a dot, a port or a path.
  void find_bare_user(size_t begin, size_t end) {
    const size_t colon = first_of(":", begin, end);
    const size_t at = text_.substr(0, end).rfind('@');
    if (colon == end || at == kNone || at <= colon + 1 || at + 1 == end) return;
    const std::string_view user = text_.substr(begin, colon - begin);
    const auto may_be = [](char c) {
      return is_letter(c) || is_digit(c) || std::string_view("._-+=/\\%*").find(c) != kNone;
    };
    if (user.empty() || !std::all_of(user.begin(), user.end(), may_be)) return;
    const size_t host_end = first_of(".:/?#", at + 1, end);
    const bool begins_host = text_[at + 1] == '[' || is_letter(text_[at + 1]) || is_digit(text_[at + 1]);
    const bool is_host = text_[at + 1] == '[' || host_end + 1 < end ||
                         in_lower_case(text_.substr(at + 1, host_end - at - 1)) == "localhost";
    if (begins_host && is_host) found_.emplace_back(colon + 1, at);
  }

  void find_headers() {
    constexpr std::string_view kHeader = "authorization:";
    const auto same = [](char a, char b) { return in_lower_case(a) == b; };
    for (auto at = text_.begin();;) {
      at = std::search(at, text_.end(), kHeader.begin(), kHeader.end(), same);
      if (at == text_.end()) return;
      size_t begin = static_cast<size_t>(at - text_.begin()) + kHeader.size();
      while (begin < text_.size() && text_[begin] == ' ') ++begin;
      const size_t end = first_of("\r\n'\"", begin, text_.size());
      found_.emplace_back(begin, end);
      at = text_.begin() + static_cast<std::ptrdiff_t>(end);
    }
  }

  const std::string_view text_;
  std::vector<std::pair<size_t, size_t>> found_;
};

} // namespace

bool may_have_secrets(std::string_view text) noexcept {
  // Each kind has one of these: user@, key=, a percent-encoded address, a scheme, a header.
  return text.find_first_of("@=%") != std::string_view::npos || text.find("://") != std::string_view::npos ||
         text.find("uthorization:") != std::string_view::npos;
}

std::string without_secrets(std::string_view text) {
  if (!may_have_secrets(text)) return std::string(text);
  const Decoded plain = decoded(text);
  std::string out;
  size_t copied = 0;
  for (const auto& [begin, end] : Search(plain.text).secrets()) {
    out += text.substr(copied, plain.from[begin] - copied);
    out += kHidden;
    copied = plain.from[end];
  }
  return out + std::string(text.substr(copied));
}

} // namespace millrace
