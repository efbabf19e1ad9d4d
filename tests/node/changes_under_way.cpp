// Changes that a node asks of others: each node of a handler is asked before any home, and a refusal ends it.
#include "node/changes_under_way.h"

#include <doctest/doctest.h>

#include <map>

#include "observe/error.h"
#include "observe/error_codes.h"

using namespace millrace;
using namespace millrace::node;

namespace {

// Answers as the test says, and notes who was asked.
struct OtherNodes {
  std::map<std::string, std::optional<ChangesAnswer>> answers;
  std::vector<std::string> asked{};
  std::optional<ChangesAnswer> said{};

  void ask(std::vector<ChangesUnderWay::Question> questions) {
    const auto ask_one = [&](const ChangesUnderWay::Question& question, const ChangesUnderWay::Done& done) {
      asked.push_back((question.request.make ? "make " : "check ") + question.node);
      done(answers[question.node]);
    };
    std::make_shared<ChangesUnderWay>("edge", std::move(questions), ask_one, [&](const ChangesAnswer& answer) {
      said = answer;
    })->ask_next();
  }
};

const std::vector<exec::ParamChange> kOne = {{"blur", "sigma", "8"}};

std::vector<ChangesUnderWay::Question> check_then_make() {
  return {{"gpu", {kOne, false}}, {"edge", {kOne, true}, {"main"}}, {"cloud", {kOne, true}, {"slow"}}};
}

ChangesAnswer refusal() { return {{}, {}, Error{code::outside_folder, "no", {}, {}, "", ""}}; }

} // namespace

TEST_CASE("7.15: a node that refuses a change of its handler is asked first, and no clock takes anything") {
  OtherNodes others{{{"gpu", refusal()}}};
  others.ask(check_then_make());
  CHECK(others.asked == std::vector<std::string>{"check gpu"});
  REQUIRE(others.said);
  REQUIRE(others.said->error);
  CHECK(others.said->error->code == code::outside_folder);
  CHECK(others.said->error->notes == std::vector<std::string>{"node gpu says so, which has the handler"});
}

TEST_CASE("7.15: a node of a handler that is away is no refusal, and a home that is away is one") {
  OtherNodes others{
      {{"gpu", std::nullopt}, {"edge", ChangesAnswer{{{"main", 7}}, {"gpu"}, {}}}, {"cloud", std::nullopt}}};
  others.ask(check_then_make());
  CHECK(others.asked == std::vector<std::string>{"check gpu", "make edge", "make cloud"});
  REQUIRE(others.said);
  REQUIRE(others.said->error);
  CHECK(others.said->error->what == "nothing is changed now: cloud cannot be asked, and it begins the ticks of slow");
  CHECK(others.said->error->notes.back() == "the changes of clock main were taken");

  others.said.reset();
  others.answers["cloud"] = ChangesAnswer{{{"slow", 3}}, {"gpu"}, {}};
  others.ask(check_then_make());
  REQUIRE(others.said);
  CHECK_FALSE(others.said->error);
  REQUIRE(others.said->ticks.size() == 2);
  CHECK(others.said->ticks[1].tick == 3);
  CHECK(others.said->away == std::vector<std::string>{"gpu"});
}
