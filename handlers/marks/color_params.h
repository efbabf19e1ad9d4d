// The parameters that say how marks are coloured, which all makers of marks have.
#pragma once

#include <millrace/handler.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include "handlers/draw/raster.h"
#include "handlers/gpu/mark_makers.h"

namespace millrace::handlers {

struct [[gnu::visibility("hidden")]] MarkColorParams { // hidden like its members
  explicit MarkColorParams(Handler & owner)
      : color(owner, "color", "id", "\"#rrggbb\" or \"#rrggbbaa\"; id: by the id of the track, or else by the class"),
        opacity(owner, "opacity", 1, "of the marks", range(0, 1), live) {}

  // Throws std::invalid_argument if `color` is neither.
  draw::MarkColor style() const {
    draw::MarkColor style{*color == "id", {}, static_cast<float>(*opacity)};
    if (style.by_id) return style;
    const std::optional<Color> parsed = parse_color(*color);
    if (!parsed) throw std::invalid_argument("color '" + *color + "' is neither id nor \"#rrggbb\" nor \"#rrggbbaa\"");
    const uint8_t parts[] = {parsed->r, parsed->g, parsed->b, parsed->a};
    for (uint32_t c = 0; c < 4; ++c) style.color[c] = static_cast<float>(parts[c]) / 255;
    return style;
  }

  Param<std::string> color;
  Param<double> opacity;
};

} // namespace millrace::handlers
