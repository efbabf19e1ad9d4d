// Computes reachability as bits, and updates them when an edge is added; see reachability.h.
#include "plan/reachability.h"

#include "plan/memory.h"
#include "plan/order.h"

namespace millrace::plan {

bool Reachability::take_over(uint32_t from, uint32_t to) const {
  uint64_t* const mine = &reached_[from * words_];
  const uint64_t* const its = &reached_[to * words_];
  bool more = false;
  for (size_t w = 0; w < words_; ++w) {
    const uint64_t all = mine[w] | its[w] | (w == to / 64 ? uint64_t{1} << to % 64 : 0);
    more = more || all != mine[w];
    mine[w] = all;
  }
  return more;
}

// Most edges point forwards, so that one pass from the end finds all and the next one finds nothing more.
void Reachability::find_all() const {
  reached_.assign(next_.size() * words_, 0);
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t node = next_.size(); node-- > 0;)
      for (const uint32_t to : next_[node]) changed = take_over(static_cast<uint32_t>(node), to) || changed;
  }
}

void Reachability::add(uint32_t from, uint32_t to) {
  next_[from].push_back(to);
  before_[to].push_back(from);
  if (reached_.empty() || leads(from, to)) return;
  take_over(from, to);
  for (uint32_t node = 0; node < next_.size(); ++node)
    if (node != from && leads(node, from)) take_over(node, from);
}

bool Reachability::leads(uint32_t from, uint32_t to) const {
  if (reached_.empty()) find_all();
  return reached_[from * words_ + to / 64] >> to % 64 & 1;
}

Reachability waits_of(const Plan& plan) {
  Reachability waits(plan.steps.size());
  for (uint32_t s = 0; s < plan.steps.size(); ++s) {
    for (const StepInput& input : plan.steps[s].inputs)
      if (waits_in_time(plan, plan.steps[s], input)) waits.add(plan.outputs[input.output].step, s);
    for (const uint32_t before : plan.steps[s].after) waits.add(before, s);
    if (const uint32_t entry = entry_before(plan, s); entry != kNone) waits.add(entry, s);
  }
  for (const Channel& channel : plan.channels)
    if (is_whole(channel)) waits.add(channel.from, channel.to);
  return waits;
}

} // namespace millrace::plan
