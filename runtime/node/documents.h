// The bodies of a fleet's offers, briefs, questions and answers, which the fleet passes on without reading them.
//
//   offer     {"handlers": {…}}: the node's own handlers, by name, as told_handlers.h has them
//   brief     {"handlers": {…}, "clock", "rate", "ticks", "duration_s", "round_trip_ns", "trace"}: all handlers,
//             and what the coordinator decided
//   question  {"handler", "inputs": […], "outputs": […]}: which formats the handler makes of these inputs
//   answer    {"outputs": […]}, or {"error"}
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "embed/compose.h"
#include "node/told_handlers.h"

namespace millrace::node {

// Decisions of the coordinator for all nodes.
struct Decided {
  std::optional<graph::ClockMode> clock; // none: as the pipeline has it
  std::optional<graph::Rational> rate;
  uint64_t ticks_max = 0; // 0: until the sources end
  double duration_s = 0;  // 0: no limit
  int64_t round_trip_ns = 0;
  bool trace = false; // each node records one, and sends it when it is done
};

// The offer of a node. Throws Failure if a source refuses.
std::string write_offer(embed::Preparation& preparation, const std::string& node);
// On the coordinator: knows each other node's handlers from its offer, `offers` by node, and asks that node by `ask`
// what the compiler wants to know of them; and listens to its own handlers. Throws Failure (MR0805, MR0304 for a
// handler that nobody told of).
using AskNodes = std::function<std::string(const std::string& node, const std::string& question)>;
void take_offers(const std::map<std::string, std::string>& offers, const AskNodes& ask, embed::Preparation& preparation,
                 ToldHandlers& told);
// A node's answer to a question about one of its handlers. Throws Failure (MR0805).
std::string answer_question(const std::string& question, embed::Preparation& preparation, RecordTypes& records);
// The answer to a question that has none.
std::string write_refusal(const Error& error);
// The brief of the plan that was compiled after that.
std::string write_brief(embed::Preparation& preparation, const Decided& decided);
// On a member: knows the handlers of other nodes than `node` from the brief. Throws Failure (MR0805).
Decided read_brief(const std::string& brief, const std::string& node, embed::Preparation& preparation,
                   ToldHandlers& told);

// SHA-256 in lower-case hexadecimal digits.
std::string sha256(std::string_view text);

} // namespace millrace::node
