// Handlers as nodes tell each other of them, in JSON: the declaration, the facts, the formats that each port takes,
// and the answers to the compiler's questions.
//
//   offer   a node tells of its own handlers; of a source also which formats it makes
//   brief   the coordinator tells of all handlers, with all that the compiler asked while it made the plan
//
// A compiler asks the same questions wherever it compiles the same graph from the same facts. So a node that was told
// the answers makes the same plan, without the code of other nodes' handlers.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "plugin/answers.h"

namespace millrace::plan {
struct HandlerFacts;
}

namespace millrace::node {

// The JSON of another node. Discarded (json::is_discarded) if it is none, or is nested more deeply than a statement: a
// peer is trusted to take part, and not to be sound.
nlohmann::json read_json(const std::string& text);

// The types of records that formats point to.
using RecordTypes = std::vector<std::shared_ptr<const plugin::RecordType>>;

// Asks the node of a handler: a question, and the answer to it, as documents.h has them. Throws Failure if none comes.
using AskNode = std::function<std::string(const std::string& question)>;

// Answers from those that were told; others come from a live handler or from the handler's own node, and are kept.
class ToldHandler final : public plugin::Answers {
 public:
  // `live`: null if this machine has no such handler. `ask`: null if its node cannot be asked.
  ToldHandler(std::string name, plugin::HandlerInfo info, plugin::Answers* live, AskNode ask)
      : name_(std::move(name)), info_(std::move(info)), live_(live), ask_(std::move(ask)) {
    if (live) memory_ = live->memory();
  }

  const plugin::HandlerInfo& info() const override { return info_; }
  mr_status configure(const std::vector<mr_format>& inputs, std::vector<mr_format>& outputs) override;
  std::string error() const override { return error_; }
  int fault() const override { return fault_; }
  plugin::BodyMemory memory() const override { return memory_; }

 private:
  friend class ToldHandlers;
  struct Answer {
    std::string inputs; // JSON
    std::vector<mr_format> outputs;
    plugin::BodyMemory memory;
  };

  void take_error(std::string sentence, int fault = 0);
  // Sets memory_ too.
  mr_status ask(const std::string& inputs, std::vector<mr_format>& outputs);

  std::string name_;
  plugin::HandlerInfo info_;
  plugin::Answers* live_;
  AskNode ask_;
  RecordTypes records_;
  std::vector<Answer> answers_;
  plugin::BodyMemory memory_; // with the last answer
  std::string error_;
  int fault_ = 0; // that of error_
};

// The handlers of one graph, as they were told. It outlives the facts that refer to it.
class ToldHandlers {
 public:
  // Notes what the compiler asks of this handler from now on.
  void listen(plan::HandlerFacts& handler);
  // Puts what was told in place of what `handler` has. The compiler may want an answer that was not told: then `ask`
  // gets it from the handler's own node, or if there is no `ask`, the live handler here gives it. Throws Failure
  // (MR0805) if what was told cannot be read.
  void take(const nlohmann::json& told, plan::HandlerFacts& handler, AskNode ask = {});

  // The facts of a handler: the answers that it gave if it is one of these, and the formats that were given.
  static nlohmann::json tell(const plan::HandlerFacts& handler);
  // The answer of a handler of this node to another node's question. `records` outlive the handler. Throws Failure
  // (MR0805) if the question cannot be read.
  static nlohmann::json answer(const nlohmann::json& question, plan::HandlerFacts& handler, RecordTypes& records);

 private:
  std::deque<ToldHandler> handlers_; // facts point to them
  RecordTypes records_;
};

} // namespace millrace::node
