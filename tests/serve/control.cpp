// The methods of control, without a transport: every answer, and what is refused with which place.
#include "serve/control.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "graph/graph.h"
#include "observe/error.h"
#include "observe/error_codes.h"
#include "observe/report.h"
#include "serve/message.h"
#include "tests/part.h"
#include "tests/seed.h"

using namespace millrace;
using namespace millrace::serve;
using nlohmann::ordered_json;

namespace {

// A run that notes how it is steered. It knows the parameter blur.sigma and no other.
struct Steered {
  std::vector<exec::ParamChange> changes;
  SetDone taken;
  std::vector<std::string> streams;
  exec::StreamDone stream_done;
  int stops = 0;
  std::vector<ordered_json> later; // answers that were not known at once
  Control control{run()};
  Control::Client client;

  SteeredRun run() {
    SteeredRun run;
    run.version = "1.2.3";
    run.pipeline = "street";
    run.elapsed_s = [] { return 12.5; };
    run.set = [this](const std::vector<exec::ParamChange>& asked, const SetDone& on_taken) {
      for (const exec::ParamChange& change : asked)
        if (change.handler + "." + change.param != "blur.sigma")
          throw Failure(Error{code::unknown_parameter, "no " + change.param, {}, {"there is: sigma"}, "sigma", ""});
      changes.insert(changes.end(), asked.begin(), asked.end());
      taken = on_taken;
    };
    run.add_stream = [this](const std::string& set, const graph::Stream& stream, exec::StreamDone done) {
      if (stream.name == "gate") throw Failure(Error{code::duplicate_name, "gate is there", {}, {}, "", ""});
      streams.push_back("+" + set + "/" + stream.name + (stream.fields.empty() ? "" : " " + stream.fields[0].text));
      stream_done = std::move(done);
    };
    run.remove_stream = [this](const std::string& set, const std::string& name, exec::StreamDone done) {
      streams.push_back("-" + set + "/" + name);
      stream_done = std::move(done);
    };
    run.describe = [] { return R"({"plan": {"version": 1}, "types": {}})"; };
    run.values = [](const std::string& handler) {
      if (!handler.empty() && handler != "blur")
        throw Failure(Error{code::unknown_handler, "no " + handler, {}, {}, "blur", ""});
      return R"({"blur": {"type": "image.blur", "parameters": {}}})";
    };
    run.state = [] { return "runs"; };
    run.streams = [] { return std::vector<StreamReport>{{.set = "cameras", .name = "gate", .state = "runs"}}; };
    run.stop = [this] { ++stops; };
    return run;
  }

  Control::Answer take(const std::string& line) {
    return control.take(client, line, [this](const std::string& text) { later.push_back(ordered_json::parse(text)); });
  }
  ordered_json ask(const std::string& line) {
    const Control::Answer answer = take(line);
    REQUIRE(!answer.comes_later);
    REQUIRE(answer.line.find('\n') == std::string::npos);
    return answer.line.empty() ? ordered_json() : ordered_json::parse(answer.line);
  }
  ordered_json ask(const std::string& method, const ordered_json& params) {
    return ask(ordered_json({{"jsonrpc", "2.0"}, {"id", 7}, {"method", method}, {"params", params}}).dump());
  }
  void greet(const std::string& role) {
    const ordered_json answer = ask("hello", {{"protocol", kProtocol}, {"role", role}});
    REQUIRE(answer.contains("result"));
  }
};

// "-32602 /params/role": the code of an error and the place of the mistake.
std::string code_and_place(const ordered_json& answer) {
  REQUIRE(answer.contains("error"));
  const ordered_json& error = answer["error"];
  REQUIRE(!error["message"].get<std::string>().empty());
  return std::to_string(error["code"].get<int>()) + " " +
         error.value("data", ordered_json::object()).value("at", std::string());
}

} // namespace

TEST_CASE("hello says the version and the pipeline, and grants a role") {
  Steered steered;
  const ordered_json answer = steered.ask("hello", {{"protocol", 1}, {"role", "steer"}});
  CHECK(answer["id"] == 7);
  CHECK(answer["result"]["protocol"] == 1);
  CHECK(answer["result"]["version"] == "1.2.3");
  CHECK(answer["result"]["pipeline"] == "street");
  CHECK(answer["result"]["role"] == "steer");
  CHECK(answer["result"]["elapsed_s"] == 12.5);
  CHECK(steered.ask("hello", {{"protocol", 1}})["result"]["role"] == "watch");
  CHECK(steered.ask("hello", {{"protocol", kProtocol}})["result"]["protocol"] == kProtocol);
}

