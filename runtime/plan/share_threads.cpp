// Counts the handlers whose libraries have threads, and gives each a number; see share_threads.h.
#include "plan/share_threads.h"

#include <millrace/read_number.h>

#include <algorithm>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "plugin/registry.h"

namespace millrace::plan {

namespace {

// The name of the parameter that counts threads; null if the type has none.
const std::string* find_counter(const plugin::HandlerInfo& info) {
  for (const auto& param : info.params)
    if (param.raw.flags & MR_PARAM_THREADS) return &param.name;
  return nullptr;
}

} // namespace

SharedThreads share_threads(graph::Graph& graph, const plugin::Registry& registry, uint32_t threads,
                            const std::function<bool(const graph::Handler&)>& counts) {
  struct Share {
    graph::Handler* handler;
    const std::string* counter;
  };
  std::vector<Share> shares;
  uint64_t of_libraries = 0;
  for (graph::Handler& handler : graph.handlers) {
    const plugin::RegisteredType* const type = counts(handler) ? registry.find(handler.type) : nullptr;
    const std::string* const counter = type ? find_counter(*type) : nullptr;
    if (!counter) continue;
    const auto given = std::find_if(handler.params.begin(), handler.params.end(),
                                    [&](const graph::Param& param) { return param.name == *counter; });
    int64_t number = 0;
    const bool is_given = given != handler.params.end();
    if (is_given && detail::read_whole_number(given->text, number) != detail::WholeProblem::none)
      continue; // is refused
    if (number > 0) of_libraries += static_cast<uint64_t>(number) - 1;
    if (number == 0) shares.push_back({&handler, counter});
  }
  const uint32_t share = std::max(1u, threads / (static_cast<uint32_t>(shares.size()) + 1));
  for (const Share& one : shares) {
    std::erase_if(one.handler->params, [&](const graph::Param& param) { return param.name == *one.counter; });
    one.handler->params.push_back({*one.counter, std::to_string(share), one.handler->place, one.handler->place});
    of_libraries += share - 1;
  }
  SharedThreads shared;
  shared.of_libraries = static_cast<uint32_t>(std::min<uint64_t>(of_libraries, UINT32_MAX));
  shared.workers = threads > shared.of_libraries ? threads - shared.of_libraries : 1;
  return shared;
}

} // namespace millrace::plan
