// Whether a value says yes: what a handler asks that is controlled by data.
#pragma once

#include <millrace/payload.h>

namespace millrace::handlers {

// Records: there is one at least. Tensors: the first element is not zero (NaN is not zero). Everything else: it is
// there.
bool says_yes(const mr_input& input);

} // namespace millrace::handlers
