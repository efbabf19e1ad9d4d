// Cuts steps into segments: where the domain changes, where results come later, where a handler blocks or runs as
// several instances, and where a segment would take too much of the period (semantics.md 5.2).
#include <algorithm>
#include <map>
#include <optional>

#include "plan/clock_circles.h"
#include "plan/draft.h"
#include "plan/machine.h"
#include "plan/memory.h"
#include "plan/order.h"
#include "plan/partition.h"
#include "plan/reachability.h"
#include "plugin/handler_info.h"

namespace millrace::plan {

namespace {

// The part of a period that a segment may fill.
constexpr double kLoadMax = 0.8;
// The cost assumed for a handler that was not measured: a picture at video size, on one core.
constexpr int64_t kUnknownCostNs = 300'000;
// A segment shorter than this gains nothing from a cut: a hand-over to a sleeping thread costs as much (research, §6).
constexpr int64_t kSegmentMinNs = 20'000;

// True if a step's calls take time of its segment's host thread. A blocking source does not: it is read by a thread of
// its own.
bool counts(const Plan& plan, const Step& step) {
  if (step.handler() == kNone || !plan.on_host(step.domain)) return false;
  return !step.is<SourceStep>() || !plan.handlers[step.handler()].waits;
}

class Partition {
 public:
  // `before`: the plan whose cut is made again; `stays`: which of its segments stay. Both are null for the first cut.
  Partition(Plan& plan, const Plan* before, const std::vector<bool>* stays)
      : plan_(plan),
        before_(before),
        stays_(stays),
        cost_(plan.paces.size()),
        circles_(plan),
        waits_(circles_.waits()) {}

  void run() {
    plan_.segments.clear();
    for (const Step& step : plan_.steps) cost_[step.pace] += cost_of(step);
    for (uint32_t s = 0; s < plan_.steps.size(); ++s) plan_.steps[s].segment = choose(s);
    add_lanes();
  }

 private:
  int64_t cost_of(const Step& step) const {
    if (!counts(plan_, step)) return 0;
    const int64_t known = plan_.handlers[step.handler()].cost_ns;
    return known > 0 ? known : kUnknownCostNs;
  }

  int64_t budget_of(uint32_t pace) const {
    if (plan_.workers <= 1) return INT64_MAX;
    const Clock& clock = plan_.clocks[plan_.paces[pace].clock];
    if (clock.realtime() && clock.rate.numerator > 0)
      return static_cast<int64_t>(kLoadMax * 1e9 * static_cast<double>(clock.rate.denominator) /
                                  static_cast<double>(clock.rate.numerator));
    return std::max<int64_t>(kSegmentMinNs, cost_[pace] / plan_.workers);
  }

  bool stands_alone(const Step& step) const {
    if (step.is<CopyStep>()) return true;   // waits for its readers' inputs; must not hold up its device
    if (step.is<FinishStep>()) return true; // waits for a device in the middle of a tick
    if (step.is<PostStep>() && circles_.joins(plan_.channels[step.channel()])) return true; // waits for room there
    if (step.is<GateStep>() && circles_.has(plan_.paces[step.pace].clock)) return true;     // waits for room in a pace
    if (step.handler() == kNone || step.is<SourceStep>()) return false;
    const HandlerPlan& handler = plan_.handlers[step.handler()];
    const plugin::HandlerInfo& type = plan_.type_of(handler);
    return handler.lanes > 1 || handler.waits || (type.traits & MR_TRAIT_HOST_HEAVY) || !type.thread.empty();
  }

