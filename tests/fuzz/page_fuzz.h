// A page from a stranger: messages, a line each, to the channel that lets pages in. `T` within a line is a token that
// steers, `W` one that watches, so that whatever comes after them is reached.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "serve/control.h"
#include "serve/page_channel.h"

namespace millrace::serve {
namespace fuzz {

inline const std::string kSteerToken = "5555aaaa5555aaaa5555aaaa5555aaaa";
inline const std::string kWatchToken = "6666bbbb6666bbbb6666bbbb6666bbbb";

// A peer that keeps what it is sent.
struct KeptPeer : http::Peer {
  std::vector<std::string> said;
  uint16_t closed = 0; // 0: open
  std::string reason;

  void send(std::string message) override { said.push_back(std::move(message)); }
  void send_bytes(std::string head, http::SharedBytes body) override {
    said.push_back(head.append(reinterpret_cast<const char*>(body.bytes), body.size));
  }
  void close(uint16_t code, std::string_view why) override {
    closed = code;
    reason = why;
  }
  Then then() override {
    return [](const std::function<void()>& what) { what(); };
  }
};

// A run that notes if it was changed.
struct NotedRun {
  int asked = 0, changed = 0;
  SteeredRun steered() {
    SteeredRun run;
    run.version = "1";
    run.elapsed_s = [] { return 1.0; };
    run.set = [this](const std::vector<exec::ParamChange>&, const SetDone& done) {
      ++changed;
      done({});
    };
    run.stop = [this] { ++changed; };
    run.describe = [this] {
      ++asked;
      return std::string("{}");
    };
    run.values = [this](const std::string&) {
      ++asked;
      return std::string("{}");
    };
    run.state = [this] {
      ++asked;
      return std::string("runs");
    };
    return run;
  }
};

inline std::string with_tokens(std::string_view line) {
  std::string text;
  for (const char c : line) text += c == 'T' ? kSteerToken : c == 'W' ? kWatchToken : std::string(1, c);
  return text;
}

} // namespace fuzz

// Returns the rule that is broken; null if none is.
inline const char* look_at_page(std::string_view lines) {
  using fuzz::kSteerToken;
  fuzz::NotedRun run;
  Control control(run.steered());
  Pages pages;
  pages.steer_token = kSteerToken;
  pages.watch_token = fuzz::kWatchToken;
  fuzz::KeptPeer peer;
  {
    PageChannel channel(pages, control, peer);
    std::string all_said;
    while (!lines.empty() && peer.closed == 0) {
      const size_t end = std::min(lines.find('\n'), lines.size());
      const std::string message = fuzz::with_tokens(lines.substr(0, end));
      lines.remove_prefix(std::min(end + 1, lines.size()));
      all_said += message;
      channel.take(message);
      if (channel.due_ms() < INT64_MAX) channel.give(channel.due_ms());
    }
    const bool had_token = all_said.find(kSteerToken) != std::string::npos;
    if (!had_token && all_said.find(fuzz::kWatchToken) == std::string::npos && run.asked > 0)
      return "without a token nothing is told of the run";
    if (!had_token && run.changed > 0) return "without the token that steers nothing is changed";
    if (pages.admitted > 1) return "a page has one place";
    if (peer.closed != 0 && peer.closed != kCloseNotAdmitted) return "a page that is not let in is told so";
    for (const std::string& line : peer.said)
      if (!nlohmann::json::accept(line)) return "each answer is JSON";
    for (const std::string& token : {kSteerToken, fuzz::kWatchToken})
      for (const std::string& line : peer.said)
        if (line.find(token) != std::string::npos && all_said.find(token) == std::string::npos)
          return "a token is not given away";
  }
  return pages.admitted == 0 ? nullptr : "a page that is gone leaves its place";
}

} // namespace millrace::serve
