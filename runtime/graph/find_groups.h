// Finds the handlers that work item by item for all streams of a set, and which of them do so together.
//
//   video:  { for_each: cameras }                 a template
//   detect: { input: video }                      shared: outside the streams, and a single input reads a template
//   boxes:  { input: detect }                     of the same group: a sync edge joins it to one
//   draw:   { for_each: cameras, inputs: { video: video, boxes: boxes } }      reads its own stream's item
//
// A handler with `batch: { of: rows }` begins a group of its own: its items are rows of another group's results.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "observe/error.h"

namespace millrace::graph {

struct Group {
  std::string name; // its handler with `batch:`, else the first in the text
  std::string set;
  std::vector<std::string> handlers; // in the order of the text
};

// By handler, the group that it is in. Mistakes (MR0325) are added to `kept`; without it the first one is thrown as
// Failure.
std::map<std::string, Group> find_groups(const Graph& written, std::vector<Error>* kept);

} // namespace millrace::graph
