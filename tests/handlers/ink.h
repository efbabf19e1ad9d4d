// The ink of drawing tests: white, and letters if the machine has a font.
#pragma once

#include "handlers/draw/glyphs.h"
#include "handlers/draw/raster.h"

namespace millrace::handlers {

inline constexpr Color kWhite = {255, 255, 255};

inline bool has_font() { return !find_default_font().empty(); }

} // namespace millrace::handlers