  uint32_t open(uint32_t s) {
    const Step& step = plan_.steps[s];
    Segment segment;
    segment.pace = step.pace;
    segment.domain = step.domain;
    plan_.segments.push_back(segment);
    level_.push_back(step.level);
    held_.push_back(waits_[s]);
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
      const uint32_t segment = append(open(s), s);
      closed_[segment] = true;
      describe_thread(segment, step);
      return segment;
    }
    if (const uint32_t kept = kept_segment(s); kept != kNone) return append(kept, s);
    // The head of a clock asks its sources one after another.
    if (step.is<SourceStep>()) return append(keyed(heads_, {step.pace, 0, 0, 0}, s), s);
    if (!plan_.on_host(step.domain)) {
      // After a way out of the device and back, a segment of its own begins. In one segment, the next tick's first part
      // would wait for this tick's second part.
      uint32_t& segment = devices_.try_emplace({step.pace, step.domain, step.level, waits_[s]}, kNone).first->second;
      if (segment == kNone || leads_back(s, segment)) segment = open(s);
      return append(segment, s);
    }
    const uint32_t joined = latest_producer(s);
    const bool light = step.is<GateStep>() || step.is<PostStep>() || step.is<GiveStep>() || step.is<DealStep>();
    if (joined == kNone) return append(open(s), s);
    const bool fits = light || load_[joined] + cost_of(step) <= budget_of(step.pace);
    // With one worker nothing overlaps, and a segment may as well wait in its middle.
    if (fits && (plan_.workers == 1 || !leads_back(s, joined))) return append(joined, s);
    return append(open(s), s);
  }

  // If the cut is made again and the step may not move: its segment, with all that was in it. Else kNone.
  uint32_t kept_segment(uint32_t s) {
    const Step& step = plan_.steps[s];
    if (!before_ || !plan_.on_host(step.domain)) return kNone;
    const uint32_t old = before_->steps[s].segment;
    if (moves(*before_, before_->segments[old]) && !(*stays_)[old]) return kNone;
    const auto [at, fresh] = kept_.try_emplace(old, kNone);
    if (fresh) {
      at->second = open(s);
      closed_[at->second] = true;
    }
    return at->second;
  }

  using Key = std::tuple<uint32_t, uint32_t, uint32_t, uint32_t>;
  uint32_t keyed(std::map<Key, uint32_t>& known, const Key& key, uint32_t s) {
    const auto at = known.find(key);
    if (at != known.end()) return at->second;
    return known[key] = open(s);
  }

  // The open segment of the last step on the host that this one reads. If clocks wait for each other, all steps of a
  // segment wait for the same clocks, so that a step which is held holds up no other.
  uint32_t latest_producer(uint32_t s) const {
    const Step& step = plan_.steps[s];
    uint32_t latest = kNone;
    for (const StepInput& input : step.inputs) {
      if (input.output == kNone || input.delay > 0) continue;
      const uint32_t producer = plan_.outputs[input.output].step;
      const uint32_t segment = plan_.steps[producer].segment;
      if (!plan_.on_host(plan_.steps[producer].domain) || closed_[segment] || level_[segment] != step.level ||
          held_[segment] != waits_[s] || plan_.segments[segment].pace != step.pace)
        continue;
      if (latest == kNone || producer > latest) latest = producer;
    }
    return latest == kNone ? kNone : plan_.steps[latest].segment;
  }

  // True if a path leads out of the segment and back to this step. If the step joined, the segment's next tick would be
  // held until the other steps are done with this one.
  bool leads_back(uint32_t s, uint32_t segment) {
    const std::vector<uint32_t>& steps = plan_.segments[segment].steps;
    return std::any_of(reach().before(s).begin(), reach().before(s).end(), [&](uint32_t outside) {
      return plan_.steps[outside].segment != segment &&
             std::any_of(steps.begin(), steps.end(), [&](uint32_t from) { return reach().leads(from, outside); });
    });
  }

  // Made at the first call, since most plans never need it.
  Reachability& reach() {
    if (!reach_) reach_ = waits_of(plan_);
    return *reach_;
  }

  void describe_thread(uint32_t s, const Step& step) {
    if (step.handler() == kNone) return;
    const HandlerPlan& handler = plan_.handlers[step.handler()];
    plan_.segments[s].blocking = handler.waits;
    plan_.segments[s].thread = plan_.type_of(handler).thread;
  }

