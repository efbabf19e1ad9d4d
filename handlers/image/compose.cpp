// Composes pictures. The background is painted only where no opaque layer will lie, so on a wall of videos it costs
// next to nothing. An opaque layer is scaled straight into the canvas; a layer that is blended goes through a tile of
// its own.
#include "handlers/image/compose.h"

#include <algorithm>
#include <cstring>

#include "handlers/image/canvas_areas.h"
#include "handlers/image/color.h"
#include "handlers/image/planes.h"
#include "handlers/image/vectorize.h"

namespace millrace::handlers {
namespace {

void fill(const Area& area, const std::array<uint8_t, 4>& pixel, const ImageSpan& canvas) {
  const uint32_t channels = bytes_per_pixel(canvas.pixel());
  const size_t offset = size_t{area.left} * channels, bytes = size_t{area.right - area.left} * channels;
  uint8_t* first = canvas.row(area.top) + offset;
  for (size_t i = 0; i < bytes; i += channels) std::memcpy(first + i, pixel.data(), channels);
  for (uint32_t y = area.top + 1; y < area.bottom; ++y) std::memcpy(canvas.row(y) + offset, first, bytes);
}

void copy_rows(const ImageView& source, const ImageSpan& target) {
  const size_t bytes = plane_row_bytes(source.pixel(), source.width(), 0);
  for (uint32_t y = 0; y < source.height(); ++y) std::memcpy(target.row(y), source.row(y), bytes);
}

MILLRACE_VECTORIZE void take_alpha(const uint8_t* pixels, uint32_t count, uint8_t* alpha) {
  for (uint32_t i = 0; i < count; ++i) alpha[i] = pixels[4 * i + 3];
}

} // namespace

ResizeMethod resize_method(Scaling scaling, Extent part, Extent size) {
  if (scaling == Scaling::nearest) return ResizeMethod::nearest;
  if (scaling == Scaling::bilinear) return ResizeMethod::bilinear;
  const bool smaller = size.width < part.width || size.height < part.height;
  return smaller || scaling == Scaling::area ? ResizeMethod::area : ResizeMethod::bilinear;
}

void LayerPainter::take(const ImageView* picture, const LayerCell& cell, const ComposeSettings& settings) {
  value_ = picture ? &picture->value() : nullptr;
  data_ = picture ? picture->data() : nullptr;
  if (!picture) {
    kept_ = kept_ && settings.keep_last;
    return;
  }
  pixel_ = picture->pixel();
  fitted_ = fit_layer({picture->width(), picture->height()}, cell, settings.fit);
}

// The picture in the canvas's format; a picture with alpha keeps its own format.
ImageView LayerPainter::converted(Pixel canvas) {
  if (has_alpha(pixel_) || pixel_ == canvas) return picture();
  reshape(converted_, canvas, picture().width(), picture().height());
  convert_pixels(picture(), converted_.span());
  return converted_.view();
}

void LayerPainter::scale(const ImageView& part, const ImageSpan& target, Scaling scaling) {
  if (part.width() == target.width() && part.height() == target.height()) return copy_rows(part, target);
  const ResizeMethod method = resize_method(scaling, {part.width(), part.height()}, {target.width(), target.height()});
  resampler_.prepare(part.width(), part.height(), target.width(), target.height(), method);
  resampler_.run(part, target);
}

void LayerPainter::paint(BlendMode mode, uint8_t opacity, bool below_opaque, const ComposeSettings& settings,
                         const ImageSpan& canvas) {
  const Area area = visible_area(fitted_, canvas);
  const bool outside = area.left >= area.right || area.top >= area.bottom;
  if (!value_) {
    if (!outside) blend_tile(tile_.view(), mode, opacity, below_opaque, settings.premultiplied, canvas);
    return;
  }
  if (outside && !settings.keep_last) return;
  const ViewWindow window(converted(canvas.pixel()), fitted_.part_x, fitted_.part_y, fitted_.part.width,
                          fitted_.part.height);
  const ImageView part = window.view();
  const bool scaled = part.width() != fitted_.size.width || part.height() != fitted_.size.height;
  const bool whole = area.right - area.left == fitted_.size.width && area.bottom - area.top == fitted_.size.height;
  if (opaque(mode, opacity) && whole && !settings.keep_last) {
    const SpanWindow place(canvas, area.left, area.top, fitted_.size.width, fitted_.size.height);
    return scale(part, place.view(), settings.scaling);
  }
  if (scaled || settings.keep_last) {
    reshape(tile_, part.pixel(), fitted_.size.width, fitted_.size.height);
    scale(part, tile_.span(), settings.scaling);
    kept_ = settings.keep_last;
    if (!outside) blend_tile(tile_.view(), mode, opacity, below_opaque, settings.premultiplied, canvas);
  } else {
    blend_tile(part, mode, opacity, below_opaque, settings.premultiplied, canvas);
  }
}

void LayerPainter::blend_tile(const ImageView& tile, BlendMode mode, uint8_t opacity, bool below_opaque,
                              bool premultiplied, const ImageSpan& canvas) {
  const Area area = visible_area(fitted_, canvas);
  const uint32_t width = area.right - area.left, channels = bytes_per_pixel(canvas.pixel());
  const uint32_t skipped_x = static_cast<uint32_t>(int64_t{area.left} - fitted_.x);
  const uint32_t skipped_y = static_cast<uint32_t>(int64_t{area.top} - fitted_.y);
  const bool alpha = has_alpha(tile.pixel()) && channels < 4, recolor = tile.pixel() != canvas.pixel();
  premultiplied = premultiplied && has_alpha(tile.pixel());
  const bool added = premultiplied && mode == BlendMode::over && below_opaque;
  if (alpha) alpha_.resize(width);
  if (premultiplied && !added) reshape(straight_, tile.pixel(), width, 1);
  if (recolor) reshape(colors_, canvas.pixel(), width, 1);
  for (uint32_t y = area.top; y < area.bottom; ++y) {
    const ViewWindow window(tile, skipped_x, skipped_y + y - area.top, width, 1);
    ImageView source = window.view();
    if (premultiplied && !added) {
      straighten_pixels(source.row(0), width, straight_.span().row(0));
      source = straight_.view();
    }
    const uint8_t* above = source.row(0);
    uint8_t* below = canvas.row(y) + size_t{area.left} * channels;
    if (alpha) take_alpha(above, width, alpha_.data());
    if (recolor) {
      convert_pixels(source, colors_.span());
      above = colors_.view().row(0);
    }
    if (opaque(mode, opacity)) {
      // Copied and not blended: the canvas below may never have been painted, and blending would keep its alpha.
      std::memcpy(below, above, size_t{width} * channels);
    } else if (added) {
      blend_premultiplied(above, alpha ? alpha_.data() : nullptr, opacity, channels, width, below);
    } else if (below_opaque) {
      blend_pixels(mode, above, alpha ? alpha_.data() : nullptr, opacity, channels, width, below);
    } else {
      blend_translucent(mode, above, opacity, width, below);
    }
  }
}

void Composer::set_layers(std::vector<LayerCell> cells) {
  cells_ = std::move(cells);
  painters_ = std::vector<LayerPainter>(cells_.size());
  planes_.set_layers(cells_);
}

void Composer::run(std::span<const ImageView* const> layers, const ComposeSettings& settings, const ImageSpan& canvas) {
  if (halves_chroma(canvas.pixel())) return planes_.run(layers, settings, canvas);
  const auto mode_of = [&](size_t i) { return i == 0 ? BlendMode::over : settings.blend; };
  const auto opacity_of = [&](size_t i) { return i == 0 ? uint8_t{255} : settings.opacity; };
  Uncovered uncovered(canvas);
  bool all_opaque = true; // everything below a layer that is not opaque must be painted
  for (size_t i = 0; i < painters_.size(); ++i) {
    painters_[i].take(layers[i], cells_[i], settings);
    if (!painters_[i].visible()) continue;
    all_opaque = all_opaque && painters_[i].opaque(mode_of(i), opacity_of(i));
    if (all_opaque) uncovered.cover(visible_area(painters_[i].fitted(), canvas));
  }
  for (const Area& area : uncovered.areas()) fill(area, settings.background, canvas);
  const bool below_opaque = !has_alpha(canvas.pixel()) || settings.background[3] == 255;
  for (size_t i = 0; i < painters_.size(); ++i)
    if (painters_[i].visible()) painters_[i].paint(mode_of(i), opacity_of(i), below_opaque, settings, canvas);
}

} // namespace millrace::handlers
