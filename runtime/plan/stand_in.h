// Stand-in facts for sources that cannot be asked when the plan is made. Private to runtime/plan.
#pragma once

namespace millrace::graph {
struct Graph;
}

namespace millrace::plan {

struct Facts;

// Gives a source whose stream comes later the facts and formats of the same template's source in another stream: in the
// one that gives the most bytes a tick. It comes later if it has a free seat, or did not answer (HandlerFacts::absent).
// Throws Failure (MR0403) if a source refuses, and MR0604 if one did not answer and no other stream's has.
void stand_in(const graph::Graph& graph, Facts& facts);

} // namespace millrace::plan
