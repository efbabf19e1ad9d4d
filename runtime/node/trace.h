// The traces of all nodes as one. A node sends its own to the coordinator once its run is over, as this text:
//
//   {"begin_ns", "forgotten", "left_out", "steps": […], "clocks": […], "tracks": [{"name", "events": […]}, …]}
//
// An event is five numbers: its begin and its trace id, both as the difference to the event before on its track, its
// duration, step and kind. That takes about 20 bytes.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "observe/trace_file.h"

namespace millrace::node {

// The text of a trace, with the newest events that fit. Within a statement it has at most so many bytes; "" if that is
// not enough for the names.
std::string write_node_trace(const TraceOfRun& trace, size_t bytes_most);
// None if the text is no trace.
std::optional<TraceOfRun> read_node_trace(const std::string& text);

// That of this node, then those of the others, JSON by name. One that cannot be read is left out.
std::vector<TraceOfRun> traces_of_all(TraceOfRun own, const std::string& node,
                                      const std::map<std::string, std::string>& traces);

} // namespace millrace::node
