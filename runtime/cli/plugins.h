// Finds the plugins for a command, and says what became of them.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"
#include "plugin/registry.h"

namespace millrace::cli {

// Scans the standard folders, then those of --plugin-path. Throws Failure (MR0105) for a --plugin-path that is no
// folder.
void scan_plugins(plugin::Registry& registry, const std::vector<std::string>& plugin_paths);

// Loads what a graph needs: libraries such as OpenCV take longer to load than a small pipeline takes to run. Plugins of
// the standard folders that have no type of the graph's are left alone, unless a type stays unknown or --plugin-path
// asks for more: then all are scanned.
void scan_for(plugin::Registry& registry, const graph::Graph& graph, const std::vector<std::string>& plugin_paths);
// Loads what one handler type needs, in the same way.
void scan_for(plugin::Registry& registry, const std::string& type, const std::vector<std::string>& plugin_paths);

// A line on stderr for each plugin of a --plugin-path folder that could not be loaded.
void warn_of_failures(const plugin::Registry& registry, const std::vector<std::string>& plugin_paths);

// Whether `type` is likely missing because a plugin could not be loaded: one failed, and either it has the type's name
// in it or no other type has one like it.
bool missing_by_failure(const plugin::Registry& registry, const std::string& type);

// The type, or MR0106 with the nearest one, to be used with `command`.
const plugin::RegisteredType& require_type(const plugin::Registry& registry, const std::string& type,
                                           const std::string& command);

// Throws PluginMissing for the first handler whose type is missing so.
void require_plugins(const plugin::Registry& registry, const graph::Graph& graph);

} // namespace millrace::cli
