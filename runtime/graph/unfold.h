// Makes the instances of templates: a graph with `streams:` becomes one without, which the plan is made from.
//
//   video: { for_each: cameras, path: "{path}" }         video@gate7, video@hall     a handler for each stream
//   draw:  { for_each: cameras, input: video }           video@gate7 → draw@gate7    its own stream's
//   wall:  { input: { from: draw, policy: latest } }     draw@gate7, draw@hall → wall   a list over all streams
//   save:  { input: draw@hall }                          draw@hall → save            one of them
//   detect: { input: video }                             video@gate7, video@hall → detect    item by item, for all
//   boxes: { for_each: cameras, input: detect }          detect → boxes@gate7, boxes@hall    the stream's item
//
// Each stream has a clock of its own, named like it, with what `clocks:` says under the set's name, or else with what
// `clock:` says. A group of handlers that take items has one too (find_groups.h). Messages, reports and to_yaml speak
// of what was written; this is the only place that makes instances.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"
#include "observe/error.h"

namespace millrace::graph {

// The graph itself if it has no streams. Throws Failure MR0203, MR0215, MR0216, MR0303, MR0320-MR0323, MR0325; with
// `kept`, mistakes are added to it and what they concern is left out.
Graph unfold(const Graph& written, std::vector<Error>* kept = nullptr);

// As unfold() makes it: an instance of a template of the set for one of its streams. Throws Failure.
Handler make_instance(const Handler& handler, const StreamSet& set, const Stream& stream);

// The name of a place for streams that come later, by its number in the set: "+8". No stream has such a name.
bool is_place_name(const std::string& stream);

// The clock that paces a stream of the set.
std::string clock_name(const StreamSet& set, const Stream& stream);

// "draw@gate7"
std::string instance_name(const std::string& handler, const std::string& stream);
// The name with its streams left out: "draw@gate7.video" is "draw.video". Names of handlers, ports and edges only.
std::string written_name(const std::string& name);
// The words with another stream in the place of the planned one: "draw@+8.video" is "draw@gate7.video".
std::string with_stream(const std::string& words, const std::string& planned, const std::string& now);
// The two parts of such a name; `stream` is "" in that of a handler outside.
struct InstanceName {
  std::string handler, stream;
};
InstanceName read_instance_name(const std::string& name);

} // namespace millrace::graph
