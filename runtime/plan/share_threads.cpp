// Counts the handlers whose libraries have threads, and gives each a number; see share_threads.h.
#include "plan/share_threads.h"

#include <millrace/read_number.h>

#include <algorithm>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/params.h"
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
    const graph::Param* const given = graph::find_param(handler.params, *counter);
    int64_t number = 0;
    if (given && detail::read_whole_number(given->text, number) != detail::WholeProblem::none) continue; // is refused
    if (number > 0) of_libraries += static_cast<uint64_t>(number) - 1;
    if (number == 0) shares.push_back({&handler, counter});
  }
  const uint64_t left = threads > of_libraries ? threads - of_libraries : 1;
  const uint64_t share = std::max<uint64_t>(1, left / (shares.size() + 1));
  for (const Share& one : shares) {
    const Place& place = one.handler->place;
    graph::set_param(one.handler->params, {*one.counter, std::to_string(share), place, place});
    of_libraries += share - 1;
  }
  SharedThreads shared;
  shared.of_libraries = static_cast<uint32_t>(std::min<uint64_t>(of_libraries, UINT32_MAX));
  shared.workers = threads > shared.of_libraries ? threads - shared.of_libraries : 1;
  return shared;
}

void take_share(const plugin::HandlerInfo& info, const graph::Handler& planned, graph::Handler& handler) {
  const std::string* const counter = find_counter(info);
  if (!counter) return;
  const graph::Param* const own = graph::find_param(handler.params, *counter);
  if (own && own->text != "0") return;
  if (const graph::Param* const share = graph::find_param(planned.params, *counter))
    graph::set_param(handler.params, *share);
}

} // namespace millrace::plan
