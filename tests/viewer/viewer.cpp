// A viewer with pages, and what it makes of their messages.
#include "plugins/viewer/viewer.h"

#include <doctest/doctest.h>

#include <string>

#include "fake_page.h"
#include "some_controls.h"

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

// The newest text of that type.
nlohmann::json newest(FakePage& page, const std::string& type) {
  nlohmann::json found;
  for (const auto& text : page.texts())
    if (text.value("type", "") == type) found = text;
  return found;
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

TEST_CASE("Controls come to all pages and to each that comes, with the values that count") {
  Talk talk;
  FakePage first(1), second(2);
  talk.viewer.open(&first);
  CHECK(talk.viewer.offer(test::some_controls()).empty());
  const nlohmann::json told = newest(first, "controls");
  REQUIRE(told["controls"].size() == 4);
  CHECK(told["controls"][0] == nlohmann::json{{"kind", "choice"},
                                              {"key", "look.mode"},
                                              {"label", "Mode"},
                                              {"value", "fog"},
                                              {"choices", {"fog", "surface"}}});
  CHECK(told["controls"][1] == nlohmann::json{{"kind", "number"},
                                              {"key", "look.gamma"},
                                              {"label", "Gamma"},
                                              {"value", 0.3},
                                              {"low", 0.1},
                                              {"high", 4.0},
                                              {"step", 0.0}});
  CHECK(told["controls"][2]["value"] == nlohmann::json{0.0, 1.0});
  CHECK(told["controls"][2]["histogram"].size() == ViewControl::kParts);
  talk.say(first, R"({"type": "look", "mode": "surface", "contrast": [0.25, 0.5]})");
  talk.viewer.open(&second);
  CHECK(newest(second, "controls")["controls"][0]["value"] == "surface");
  CHECK(newest(second, "controls")["controls"][2]["value"] == nlohmann::json{0.25, 0.5});
  talk.viewer.offer({});
  CHECK(newest(second, "controls")["controls"].empty());
  for (FakePage* page : {&first, &second}) talk.viewer.close(page);
}

TEST_CASE("A wish that counts is acknowledged by its number, and the other pages are told") {
  Talk talk;
  FakePage first(1), second(2);
  for (FakePage* page : {&first, &second}) talk.viewer.open(page);
  talk.viewer.offer(test::some_controls());
  talk.say(first, R"({"type": "look", "seq": 4, "gamma": 2})");
  const nlohmann::json values = {
      {"look.mode", "fog"}, {"look.gamma", 2.0}, {"look.contrast", {0.0, 1.0}}, {"dims.step", 3.0}};
  CHECK(newest(first, "ack") == nlohmann::json{{"type", "ack"}, {"seq", 4}, {"values", values}});
  CHECK(newest(second, "values") == nlohmann::json{{"type", "values"}, {"values", values}});
  CHECK(count_of(first, "values") == 0);
  CHECK(count_of(second, "ack") == 0);
  talk.say(first, R"({"type": "dims", "step": 8})"); // without a number it is not acknowledged
  CHECK(count_of(first, "ack") == 1);
  CHECK(newest(second, "values")["values"]["dims.step"] == 8);
  const Happened happened = talk.viewer.take(0, true);
  CHECK(happened.look.at(0).gamma == 2);
  CHECK(happened.dims.at(0).steps[0] == 8);
  talk.say(first, R"({"type": "look", "seq": 5, "reset": true})");
  CHECK(newest(first, "ack")["values"]["look.gamma"] == 0.3);
  CHECK(talk.viewer.take(1, false).look.at(0).gamma == 1);
  for (FakePage* page : {&first, &second}) talk.viewer.close(page);
}

TEST_CASE("A wish that a control does not allow is refused with the value that counts, and changes nothing") {
  Talk talk;
  FakePage first(1), second(2);
  for (FakePage* page : {&first, &second}) talk.viewer.open(page);
  talk.viewer.offer(test::some_controls());
  talk.viewer.take(0, true);
  talk.say(first, R"({"type": "look", "seq": 1, "mode": "fogg", "gamma": 2})");
  const nlohmann::json refused = newest(first, "refused");
  CHECK(refused["message"] == "look.mode is \"fogg\", and may be fog, surface; \"fog\" counts");
  CHECK(refused["seq"] == 1);
  CHECK(refused["control"] == 1);
  CHECK(refused["values"]["look.gamma"] == 0.3);
  talk.say(first, R"({"type": "look", "gamma": 5})");
  CHECK(newest(first, "refused")["message"] == "look.gamma is 5, and may be 0.1 to 4; 0.3 counts");
  CHECK(!newest(first, "refused").contains("seq"));
  talk.say(first, R"({"type": "look", "seq": 2, "low": 1.5})"); // above the contrast's high
  CHECK(newest(first, "refused")["message"] == "look.contrast is 1.5 to 1, and may be -0.5 to 1.5; 0 to 1 counts");
  talk.say(first, R"({"type": "dims", "seq": 3, "step": 11})");
  CHECK(newest(first, "refused")["message"] == "dims.step is 11, and may be 0 to 10; 3 counts");
  CHECK(count_of(second, "values") == 0);
  CHECK(!talk.viewer.take(1, false).is_anything());
  CHECK(first.ended_code() == 0);
  CHECK(talk.viewer.counts().refused_input == 4);
  for (FakePage* page : {&first, &second}) talk.viewer.close(page);
}

TEST_CASE("A wish of a page without control is refused with the values that count") {
  Talk talk;
  FakePage first(1), second(2), watcher(3, false);
  for (FakePage* page : {&first, &second, &watcher}) talk.viewer.open(page);
  talk.viewer.offer(test::some_controls());
  talk.say(first, R"({"type": "look", "seq": 1, "mode": "surface"})");
  talk.say(second, R"({"type": "look", "seq": 1, "mode": "fog"})");
  CHECK(newest(second, "refused")["message"] == "page 1 has control");
  CHECK(newest(second, "refused")["seq"] == 1);
  CHECK(newest(second, "refused")["values"]["look.mode"] == "surface");
  talk.say(watcher, R"({"type": "dims", "seq": 9, "step": 1})");
  CHECK(newest(watcher, "refused")["message"] == "this link lets a page watch, and not steer");
  CHECK(newest(watcher, "refused")["values"]["dims.step"] == 3);
  talk.say(second, R"({"type": "take"})");
  talk.say(second, R"({"type": "look", "seq": 2, "mode": "fog"})");
  CHECK(newest(first, "values")["values"]["look.mode"] == "fog"); // after another page took control, too
  for (FakePage* page : {&first, &second, &watcher}) talk.viewer.close(page);
}
