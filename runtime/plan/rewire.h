// Edges that were led to the wrong inputs. Private to runtime/plan.
#pragma once

#include <string>

#include "plan/draft.h"

namespace millrace::plan {

// Whether an input of the format `to` can be given what has the format `from`.
bool kinds_agree(const mr_format& from, const mr_format& to);

// The edges of a handler led to inputs that take them, as an edit; "" where there is no such way.
std::string rewired(const Draft& draft, const DraftHandler& target);

} // namespace millrace::plan
