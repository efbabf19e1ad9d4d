// Finds and loads the plugins of a pipeline or of a handler type, and reports those that failed.
#pragma once

#include <string>
#include <vector>

#include "compose/options.h"
#include "graph/graph.h"
#include "observe/error.h"
#include "plugin/registry.h"

namespace millrace::compose {

// Thrown in place of an error whose cause is a plugin that could not be loaded.
class PluginMissing : public Failure {
  using Failure::Failure;
};

// Scans the standard folders, with `installed` after them unless it is "", then those of --plugin-path. Throws Failure
// (MR0105) for a --plugin-path that is no folder.
void scan_plugins(plugin::Registry& registry, const std::vector<std::string>& plugin_paths,
                  const std::string& installed = "");

// Loads only the plugins that a graph needs: libraries such as OpenCV take longer to load than a small pipeline takes
// to run. Plugins of the standard folders that have no type of the graph are not loaded. If a type stays unknown, or if
// there is a --plugin-path, all are scanned.
void scan_for(plugin::Registry& registry, const graph::Graph& graph, const std::vector<std::string>& plugin_paths,
              const std::string& installed = "");
// Loads the plugins that one handler type needs, in the same way.
void scan_for(plugin::Registry& registry, const std::string& type, const std::vector<std::string>& plugin_paths,
              const std::string& installed = "");

// Warns of each plugin of a --plugin-path folder that could not be loaded.
void warn_of_failures(const plugin::Registry& registry, const std::vector<std::string>& plugin_paths, const Warn& warn);

// True if `type` is probably missing because a plugin could not be loaded: one failed, and either its file contains the
// type's name or no known type has a similar name.
bool missing_by_failure(const plugin::Registry& registry, const std::string& type);

// Returns the type. Throws Failure (MR0106) if it is unknown; the error suggests `command` with the nearest type.
// Throws PluginMissing if missing_by_failure().
const plugin::RegisteredType& require_type(const plugin::Registry& registry, const std::string& type,
                                           const std::string& command);

// Throws PluginMissing for the first handler whose type is missing_by_failure().
void require_plugins(const plugin::Registry& registry, const graph::Graph& graph);

} // namespace millrace::compose
