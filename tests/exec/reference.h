// Computes the values of a graph of test handlers under `free`, by the rules alone: one tick after another, one handler
// after another, without a plan, memory or threads. The executor is compared with it.
#pragma once

#include "harness.h"

namespace millrace::test {

// One call of a handler at a tick.
struct Firing {
  bool called = false;
  bool gave = false;    // a value
  bool initial = false; // the empty one of an `initial:` that it passed on
};

struct Expected {
  uint64_t ends_at = UINT64_MAX;                      // the tick that fails
  std::map<std::string, std::vector<Seen>> logs;      // by `log`, one entry a call up to that tick
  std::map<std::string, std::vector<Firing>> firings; // by handler and tick, up to that one
};

// For graphs of t.count, t.foreign, t.relay, t.stateless, t.capturable, t.join, t.need, t.paced, t.late, t.paint,
// t.forward, t.keep and t.sink on one clock.
Expected run_by_the_rules(const graph::Graph& graph, const std::vector<exec::AppliedChange>& script);

} // namespace millrace::test