  void add_lanes() {
    const size_t count = plan_.segments.size();
    for (size_t s = 0; s < count; ++s) {
      const Step& step = plan_.steps[plan_.segments[s].steps[0]];
      const uint32_t lanes = step.handler() == kNone ? 1 : plan_.handlers[step.handler()].lanes;
      plan_.segments[s].lanes = lanes;
      for (uint32_t lane = 1; lane < lanes; ++lane) {
        Segment copy = plan_.segments[s];
        copy.lane = lane;
        plan_.segments.push_back(copy);
      }
    }
  }

  Plan& plan_;
  std::optional<Reachability> reach_;
  const Plan* before_;
  const std::vector<bool>* stays_; // by segment of `before`
  std::vector<int64_t> cost_;      // per pace
  std::vector<int64_t> load_;      // per segment
  std::vector<uint32_t> level_, held_;
  std::vector<bool> closed_;
  const ClockCircles circles_;
  const std::vector<uint32_t> waits_; // by step
  std::map<Key, uint32_t> heads_, devices_;
  std::map<uint32_t, uint32_t> kept_; // old segment → new one
};

} // namespace

bool moves(const Plan& plan, const Segment& segment) {
  return plan.on_host(segment.domain) && segment.lanes == 1 && !segment.blocking && segment.thread.empty() &&
         plan.paces[segment.pace].kind != PaceKind::batch;
}

bool guesses(const Plan& plan, uint32_t pace) {
  if (plan.paces[pace].kind == PaceKind::batch) return false;
  const auto unknown = [&](const Step& step) {
    return step.pace == pace && counts(plan, step) && plan.handlers[step.handler()].cost_ns == 0;
  };
  size_t movable = 0; // a single one cannot be cut
  for (const Segment& segment : plan.segments)
    if (segment.pace == pace && moves(plan, segment))
      for (const uint32_t s : segment.steps) movable += plan.steps[s].handler() != kNone;
  return plan.workers > 1 && movable > 1 && std::any_of(plan.steps.begin(), plan.steps.end(), unknown);
}

std::string note_of_guesses(const Plan& plan) {
  std::string names;
  for (const HandlerPlan& handler : plan.handlers)
    if (handler.step != kNone && counts(plan, plan.steps[handler.step]) && handler.cost_ns == 0)
      names += (names.empty() ? "" : ", ") + handler.name;
  return "costs not known: " + names + "; " + std::to_string(kUnknownCostNs / 1000) +
         " µs are taken for each, and the segments are cut once more after the first ticks";
}

void partition(Draft& draft) {
  Plan& plan = draft.plan;
  plan.workers = std::max(1u, draft.machine.workers);
  plan.library_threads = draft.machine.library_threads;
  Partition(plan, nullptr, nullptr).run();
  for (uint32_t p = 0; p < plan.paces.size(); ++p) plan.guessed = plan.guessed || guesses(plan, p);
}

Cut cut_again(const Plan& plan, const std::vector<int64_t>& costs_ns, const std::vector<bool>& stays) {
  Plan again = plan;
  for (size_t h = 0; h < again.handlers.size(); ++h)
    if (again.handlers[h].cost_ns == 0) again.handlers[h].cost_ns = costs_ns[h];
  Partition(again, &plan, &stays).run();
  schedule(again);
  // A pinned segment keeps its thread, which its handlers have seen.
  for (Segment& segment : again.segments)
    for (const Segment& old : plan.segments)
      if (segment.pinned && old.lane == segment.lane && old.steps == segment.steps) segment.home = old.home;
  Cut cut;
  for (uint32_t p = 0; p < again.paces.size(); ++p) cut.windows.push_back(wider_window(again, p));
  cut.segments = std::move(again.segments);
  return cut;
}

} // namespace millrace::plan
