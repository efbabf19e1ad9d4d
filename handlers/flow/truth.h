// Decides if a value says yes, for handlers that are controlled by data.
#pragma once

#include <millrace/payload.h>

namespace millrace::handlers {

// Records say yes if there is at least one, tensors if their first element is not zero (NaN is not zero), and
// everything else by being there.
bool says_yes(const mr_input& input);

} // namespace millrace::handlers
