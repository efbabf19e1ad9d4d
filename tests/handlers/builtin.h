// Finds a built-in handler's table by its type, so that it can be driven alone.
#pragma once

#include <millrace/testing.h>

#include <stdexcept>
#include <string>
#include <string_view>

#include "handlers/builtin.h"

namespace millrace::handlers {

inline const mr_handler_type& builtin(std::string_view type) {
  const mr_plugin& plugin = *millrace_builtin_plugin();
  for (uint32_t i = 0; i < plugin.type_count; ++i)
    if (plugin.types[i]->type == type) return *plugin.types[i];
  throw std::logic_error("there is no built-in handler " + std::string(type));
}

} // namespace millrace::handlers
