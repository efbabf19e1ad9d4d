// Requests between nodes: said until they have a reply, carried out once.
#include "node/requests.h"

#include <doctest/doctest.h>

#include "node/change_words.h"

using namespace millrace;
using namespace millrace::node;

namespace {

constexpr int64_t kSecond = 1'000'000'000;

fleet::Request of_other(uint64_t number) { return {"gpu", "edge", 77, number, "this"}; }

} // namespace

TEST_CASE("a request is said each second until its reply comes, which counts once") {
  Requests requests("edge", 9);
  std::vector<std::string> replies;
  const fleet::Request said = requests.ask(
      "gpu", "this", [&](const std::string& reply) { replies.push_back(reply); }, 0);
  CHECK(said.from == "edge");
  CHECK(said.to == "gpu");
  CHECK(said.process == 9);
  CHECK(requests.due(kSecond - 1).empty());
  CHECK(requests.due(kSecond).size() == 1);
  CHECK(requests.due(kSecond + 1).empty());
  CHECK(requests.due(2 * kSecond).at(0).number == said.number);
  requests.replied(said.number + 1, "to another");
  requests.replied(said.number, "done");
  requests.replied(said.number, "done");
  CHECK(replies == std::vector<std::string>{"done"});
  CHECK(requests.due(9 * kSecond).empty());
}

TEST_CASE("where nobody can be asked every request ends without a reply, and one may ask again at once") {
  Requests requests("edge", 9);
  int given_up = 0, asked_again = 0;
  const auto again = [&](const std::string&) { ++asked_again; };
  for (int n = 0; n < 3; ++n)
    requests.ask(
        "gpu", "this",
        [&](const std::string& reply) {
          CHECK(reply.empty());
          if (++given_up == 3) requests.ask("gpu", "that", again, 0);
        },
        0);
  requests.give_up();
  CHECK(given_up == 3);
  CHECK(asked_again == 0);
  requests.give_up();
  CHECK(asked_again == 1);
}

TEST_CASE("a request that comes again is not carried out again, and gets the reply that it had") {
  using Taken = Requests::Taken;
  Requests requests("edge", 9);
  CHECK(requests.take(of_other(1)) == Taken::anew);
  CHECK(requests.take(of_other(1)) == Taken::under_way);
  requests.reply({"gpu", 77, 1, "done"});
  CHECK(requests.take(of_other(1)) == Taken::replied);
  CHECK(requests.reply_to(of_other(1)).body == "done");
  CHECK(requests.reply_to(of_other(1)).to == "gpu");
  fleet::Request another = of_other(1);
  another.process = 78;
  CHECK(requests.take(another) == Taken::anew);
}

TEST_CASE("no more requests are under way, and no more replies are kept, than there may be") {
  using Taken = Requests::Taken;
  Requests requests("edge", 9);
  for (uint64_t n = 1; n <= kRequestsMax; ++n) CHECK(requests.take(of_other(n)) == Taken::anew);
  CHECK(requests.take(of_other(kRequestsMax + 1)) == Taken::too_many);
  requests.reply({"gpu", 77, 1, "done"});
  CHECK(requests.take(of_other(kRequestsMax + 1)) == Taken::anew);
  for (uint64_t n = 1; n <= 1000; ++n) {
    requests.take(of_other(1000 + n));
    requests.reply({"gpu", 77, 1000 + n, "done"});
    requests.reply({"gpu", 77, n, "done"});
  }
  CHECK(requests.take(of_other(2000)) == Taken::replied);
  CHECK(requests.take(of_other(1)) == Taken::anew); // it was long ago
}

TEST_CASE("changes and their answers are read as they were written, and anything else is refused") {
  const std::vector<exec::ParamChange> changes = {{"blur", "sigma", "2.5"}, {"text", "text", "\"a\nb\""}};
  const std::vector<exec::ParamChange> read = read_changes(write_changes({changes}), "it").changes;
  REQUIRE(read.size() == 2);
  CHECK(read[1].text == changes[1].text);
  CHECK(read[1].param == "text");
  for (const bool make : {true, false}) CHECK(read_changes(write_changes({changes, make}), "it").make == make);
  const ChangesAnswer taken =
      read_answer(write_answer({{{"main", 104}, {"hall", exec::kNoTickTook}}, {"gpu"}, {}}), "it");
  REQUIRE(taken.ticks.size() == 2);
  CHECK(taken.ticks[0].tick == 104);
  CHECK(taken.ticks[1].tick == exec::kNoTickTook);
  CHECK(taken.away == std::vector<std::string>{"gpu"});
  CHECK_FALSE(taken.error);
  const Error error{316, "no", {}, {"a note"}, "near", "an edit"};
  const ChangesAnswer refused = read_answer(write_answer({{}, {}, error}), "it");
  REQUIRE(refused.error);
  CHECK(format_error(*refused.error) == format_error(error));
  for (const char* wrong :
       {"", "{}", "[]", R"({"changes": 1})", R"({"changes": [["a", "b"]]})", R"({"changes": [1]})",
        R"({"changes": []})", R"({"ticks": [], "away": 3})", R"({"ticks": [["main", -1.5, 3]]})", R"({"error": {}})"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(read_changes(wrong, "it"), Failure);
    CHECK_THROWS_AS(read_answer(wrong, "it"), Failure);
  }
}
