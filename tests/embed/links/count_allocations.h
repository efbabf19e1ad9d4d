// Counts operator new of this program: all of the runtime's allocations go through it.
#pragma once

#include <cstdint>

namespace millrace::test {

// Of all threads. With sanitizers, which have an operator new of their own, 0.
uint64_t allocations_so_far();

} // namespace millrace::test
