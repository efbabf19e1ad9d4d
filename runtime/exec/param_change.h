// Live changes of parameters, as a run is asked for them and as it tells of them (semantics.md 2.7).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace millrace::exec {

// A live change of parameters, applied together at one tick (semantics.md 2.7).
struct ParamChange {
  std::string handler, param, text;
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
// The first tick that sees the changes of one call, on each clock that has such handlers.
using ChangesTaken = std::function<void(const std::vector<TickOfClock>&)>;

} // namespace millrace::exec
