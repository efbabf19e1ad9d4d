// The handlers of a stream that comes while a plan is carried out.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "millrace/abi.h"
#include "plan/probe.h"

namespace millrace::graph {
class Confine;
}
namespace millrace::plugin {
class CallWatch;
class Instance;
class Registry;
} // namespace millrace::plugin

namespace millrace::plan {

struct Plan;

// The handlers of a stream that comes while the plan is carried out: by index into Plan::handlers, new instances of the
// templates, and the facts of those that are sources.
struct MadeStream {
  std::vector<std::pair<uint32_t, std::unique_ptr<plugin::Instance>>> instances;
  std::vector<std::pair<uint32_t, mr_facts>> facts;
};

struct StreamToMake {
  uint32_t clock;               // Plan::clocks: the seat into which it comes
  graph::Stream stream;         // {index} is the seat's
  bool is_sources_only = false; // its other handlers are there already
  ProbeLimits limits{.of_one = true};
  const graph::Confine* confine = nullptr; // as prepare() takes it
};

// Makes the handlers of a stream and probes them. `written` has the templates, `unfolded` what the plan was made from.
// A handler that is captured with others keeps its instance, so the stream cannot have values of its own for it. Throws
// Failure as prepare() does, MR0403 for a source whose values do not fit into the plan, MR0324 for a handler that
// cannot be another one.
MadeStream make_stream(const graph::Graph& written, const graph::Graph& unfolded, const Plan& plan,
                       const StreamToMake& wanted, const plugin::Registry& registry, const mr_host& host,
                       plugin::CallWatch* watch);
// The stream of the pipeline whose clock that is.
const graph::Stream& stream_of(const graph::Graph& unfolded, const Plan& plan, uint32_t clock);

} // namespace millrace::plan
