// A plan as tests ask about it: in the words of the printed plan, by the names of handlers. Tests of the plan and of
// the executor go through here alone, so that another representation of steps, paces or rings is an edit of
// plan_view.cpp.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "graph/enums.h"
#include "millrace/abi.h"

namespace millrace::plan {
struct HandlerPlan;
struct Output;
struct Pace;
struct Plan;
struct Ring;
struct Segment;
struct Step;
} // namespace millrace::plan

namespace millrace::test {

// Blocks of one output.
struct RingView {
  std::string domain;
  uint32_t length = 0;
  uint64_t capacity = 0;
  bool dynamic = false, pinned = false;
  std::vector<std::string> reasons; // "3 in flight", "2 by delay": the annotated sum
};

// The gate that lets ticks into the pace of a decoupled handler.
struct GateView {
  uint32_t every = 1, depth = 1;
  bool fed = false; // by sync or queue, or every tick passes
  bool queued = false, busy = false, every_tick = false;
};

struct StepView {
  std::string kind; // "source", "handler", "finish", "copy", "entry", "gate", "post", "resolve", "give", "deal"
  std::string name; // the handler's, or a description: "copy video → sim:0"
};

struct SegmentView {
  std::string domain;
  uint32_t lane = 0, lanes = 1;
  uint32_t thread = 0;
  bool by_a_worker = true; // that thread is no named, blocking or submitting one
  bool pinned = false, blocking = false, heavy = false;
  std::vector<StepView> steps;
};

struct RegionView {
  uint32_t slots = 0;
  std::vector<std::string> steps; // by name, also the copies that are recorded with handlers
  std::vector<std::string> handlers;
};

struct CopyView {
  std::string from, to, submitter; // domains
  uint64_t bytes = 0;
  double predicted_us = 0, one_by_one_us = 0;
  std::string reason;
  size_t edges = 0;                  // that it serves
  size_t values = 0, values_out = 0; // that it reads, and makes, in one
  std::vector<std::string> presumed; // handlers whose outputs are taken to have a value
  bool presumes(const std::string& handler) const {
    return std::find(presumed.begin(), presumed.end(), handler) != presumed.end();
  }
};

struct ClockView {
  std::string mode, driver; // "free", "source" or "realtime"; the source that creates the ticks
  graph::Rational rate;     // 0: none
  bool realtime = false;    // realtime's rules of lateness
  uint32_t in_flight_least = 0;
  std::vector<std::string> sources;
};

class PlanView {
 public:
  explicit PlanView(const plan::Plan& plan) : plan_(&plan) {}

  // The text that `millrace plan` prints.
  std::string text() const;
  size_t count_of(const std::string& words) const; // in it
  // Its first line with these words.
  std::string line_with(const std::string& words) const;
  const std::vector<std::string>& notes() const;
  bool has_note(const std::string& words) const;
  std::vector<std::string> domains() const; // "cpu" first
  uint32_t workers() const;
  uint32_t threads() const;
  double latency_us() const;
  bool guessed() const;
  uint64_t memory(const std::string& domain) const;
  const std::map<std::string, uint64_t>& memory() const; // by domain
  std::vector<ClockView> clocks() const;
  size_t pace_count() const;

  // Questions about a handler.
  std::string type(const std::string& handler) const;
  std::string place(const std::string& handler) const; // its domain
  std::string reason(const std::string& handler) const;
  uint32_t clock(const std::string& handler) const;
  uint32_t instances(const std::string& handler) const;
  int64_t cost_ns(const std::string& handler) const;
  bool captured(const std::string& handler) const;
  uint32_t level(const std::string& handler) const; // what is pending before it
  // It comes after that reader, a step, of what it writes over, on each tick.
  bool waits_for(const std::string& writer, const std::string& reader) const;
  bool comes_later(const std::string& handler, const std::string& than) const;
  bool moves(const std::string& handler) const; // another cut may change its segment
  // Two handlers read one output by their first inputs.
  bool read_the_same(const std::string& one, const std::string& other) const;

  // Questions about its pace.
  uint32_t window(const std::string& handler) const;
  uint32_t room(const std::string& handler) const;
  uint32_t slots(const std::string& handler) const;
  bool decoupled(const std::string& handler) const;
  bool in_step(const std::string& one, const std::string& other) const;
  // Its gate belongs to the pace of the other one.
  bool gated_by(const std::string& handler, const std::string& other) const;
  GateView gate(const std::string& handler) const;

  // Questions about an output; without a name it is the first one.
  RingView ring(const std::string& handler, const std::string& output = "") const;
  std::vector<RingView> rings() const;
  bool owns_memory(const std::string& handler) const;
  bool share_memory(const std::string& one, const std::string& other) const;
  bool packed_together(const std::string& one, const std::string& other) const;
  bool packed(const std::string& handler) const;
  mr_format format(const std::string& handler) const;

  // Steps that run together.
  std::vector<SegmentView> all_segments() const;
  SegmentView segment(const std::string& handler) const;
  // The handlers of each segment, joined by spaces, in the plan's order; steps of the runtime are left out.
  std::vector<std::string> segments() const;
  std::vector<RegionView> regions() const;

  // Values that cross between domains.
  std::vector<CopyView> copies() const;
  // "cpu → sim:0" for each copy, sorted.
  std::vector<std::string> hops() const;
  // Capacities of the queues between paces and clocks.
  std::vector<uint32_t> queue_capacities() const;

 private:
  const plan::HandlerPlan& declared(const std::string& handler) const;
  const plan::Step& step(const std::string& handler) const;
  const plan::Pace& pace(const std::string& handler) const;
  const plan::Output& output(const std::string& handler, const std::string& name) const;
  RingView view(const plan::Ring& ring) const;
  SegmentView view(const plan::Segment& segment) const;

  const plan::Plan* plan_;
};

} // namespace millrace::test
