// The inputs of a plan that handlers give: their facts, and the types that may be inserted.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "millrace/abi.h"
#include "observe/error.h"

namespace millrace::graph {
struct Handler;
}
namespace millrace::plugin {
class Answers;
struct HandlerInfo;
} // namespace millrace::plugin

namespace millrace::plan {

// A handler as known before the plan is made: its facts, and the object that answers for its formats.
struct HandlerFacts {
  std::string name;
  plugin::Answers* answers = nullptr; // null: it has a mistake that was kept
  mr_facts facts{};
  std::vector<mr_format> outputs; // flat; if given from outside, the handler is not asked for them
  std::vector<mr_format> accepts; // by port: as declared, narrowed by the parameters
  std::optional<Error> absent{};  // why a source could not be opened, so that its stream comes later
};

// The facts of a graph's handlers, in the graph's order.
struct Facts {
  std::vector<HandlerFacts> handlers;
  bool probed = true;
};

// The handler types that the compiler may use beyond those of the graph: converters for what an edge carries.
class Types {
 public:
  virtual ~Types() = default;
  // The converter type that has a parameter with this role (MR_ROLE_*); null if there is none.
  virtual const plugin::HandlerInfo* converter(uint32_t role) const = 0;
  // Makes an object that answers for such a handler with these parameters, and its ports' formats.
  struct Answering {
    std::unique_ptr<plugin::Answers> answers;
    std::vector<mr_format> accepts; // as in HandlerFacts
  };
  virtual Answering answering(const graph::Handler& declared) const = 0;
  // All types that are known here, sorted, for suggestions.
  virtual std::vector<const plugin::HandlerInfo*> all() const { return {}; }
};

} // namespace millrace::plan
