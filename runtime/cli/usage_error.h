// A wrong command line as an error with what was expected and one edit, in place of CLI11's own words.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "observe/error.h"

namespace millrace::cli {

// `arguments`: the command line without the program's name.
Error usage_error(const CLI::App& app, const CLI::ParseError& failure, const std::vector<std::string>& arguments);

// An option with an empty value, as from a script whose variable is not set, must not count as an option not given.
void refuse_empty_values(CLI::App& command);

// `others`: names of commands that `app` does not have, one of which may be meant.
Error unknown_command(const CLI::App& app, const std::string& name, const std::vector<std::string>& others = {});

} // namespace millrace::cli
