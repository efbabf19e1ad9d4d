// The parameters of a run with their values now, as text: the answer to `get` (control.h).
//
//   {"blur": {"type": "image.blur", "parameters": {
//     "sigma": {"value": 6.0, "default": 2.0, "declared": 3.0, "live": true, "tick": 103, "by": "millrace"}}}}
//
// `declared` is the value that the pipeline gives, if it gives one. `tick` and `by` are there if it was changed. A
// stream that came later has values of its own, which nobody keeps: there `value` and `declared` are missing, unless
// the parameter was changed since. Secrets of addresses are hidden.
#pragma once

#include <string>
#include <vector>

namespace millrace::exec {
struct HandlerValues;
}
namespace millrace::graph {
struct Graph;
}
namespace millrace::plan {
struct Plan;
}

namespace millrace::serve {

// `handler`: the only one, or a template, whose instances are meant; "": all. Throws Failure (MR0301) if there is none.
std::string values_json(const plan::Plan& plan, const graph::Graph& graph,
                        const std::vector<exec::HandlerValues>& values, const std::string& handler);

} // namespace millrace::serve
