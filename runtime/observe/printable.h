// Makes text from outside the program (a handler, a library, a file's name) safe for a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace millrace {

// Longer sentences are cut to this for a person to read.
inline constexpr size_t kPrintedBytesMax = 2000;
// Longer sentences are cut to this in the report.
inline constexpr size_t kKeptBytesMax = size_t{64} << 10;

// The text in printable form. Control characters and bytes that are no UTF-8 become \xNN, so that nothing moves the
// cursor, changes a colour or reverses the text. Lines after the first are indented, so that none looks like one of
// ours. Secrets of addresses are hidden (secrets.h). Text beyond `bytes_max` bytes or 20 lines is replaced by the total
// number of bytes. Line ends and blanks at the end are left out.
std::string printable(std::string_view text, size_t bytes_max = kPrintedBytesMax);

// The text without the secrets of addresses; if it is longer than `bytes_max`, its beginning up to a whole character
// and the total number of bytes.
std::string shortened(std::string_view text, size_t bytes_max = kKeptBytesMax);

} // namespace millrace
