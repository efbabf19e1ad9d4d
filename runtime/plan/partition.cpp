// Steps into segments: cut where the domain changes, where results come later, where a handler blocks or runs as
// several instances, and where a segment would take too much of the period (semantics.md 5.2).
#include <algorithm>
#include <map>

#include "plan/draft.h"

namespace millrace::plan {

namespace {

// The part of a period that a segment may fill.
constexpr double kLoadMax = 0.8;
// What a handler is taken to cost before it was measured: a picture at video size, on one core.
constexpr int64_t kUnknownCostNs = 300'000;
// A segment shorter than this gains nothing from a cut: a hand-over to a sleeping thread costs as much (research, §6).
constexpr int64_t kSegmentMinNs = 20'000;

class Partition {
 public:
  explicit Partition(Draft& draft) : draft_(draft), plan_(draft.plan), cost_(draft.plan.paces.size()) {}

  void run() {
    for (const Step& step : plan_.steps) cost_[step.pace] += cost_of(step);
    for (uint32_t s = 0; s < plan_.steps.size(); ++s) plan_.steps[s].segment = choose(s);
    add_lanes();
  }

 private:
  int64_t cost_of(const Step& step) const {
    if (step.handler == kNone || step.domain != 0) return 0;
    const int64_t known = plan_.handlers[step.handler].cost_ns;
    return known > 0 ? known : kUnknownCostNs;
  }

  int64_t budget_of(uint32_t pace) const {
    if (draft_.machine.workers <= 1) return INT64_MAX;
    const Clock& clock = plan_.clocks[plan_.paces[pace].clock];
    if (clock.realtime() && clock.rate.numerator > 0)
      return static_cast<int64_t>(kLoadMax * 1e9 * static_cast<double>(clock.rate.denominator) /
                                  static_cast<double>(clock.rate.numerator));
    return std::max<int64_t>(kSegmentMinNs, cost_[pace] / draft_.machine.workers);
  }

  bool stands_alone(const Step& step) const {
    if (step.kind == StepKind::transfer) return true; // waits for its readers' inputs; must not hold up its device
    if (step.handler == kNone || step.kind == StepKind::source) return false;
    const HandlerPlan& handler = plan_.handlers[step.handler];
    return handler.lanes > 1 || (handler.info->traits & (MR_TRAIT_BLOCKING | MR_TRAIT_HOST_HEAVY)) ||
           !handler.info->thread.empty();
  }

  uint32_t open(const Step& step) {
    Segment segment;
    segment.pace = step.pace;
    segment.domain = step.domain;
    plan_.segments.push_back(segment);
    level_.push_back(step.level);
    load_.push_back(0);
    closed_.push_back(false);
    return static_cast<uint32_t>(plan_.segments.size() - 1);
  }

  uint32_t append(uint32_t segment, uint32_t s) {
    plan_.segments[segment].steps.push_back(s);
    load_[segment] += cost_of(plan_.steps[s]);
    return segment;
  }

  uint32_t choose(uint32_t s) {
    const Step& step = plan_.steps[s];
    if (stands_alone(step)) {
      const uint32_t segment = append(open(step), s);
      closed_[segment] = true;
      describe_thread(segment, step);
      return segment;
    }
    // Sources of a clock are asked one after another by its head.
    if (step.kind == StepKind::source) return append(keyed(heads_, {step.pace, 0, 0}, step), s);
    if (step.domain != 0) return append(keyed(devices_, {step.pace, step.domain, step.level}, step), s);
    const uint32_t joined = latest_producer(step);
    const bool light = step.kind == StepKind::gate || step.kind == StepKind::post;
    const bool fits = light || load_[joined == kNone ? 0 : joined] + cost_of(step) <= budget_of(step.pace);
    // With one worker nothing overlaps, and a segment may as well wait in its middle.
    if (joined != kNone && fits && (draft_.machine.workers == 1 || !leads_back(step, joined))) return append(joined, s);
    return append(open(step), s);
  }

  using Key = std::tuple<uint32_t, uint32_t, uint32_t>;
  uint32_t keyed(std::map<Key, uint32_t>& known, const Key& key, const Step& step) {
    const auto at = known.find(key);
    if (at != known.end()) return at->second;
    return known[key] = open(step);
  }

  // The open segment of the last of the steps that this one reads on the host.
  uint32_t latest_producer(const Step& step) const {
    uint32_t latest = kNone;
    for (const StepInput& input : step.inputs) {
      if (input.output == kNone || input.delay > 0) continue;
      const uint32_t producer = plan_.outputs[input.output].step;
      const uint32_t segment = plan_.steps[producer].segment;
      if (plan_.steps[producer].domain != 0 || closed_[segment] || level_[segment] != step.level ||
          plan_.segments[segment].pace != step.pace)
        continue;
      if (latest == kNone || producer > latest) latest = producer;
    }
    return latest == kNone ? kNone : plan_.steps[latest].segment;
  }

  // Whether a path leads from the segment out of it and back to this step: joined, it would hold the segment's next
  // tick until the others are done with this one.
  bool leads_back(const Step& step, uint32_t segment) const {
    std::vector<uint32_t> todo;
    const auto look_at = [&](const Step& at, bool from_segment) {
      const auto add = [&](uint32_t producer) {
        if (plan_.steps[producer].segment != segment || from_segment) todo.push_back(producer);
      };
      for (const StepInput& input : at.inputs)
        if (input.output != kNone && input.delay == 0) add(plan_.outputs[input.output].step);
      for (uint32_t before : at.after) add(before);
      if (at.kind == StepKind::resolve) add(plan_.channels[at.channel].from);
      if (at.kind == StepKind::entry) add(plan_.channels[at.channel].from);
    };
    look_at(step, false);
    std::vector<bool> seen(plan_.steps.size());
    while (!todo.empty()) {
      const uint32_t at = todo.back();
      todo.pop_back();
      if (plan_.steps[at].segment == segment) return true;
      if (seen[at]) continue;
      seen[at] = true;
      look_at(plan_.steps[at], true);
    }
    return false;
  }

  void describe_thread(uint32_t s, const Step& step) {
    if (step.handler == kNone) return;
    const plugin::HandlerInfo& info = *plan_.handlers[step.handler].info;
    plan_.segments[s].blocking = info.traits & MR_TRAIT_BLOCKING;
    plan_.segments[s].thread = info.thread;
  }

  void add_lanes() {
    const size_t count = plan_.segments.size();
    for (size_t s = 0; s < count; ++s) {
      const Step& step = plan_.steps[plan_.segments[s].steps[0]];
      const uint32_t lanes = step.handler == kNone ? 1 : plan_.handlers[step.handler].lanes;
      plan_.segments[s].lanes = lanes;
      for (uint32_t lane = 1; lane < lanes; ++lane) {
        Segment copy = plan_.segments[s];
        copy.lane = lane;
        plan_.segments.push_back(copy);
      }
    }
  }

  Draft& draft_;
  Plan& plan_;
  std::vector<int64_t> cost_; // per pace
  std::vector<int64_t> load_; // per segment
  std::vector<uint32_t> level_;
  std::vector<bool> closed_;
  std::map<Key, uint32_t> heads_, devices_;
};

} // namespace

void partition(Draft& draft) { Partition(draft).run(); }

} // namespace millrace::plan