TEST_CASE("a description that cannot be told is refused, and so is one that there is not") {
  for (const std::string& text : {std::string(), std::string("{\"plan\": \"\xf6\"}"), std::string("{\"plan\": ")}) {
    CAPTURE(text);
    Steered steered;
    SteeredRun run = steered.run();
    run.describe = text.empty() ? std::function<std::string()>() : [text] { return text; };
    run.values = nullptr;
    Control control(run);
    Control::Client client;
    const auto ask = [&](const std::string& method, const ordered_json& params) {
      const ordered_json request = {{"jsonrpc", "2.0"}, {"id", 1}, {"method", method}, {"params", params}};
      return ordered_json::parse(control.take(client, request.dump(), [](const std::string&) {}).line);
    };
    REQUIRE(ask("hello", {{"protocol", kProtocol}}).contains("result"));
    CHECK(ask("describe", ordered_json::object())["error"]["code"] == -32000);
    CHECK(ask("get", ordered_json::object())["error"]["code"] == -32000);
  }
}

TEST_CASE("whoever watches may ask for the description and the values, and a change has the name of who asked") {
  Steered steered;
  CHECK(code_and_place(steered.ask("describe", ordered_json::object())) == "-32001 /method");
  CHECK(code_and_place(steered.ask("hello", {{"protocol", 2}, {"name", 7}})) == "-32602 /params/name");
  CHECK(code_and_place(steered.ask("hello", {{"protocol", 2}, {"name", std::string(65, 'x')}})) ==
        "-32602 /params/name");
  CHECK(steered.ask("hello", {{"protocol", 2}, {"name", "a page"}}).contains("result"));
  CHECK(steered.ask("describe", ordered_json::object())["result"]["plan"]["version"] == 1);
  CHECK(steered.ask("get", ordered_json::object())["result"]["blur"]["type"] == "image.blur");
  CHECK(steered.ask("get", {{"handler", "blur"}})["result"].contains("blur"));
  CHECK(steered.ask("get", {{"handler", "blr"}})["error"]["data"]["nearest"] == "blur");
  CHECK(code_and_place(steered.ask("get", {{"handler", 3}})) == "-32602 /params/handler");
  CHECK(code_and_place(steered.ask("get", {{"handlers", "blur"}})) == "-32602 /params/handlers");
  CHECK(steered.ask("hello", {{"protocol", 2}, {"role", "steer"}, {"name", "a page"}}).contains("result"));
  steered.take(
      ordered_json({{"jsonrpc", "2.0"}, {"id", 1}, {"method", "set"}, {"params", {{"changes", {{"blur.sigma", 4}}}}}})
          .dump());
  REQUIRE(steered.changes.size() == 1);
  CHECK(steered.changes[0].by == "a page");
}

TEST_CASE("hello refuses another protocol and another role, with the place and what is near") {
  Steered steered;
  CHECK(code_and_place(steered.ask("hello", {{"role", "steer"}})) == "-32602 /params/protocol");
  CHECK(code_and_place(steered.ask("hello", {{"protocol", 0}})) == "-32602 /params/protocol");
  CHECK(code_and_place(steered.ask("hello", {{"protocol", kProtocol + 1}})) == "-32602 /params/protocol");
  CHECK(code_and_place(steered.ask("hello", {{"protocol", "1"}})) == "-32602 /params/protocol");
  const ordered_json role = steered.ask("hello", {{"protocol", 1}, {"role", "ster"}});
  CHECK(code_and_place(role) == "-32602 /params/role");
  CHECK(role["error"]["data"]["nearest"] == "steer");
  CHECK(code_and_place(steered.ask("hello", {{"protocol", 1}, {"role", 3}})) == "-32602 /params/role");
  const ordered_json extra = steered.ask("hello", {{"protocol", 1}, {"rol", "steer"}});
  CHECK(code_and_place(extra) == "-32602 /params/rol");
  CHECK(extra["error"]["data"]["nearest"] == "role");
  CHECK_FALSE(steered.client.said_hello);
}

