// A plugin as it is built, loaded for tests: what they drive is what a pipeline gets.
#pragma once

#include <dlfcn.h>

#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

#include "millrace/testing.h"

namespace millrace {

// The table of build/plugins/NAME.so. It is never unloaded: destructors of its handlers run until the program ends.
// Throws std::runtime_error where it cannot be loaded.
inline const mr_plugin& load_plugin(const std::string& name) {
  const std::string path = MILLRACE_BINARY_DIR "/plugins/" + name + ".so";
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw std::runtime_error(dlerror());
  const auto entry = reinterpret_cast<mr_plugin_entry>(dlsym(library, MR_PLUGIN_SYMBOL));
  if (!entry) throw std::runtime_error(path + " exports no entry");
  return *entry();
}

// Throws std::runtime_error where the plugin has no such type.
inline const mr_handler_type& type_of(const mr_plugin& plugin, const std::string& type) {
  for (uint32_t i = 0; i < plugin.type_count; ++i)
    if (type == plugin.types[i]->type) return *plugin.types[i];
  throw std::runtime_error(std::string(plugin.name) + " has no " + type);
}

inline std::set<std::string> types_of(const mr_plugin& plugin) {
  std::set<std::string> types;
  for (uint32_t i = 0; i < plugin.type_count; ++i) types.insert(plugin.types[i]->type);
  return types;
}

// The pipeline that ends the type's manual; "" where it does not end in a line of its own, indented by four.
inline std::string manual_line(const mr_handler_type& type) {
  const std::string_view manual = type.manual;
  const size_t begin = manual.rfind("\n\n    ");
  if (begin == std::string_view::npos || manual.find('\n', begin + 2) != manual.size() - 1) return "";
  return std::string(manual.substr(begin + 6, manual.size() - 7 - begin));
}

} // namespace millrace
