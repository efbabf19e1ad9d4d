// Commands that plugins bring: `millrace hello` is the program millrace-hello, beside the command or in a plugin
// folder.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace millrace::cli {

// Returns if `name` is a command of `app`. Otherwise ends this program and runs that of the plugin's command `name` in
// the same process, with these arguments, the same streams and the same environment; MILLRACE_COMMAND there is the path
// of this program. Throws Failure: MR0105 if there is no such command, MR0507 if the system does not run its program.
//
// If two programs have one name, the first one found is run. The folders beside the command (beside.h) are searched
// first. The plugin folders follow, in the order in which plugins are looked for.
void hand_over_to_plugin(const CLI::App& app, const std::string& name, const std::vector<std::string>& arguments);

// Lets the help of `app` name the commands of plugins. They are looked for when the help is made. Call it once `app`
// has all its own commands: one that is added later would list them too.
void list_plugin_commands(CLI::App& app);

} // namespace millrace::cli
