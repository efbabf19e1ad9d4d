// Writes the text that a command prints, and its warnings.
#pragma once

#include <string>

namespace millrace::cli {

// Writes to a file, or to stdout for "-"; throws Failure (MR0606).
void write_file(const std::string& path, const std::string& text);

// Prints a line on stderr.
void print_warning(const std::string& line);

} // namespace millrace::cli
