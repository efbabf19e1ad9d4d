// The folders in which plugins are looked for.
#pragma once

#include <string>
#include <vector>

namespace millrace::embed {

// The folders that are always searched for plugins: beside the program, the folder where `cmake --install` puts them,
// and those of MILLRACE_PLUGIN_PATH, in this order.
std::vector<std::string> standard_plugin_folders();

} // namespace millrace::embed
