// Makes one picture of several on a canvas of nv12, i420 or p010.
//
// Rules. A layer is scaled in its own format, plane by plane if it has planes, and then laid over the canvas in 4:4:4,
// as handlers/gpu/canvas_numbers.h says: a chroma sample lies in the middle of its 2 × 2 pixels, and all of them have
// it. So a layer may lie at odd places and have odd sides. The result is at most 1 away from the same work in real
// numbers, and chroma at most 2. The blend mode is `over`.
//
// A layer of the canvas's format, matrix and range that is opaque and lies on whole chroma samples is scaled or copied
// straight into the canvas, plane by plane: its numbers stay what they are.
#pragma once

#include <millrace/payload.h>

#include <cstdint>
#include <span>
#include <vector>

#include "handlers/gpu/canvas_numbers.h"
#include "handlers/image/canvas_areas.h"
#include "handlers/image/compose_settings.h"
#include "handlers/image/picture.h"
#include "handlers/image/resample.h"

namespace millrace::handlers {

// Rows of pixels in 4:4:4, of 16 bits.
struct PixelRows {
  uint16_t *y, *u, *v;
};

// One layer of a canvas of planes, and the memory between its picture and the canvas. Allocates only if a size or
// format changes.
class PlaneLayer {
 public:
  // Takes the layer's picture of this tick; null if there is none. The view must stay valid until the canvas is made.
  void take(const ImageView* picture, const LayerCell& cell, const ComposeSettings& settings, uint8_t opacity,
            const ImageSpan& canvas);
  bool visible() const { return value_ || kept_; }
  const Area& area() const { return area_; }
  // The pixels whose chroma the layer may change.
  Area blocks() const;
  // True if the canvas gets the layer's numbers as they are, and whole chroma samples.
  bool is_plain(const ImageSpan& canvas) const;

  // Paints a plain layer.
  void paint(const ComposeSettings& settings, const ImageSpan& canvas);
  // Lays row y of the canvas over `rows`, which begin at column 0 of the canvas. prepare() comes before.
  void prepare(const ComposeSettings& settings, const ImageSpan& canvas);
  void lay_row(uint32_t y, const ComposeSettings& settings, const gpu::CanvasNumbers& canvas,
               const PixelRows& rows) const;

 private:
  ImageView picture() const { return {value_, data_}; }
  ImageView source() const { return {source_value_, source_data_}; }
  const mr_image& image() const { return value_ ? value_->as.image : tile_.view().value().as.image; }
  void scale(const ImageView& part, const ImageSpan& target, const ComposeSettings& settings);

  const mr_value* value_ = nullptr; // this tick's picture; null: missing
  const uint8_t* data_ = nullptr;
  bool kept_ = false; // tile_ holds the last picture, and fitted_ its place
  FittedLayer fitted_;
  Area area_{};
  uint8_t opacity_ = 255;
  Picture tile_;
  Resampler resampler_;
  // The tile or the picture, which is laid, and the place in it of the layer's first pixel.
  const mr_value* source_value_ = nullptr;
  const uint8_t* source_data_ = nullptr;
  uint32_t source_x_ = 0, source_y_ = 0;
  gpu::LayerNumbers numbers_{};
};

// Composes one picture after another. Owned by one thread.
class PlaneComposer {
 public:
  void set_layers(std::vector<LayerCell> cells);
  // As Composer::run().
  void run(std::span<const ImageView* const> layers, const ComposeSettings& settings, const ImageSpan& canvas);

 private:
  void lay_rows(const ComposeSettings& settings, const gpu::CanvasNumbers& numbers, const ImageSpan& canvas);

  std::vector<LayerCell> cells_;
  std::vector<PlaneLayer> layers_;
  std::vector<PlaneLayer*> laid_; // the layers that are not plain, from the bottom upwards
  std::vector<uint16_t> rows_;    // two rows of the canvas
};

} // namespace millrace::handlers
