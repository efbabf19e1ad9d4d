// The order in which people count files: frame2 before frame10.
#pragma once

#include <string_view>

namespace millrace::opencv {

// True if `a` comes before `b`. Runs of digits compare as numbers of any length, everything else byte by byte; if only
// leading zeros differ, fewer come first. A strict total order.
bool natural_less(std::string_view a, std::string_view b);

} // namespace millrace::opencv
