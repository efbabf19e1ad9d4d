// Makes one picture of several: scales layers to their places and lays them over each other on a canvas.
#pragma once

#include <millrace/payload.h>

#include <cstdint>
#include <span>
#include <vector>

#include "handlers/image/compose_planes.h"
#include "handlers/image/compose_settings.h"
#include "handlers/image/picture.h"
#include "handlers/image/resample.h"

namespace millrace::handlers {

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

  // `layers` has one entry for each layer; null: it is missing. The canvas overlaps no layer. One of nv12, i420 or p010
  // is composed as compose_planes.h says.
  void run(std::span<const ImageView* const> layers, const ComposeSettings& settings, const ImageSpan& canvas);

 private:
  std::vector<LayerCell> cells_;
  std::vector<LayerPainter> painters_;
  PlaneComposer planes_;
};

} // namespace millrace::handlers
