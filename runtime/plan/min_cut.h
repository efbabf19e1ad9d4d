// Placements in two domains by a minimum cut. Private to placement; see placement.h.
#pragma once

#include "plan/evaluate.h"

namespace millrace::plan {

// As least_sum(), with ways that were found before.
Places cut(const Prices& prices, const WaysBySize& ways, Places places, uint32_t a, uint32_t b);

} // namespace millrace::plan
