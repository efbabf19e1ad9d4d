// The least window of a pace: the ticks in flight that its segments in a row and its pending firings need. Private to
// runtime/plan.
#pragma once

#include <cstdint>

namespace millrace::plan {

struct Plan;

bool has_lanes(const Plan& plan, uint32_t pace);
// The most segments in a row that another cut could make.
uint32_t handlers_in_a_row(const Plan& plan, uint32_t pace);
// The largest sum of max_pending on a path.
uint32_t pending_in_a_row(const Plan& plan, uint32_t pace);
// Ticks in flight if the plan chooses them (semantics.md 1.5).
uint32_t in_flight_of(const Plan& plan, uint32_t pace);

} // namespace millrace::plan
