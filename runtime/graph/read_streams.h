// Reads `streams:` of a pipeline file.
#pragma once

#include <string>
#include <vector>

#include "graph/confine.h"
#include "graph/document.h"
#include "graph/graph.h"

namespace millrace::graph {

// A pattern of files is resolved here, so a graph has the streams themselves. Throws Failure MR0203,
// MR0206-MR0213, MR0303; mistakes that do not end the reading are added to `kept` if it is given. `confine`: no
// other folder is looked into (MR0422); null: any may be.
std::vector<StreamSet> read_streams(const Value& value, const std::string& file, std::vector<Error>* kept,
                                    const Confine* confine);

} // namespace millrace::graph
