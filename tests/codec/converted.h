// Pictures by the conversion that is tested by itself in colors.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "plugins/codec/ycbcr.h"

namespace millrace::codec {

// Red, green, blue in dense rows.
inline std::vector<uint8_t> rgb_of(const Picture& picture) {
  std::vector<uint8_t> rgb(size_t{picture.width} * picture.height * 3);
  to_rgb(picture, rgb.data(), size_t{picture.width} * 3);
  return rgb;
}

} // namespace millrace::codec