TEST_CASE("A client without a place may greet and stop; everything else is refused with the transport's reason") {
  Steered steered;
  steered.client.no_place = "they are all taken";
  steered.greet("steer");
  const ordered_json refused = steered.ask("set", {{"changes", {{"blur.sigma", 4}}}});
  CHECK(code_and_place(refused) == "-32004 /method");
  CHECK(refused["error"]["message"] == "they are all taken; without a place there are hello and stop");
  CHECK(steered.changes.empty());
  for (const char* method : {"streams.list", "streams.add", "streams.remove"})
    CHECK(code_and_place(steered.ask(method, {{"name", "hall"}})) == "-32004 /method");
  CHECK(steered.ask("stop", ordered_json::object())["result"]["state"] == "draining");
}

TEST_CASE("set and stop need a hello, and the role steer") {
  Steered steered;
  const ordered_json changes = {{"changes", {{"blur.sigma", 4}}}};
  CHECK(code_and_place(steered.ask("set", changes)) == "-32001 /method");
  CHECK(code_and_place(steered.ask("stop", ordered_json::object())) == "-32001 /method");
  steered.greet("watch");
  CHECK(code_and_place(steered.ask("set", changes)) == "-32002 /method");
  CHECK(code_and_place(steered.ask("stop", ordered_json::object())) == "-32002 /method");
  CHECK(steered.changes.empty());
  CHECK(steered.stops == 0);
}

TEST_CASE("stop stops the run and says what it does then") {
  Steered steered;
  steered.greet("steer");
  CHECK(steered.ask("stop", ordered_json::object())["result"]["state"] == "draining");
  CHECK(steered.stops == 1);
  CHECK(code_and_place(steered.ask("stop", {{"now", true}})) == "-32602 /params/now");
  CHECK(steered.stops == 1);
}

TEST_CASE("set is answered when the changes are taken, with the tick of each clock") {
  Steered steered;
  steered.greet("steer");
  const Control::Answer answer =
      steered.take(R"({"jsonrpc": "2.0", "id": "a", "method": "set", "params": {"changes": {"blur.sigma": 4.5}}})");
  CHECK(answer.comes_later);
  CHECK(answer.line.empty());
  REQUIRE(steered.changes.size() == 1);
  CHECK(steered.changes[0].handler == "blur");
  CHECK(steered.changes[0].param == "sigma");
  CHECK(steered.changes[0].text == "4.5");
  CHECK(steered.later.empty());
  steered.taken({{{"main", 12}, {"slow", 3}}});
  REQUIRE(steered.later.size() == 1);
  CHECK(steered.later[0] == ordered_json::parse(R"({"jsonrpc": "2.0", "id": "a", "result":
                                                    {"ticks": {"main": 12, "slow": 3}}})"));
  steered.taken({{}}); // a second time says nothing
  CHECK(steered.later.size() == 1);
}

TEST_CASE("set says which clocks have ended, and that the changes came too late if all have") {
  Steered steered;
  steered.greet("steer");
  const std::string set =
      R"({"jsonrpc": "2.0", "id": "a", "method": "set", "params": {"changes": {"blur.sigma": 4.5}}})";
  steered.take(set);
  steered.taken({{{"gate", 12}, {"hall", exec::kNoTickTook}}});
  steered.take(set);
  steered.taken({{{"gate", exec::kNoTickTook}, {"hall", exec::kNoTickTook}}});
  REQUIRE(steered.later.size() == 2);
  CHECK(steered.later[0]["result"] == ordered_json::parse(R"({"ticks": {"gate": 12}, "ended": ["hall"]})"));
  CHECK(code_and_place(steered.later[1]) == "-32003 ");
}

TEST_CASE("Values may be texts, numbers and truth values, as --set would have them") {
  Steered steered;
  steered.greet("steer");
  for (const auto& [value, text] : std::vector<std::pair<std::string, std::string>>{
           {"\"2,5 m\"", "2,5 m"}, {"-3", "-3"}, {"0.1", "0.1"}, {"true", "true"}, {"\"\"", ""}}) {
    steered.take(R"({"jsonrpc": "2.0", "id": 1, "method": "set", "params": {"changes": {"blur.sigma": )" + value +
                 "}}}");
    REQUIRE(!steered.changes.empty());
    CHECK(steered.changes.back().text == text);
    steered.taken({{}});
  }
}

