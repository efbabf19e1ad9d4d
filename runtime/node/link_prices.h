// The prices of the links between nodes: the coordinator measures what it takes to carry bytes to each other node and
// back, by questions and answers of known sizes.
//
// A question is a statement of the fleet (statement.h), and making and reading it takes time too. So the coordinator
// also asks itself, which takes all of that time but the link's, and subtracts it.
//
// Limits. Only the coordinator's own links are measured. A value between two other nodes is priced as if it took both
// of their links to the coordinator, one after the other; their own link, if it is better, is better than its price.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "device/timeline.h"
#include "node/offers.h"

namespace millrace::node {

class LinkPrices {
 public:
  explicit LinkPrices(const device::Timeline& time) : time_(time) {}

  // The hops between the hosts of all nodes, the coordinator's first; `ask` also asks that one. Nodes are measured
  // once, which takes some twenty round trips and a second or two for what a slow link carries.
  std::vector<plan::Hop> all(const std::vector<std::string>& nodes, const AskNodes& ask);
  // The answer to such a question; none if it is another one.
  static std::optional<std::string> answer(const std::string& question);

 private:
  struct Link {
    plan::HopPrice there, back;
  };
  Link measure(const std::string& node, const std::string& coordinator, const AskNodes& ask) const;
  double carry_us(const std::string& node, const AskNodes& ask, uint64_t there, uint64_t back) const;

  const device::Timeline& time_;
  std::map<std::string, Link> known_; // by node
};

} // namespace millrace::node
