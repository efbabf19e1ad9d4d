// Names of edges as the pipeline file writes them, for plans whose streams are unfolded.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "exec/plan_run.h"

namespace millrace::plan {
struct EdgePlan;
}

namespace millrace::exec {

// Names are without streams, but for the source of an edge that was written with one, as in `input: draw@hall`. That is
// an edge into a handler outside which is no entry of a list over all streams, or one that several streams have from
// the same instance.
class WrittenEdges {
 public:
  explicit WrittenEdges(const PlanRun& planned);
  // The source and the target. A list over streams is named without its entries.
  std::pair<std::string, std::string> names_of(const plan::EdgePlan& edge) const;

 private:
  const PlanRun& planned_;
  std::map<std::pair<std::string, std::string>, size_t> readers_; // how many a source has, by its name and theirs
};

} // namespace millrace::exec
