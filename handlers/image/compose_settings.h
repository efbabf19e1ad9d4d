// How image.composite lays its layers over each other, on any canvas.
#pragma once

#include <millrace/payload.h>

#include <array>
#include <cstdint>

#include "handlers/image/blend.h"
#include "handlers/image/layer_places.h"
#include "handlers/image/resample.h"

namespace millrace::handlers {

// How layers are scaled; `automatic` is `area` if a layer becomes smaller, else `bilinear`.
enum class Scaling { automatic, nearest, bilinear, area };

struct ComposeSettings {
  Fit fit = Fit::contain;
  Scaling scaling = Scaling::automatic;
  BlendMode blend = BlendMode::over; // for all layers but the first, which is laid over the background
  uint8_t opacity = 255;             // for all layers but the first
  bool premultiplied = false;        // the colours of layers with alpha are already multiplied by it
  bool keep_last = false;            // a missing layer shows its last picture, else the background
  // A pixel of the canvas; red, green and blue for one of nv12, i420 or p010.
  std::array<uint8_t, 4> background = {0, 0, 0, 255};
};

// True if a pixel has an alpha channel of its own.
inline bool has_alpha(Pixel pixel) { return pixel == Pixel::rgba8 || pixel == Pixel::bgra8; }

// The method that scales a part of a picture to another size.
ResizeMethod resize_method(Scaling scaling, Extent part, Extent size);

} // namespace millrace::handlers
