// Suggests other inputs for edges that lead to the wrong ones. Private to runtime/plan.
#pragma once

#include <string>

#include "plan/draft.h"

namespace millrace::plan {

// True if an input of the format `to` can take a value of the format `from`.
bool kinds_agree(const mr_format& from, const mr_format& to);

// An edit that leads the edges of a handler to inputs that take them; "" if there is no such way.
std::string rewired(const Draft& draft, const DraftHandler& target);

} // namespace millrace::plan