TEST_CASE("set refuses what it cannot read, with the place") {
  Steered steered;
  steered.greet("steer");
  const auto place = [&](const ordered_json& params) { return code_and_place(steered.ask("set", params)); };
  CHECK(place(ordered_json::object()) == "-32602 /params/changes");
  CHECK(place({{"changes", ordered_json::array()}}) == "-32602 /params/changes");
  CHECK(place({{"changes", ordered_json::object()}}) == "-32602 /params/changes");
  CHECK(place({{"changes", {{"blur.sigma", nullptr}}}}) == "-32602 /params/changes/blur.sigma");
  CHECK(place({{"changes", {{"blur.sigma", {1, 2}}}}}) == "-32602 /params/changes/blur.sigma");
  CHECK(place({{"changes", {{"a/b", 1}}}}) == "-32602 /params/changes/a~1b");
  CHECK(place({{"changes", {{".sigma", 1}}}}) == "-32602 /params/changes/.sigma");
  CHECK(place({{"changes", {{"blur.", 1}}}}) == "-32602 /params/changes/blur.");
  CHECK(place({{"change", {{"blur.sigma", 1}}}}) == "-32602 /params/change");
  CHECK(steered.changes.empty());
}

TEST_CASE("A change that the run refuses has the code and the words of the command's errors") {
  Steered steered;
  steered.greet("steer");
  const ordered_json answer = steered.ask("set", {{"changes", {{"blur.sigma", 1}, {"blur.sigm", 1}}}});
  CHECK(answer["error"]["code"] == -32000);
  CHECK(answer["error"]["message"] == "no sigm");
  CHECK(answer["error"]["data"] == ordered_json({{"code", "MR0310"},
                                                 {"what", "no sigm"},
                                                 {"notes", {"there is: sigma"}},
                                                 {"nearest", "sigma"},
                                                 {"edit", ""}}));
  CHECK(steered.changes.empty()); // all or none
}

TEST_CASE("Requests that wait for a tick are answered when the run ends, and those after it are refused") {
  Steered steered;
  steered.greet("steer");
  const std::string set = R"({"jsonrpc": "2.0", "id": 1, "method": "set", "params": {"changes": {"blur.sigma": 4}}})";
  for (size_t i = 0; i < kSetsWaitingMax; ++i) REQUIRE(steered.take(set).comes_later);
  CHECK(code_and_place(steered.ask(set)) == "-32004 ");
  steered.control.end();
  REQUIRE(steered.later.size() == kSetsWaitingMax);
  for (const ordered_json& answer : steered.later) CHECK(code_and_place(answer) == "-32003 ");
  CHECK(code_and_place(steered.ask(set)) == "-32003 ");
}

