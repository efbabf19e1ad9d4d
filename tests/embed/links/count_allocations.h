// Counts operator new of this program: all of the runtime's allocations go through it.
#pragma once

#include <cstdint>

namespace millrace::test {

// The sum over all threads. Sanitizers have an operator new of their own: with them it is 0.
uint64_t allocations_so_far();

} // namespace millrace::test
