// Looks for plugins and tells a type that is not known from one whose plugin could not be loaded.
#include "compose/plugins.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "embed/plugin_folders.h"
#include "observe/error_codes.h"

namespace millrace::compose {
namespace fs = std::filesystem;

namespace {

// Empty if the file cannot be read.
std::string bytes_of(const std::string& path) {
  std::error_code ignored;
  const uintmax_t size = fs::file_size(path, ignored);
  std::ifstream file(path, std::ios::binary);
  std::string bytes(ignored ? 0 : static_cast<size_t>(size), '\0');
  if (!file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()))) bytes.clear();
  return bytes;
}

std::vector<std::string> type_names(const plugin::Registry& registry) {
  std::vector<std::string> names;
  for (const plugin::RegisteredType* info : registry.all()) names.push_back(info->type);
  return names;
}

std::vector<std::string> standard_folders(const std::string& installed) {
  std::vector<std::string> folders = embed::standard_plugin_folders();
  if (!installed.empty()) folders.push_back(installed);
  return folders;
}

} // namespace

void scan_plugins(plugin::Registry& registry, const std::vector<std::string>& plugin_paths,
                  const std::string& installed) {
  for (const std::string& folder : standard_folders(installed)) registry.scan(folder);
  for (const std::string& folder : plugin_paths) {
    std::error_code ignored;
    if (!fs::is_directory(folder, ignored))
      throw Failure(Error{code::bad_command_line, "--plugin-path names no folder: " + folder, {}, {}, "", ""});
    registry.scan(folder);
  }
}

void scan_for(plugin::Registry& registry, const graph::Graph& graph, const std::vector<std::string>& plugin_paths,
              const std::string& installed) {
  const auto is_unknown = [&](const graph::Handler& handler) {
    return !handler.type.empty() && !registry.find(handler.type);
  };
  const auto some_unknown = [&] { return std::any_of(graph.handlers.begin(), graph.handlers.end(), is_unknown); };
  // The file of a plugin contains the names of its types, unless it composes them when it is loaded.
  const auto may_have_one = [&](const std::string& plugin) {
    const std::string bytes = bytes_of(plugin);
    return std::any_of(graph.handlers.begin(), graph.handlers.end(), [&](const graph::Handler& handler) {
      return is_unknown(handler) && bytes.find(handler.type) != std::string::npos;
    });
  };
  for (const std::string& folder : standard_folders(installed))
    if (some_unknown()) registry.scan(folder, may_have_one);
  if (!plugin_paths.empty() || some_unknown()) scan_plugins(registry, plugin_paths, installed);
}

void scan_for(plugin::Registry& registry, const std::string& type, const std::vector<std::string>& plugin_paths,
              const std::string& installed) {
  graph::Graph graph;
  graph.handlers.emplace_back().type = type;
  scan_for(registry, graph, plugin_paths, installed);
}

void warn_of_failures(const plugin::Registry& registry, const std::vector<std::string>& plugin_paths,
                      const Warn& warn) {
  if (!warn) return;
  for (const plugin::LoadFailure& failure : registry.failures()) {
    const std::string folder = fs::path(failure.path).parent_path().string();
    const bool asked_for = std::any_of(plugin_paths.begin(), plugin_paths.end(), [&](const std::string& path) {
      return (fs::path(path) / "x").parent_path().string() == folder;
    });
    if (!asked_for) continue; // a standard folder may hold broken plugins that this command does not need
    std::string words = failure.error.what;
    for (const std::string& note : failure.error.notes) words += "; " + note;
    warn("warning " + format_code(failure.error.code) + ": " + words);
  }
}

bool missing_by_failure(const plugin::Registry& registry, const std::string& type) {
  if (registry.find(type) || registry.failures().empty()) return false;
  if (nearest_type(type, type_names(registry)).empty()) return true;
  return std::any_of(registry.failures().begin(), registry.failures().end(), [&](const plugin::LoadFailure& failure) {
    return bytes_of(failure.path).find(type) != std::string::npos;
  });
}

const plugin::RegisteredType& require_type(const plugin::Registry& registry, const std::string& type,
                                           const std::string& command) {
  if (const plugin::RegisteredType* info = registry.find(type)) return *info;
  if (missing_by_failure(registry, type))
    throw PluginMissing(plugin::unknown_type(registry, code::unknown_type_asked_for, type, true));
  Error error = plugin::unknown_type(registry, code::unknown_type_asked_for, type);
  if (!error.nearest.empty()) error.edit = "millrace " + command + " " + error.nearest;
  throw Failure(std::move(error));
}

void require_plugins(const plugin::Registry& registry, const graph::Graph& graph) {
  for (const graph::Handler& handler : graph.handlers) {
    if (handler.type.empty() || !missing_by_failure(registry, handler.type)) continue;
    Error error = plugin::unknown_type(registry, code::unknown_type, handler.type, true);
    error.place = handler.type_place;
    throw PluginMissing(std::move(error));
  }
}

} // namespace millrace::compose
