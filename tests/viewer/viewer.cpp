// A viewer with pages, and what it makes of their messages.
#include "plugins/viewer/viewer.h"

#include <doctest/doctest.h>

#include <string>

#include "fake_page.h"

using namespace millrace;
using namespace millrace::viewer;
using test::FakePage;

namespace {

struct Talk {
  int64_t now_ns = 1'000'000'000;
  Viewer viewer;
  Talk() {
    ViewerOptions options;
    options.codecs = {Codec::jpeg};
    options.now_ns = [this] { return now_ns; };
    viewer.begin(std::move(options));
  }
  ~Talk() { viewer.end(); }
  void say(FakePage& page, const std::string& text) { viewer.take(&page, text, true); }
  void event(FakePage& page, uint32_t seq) {
    say(page, R"({"type": "event", "kind": "down", "x": 1, "y": 2, "seq": )" + std::to_string(seq) + "}");
  }
};

size_t count_of(FakePage& page, const std::string& type) {
  size_t count = 0;
  for (const auto& text : page.texts()) count += text.value("type", "") == type;
  return count;
}

} // namespace

TEST_CASE("A page is welcomed with what it may do and how pictures come") {
  Talk talk;
  FakePage page(3, false);
  talk.viewer.open(&page);
  const nlohmann::json welcome = page.texts().at(0);
  CHECK(welcome["type"] == "welcome");
  CHECK(welcome["viewer"] == 3);
  CHECK(welcome["steers"] == false);
  CHECK(welcome["codecs"] == nlohmann::json{"jpeg"});
  talk.viewer.close(&page);
}

TEST_CASE("What happened is given once, and the states at the beginning and when they change") {
  Talk talk;
  FakePage page(1);
  talk.viewer.open(&page);
  Happened first = talk.viewer.take(0, true);
  CHECK(first.events.empty());
  CHECK(first.camera.size() + first.look.size() + first.dims.size() == 3);
  CHECK(!talk.viewer.take(10, false).is_anything());
  talk.event(page, 1);
  talk.event(page, 2);
  talk.say(page, R"({"type": "look", "gamma": 2})");
  const Happened then = talk.viewer.take(20, false);
  CHECK(then.events.size() == 2);
  CHECK(then.events[1].viewer == 1);
  CHECK(then.camera.empty());
  REQUIRE(then.look.size() == 1);
  CHECK(then.look[0].gamma == 2);
  CHECK(then.has_pointer);
  CHECK(!talk.viewer.take(30, false).is_anything());
  talk.viewer.close(&page);
}

TEST_CASE("Control runs out, and all pages are told who has it") {
  Talk talk;
  FakePage first(1), second(2), watcher(3, false);
  for (FakePage* page : {&first, &second, &watcher}) talk.viewer.open(page);
  talk.event(first, 1);
  for (FakePage* page : {&first, &second, &watcher})
    CHECK(page->texts().back() == nlohmann::json{{"type", "control"}, {"control", 1}});
  talk.event(second, 1);
  CHECK(count_of(second, "refused") == 1);
  talk.now_ns += kLeaseNs;
  talk.viewer.take(0, false); // somebody looks
  CHECK(watcher.texts().back() == nlohmann::json{{"type", "control"}, {"control", 0}});
  talk.event(second, 2);
  CHECK(watcher.texts().back() == nlohmann::json{{"type", "control"}, {"control", 2}});
  CHECK(talk.viewer.take(0, false).events.at(0).seq == 2);
  talk.say(watcher, R"({"type": "take"})");
  CHECK(count_of(watcher, "refused") == 1);
  CHECK(talk.viewer.counts().refused_input == 2);
  for (FakePage* page : {&first, &second, &watcher}) talk.viewer.close(page);
}

TEST_CASE("A number of an event that does not rise, and too many messages, end a page") {
  Talk talk;
  FakePage again(1), fast(2), calm(3);
  for (FakePage* page : {&again, &fast, &calm}) talk.viewer.open(page);
  talk.event(again, 5);
  talk.event(again, 5);
  CHECK(again.ended_code() == kCloseRubbish);
  CHECK(again.ended_reason() == "event: seq is 5 after 5");
  for (int64_t n = 1; n <= kMessagesAtOnce; ++n) talk.say(fast, R"({"type": "ping", "at": 1})");
  CHECK(fast.ended_code() == 0);
  talk.say(fast, R"({"type": "ping", "at": 1})");
  CHECK(fast.ended_code() == kCloseRubbish);
  for (int64_t n = 1; n <= 2 * kMessagesAtOnce; ++n) {
    talk.now_ns += 1'000'000; // a thousand a second
    talk.say(calm, R"({"type": "ping", "at": 1})");
  }
  CHECK(calm.ended_code() == 0);
  CHECK(talk.viewer.counts().cut_off == 2);
  talk.event(again, 6); // its last words
  CHECK(talk.viewer.counts().cut_off == 2);
  for (FakePage* page : {&again, &fast, &calm}) talk.viewer.close(page);
}
