// Finds a built-in handler's table by its type, so that it can be driven alone.
#pragma once

#include <millrace/testing.h>

#include <random>
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

// A picture of random bytes.
inline testing::Value noise(Pixel pixel, uint32_t width, uint32_t height, uint32_t seed) {
  std::mt19937 random(seed);
  return testing::image(pixel, width, height, [&](uint32_t, uint32_t, uint32_t) { return random() >> 24; });
}

} // namespace millrace::handlers
