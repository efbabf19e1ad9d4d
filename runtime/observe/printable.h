// Text that others wrote (a handler, a library, a file's name), made fit for a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace millrace {

// A sentence that is longer than this is cut where a person reads it.
inline constexpr size_t kPrintedBytesMax = 2000;
// And where it is kept, for the report.
inline constexpr size_t kKeptBytesMax = size_t{64} << 10;

// Control characters and bytes that are no UTF-8 as \xNN, so that nothing moves the cursor, changes a colour or turns
// the text around; lines after the first are indented, so that none looks like one of ours; at most `bytes_max` bytes
// of it and 20 lines, with the number of bytes that there were. Line ends and blanks at the end are left out.
std::string printable(std::string_view text, size_t bytes_max = kPrintedBytesMax);

// The text, or its beginning up to a whole character and the number of bytes that there were.
std::string shortened(std::string_view text, size_t bytes_max = kKeptBytesMax);

} // namespace millrace
