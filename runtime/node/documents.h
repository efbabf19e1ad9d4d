// The bodies of a fleet's briefs, questions and answers, which the fleet passes on without reading them; offers.h has
// its offers.
//
//   brief     {"handlers": {…}, "clock", "rate", "ticks", "duration_s", "round_trip_ns", "placed": […], "notes": […],
//             "machines": {…}, "trace"}: all handlers, what the coordinator decided, and by what machines
//   question  {"handler", "inputs": […], "outputs": […]}: which formats the handler makes of these inputs;
//             or bytes to be carried, as link_prices.h has them
//   answer    {"outputs": […], "memory": {…}}, or {"error", "fault"}
#pragma once

#include <map>
#include <optional>
#include <string>

#include "embed/compose.h"
#include "node/told_handlers.h"
#include "plan/choose_nodes.h"

namespace millrace::node {

// Decisions of the coordinator for all nodes.
struct Decided {
  std::optional<graph::ClockMode> clock; // none: as the pipeline has it
  std::optional<graph::Rational> rate;
  uint64_t ticks_max = 0; // 0: until the sources end
  double duration_s = 0;  // 0: no limit
  int64_t round_trip_ns = 0;
  bool trace = false;                            // each node records one, and sends it when it is done
  plan::ChosenNodes placed{};                    // the handlers that name no node
  std::map<std::string, std::string> machines{}; // JSON of each node's machine, as its offer has it
};

// The options for a node's plan.
plan::Options options_by(const Decided& decided, const embed::Preparation& preparation, const std::string& node);

// A node's answer to a question about one of its handlers. Throws Failure (MR0805).
std::string answer_question(const std::string& question, embed::Preparation& preparation, RecordTypes& records);
// The answer to a question that has none.
std::string write_refusal(const Error& error);
// The brief of the plan that was compiled after that.
std::string write_brief(embed::Preparation& preparation, const Decided& decided);
// On a member: knows the handlers of other nodes than `node` from the brief; "": those of all. Throws Failure (MR0805).
Decided read_brief(const std::string& brief, const std::string& node, embed::Preparation& preparation,
                   ToldHandlers& told);

// The JSON of a body that has handlers. Throws Failure (MR0805); `whose` begins the sentence.
nlohmann::json parse_body(const std::string& body, const std::string& whose);
// The text of a body; words that are no UTF-8, such as those of a plugin, are mended. Throws Failure (MR0805) if it is
// too long; `what` begins the sentence.
std::string text_of(const nlohmann::json& document, const std::string& what);

// SHA-256 in lower-case hexadecimal digits.
std::string sha256(std::string_view text);

} // namespace millrace::node
