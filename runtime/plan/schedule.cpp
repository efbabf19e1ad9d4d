// Assigns segments to threads. Blocking handlers and named threads get threads of their own. A device's segments share
// one that submits to it and does nothing else, since a call on the host would hold up all that waits to be submitted
// (semantics.md 4.3); but bodies that keep the host busy have one each. The other segments prefer the worker with the
// least to do. Those of one clock, a stream's for example, stay together if one worker can do their work beside its
// share of the rest.
#include <algorithm>
#include <map>
#include <numeric>

#include "plan/domain.h"
#include "plan/draft.h"
#include "plan/memory.h"
#include "plan/pace.h"
#include "plan/step.h"
#include "plugin/handler_info.h"

namespace millrace::plan {

namespace {

// Segments of a device that have a submitting thread of their own beside the one that the others share. Each of these
// threads has a stream, and a device has 64 streams. Heavy segments beyond this number share the one thread too; the
// plan notes that.
constexpr uint32_t kHeavyMax = 32;

// True if the step's body keeps the host busy whenever it is submitted. One that is recorded is not called then.
bool is_heavy(const Plan& plan, const Step& step) {
  return step.handler() != kNone && step.region == kNone && (plan.type_of(step).traits & MR_TRAIT_HOST_HEAVY);
}

bool is_heavy(const Plan& plan, const Segment& segment) {
  return std::any_of(segment.steps.begin(), segment.steps.end(),
                     [&](uint32_t s) { return is_heavy(plan, plan.steps[s]); });
}

// True if any worker may be the segment's home.
bool is_free(const Plan& plan, const Segment& segment) {
  return !segment.blocking && segment.thread.empty() && plan.on_host(segment.domain);
}

int64_t load_of(const Plan& plan, const Segment& segment) {
  int64_t load = 0;
  for (const uint32_t s : segment.steps) {
    const uint32_t handler = plan.steps[s].handler();
    load += 1 + (handler == kNone ? 0 : plan.handlers[handler].cost_ns);
  }
  return load;
}

// Returns the step in another pace that feeds this segment's first step, if the segment is decoupled or begins at a
// `latest`; else kNone.
uint32_t step_before(const Plan& plan, const Segment& segment) {
  const Step& first = plan.steps[segment.steps[0]];
  if (first.channel() != kNone && (first.is<ResolveStep>() || first.is<EntryStep>()))
    return plan.channels[first.channel()].from;
  if (plan.paces[segment.pace].kind != PaceKind::decoupled) return kNone;
  for (const StepInput& input : first.inputs)
    if (input.output != kNone && input.delay == 0) return plan.outputs[input.output].step;
  return kNone;
}

// The worker of that step. Keeping a chain of such segments on one worker avoids a hand-over per segment.
uint32_t worker_before(const Plan& plan, const Segment& segment) {
  const uint32_t step = step_before(plan, segment);
  if (step == kNone) return kNone;
  const Segment& before = plan.segments[plan.steps[step].segment];
  return &before < &segment && !before.pinned ? before.home : kNone;
}

// Finds a home for each clock whose free segments are no more than a worker's share of the whole load, and adds them to
// `load`; the largest first. By clock; kNone: its segments are shared out one by one. If two workers had a stream's
// segments, each tick would bring its values to two caches and wake both.
std::vector<uint32_t> homes_of_clocks(const Plan& plan, std::vector<int64_t>& load) {
  std::vector<int64_t> own(plan.clocks.size(), 0);
  for (const Segment& segment : plan.segments)
    if (is_free(plan, segment)) own[plan.paces[segment.pace].clock] += load_of(plan, segment);
  const int64_t share = std::accumulate(own.begin(), own.end(), int64_t{0}) / plan.workers;
  std::vector<uint32_t> order(own.size()), homes(own.size(), kNone);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return own[a] > own[b]; });
  for (const uint32_t clock : order) {
    if (own[clock] > share) continue;
    const auto least = std::min_element(load.begin(), load.end());
    *least += own[clock];
    homes[clock] = static_cast<uint32_t>(least - load.begin());
  }
  return homes;
}

// Returns the handlers of a segment that keep the host busy, in the words of a note.
std::string heavy_names(const Plan& plan, const Segment& segment) {
  std::string names;
  for (const uint32_t s : segment.steps)
    if (is_heavy(plan, plan.steps[s])) names += (names.empty() ? "" : ", ") + plan.steps[s].name;
  return names;
}

// Notes the segments that would have a thread of their own if their device had fewer of them.
void note_crowded(Plan& plan, uint32_t domain, const std::vector<std::string>& crowded) {
  std::string names;
  for (const std::string& name : crowded) names += (names.empty() ? "" : ", ") + name;
  plan.notes.push_back(names + (crowded.size() == 1 ? " keeps" : " keep") +
                       " the host busy on the thread that submits all else to " + plan.domains[domain].name + ": " +
                       std::to_string(kHeavyMax) + " others there have a thread of their own, which is the most");
}

} // namespace

void schedule(Plan& plan) {
  plan.threads = plan.workers;
  std::map<std::string, uint32_t> named;
  std::map<uint32_t, uint32_t> submitters, heavy_count; // by domain
  std::map<uint32_t, std::vector<std::string>> crowded; // by domain: heavy handlers without a thread of their own
  std::vector<int64_t> load(plan.workers, 0);
  int64_t all = 0;
  for (const Segment& segment : plan.segments)
    if (is_free(plan, segment)) all += load_of(plan, segment);
  const std::vector<uint32_t> homes = homes_of_clocks(plan, load);
  for (Segment& segment : plan.segments) {
    if (segment.blocking) {
      segment.home = plan.threads++;
      segment.pinned = true;
    } else if (!segment.thread.empty()) {
      const auto [at, fresh] = named.try_emplace(segment.thread, plan.threads);
      if (fresh) ++plan.threads;
      segment.home = at->second;
      segment.pinned = true;
    } else if (!plan.on_host(segment.domain) && is_heavy(plan, segment) && heavy_count[segment.domain] < kHeavyMax) {
      ++heavy_count[segment.domain];
      segment.heavy = true;
      segment.home = plan.threads++;
      segment.pinned = true;
    } else if (!plan.on_host(segment.domain)) {
      if (is_heavy(plan, segment)) crowded[segment.domain].push_back(heavy_names(plan, segment));
      const auto [at, fresh] = submitters.try_emplace(segment.domain, plan.threads);
      if (fresh) ++plan.threads;
      segment.home = at->second;
      segment.pinned = true;
    } else if (const uint32_t home = homes[plan.paces[segment.pace].clock]; home != kNone) {
      segment.home = home;
    } else {
      const uint32_t before = worker_before(plan, segment);
      const int64_t own = load_of(plan, segment);
      segment.home = static_cast<uint32_t>(std::min_element(load.begin(), load.end()) - load.begin());
      // Follow the previous worker only while its load stays below the average.
      if (before != kNone && load[before] + own <= all / plan.workers) segment.home = before;
      load[segment.home] += own;
    }
  }
  for (const auto& [domain, names] : crowded) note_crowded(plan, domain, names);
}

} // namespace millrace::plan
