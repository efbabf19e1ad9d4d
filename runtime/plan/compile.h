// From a declared graph to a plan.
#pragma once

namespace millrace::graph {
struct Graph;
}

namespace millrace::plan {

struct Facts;
struct Machine;
struct Options;
struct Plan;
class Types;

// Runs the passes in order. Throws Failure, MR03xx and MR04xx. Its only side effect is to ask `facts` for formats, so
// plans of one graph may be made side by side, each with answers of its own.
Plan compile(const graph::Graph& graph, const Facts& facts, const Types& types, const Machine& machine,
             const Options& options);

} // namespace millrace::plan
