// Changes of parameters that one node asks of another, as JSON: the body of a request and of its reply.
//
//   {"changes": [["blur", "sigma", "8"]], "make": true}
//   {"ticks": [["main", 104]], "away": ["gpu"]}    {"error": {"code": 316, "what": …, "notes": […], …}}
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "exec/param_change.h"
#include "observe/error.h"

namespace millrace::node {

// `make`: the node is the home of their clocks, and gives them their tick. Else it says only if it can take them, which
// its own handlers and options decide.
struct ChangesRequest {
  std::vector<exec::ParamChange> changes;
  bool make = true;
};

// The end of a request for changes.
struct ChangesAnswer {
  std::vector<exec::TickOfClock> ticks; // exec::kNoTickTook: the clock has ended
  std::vector<std::string> away;        // nodes that take the changes when they are back
  std::optional<Error> error;           // they are refused
};

std::string write_changes(const ChangesRequest& request);
std::string write_answer(const ChangesAnswer& answer);
// Both throw Failure (MR0805); `whose` begins the sentence.
ChangesRequest read_changes(const std::string& body, const std::string& whose);
ChangesAnswer read_answer(const std::string& body, const std::string& whose);

} // namespace millrace::node
