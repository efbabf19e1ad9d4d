// Computes the rounding error from a source's unit of time and its period; see time_rounding.h.
#include "plan/time_rounding.h"

#include <algorithm>

#include "plan/draft.h"
#include "plan/pace.h"

namespace millrace::plan {

namespace {

__extension__ typedef __int128 Wide; // a product of two 64-bit numbers

constexpr int64_t kSecondNs = 1'000'000'000;

// True if the period is a whole number of units: rate_den / rate_num = k · time_num / time_den.
bool holds_period(const mr_facts& facts) {
  const Wide period = static_cast<Wide>(facts.rate_den) * facts.time_den;
  return period % (static_cast<Wide>(facts.rate_num) * facts.time_num) == 0;
}

} // namespace

int64_t rounding_ns(const mr_facts& facts) {
  const bool known = facts.rate_num > 0 && facts.rate_den > 0 && facts.time_num > 0 && facts.time_den > 0;
  if (!known || holds_period(facts)) return 1;
  const Wide unit = (static_cast<Wide>(facts.time_num) * kSecondNs + facts.time_den - 1) / facts.time_den;
  // A larger difference could as well be the next or the previous value's time.
  const Wide half_period = static_cast<Wide>(facts.rate_den) * kSecondNs / facts.rate_num / 2;
  return static_cast<int64_t>(std::max<Wide>(1, std::min(unit + 1, half_period)));
}

void find_rounding(Draft& draft) {
  for (const DraftHandler& handler : draft.handlers) {
    if (!handler.is_source() || handler.facts.rate_num == 0 || handler.facts.time_num == 0) continue;
    Clock& clock = draft.plan.clocks[handler.clock];
    // On a circle a wait for a later time may come back to itself (8.3).
    if (clock.realtime() || clock.circle != kNone || clock.takes_what_is_due(handler.facts)) continue;
    clock.rounding_ns = std::max(clock.rounding_ns, rounding_ns(handler.facts));
  }
}

} // namespace millrace::plan
