// Looks at what a node may be told by another one: statements of the fleet, offers, briefs, questions and answers. Each
// is refused by a Failure, or the node goes on with it: it compiles, and what it writes itself can be read.
//
// The first letter of an input says what the rest is: 's'tatement, 'o'ffer of edge to home, 'b'rief for wall,
// 'q'uestion to edge, 'a'nswer of edge to home.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "exec/run.h"
#include "fleet/statement.h"
#include "node/documents.h"
#include "node/offers.h"
#include "observe/error_codes.h"
#include "plan/plan.h"
#include "tests/node/types.h"

namespace millrace::node {
namespace fuzz {

// The source and the handler that adds up are on edge; home coordinates, and wall only reads.
inline constexpr const char* kPipeline = R"(version: 1
nodes: { home: {}, edge: {}, wall: {} }
handlers:
  camera: { type: n.boxes, node: edge, most: 7, rate: 25 }
  total: { type: n.total, input: camera, node: edge }
  screen: { type: n.show, input: total }
  board: { type: n.show, input: { from: total, delivery: reliable }, node: wall }
)";

// A process of a node, which has the code of its own handlers alone, and is as it began for each input.
class NodeProcess {
 public:
  explicit NodeProcess(const std::string& name) : name_(name) {
    registry_.add(test::show_plugin(), "");
    if (name == "edge") registry_.add(test::boxes_plugin(), "");
    if (name == "edge") registry_.add(test::total_plugin(), "");
    embed::Choices choices;
    choices.node = name;
    choices.threads = 1;
    preparation_ = std::make_unique<embed::Preparation>(graph::parse_yaml(kPipeline, "p.yaml"), registry_,
                                                        exec::host_table(), choices);
    facts_ = preparation_->facts();
  }
  embed::Preparation& preparation() { return *preparation_; }
  void begin_again() {
    preparation_->facts() = facts_;
    preparation_->run_on("screen", ""); // the one that names no node, wherever it was placed
  }
  void compile(const Decided& decided) { preparation_->compile(options_by(decided, *preparation_, name_)); }

 private:
  std::string name_;
  plugin::Registry registry_;
  std::unique_ptr<embed::Preparation> preparation_;
  plan::Facts facts_;
};

struct Nodes {
  void begin_again() {
    home.begin_again();
    edge.begin_again();
    wall.begin_again();
  }
  NodeProcess home{"home"}, edge{"edge"}, wall{"wall"};
  std::string edge_offer = write_offer(edge.preparation(), "edge");
  std::string wall_offer = write_offer(wall.preparation(), "wall");
};

inline Nodes& nodes() {
  static Nodes all;
  return all;
}

inline const char* look_at_statement(const std::string& text) {
  fleet::Statement read;
  std::string why;
  if (!fleet::read_statement(text, read, why)) return why.empty() ? "a refusal has a reason" : nullptr;
  const std::string written = fleet::to_text(read);
  if (!fleet::read_statement(written, read, why)) return "a statement that was read is written so that it can be read";
  return fleet::to_text(read) == written ? nullptr : "a statement is written as it was read";
}

inline Decided decided() {
  Decided made;
  made.clock = graph::ClockMode::realtime;
  made.rate = graph::Rational{25, 1};
  made.round_trip_ns = 3'000'000;
  return made;
}

// The brief of the coordinator, which has compiled the plan of these offers.
inline std::string brief_by(const std::string& edge_offer, const AskNodes& ask, ToldHandlers& told) {
  Nodes& all = nodes();
  Offers offers({{"edge", edge_offer}, {"wall", all.wall_offer}}, ask, all.home.preparation(), told);
  Decided made = decided();
  made.placed = offers.place({}, options_by(made, all.home.preparation(), "home"));
  made.machines = offers.machines();
  all.home.compile(made);
  return write_brief(all.home.preparation(), made);
}

// On the coordinator: a plan from these offers, then the brief, which each member must be able to read.
inline const char* look_at_offer(const std::string& offer, const AskNodes& ask) {
  Nodes& all = nodes();
  ToldHandlers told;
  std::string brief;
  try {
    brief = brief_by(offer, ask, told);
  } catch (const Failure&) {
    return nullptr;
  }
  try {
    ToldHandlers told_wall;
    all.wall.compile(read_brief(brief, "wall", all.wall.preparation(), told_wall));
  } catch (const Failure& failure) {
    static std::string rule;
    rule = "a plan that the coordinator compiled is compiled by a member: " + format_error(failure.error());
    return rule.c_str();
  }
  return nullptr;
}

inline const char* look_at_brief(const std::string& brief) {
  Nodes& all = nodes();
  try {
    ToldHandlers told;
    all.wall.compile(read_brief(brief, "wall", all.wall.preparation(), told));
  } catch (const Failure&) {
  }
  return nullptr;
}

inline std::string answer_of_edge(const std::string& question) {
  RecordTypes records;
  return answer_question(question, nodes().edge.preparation(), records);
}

inline const char* look_at_question(const std::string& question) {
  try {
    if (read_json(answer_of_edge(question)).is_discarded()) return "an answer is JSON";
  } catch (const Failure&) {
  }
  return nullptr;
}

} // namespace fuzz

