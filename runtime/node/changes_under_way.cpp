// Asks one node after the other; see changes_under_way.h.
#include "node/changes_under_way.h"
#include "observe/error_codes.h"

#include <algorithm>
#include <utility>

namespace millrace::node {

namespace {

Error away(const ChangesUnderWay::Question& question, const std::string& coordinator) {
  std::string clocks;
  for (const std::string& clock : question.clocks) clocks += (clocks.empty() ? "" : ", ") + clock;
  return {code::parameter_not_live,
          "nothing is changed now: " + question.node + " cannot be asked, and it begins the ticks of " + clocks,
          {},
          {question.node + " or the coordinator " + coordinator + " is away; ask again once it is back"},
          "",
          ""};
}

} // namespace

ChangesUnderWay::ChangesUnderWay(std::string coordinator, std::vector<Question> questions, Ask ask, Answered answered)
    : coordinator_(std::move(coordinator)),
      questions_(std::move(questions)),
      ask_(std::move(ask)),
      answered_(std::move(answered)) {
  std::reverse(questions_.begin(), questions_.end());
}

void ChangesUnderWay::ask_next() {
  if (questions_.empty()) return answered_(all_);
  const Question question = std::move(questions_.back());
  questions_.pop_back();
  ask_(question, [self = shared_from_this(), question](const std::optional<ChangesAnswer>& answer) {
    self->take(question, answer);
  });
}

void ChangesUnderWay::take(const Question& question, const std::optional<ChangesAnswer>& answer) {
  if (!answer && question.request.make) return refuse(away(question, coordinator_));
  if (answer && answer->error) {
    Error error = *answer->error;
    if (!question.request.make) error.notes.push_back("node " + question.node + " says so, which has the handler");
    return refuse(std::move(error));
  }
  if (answer) {
    all_.ticks.insert(all_.ticks.end(), answer->ticks.begin(), answer->ticks.end());
    for (const std::string& node : answer->away)
      if (std::find(all_.away.begin(), all_.away.end(), node) == all_.away.end()) all_.away.push_back(node);
  }
  ask_next();
}

void ChangesUnderWay::refuse(Error error) const {
  for (const exec::TickOfClock& tick : all_.ticks)
    error.notes.push_back("the changes of clock " + tick.clock + " were taken");
  answered_({{}, {}, std::move(error)});
}

} // namespace millrace::node
