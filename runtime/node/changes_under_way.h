// Changes of live parameters that were asked of this node: whom it asks of the other nodes, and in which order.
//
//   each node with a handler of them   says if it can take them; one that is away takes them when it is back
//   each home of their clocks          gives them their tick
//
// The next node is asked once the one before has answered, and the first refusal ends it. So a change that a handler's
// own node refuses is not made anywhere.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "node/change_words.h"

namespace millrace::node {

class ChangesUnderWay : public std::enable_shared_from_this<ChangesUnderWay> {
 public:
  // A request, and the node that it is for.
  struct Question {
    std::string node;
    ChangesRequest request;
    std::vector<std::string> clocks{}; // those that it begins the ticks of, by name
  };
  // nullopt: the node, or the coordinator, is away.
  using Done = std::function<void(const std::optional<ChangesAnswer>&)>;
  // Asks it. `done` is called once, by any thread, perhaps before this returns.
  using Ask = std::function<void(const Question&, const Done& done)>;
  using Answered = std::function<void(const ChangesAnswer&)>;

  ChangesUnderWay(std::string coordinator, std::vector<Question> questions, Ask ask, Answered answered);

  void ask_next();

 private:
  void take(const Question& question, const std::optional<ChangesAnswer>& answer);
  void refuse(Error error) const;

  const std::string coordinator_;
  std::vector<Question> questions_; // not asked yet, the last one first
  const Ask ask_;
  const Answered answered_;
  ChangesAnswer all_;
};

} // namespace millrace::node