// Returns the rule that is broken; null if none is.
inline const char* look_at_told(std::string_view input) {
  if (input.empty()) return nullptr;
  const std::string text(input.substr(1));
  fuzz::nodes().begin_again(); // what was told before is gone
  const AskNodes edge_answers = [](const std::string&, const std::string& question) {
    RecordTypes records;
    return answer_question(question, fuzz::nodes().edge.preparation(), records);
  };
  switch (input[0]) {
    case 's': return fuzz::look_at_statement(text);
    case 'o': return fuzz::look_at_offer(text, edge_answers);
    case 'b': return fuzz::look_at_brief(text);
    case 'q': return fuzz::look_at_question(text);
    case 'a':
      return fuzz::look_at_offer(fuzz::nodes().edge_offer,
                                 [&](const std::string&, const std::string&) { return text; });
    default: return nullptr;
  }
}

// Texts that nodes write themselves: one of each kind, and several statements.
inline std::vector<std::string> told_by_nodes() {
  fuzz::Nodes& all = fuzz::nodes();
  all.begin_again();
  std::string question, answer;
  ToldHandlers told;
  const AskNodes ask = [&](const std::string&, const std::string& asked) {
    question = asked;
    RecordTypes records;
    return answer = answer_question(asked, all.edge.preparation(), records);
  };
  const std::string brief = fuzz::brief_by(all.edge_offer, ask, told);
  const Error error{code::unable_node, "gpu cannot do its part", {"p.yaml", 3, 5}, {"a note"}, "near", "an edit"};
  const fleet::RunFailure failure{error, "edge", "main", 7, true};
  const fleet::Statement statements[] = {
      fleet::Offer{"edge", 7, "1.2", "a hash", R"({"handlers":{}})", "version: 1\n"},
      fleet::State{fleet::State::Step::unable, 1, "a hash", "{}", error, failure},
      fleet::State{fleet::State::Step::done, 1, "a hash", "{\n}", {}, {}, "[\n]", {"process of tick 3"}},
      fleet::Brief{1, "a hash", R"({"handlers":{}})"},
      fleet::Order{fleet::Order::Step::start, 7, 1, "a hash", 5, true, failure, error},
      fleet::StreamOver{1, "a hash", failure},
      fleet::Question{3, R"({"handler":"total"})"},
      fleet::Answer{3, R"({"outputs":[]})"},
      fleet::Request{"gpu", "edge", 7, 3, R"({"changes":[["total","add","5"]]})"},
      fleet::Reply{"gpu", 7, 3, R"({"ticks":[["main",104]],"away":[]})"},
  };
  std::vector<std::string> inputs = {"o" + all.edge_offer, "b" + brief, "q" + question, "a" + answer};
  for (const fleet::Statement& statement : statements) inputs.push_back("s" + fleet::to_text(statement));
  return inputs;
}

} // namespace millrace::node
