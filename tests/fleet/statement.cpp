// Statements as texts and back.
#include <doctest/doctest.h>

#include <string>

#include "fleet/statement.h"

namespace millrace::fleet {
namespace {

Error an_error() { return {604, "it has no camera", {"two.yaml", 3, 7}, {"one", "two"}, "nearest", "device: 1"}; }

// Reads a text and writes the statement again.
std::string again(const std::string& text) {
  Statement statement;
  std::string why;
  REQUIRE_MESSAGE(read_statement(text, statement, why), why);
  return to_text(statement);
}

std::string refusal(const std::string& text) {
  Statement statement = Brief{7, "kept", ""};
  std::string why;
  REQUIRE(!read_statement(text, statement, why));
  CHECK(std::get<Brief>(statement).hash == "kept");
  return why;
}

} // namespace

TEST_CASE("every statement is read as it was written, down to the largest numbers") {
  const RunFailure failure{an_error(), "gpu", "main", kNoTick - 1, true};
  const RunFailure again_failed{an_error(), "gpu", "hall", 7, false, UINT32_MAX};
  for (const Statement& statement :
       {Statement(Offer{"gpu", UINT64_MAX, "1.2", "a hash", R"({"facts":"\"{["})"}),
        Statement(State{State::Step::unable, UINT32_MAX, "plan", "{}", an_error(), failure}),
        Statement(State{State::Step::done, 1, "plan", "{}", {}, {}, R"({"tracks": []})", {"a line"}, true}),
        Statement(Brief{3, "plan", "{}"}),
        Statement(
            Order{Order::Step::start, 9, 3, "plan", INT64_MIN, true, failure, an_error(), {"on gpu: a line"}, true}),
        Statement(StreamOver{3, "plan", failure}), Statement(StreamOver{3, "plan", again_failed}),
        Statement(Question{UINT64_MAX, R"({"handler": 5})"}), Statement(Answer{1, ""}),
        Statement(Request{"gpu", "edge", UINT64_MAX, 7, "{}"}), Statement(Reply{"gpu", 9, UINT64_MAX, ""})}) {
    const std::string text = to_text(statement);
    CHECK(again(text) == text);
  }
  Statement read;
  std::string why;
  REQUIRE(read_statement(to_text(Order{Order::Step::start, 9, 3, "plan", -5, true, failure, {}}), read, why));
  const auto& order = std::get<Order>(read);
  CHECK(order.zero_ns == -5);
  CHECK(order.stop);
  REQUIRE(order.failure);
  CHECK(order.failure->index == kNoTick - 1);
  CHECK(order.failure->hopeless);
  CHECK(format_error(order.failure->error) == format_error(an_error()));
  REQUIRE(read_statement(to_text(StreamOver{3, "plan", again_failed}), read, why));
  CHECK(std::get<StreamOver>(read).failure.epoch == UINT32_MAX);
  REQUIRE(read_statement(to_text(State{State::Step::runs, 1, "plan", "", {}, {}, "", {}, true}), read, why));
  CHECK(std::get<State>(read).clocks_over);
  REQUIRE(read_statement(to_text(State{State::Step::runs, 1, "plan", "", {}, {}}), read, why));
  CHECK(!std::get<State>(read).clocks_over);
}

TEST_CASE("an error with many notes still makes a statement, with the first ones") {
  Error error = an_error();
  error.notes.assign(40, "note");
  const State unable{State::Step::unable, 1, "plan", "", error, {}};
  Statement read;
  std::string why;
  REQUIRE_MESSAGE(read_statement(to_text(unable), read, why), why);
  CHECK(std::get<State>(read).error->notes.size() == kNotesMax);
}

TEST_CASE("of many lines that say what is waited for the first ones are said") {
  const State runs{State::Step::runs, 1, "plan", "", {}, {}, "", std::vector<std::string>(40, "a line")};
  Statement read;
  std::string why;
  REQUIRE_MESSAGE(read_statement(to_text(runs), read, why), why);
  CHECK(std::get<State>(read).waits.size() == kWaitsMax);
}

TEST_CASE("bodies are any bytes and follow the JSON; a name that is no UTF-8 still makes a statement") {
  const Offer offer{"\xff", 1, "", "", std::string("a line\nof \"\0\xff", 13), "the pipeline"};
  const std::string text = to_text(offer);
  CHECK(text.ends_with("}\n" + offer.body + offer.canonical));
  Statement read;
  std::string why;
  REQUIRE_MESSAGE(read_statement(text, read, why), why);
  CHECK(std::get<Offer>(read).body == offer.body);
  CHECK(std::get<Offer>(read).canonical == offer.canonical);
}

TEST_CASE("a statement that is not one is refused, and says why") {
  CHECK(refusal("") == "it is no JSON");
  CHECK(refusal("[1]") == "it is no object with one key");
  CHECK(refusal(R"({"brief":{},"order":{}})") == "it is no object with one key");
  CHECK(refusal(R"({"brief":3})") == "its value is no object");
  CHECK(refusal(R"({"plan":{}})") ==
        "its key is none of offer, state, brief, order, stream, question, answer, request and reply");
  CHECK(refusal(R"({"brief":{"revision":1,"hash":"x"}})") == "it lacks body");
  CHECK(refusal("{\"brief\":{\"revision\":1,\"hash\":\"x\",\"body\":3}}\nab") == "body has more bytes than have come");
  CHECK(refusal(R"({"brief":{"revision":1,"hash":"x","body":1}})") == "body has more bytes than have come");
  CHECK(refusal("{\"brief\":{\"revision\":1,\"hash\":\"x\",\"body\":1}}\nab") ==
        "more bytes have come than its bodies have");
  CHECK(refusal(R"({"brief":{"revision":1,"hash":"x","body":"y"}})") == "body is no whole number");
  CHECK(refusal(R"({"brief":{"revision":1,"hash":2,"body":0}})") == "hash is no text");
  CHECK(refusal(R"({"brief":{"revision":-1,"hash":"","body":0}})") == "revision is no whole number");
  CHECK(refusal(R"({"brief":{"revision":1.5,"hash":"","body":0}})") == "revision is no whole number");
  CHECK(refusal(R"({"brief":{"revision":4294967296,"hash":"","body":0}})") == "revision is too large");
  const std::string state = R"({"state":{"revision":1,"brief":"","body":0,"step":)";
  CHECK(refusal(state + R"("sleeps"}})") == "step has an unknown name");
  CHECK(refusal(state + R"("unable"}})") == "it is unable and does not say why");
  CHECK(refusal(state + R"("done","error":{"code":1}}})") == "it lacks what");
  CHECK(refusal(state + R"("done","error":{"code":1,"what":"","notes":[1]}}})") == "a note is no text");
  CHECK(refusal(state + R"("done","error":[]}})") == "it lacks code");
  CHECK(refusal(state + R"("runs","waits":"x"}})") == "waits is no list of at most 16 lines");
  CHECK(refusal(state + R"("runs","waits":[1]}})") == "a line of waits is no text");
  CHECK(refusal(R"({"order":{"step":"refused","process":1,"revision":0,"brief":"","zero_ns":0,"stop":false}})") ==
        "it refuses and does not say why");
  const std::string stream = R"({"stream":{"revision":1,"brief":"plan")";
  const std::string failure = R"("failure":{"error":{"code":601,"what":""},"node":"gpu","hopeless":false,)";
  const std::string no_tick = "a stream is over and it does not say at which tick";
  CHECK(refusal(stream + "}}") == no_tick);
  CHECK(refusal(stream + "," + failure + R"("clock":"","index":1}}})") == no_tick);
  CHECK(refusal(stream + "," + failure + R"("clock":"hall","index":18446744073709551615}}})") == no_tick);
  CHECK(refusal(stream + "," + failure + R"("clock":"hall","index":-1}}})") == "index is no whole number");
}

TEST_CASE("a request and a reply have at most 128 KiB") {
  const std::string largest(kRequestBytesMax, 'x');
  for (const std::string& more : {std::string(), std::string("x")})
    for (const Statement& statement :
         {Statement(Request{"gpu", "edge", 1, 1, largest + more}), Statement(Reply{"gpu", 1, 1, largest + more})}) {
      if (more.empty())
        CHECK(again(to_text(statement)) == to_text(statement));
      else
        CHECK(refusal(to_text(statement)) == "body has more than 128 KiB");
    }
}

TEST_CASE("a statement has at most 4 MiB, and is nested at most 32 deep") {
  const std::string deep = R"({"brief":)" + std::string(32, '[') + std::string(32, ']') + "}";
  CHECK(refusal(deep) == "it is nested more than 32 deep");
  CHECK(refusal(R"({"brief":)" + std::string(31, '[') + std::string(31, ']') + "}") == "its value is no object");
  CHECK(refusal(std::string(kStatementBytesMax + 1, ' ')) == "it has more than 4 MiB");
  CHECK(again(to_text(Brief{1, "\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", ""})) != "");
}

} // namespace millrace::fleet
