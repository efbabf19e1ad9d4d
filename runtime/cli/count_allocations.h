// Counts the heap allocations of a thread while a handler is checked.
#pragma once

#include "millrace/check_handler/subject.h"

namespace millrace::cli {

testing::AllocationCounter allocation_counter();

} // namespace millrace::cli
