// The channel of a page: which tokens let it in, with which role, and 100,000 odd messages.
#include "serve/page_channel.h"

#include <doctest/doctest.h>

#include <random>

#include "serve/message.h"
#include "serve/web.h"
#include "tests/fuzz/page_fuzz.h"
#include "tests/seed.h"

using namespace millrace;
using namespace millrace::serve;
using fuzz::KeptPeer;
using nlohmann::ordered_json;

namespace {

struct Conversation {
  fuzz::NotedRun run;
  Control control{run.steered()};
  Pages pages;

  Conversation() {
    pages.steer_token = fuzz::kSteerToken;
    pages.watch_token = fuzz::kWatchToken;
  }
  static std::string hello(const ordered_json& more) {
    ordered_json params = {{"protocol", kProtocol}, {"role", "steer"}};
    params.update(more);
    return ordered_json{{"jsonrpc", "2.0"}, {"id", 1}, {"method", "hello"}, {"params", params}}.dump();
  }
};

ordered_json last_of(const KeptPeer& peer) { return ordered_json::parse(peer.said.back()); }

} // namespace

TEST_CASE("The token decides on the role") {
  Conversation talk;
  for (const auto& [token, asked, granted] : {std::tuple{fuzz::kSteerToken, "steer", "steer"},
                                              {fuzz::kSteerToken, "watch", "watch"},
                                              {fuzz::kWatchToken, "steer", "watch"},
                                              {fuzz::kWatchToken, "watch", "watch"}}) {
    KeptPeer peer;
    PageChannel channel(talk.pages, talk.control, peer);
    channel.take(Conversation::hello({{"token", token}, {"role", asked}}));
    CHECK(last_of(peer)["result"]["role"] == granted);
    channel.take(R"({"jsonrpc": "2.0", "id": 2, "method": "stop"})");
    CHECK(last_of(peer).contains("result") == (std::string(granted) == "steer"));
  }
  CHECK(talk.run.changed == 1);
  CHECK(talk.pages.admitted == 0);
}

TEST_CASE("A token that is nearly right is wrong") {
  Conversation talk;
  std::vector<std::string> tokens = {"",
                                     "x",
                                     fuzz::kSteerToken + "0",
                                     fuzz::kSteerToken.substr(1),
                                     fuzz::kSteerToken.substr(0, 31),
                                     std::string(100'000, '5')};
  for (size_t n = 0; n < fuzz::kSteerToken.size(); ++n) {
    tokens.push_back(fuzz::kSteerToken);
    tokens.back()[n] ^= 1;
  }
  for (const std::string& token : tokens) {
    KeptPeer peer;
    PageChannel channel(talk.pages, talk.control, peer);
    channel.take(Conversation::hello({{"token", token}}));
    CHECK(last_of(peer)["error"]["data"]["code"] == "MR0119");
    CHECK(peer.closed == kCloseNotAdmitted);
  }
  CHECK(talk.pages.wrong_tokens == tokens.size());
}

TEST_CASE("A page has a place until it is gone") {
  Conversation talk;
  std::vector<KeptPeer> peers(kPagesMax + 1);
  std::vector<std::unique_ptr<PageChannel>> channels;
  for (KeptPeer& peer : peers) {
    channels.push_back(std::make_unique<PageChannel>(talk.pages, talk.control, peer));
    channels.back()->take(Conversation::hello({{"token", fuzz::kWatchToken}}));
  }
  CHECK(peers.back().closed == kCloseNoPlace);
  CHECK(peers[kPagesMax - 1].closed == 0);
  CHECK(talk.pages.without_place == 1);
  channels.clear();
  CHECK(talk.pages.admitted == 0);
}

TEST_CASE("A page gets the events that it has asked for") {
  Conversation talk;
  KeptPeer peer;
  PageChannel channel(talk.pages, talk.control, peer);
  channel.take(Conversation::hello({{"token", fuzz::kWatchToken}}));
  CHECK(channel.due_ms() == INT64_MAX);
  channel.take(R"({"jsonrpc": "2.0", "id": 2, "method": "subscribe", "params": {"topics": ["state"]}})");
  CHECK(channel.due_ms() < INT64_MAX);
  channel.give(channel.due_ms());
  CHECK(last_of(peer)["method"] == "state");
}

TEST_CASE("100,000 odd messages get in nowhere and change nothing") {
  std::mt19937 random(random_seed());
  INFO("seed " << random_seed());
  const auto below = [&](size_t most) { return random() % most; };
  const auto request = [](const std::string& rest) { return R"({"jsonrpc":"2.0","id":1,"method":)" + rest + "}"; };
  const std::vector<std::string> parts = {request(R"("hello","params":{"protocol":3,"token":"T"})"),
                                          request(R"("hello","params":{"protocol":3,"token":"W","role":"steer"})"),
                                          request(R"("stop")"),
                                          request(R"("set","params":{"changes":{"blur.sigma":4}})"),
                                          request(R"("subscribe","params":{"topics":["state"],"hz":20})"),
                                          R"({"jsonrpc":"2.0","method":"describe"})",
                                          "[]",
                                          "{",
                                          "null",
                                          "\xff\xfe",
                                          "{\"id\":{}}"};
  for (int messages = 0; messages < 100'000;) {
    std::string lines;
    for (size_t n = 1 + below(6); n > 0; --n, ++messages) {
      std::string line = parts[below(parts.size())];
      for (size_t changes = below(3); changes > 0 && !line.empty(); --changes) {
        const size_t at = below(line.size());
        if (below(2) == 0)
          line[at] = static_cast<char>(random());
        else
          line.insert(at, 1 + below(4), line[below(line.size())]);
      }
      lines += line + "\n";
    }
    const char* const broken = look_at_page(lines);
    REQUIRE_MESSAGE(!broken, broken << " after " << lines);
  }
}
