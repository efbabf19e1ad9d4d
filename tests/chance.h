// Draws that happen so many times in a thousand, for tests that decide at random.
#pragma once

#include "observe/random.h"

namespace millrace {

inline bool chance(Random& random, uint32_t per_mille) { return random.below(1000) < per_mille; }

} // namespace millrace
