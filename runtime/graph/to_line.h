// Writes a graph as a one-line pipeline, for suggested edits that change more than a word.
#pragma once

#include <string>

#include "graph/graph.h"

namespace millrace::graph {

// The line that parse_line() reads as this graph; "" if no line can say it, such as one with streams or nodes.
std::string to_line(const Graph& graph);

} // namespace millrace::graph
