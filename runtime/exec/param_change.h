// Live changes of parameters, as a run is asked for them and as it tells of them (semantics.md 2.7).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace millrace {
struct Error;
}

namespace millrace::exec {

// A live change of parameters, applied together at one tick (semantics.md 2.7).
struct ParamChange {
  std::string handler, param, text;
  std::string by{}; // the name of the client that asks; "": it has none
};
struct AppliedChange {
  uint64_t tick;
  ParamChange change;
};
// For a clock that ended before a tick of it took the changes.
inline constexpr uint64_t kNoTickTook = UINT64_MAX;
struct TickOfClock {
  std::string clock;
  uint64_t tick;
};
// Changes for the clocks that have their home on one node.
struct HomeChanges {
  uint32_t node = 0; // index into Plan::nodes
  std::vector<std::string> clocks;
  std::vector<ParamChange> changes;
};
// A parameter that has changed since the run began, and the first tick of the handler's clock that has its value; in a
// group the number of the firing.
struct ChangedParam {
  std::string param, text;
  uint64_t tick = 0;
  std::string by{}; // as in ParamChange
};
// A handler as it is now: one of a template may be another stream's than the plan says.
struct HandlerValues {
  uint32_t handler = 0; // its number in the plan
  std::string name;
  bool is_as_planned = true; // false: of a stream that came later, with values of its own
  std::vector<ChangedParam> changed;
};
// The first tick that sees the changes of one call, on each clock that has such handlers.
using ChangesTaken = std::function<void(const std::vector<TickOfClock>&)>;

// MR0301 for a run whose handlers have these names.
Error no_handler_named(const std::string& name, const std::vector<std::string>& names);

} // namespace millrace::exec
