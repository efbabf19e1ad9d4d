// Events for clients that subscribe, without a transport: what is sent, when, and what is left out.
#include "serve/events.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "observe/error.h"
#include "observe/error_codes.h"
#include "serve/control.h"
#include "serve/message.h"

using namespace millrace;
using namespace millrace::serve;
using nlohmann::ordered_json;

namespace {

// A run whose state and values the test sets.
struct Told {
  std::string state = "starts", values;
  std::shared_ptr<LogTail> log = std::make_shared<LogTail>();
  int64_t now_ms = 0;
  Control control{run()};
  Control::Client client;

  SteeredRun run() {
    SteeredRun run;
    run.elapsed_s = [] { return 12.5; };
    run.state = [this] { return state; };
    run.values = [this](const std::string&) {
      if (values.empty()) throw Failure(code::parameter_not_live, "there is no run yet");
      return values;
    };
    run.log = log;
    return run;
  }
  void say(const std::string& text) {
    LogRecord record;
    record.handler = "video";
    record.text = text;
    log->put(record);
  }
  ordered_json ask(const std::string& method, const ordered_json& params) {
    const std::string line =
        ordered_json({{"jsonrpc", "2.0"}, {"id", 1}, {"method", method}, {"params", params}}).dump();
    return ordered_json::parse(control.take(client, line, nullptr).line);
  }
  ordered_json subscribe(const ordered_json& params) {
    ask("hello", {{"protocol", kProtocol}});
    return ask("subscribe", params);
  }
  // The events that are due once so much time has passed.
  std::vector<ordered_json> after(int64_t ms) {
    now_ms += ms;
    std::vector<ordered_json> events;
    if (Control::events_due_ms(client) > now_ms) return events;
    for (const std::string& line : control.events(client, now_ms)) events.push_back(ordered_json::parse(line));
    return events;
  }
};

} // namespace

TEST_CASE("subscribe is refused with the place of the mistake and what is near") {
  Told told;
  const auto place = [&](const ordered_json& params) {
    const ordered_json answer = told.subscribe(params);
    REQUIRE(answer.contains("error"));
    return answer["error"]["data"].value("at", "") + " " + answer["error"]["data"].value("nearest", "");
  };
  CHECK(place(ordered_json::object()) == "/params/topics ");
  CHECK(place({{"topics", "log"}}) == "/params/topics ");
  CHECK(place({{"topics", {"log", "stat"}}}) == "/params/topics/1 state");
  CHECK(place({{"topics", {7}}}) == "/params/topics/0 ");
  CHECK(place({{"topics", {"counters"}}}) == "/params/topics/0 "); // this run has none
  for (const ordered_json& hz : {ordered_json(0), ordered_json(21), ordered_json(-1), ordered_json("10")})
    CHECK(place({{"topics", {"log"}}, {"hz", hz}}) == "/params/hz ");
  CHECK(Control::events_due_ms(told.client) == INT64_MAX);
}

TEST_CASE("events come as often as was asked, and end when no topics are asked for") {
  Told told;
  CHECK(told.subscribe({{"topics", {"state"}}, {"hz", 4}})["result"]["hz"] == 4);
  REQUIRE(told.after(0).size() == 1);
  told.state = "runs";
  CHECK(told.after(249).empty());
  const std::vector<ordered_json> events = told.after(1);
  REQUIRE(events.size() == 1);
  CHECK(events[0] == ordered_json({{"jsonrpc", "2.0"}, {"method", "state"}, {"params", {{"state", "runs"}}}}));
  CHECK(told.after(250).empty()); // it is as it was
  CHECK(told.subscribe({{"topics", ordered_json::array()}})["result"]["topics"].empty());
  told.state = "drains";
  CHECK(told.after(10'000).empty());
}

TEST_CASE("handlers are told of once a value has changed, each by itself") {
  Told told;
  told.subscribe({{"topics", {"params"}}});
  CHECK(told.after(0).empty()); // there is no run
  told.values = R"({"blur": {"sigma": 1}, "tone": {"gamma": 2}})";
  CHECK(told.after(100).at(0)["params"]["handlers"].size() == 2); // get did not give these
  told.subscribe({{"topics", {"params"}}});
  CHECK(told.after(0).empty());
  told.values = R"({"blur": {"sigma": 4}, "tone": {"gamma": 2}})";
  const std::vector<ordered_json> events = told.after(100);
  REQUIRE(events.size() == 1);
  CHECK(events[0]["method"] == "params");
  CHECK(events[0]["params"] == ordered_json({{"handlers", {{"blur", {{"sigma", 4}}}}}}));
  CHECK(told.after(100).empty());
}

TEST_CASE("log lines come in order, and those that are not kept any more are counted") {
  Told told;
  told.say("before");
  told.subscribe({{"topics", {"log"}}});
  CHECK(told.after(0).empty());
  for (int n = 0; n < 3; ++n) told.say("line " + std::to_string(n));
  std::vector<ordered_json> events = told.after(100);
  REQUIRE(events.size() == 1);
  REQUIRE(events[0]["params"]["lines"].size() == 3);
  CHECK(events[0]["params"]["lines"][2]["text"] == "line 2");
  CHECK(events[0]["params"]["lines"][2]["handler"] == "video");
  CHECK(!events[0]["params"].contains("left_out"));
  const size_t many = LogTail::kLinesMax + 70;
  for (size_t n = 0; n < many; ++n) told.say(std::to_string(n));
  uint64_t left_out = 0;
  size_t next = 0;
  for (events = told.after(100); !events.empty(); events = told.after(100)) {
    left_out += events[0]["params"].value("left_out", uint64_t{0});
    for (const ordered_json& line : events[0]["params"]["lines"]) {
      if (next == 0) next = left_out;
      REQUIRE(line["text"] == std::to_string(next++));
    }
  }
  CHECK(left_out == 70);
  CHECK(next == many);
}

TEST_CASE("nothing is told once the run is over") {
  Told told;
  told.subscribe({{"topics", {"state", "log"}}});
  told.control.end();
  told.say("late");
  CHECK(told.after(0).empty());
}