TEST_CASE("A message that is no request is answered with the place of its mistake") {
  Steered steered;
  const auto place = [&](const std::string& line) { return code_and_place(steered.ask(line)); };
  CHECK(place("{") == "-32700 byte 2");
  CHECK(place("hello") == "-32700 byte 1");
  CHECK(place("{\"id\": 1e999}") == "-32700 ");
  CHECK(place("{\"id\": \"\xff\"}") == "-32700 byte 9");
  CHECK(place("[]") == "-32600 ");
  CHECK(place("7") == "-32600 ");
  CHECK(place(R"({"id": 1, "method": "hello"})") == "-32600 /jsonrpc");
  CHECK(place(R"({"jsonrpc": 2.0, "id": 1, "method": "hello"})") == "-32600 /jsonrpc");
  CHECK(place(R"({"jsonrpc": "2.0", "id": {}, "method": "hello"})") == "-32600 /id");
  CHECK(place(R"({"jsonrpc": "2.0", "id": 1})") == "-32600 /method");
  CHECK(place(R"({"jsonrpc": "2.0", "id": 1, "method": 1})") == "-32600 /method");
  CHECK(place(R"({"jsonrpc": "2.0", "id": 1, "method": "hello", "params": [1]})") == "-32602 /params");
  CHECK(place(std::string(60'000, '[')) == "-32700 ");
  const auto nested = [](size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  const std::string request = R"({"jsonrpc": "2.0", "id": 1, "method": "none", "params": {"a": )";
  CHECK(place(request + nested(30) + "}}") == "-32601 /method");
  CHECK(place(request + nested(31) + "}}") == "-32700 ");
  CHECK(place(request + nested(32'000) + "}}") == "-32700 ");
}

TEST_CASE("A method that is not there is refused with what there is and what is near") {
  Steered steered;
  const ordered_json answer = steered.ask("helo", {{"protocol", 1}});
  CHECK(code_and_place(answer) == "-32601 /method");
  CHECK(answer["error"]["data"]["nearest"] == "hello");
  CHECK(
      answer["error"]["message"] ==
      "there is no such method; there are: hello, get, set, tap, ack, stop, untap, describe, subscribe, streams.list, "
      "streams.add, streams.remove");
}

TEST_CASE("A request without an id is not answered, whatever comes of it") {
  Steered steered;
  CHECK(steered.ask(R"({"jsonrpc": "2.0", "method": "hello", "params": {"protocol": 1, "role": "steer"}})") == nullptr);
  CHECK(steered.client.steers);
  CHECK(steered.ask(R"({"jsonrpc": "2.0", "method": "nothing"})") == nullptr);
  const Control::Answer set =
      steered.take(R"({"jsonrpc": "2.0", "method": "set", "params": {"changes": {"blur.sigma": 1}}})");
  CHECK_FALSE(set.comes_later);
  CHECK(set.line.empty());
  CHECK(steered.changes.size() == 1);
  steered.taken({{}});
  CHECK(steered.later.empty());
  CHECK(steered.ask(R"({"jsonrpc": "2.0", "method": "stop"})") == nullptr);
  CHECK(steered.stops == 1);
}

TEST_CASE("Damaged requests are answered by a line of JSON or by nothing, and steer nothing by chance") {
  const uint32_t seed = random_seed();
  CAPTURE(seed);
  std::mt19937 random(seed);
  const std::vector<std::string> whole = {
      R"({"jsonrpc": "2.0", "id": 1, "method": "hello", "params": {"protocol": 1, "role": "watch"}})",
      R"({"jsonrpc": "2.0", "id": 1, "method": "set", "params": {"changes": {"blur.sigma": 4}}})",
      R"({"jsonrpc": "2.0", "id": 1, "method": "subscribe", "params": {"topics": ["state", "params"], "hz": 10}})",
      R"({"jsonrpc": "2.0", "id": null, "method": "stop"})"};
  for (int i = 0; i < test::part_of(20'000); ++i) {
    Steered steered; // it may only watch
    steered.client.said_hello = random() % 2 == 0;
    std::string line = whole[random() % whole.size()];
    for (auto damage = random() % 6; damage > 0; --damage) {
      const size_t at = random() % line.size();
      switch (random() % 3) {
        case 0: line[at] = static_cast<char>(random()); break;
        case 1: line.erase(at, random() % 8); break;
        default: line.insert(at, 1, static_cast<char>(random())); break;
      }
      if (line.empty()) line = "{";
    }
    const Control::Answer answer = steered.take(line);
    CHECK_FALSE(answer.comes_later);
    if (!answer.line.empty()) CHECK(ordered_json::parse(answer.line).is_object());
    for (const std::string& event : steered.control.events(steered.client, i))
      CHECK(ordered_json::parse(event)["method"].is_string());
    CHECK(steered.stops == 0);
    CHECK(steered.changes.empty());
  }
}

TEST_CASE("streams are listed by who watches, and added and removed by who steers") {
  Steered steered;
  steered.greet("watch");
  CHECK(steered.ask("streams.list", ordered_json::object())["result"]["cameras"]["gate"]["state"] == "runs");
  CHECK(code_and_place(steered.ask("streams.add", {{"name", "hall"}})) == "-32002 /method");
  steered.greet("steer");
  const auto line = [](const std::string& method, const ordered_json& params) {
    return ordered_json({{"jsonrpc", "2.0"}, {"id", 8}, {"method", method}, {"params", params}}).dump();
  };
  CHECK(steered.take(line("streams.add", {{"name", "hall"}, {"set", "cameras"}, {"fields", {{"path", "a.avi"}}}}))
            .comes_later);
  steered.stream_done(nullptr);
  CHECK(steered.take(line("streams.remove", {{"name", "hall"}})).comes_later);
  const Error error{code::no_place, "the run is over", {}, {}, "", ""};
  steered.stream_done(&error);
  CHECK(steered.streams == std::vector<std::string>{"+cameras/hall a.avi", "-/hall"});
  REQUIRE(steered.later.size() == 2);
  CHECK(steered.later[0]["result"] == ordered_json::object());
  CHECK(steered.later[1]["error"]["data"]["code"] == "MR0324");
  CHECK(code_and_place(steered.ask("streams.add", {{"name", 3}})) == "-32602 /params/name");
  CHECK(code_and_place(steered.ask("streams.add", {{"name", "a"}, {"fields", {{"path", ordered_json::array()}}}})) ==
        "-32602 /params/fields/path");
  CHECK(code_and_place(steered.ask("streams.add", {{"name", "gate"}})).starts_with("-32000"));
}
