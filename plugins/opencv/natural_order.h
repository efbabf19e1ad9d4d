// The order in which people count files: frame2 before frame10.
#pragma once

#include <string_view>

namespace millrace::opencv {

// Whether `a` stands before `b`: runs of digits compare as numbers of any length, all else byte by byte; where only
// leading zeros differ, fewer come first. A strict total order.
bool natural_less(std::string_view a, std::string_view b);

} // namespace millrace::opencv
