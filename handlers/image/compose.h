// Makes one picture of several: scales layers to their places and lays them over each other on a canvas.
#pragma once

#include <millrace/payload.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "handlers/image/blend.h"
#include "handlers/image/layer_places.h"
#include "handlers/image/picture.h"
#include "handlers/image/resample.h"

namespace millrace::handlers {

// How layers are scaled; `automatic` is `area` if a layer becomes smaller, else `bilinear`.
enum class Scaling { automatic, nearest, bilinear, area };

struct ComposeSettings {
  Fit fit = Fit::contain;
  Scaling scaling = Scaling::automatic;
  BlendMode blend = BlendMode::over;                  // for all layers but the first, which is laid over the background
  uint8_t opacity = 255;                              // for all layers but the first
  bool premultiplied = false;                         // the colours of layers with alpha are already multiplied by it
  bool keep_last = false;                             // a missing layer shows its last picture, else the background
  std::array<uint8_t, 4> background = {0, 0, 0, 255}; // a pixel of the canvas
};

// True if a pixel has an alpha channel of its own.
inline bool has_alpha(Pixel pixel) { return pixel == Pixel::rgba8 || pixel == Pixel::bgra8; }

// The method that scales a part of a picture to another size.
ResizeMethod resize_method(Scaling scaling, Extent part, Extent size);

// Paints one layer and owns the memory between its picture and the canvas. Allocates only if a size or format changes.
class LayerPainter {
 public:
  // Takes the layer's picture of this tick; null if there is none. The view must stay valid until paint().
  void take(const ImageView* picture, const LayerCell& cell, const ComposeSettings& settings);
  bool visible() const { return value_ || kept_; }
  const FittedLayer& fitted() const { return fitted_; }
  // True if the layer hides everything below it.
  bool opaque(BlendMode mode, uint8_t opacity) const {
    return !has_alpha(pixel_) && mode == BlendMode::over && opacity == 255;
  }
  // `below_opaque`: no pixel of the canvas is translucent. Premultiplied layers are scaled without dividing by alpha
  // first.
  void paint(BlendMode mode, uint8_t opacity, bool below_opaque, const ComposeSettings& settings,
             const ImageSpan& canvas);

 private:
  ImageView picture() const { return {value_, data_}; }
  ImageView converted(Pixel canvas);
  void scale(const ImageView& part, const ImageSpan& target, Scaling scaling);
  void blend_tile(const ImageView& tile, BlendMode mode, uint8_t opacity, bool below_opaque, bool premultiplied,
                  const ImageSpan& canvas);

  const mr_value* value_ = nullptr; // this tick's picture; null: missing
  const uint8_t* data_ = nullptr;
  Pixel pixel_ = Pixel::none;
  bool kept_ = false; // tile_ holds the last picture, and fitted_ its place
  FittedLayer fitted_;
  Picture converted_, tile_, straight_, colors_;
  std::vector<uint8_t> alpha_; // alphas of one row
  Resampler resampler_;
};

// Composes one picture after another. Owned by one thread.
class Composer {
 public:
  void set_layers(std::vector<LayerCell> cells);

  // `layers` has one entry for each layer; null: it is missing. The canvas is interleaved 8-bit and overlaps no layer.
  void run(std::span<const ImageView* const> layers, const ComposeSettings& settings, const ImageSpan& canvas);

 private:
  std::vector<LayerCell> cells_;
  std::vector<LayerPainter> painters_;
};

} // namespace millrace::handlers
