// Shares the threads that a run was given between its workers and the libraries of its handlers.
#pragma once

#include <cstdint>
#include <functional>

namespace millrace::graph {
struct Graph;
struct Handler;
} // namespace millrace::graph
namespace millrace::plugin {
struct HandlerInfo;
class Registry;
} // namespace millrace::plugin

namespace millrace::plan {

struct SharedThreads {
  uint32_t workers = 1;
  uint32_t of_libraries = 0; // beside the workers that call them
};

// A handler whose parameter counts threads (MR_PARAM_THREADS) and has no number gets one: all such handlers and the
// rest of the graph have equal shares of the threads that given numbers leave, at least one each. The workers are those
// that the libraries leave, at least one. So no more than `threads` run, unless given numbers ask for more. `counts`
// says which handlers run here.
SharedThreads share_threads(graph::Graph& graph, const plugin::Registry& registry, uint32_t threads,
                            const std::function<bool(const graph::Handler&)>& counts);

// Gives a handler of a stream that comes the number of threads that `planned` has, in whose place it is. A number of
// its own stays.
void take_share(const plugin::HandlerInfo& info, const graph::Handler& planned, graph::Handler& handler);

} // namespace millrace::plan
