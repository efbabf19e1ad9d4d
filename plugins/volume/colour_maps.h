// The maps from a level to a colour.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

namespace millrace::volume {

inline constexpr std::initializer_list<const char*> kColourMaps = {
    "gray", "red", "green", "blue", "cyan", "magenta", "yellow", "fire", "ice", "viridis", "magma", "turbo"};

// Red, green and blue of 256 levels. `name`: one of kColourMaps.
std::array<uint8_t, 3 * 256> colour_map(const std::string& name);

} // namespace millrace::volume
