// One report of a run on several nodes, made from those of its nodes.
#pragma once

#include <map>
#include <string>

#include "observe/report.h"

namespace millrace::node {

// The JSON of the run: that of the coordinator, with the handlers, edges, transfers and crossings of all nodes in one
// list each. Each entry says the node that it is `on`; what two nodes count of one edge is added up. `nodes` has the
// rest by node. `reports` are those of the other nodes, JSON by name; one that cannot be read is left out.
std::string report_of_all(const Result& own, const std::string& node,
                          const std::map<std::string, std::string>& reports);

} // namespace millrace::node
