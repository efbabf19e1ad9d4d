// Composes canvases of planes. Opaque layers of the canvas's own numbers are copied or scaled into its planes. All
// other layers are laid row by row over the canvas in 4:4:4, two rows at a time, because two rows share their chroma;
// only the columns that these layers touch are taken from the canvas and given back.
#include "handlers/image/compose_planes.h"

#include <algorithm>
#include <cstring>

#include "handlers/image/interleave.h"
#include "handlers/image/planes.h"
#include "handlers/image/vectorize.h"

namespace millrace::handlers {
namespace {

// The pixels of a chunk. Even, so that chunks of a row begin at whole chroma samples if the row does.
constexpr uint32_t kPlaneChunk = 256;

// ---- planes ---------------------------------------------------------------------------------------------------

// A row of numbers of one kind in a plane: luma, Cb or Cr. `step` is 2 if Cb and Cr alternate.
template <class Byte>
struct NumberRow {
  Byte* data;
  uint32_t step;
};
template <class Byte>
NumberRow<Byte> luma_row(const BasicImage<Byte>& image, uint32_t y) {
  return {image.row(y), 1};
}
// `which` is 0 for Cb and 1 for Cr; y counts rows of chroma.
template <class Byte>
NumberRow<Byte> chroma_row(const BasicImage<Byte>& image, uint32_t which, uint32_t y) {
  if (image.plane_count() == 3) return {image.row(y, 1 + which), 1};
  const Plane<Byte> both = plane_of(image, 1);
  return {both.row(y) + which * both.channel_bytes, 2};
}

// The bits of a number below the top of 16.
template <class Number>
constexpr int kUpOf = sizeof(Number) == 2 ? kBelowTenBits : 8;

// Takes numbers of 8 or 10 bits from a row. Loops know their step, so that they vectorise.
template <uint32_t kStep, class Number>
MILLRACE_VECTORIZE void take_numbers(const Number* in, uint32_t count, uint16_t* out) {
  constexpr int kDown = sizeof(Number) == 2 ? kBelowTenBits : 0;
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<uint16_t>(in[i * kStep] >> kDown);
}
void take_numbers(const NumberRow<const uint8_t>& row, bool is_wide, uint32_t first, uint32_t count, uint16_t* out) {
  const auto* wide = reinterpret_cast<const uint16_t*>(row.data);
  if (row.step == 2)
    return is_wide ? take_numbers<2>(wide + size_t{first} * 2, count, out)
                   : take_numbers<2>(row.data + size_t{first} * 2, count, out);
  is_wide ? take_numbers<1>(wide + first, count, out) : take_numbers<1>(row.data + first, count, out);
}

// Gives each number to two neighbours; if `odd`, the first to one.
MILLRACE_VECTORIZE void double_numbers(const uint16_t* in, bool odd, uint32_t count, uint16_t* out) {
  if (odd) *out++ = *in++, --count;
  for (uint32_t i = 0; i < count / 2; ++i) out[2 * i] = out[2 * i + 1] = in[i];
  if (count % 2 == 1) out[count - 1] = in[count / 2];
}

template <class Number>
MILLRACE_VECTORIZE void put_luma(const uint16_t* in, uint32_t count, Number* out) {
  constexpr int kUp = kUpOf<Number>, kShift = sizeof(Number) == 2 ? kBelowTenBits : 0;
  for (uint32_t i = 0; i < count; ++i) out[i] = static_cast<Number>(gpu::canvas_number(in[i], kUp) << kShift);
}

// Puts the means of 2 × 2 numbers.
template <uint32_t kStep, class Number>
MILLRACE_VECTORIZE void put_chroma(const uint16_t* top, const uint16_t* bottom, uint32_t count, Number* out) {
  constexpr int kUp = kUpOf<Number>, kShift = sizeof(Number) == 2 ? kBelowTenBits : 0;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t sum = uint32_t{top[2 * i]} + top[2 * i + 1] + bottom[2 * i] + bottom[2 * i + 1];
    out[size_t{i} * kStep] = static_cast<Number>(gpu::mean_number(sum, kUp) << kShift);
  }
}

MILLRACE_VECTORIZE void copy_ten_bits(const uint16_t* in, size_t count, uint16_t* out) {
  for (size_t i = 0; i < count; ++i) out[i] = in[i] & kTenBits;
}

// Copies pictures of one format; of ten bits the six bits below are written as 0.
void copy_planes(const ImageView& source, const ImageSpan& target) {
  for (uint32_t p = 0; p < source.plane_count(); ++p) {
    const Plane<const uint8_t> from = plane_of(source, p);
    const Plane<uint8_t> to = plane_of(target, p);
    const size_t bytes = size_t{plane_extent(source.pixel(), source.width(), p)} * from.sample_bytes();
    for (uint32_t y = 0; y < plane_extent(source.pixel(), source.height(), p); ++y) {
      if (from.channel_bytes == 2)
        copy_ten_bits(reinterpret_cast<const uint16_t*>(from.row(y)), bytes / 2,
                      reinterpret_cast<uint16_t*>(to.row(y)));
      else
        std::memcpy(to.row(y), from.row(y), bytes);
    }
  }
}

// Fills an area of whole chroma samples.
void fill_planes(const Area& area, const gpu::Ycbcr16& pixel, const ImageSpan& canvas) {
  const int up = canvas.pixel() == Pixel::p010 ? kBelowTenBits : 8;
  for (uint32_t p = 0; p < canvas.plane_count(); ++p) {
    const Plane<uint8_t> plane = plane_of(canvas, p);
    uint8_t sample[4] = {};
    for (uint32_t c = 0; c < plane.channels; ++c) {
      const auto number = static_cast<uint16_t>(p == 0 ? pixel.y : p - 1 + c == 0 ? pixel.u : pixel.v);
      if (plane.channel_bytes == 2)
        std::memcpy(sample + 2 * size_t{c}, &number, 2);
      else
        sample[c] = static_cast<uint8_t>(number >> up);
    }
    const auto at = [&](uint32_t side) { return plane_extent(canvas.pixel(), side, p); };
    const size_t size = plane.sample_bytes(), from = at(area.left) * size, to = at(area.right) * size;
    uint8_t* first = plane.row(at(area.top));
    for (size_t i = from; i < to; i += size) std::memcpy(first + i, sample, size);
    for (uint32_t y = at(area.top) + 1; y < at(area.bottom); ++y)
      std::memcpy(plane.row(y) + from, first + from, to - from);
  }
}

// ---- pixels ---------------------------------------------------------------------------------------------------

struct PixelChunk {
  alignas(64) uint16_t y[kPlaneChunk], u[kPlaneChunk], v[kPlaneChunk];
  alignas(64) uint16_t weight[kPlaneChunk];
};
struct ColorChunk {
  alignas(64) uint8_t r[kPlaneChunk], g[kPlaneChunk], b[kPlaneChunk], a[kPlaneChunk];
};

// Structures are passed by value: the numbers that are written could alias a reference.
MILLRACE_VECTORIZE void encode_colors(const gpu::CanvasNumbers canvas, const ColorChunk& in, uint32_t count,
                                      PixelChunk& out) {
  for (uint32_t i = 0; i < count; ++i) {
    const gpu::Ycbcr16 pixel = gpu::encoded16(canvas, in.r[i] << 4, in.g[i] << 4, in.b[i] << 4);
    out.y[i] = static_cast<uint16_t>(pixel.y);
    out.u[i] = static_cast<uint16_t>(pixel.u);
    out.v[i] = static_cast<uint16_t>(pixel.v);
  }
}

// The same for colours that are multiplied by their alpha.
void encode_premultiplied(const gpu::CanvasNumbers& canvas, const ColorChunk& in, uint32_t count, PixelChunk& out) {
  for (uint32_t i = 0; i < count; ++i) {
    const auto straight = [&](const uint8_t* colors) { return gpu::straight16(colors[i], in.a[i]); };
    const gpu::Ycbcr16 pixel = gpu::encoded16(canvas, straight(in.r), straight(in.g), straight(in.b));
    out.y[i] = static_cast<uint16_t>(pixel.y);
    out.u[i] = static_cast<uint16_t>(pixel.u);
    out.v[i] = static_cast<uint16_t>(pixel.v);
  }
}

MILLRACE_VECTORIZE void shift_numbers(const uint16_t* in, int up, uint32_t count, uint16_t* out) {
  for (uint32_t i = 0; i < count; ++i) out[i] = static_cast<uint16_t>(in[i] << up);
}

MILLRACE_VECTORIZE void change_numbers(const gpu::LayerNumbers layer, const gpu::CanvasNumbers canvas, uint32_t count,
                                       PixelChunk& chunk) {
  for (uint32_t i = 0; i < count; ++i) {
    const gpu::Ycbcr16 pixel = gpu::canvas_pixel(layer, canvas, chunk.y[i], chunk.u[i], chunk.v[i]);
    chunk.y[i] = static_cast<uint16_t>(pixel.y);
    chunk.u[i] = static_cast<uint16_t>(pixel.u);
    chunk.v[i] = static_cast<uint16_t>(pixel.v);
  }
}

// Turns a layer's numbers of 8 or 10 bits into the canvas's of 16.
void adopt_numbers(const gpu::LayerNumbers& layer, const gpu::CanvasNumbers& canvas, uint32_t count,
                   PixelChunk& chunk) {
  if (!gpu::are_canvas_numbers(layer, canvas)) return change_numbers(layer, canvas, count, chunk);
  for (uint16_t* numbers : {chunk.y, chunk.u, chunk.v}) shift_numbers(numbers, layer.up, count, numbers);
}

MILLRACE_VECTORIZE void weigh_alpha(const uint8_t* alpha, uint32_t opacity, uint32_t count, uint16_t* weights) {
  for (uint32_t i = 0; i < count; ++i) weights[i] = static_cast<uint16_t>(alpha[i] * opacity);
}

MILLRACE_VECTORIZE void lay_numbers(const uint16_t* above, const uint16_t* weights, uint32_t count, uint16_t* below) {
  for (uint32_t i = 0; i < count; ++i)
    below[i] = static_cast<uint16_t>(gpu::laid_number(below[i], above[i], weights[i]));
}

// Takes `count` pixels of an interleaved picture, at most a chunk.
void take_colors(const ImageView& source, uint32_t x, uint32_t y, uint32_t count, ColorChunk& out) {
  const Pixel pixel = source.pixel();
  const uint8_t* in = source.row(y) + size_t{x} * bytes_per_pixel(pixel);
  const bool blue_first = pixel == Pixel::bgr8 || pixel == Pixel::bgra8;
  uint8_t *first = blue_first ? out.b : out.r, *third = blue_first ? out.r : out.b;
  if (pixel == Pixel::gray8) {
    for (uint8_t* color : {out.r, out.g, out.b}) std::memcpy(color, in, count);
  } else if (has_alpha(pixel)) {
    unpack4(in, count, first, out.g, third, out.a);
  } else {
    unpack3(in, count, first, out.g, third);
  }
}

// Takes `count` pixels of a picture of planes, at most a chunk.
void take_ycbcr(const ImageView& source, uint32_t x, uint32_t y, uint32_t count, PixelChunk& out) {
  const bool is_wide = source.pixel() == Pixel::p010;
  take_numbers(luma_row(source, y), is_wide, x, count, out.y);
  uint16_t chroma[kPlaneChunk / 2 + 1];
  for (uint32_t which = 0; which < 2; ++which) {
    take_numbers(chroma_row(source, which, y / 2), is_wide, x / 2, (x % 2 + count + 1) / 2, chroma);
    double_numbers(chroma, x % 2 == 1, count, which == 0 ? out.u : out.v);
  }
}

bool is_empty(const Area& area) { return area.left >= area.right || area.top >= area.bottom; }
bool overlaps(const Area& a, const Area& b) {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

// ---- two rows of a canvas in 4:4:4 ------------------------------------------------------------------------------

// Takes columns left … right − 1 of rows y and y + 1. `left` is even; a last odd column and row are repeated.
void take_rows(const ImageSpan& canvas, uint32_t y, uint32_t left, uint32_t right, const PixelRows (&rows)[2]) {
  const bool is_wide = canvas.pixel() == Pixel::p010;
  const int up = is_wide ? kBelowTenBits : 8;
  const ImageView view(&canvas.value(), canvas.data());
  for (uint32_t x = left; x < right; x += kPlaneChunk) {
    const uint32_t count = std::min(kPlaneChunk, right - x);
    PixelChunk chunk;
    for (uint32_t r = 0; r < 2; ++r) {
      take_ycbcr(view, x, std::min(y + r, canvas.height() - 1), count, chunk);
      shift_numbers(chunk.y, up, count, rows[r].y + x);
      shift_numbers(chunk.u, up, count, rows[r].u + x);
      shift_numbers(chunk.v, up, count, rows[r].v + x);
    }
  }
}

template <class Number>
void put_rows(const ImageSpan& canvas, uint32_t y, uint32_t left, uint32_t right, const PixelRows (&rows)[2]) {
  const auto at = [](const NumberRow<uint8_t>& row, uint32_t first) {
    return reinterpret_cast<Number*>(row.data) + size_t{first} * row.step;
  };
  const bool is_last = y + 1 >= canvas.height();
  put_luma(rows[0].y + left, right - left, at(luma_row(canvas, y), left));
  if (!is_last) put_luma(rows[1].y + left, right - left, at(luma_row(canvas, y + 1), left));
  for (uint32_t which = 0; which < 2; ++which) {
    uint16_t* top = which == 0 ? rows[0].u : rows[0].v;
    uint16_t* bottom = is_last ? top : which == 0 ? rows[1].u : rows[1].v;
    if (right % 2 == 1) top[right] = top[right - 1], bottom[right] = bottom[right - 1];
    const NumberRow<uint8_t> row = chroma_row(canvas, which, y / 2);
    const uint32_t pairs = (right - left + 1) / 2;
    if (row.step == 2)
      put_chroma<2>(top + left, bottom + left, pairs, at(row, left / 2));
    else
      put_chroma<1>(top + left, bottom + left, pairs, at(row, left / 2));
  }
}

} // namespace

// ---- one layer --------------------------------------------------------------------------------------------------

void PlaneLayer::take(const ImageView* picture, const LayerCell& cell, const ComposeSettings& settings, uint8_t opacity,
                      const ImageSpan& canvas) {
  value_ = picture ? &picture->value() : nullptr;
  data_ = picture ? picture->data() : nullptr;
  opacity_ = opacity;
  if (picture)
    fitted_ =
        gpu::at_whole_chroma(fit_layer({picture->width(), picture->height()}, cell, settings.fit), picture->pixel());
  else
    kept_ = kept_ && settings.keep_last;
  area_ = visible_area(fitted_, canvas);
}

Area PlaneLayer::blocks() const {
  const auto up = [](uint32_t side) { return side + side % 2; };
  return {area_.left & ~1u, area_.top & ~1u, up(area_.right), up(area_.bottom)};
}

bool PlaneLayer::is_plain(const ImageSpan& canvas) const {
  const mr_image& own = image();
  return own.format == canvas.value().as.image.format && gpu::same_numbers(own, canvas.value().as.image) &&
         opacity_ == 255 && fitted_.x % 2 == 0 && fitted_.y % 2 == 0 &&
         (area_.right % 2 == 0 || area_.right == canvas.width()) &&
         (area_.bottom % 2 == 0 || area_.bottom == canvas.height());
}

void PlaneLayer::scale(const ImageView& part, const ImageSpan& target, const ComposeSettings& settings) {
  if (part.width() == target.width() && part.height() == target.height()) return copy_planes(part, target);
  const ResizeMethod method =
      resize_method(settings.scaling, {part.width(), part.height()}, {target.width(), target.height()});
  resampler_.prepare(part.width(), part.height(), target.width(), target.height(), method);
  resampler_.run(part, target);
}

void PlaneLayer::prepare(const ComposeSettings& settings, const ImageSpan& canvas) {
  const bool as_it_is = value_ && fitted_.part == fitted_.size && !settings.keep_last;
  if (value_ && !as_it_is) {
    const ViewWindow part(picture(), fitted_.part_x, fitted_.part_y, fitted_.part.width, fitted_.part.height);
    reshape(tile_, picture().pixel(), fitted_.size.width, fitted_.size.height);
    tile_.tag(picture().color(), picture().range());
    scale(part.view(), tile_.span(), settings);
    kept_ = settings.keep_last;
  }
  source_value_ = as_it_is ? value_ : &tile_.view().value();
  source_data_ = as_it_is ? data_ : tile_.view().data();
  source_x_ = as_it_is ? fitted_.part_x : 0;
  source_y_ = as_it_is ? fitted_.part_y : 0;
  numbers_ = gpu::layer_numbers(source_value_->as.image, canvas.value().as.image);
}

void PlaneLayer::paint(const ComposeSettings& settings, const ImageSpan& canvas) {
  const uint32_t width = area_.right - area_.left, height = area_.bottom - area_.top;
  const SpanWindow place(canvas, area_.left, area_.top, width, height);
  const bool whole = width == fitted_.size.width && height == fitted_.size.height;
  // `nearest` copies all sixteen bits of p010.
  const bool exact = canvas.pixel() == Pixel::p010 && settings.scaling == Scaling::nearest;
  if (value_ && whole && !settings.keep_last && !exact) {
    const ViewWindow part(picture(), fitted_.part_x, fitted_.part_y, fitted_.part.width, fitted_.part.height);
    return scale(part.view(), place.view(), settings);
  }
  prepare(settings, canvas);
  const ViewWindow seen(source(), source_x_ + static_cast<uint32_t>(area_.left - fitted_.x),
                        source_y_ + static_cast<uint32_t>(area_.top - fitted_.y), width, height);
  copy_planes(seen.view(), place.view());
}

void PlaneLayer::lay_row(uint32_t y, const ComposeSettings& settings, const gpu::CanvasNumbers& canvas,
                         const PixelRows& rows) const {
  const uint32_t row = source_y_ + static_cast<uint32_t>(int64_t{y} - fitted_.y);
  const uint32_t column = source_x_ + static_cast<uint32_t>(int64_t{area_.left} - fitted_.x);
  const bool alpha = has_alpha(source().pixel());
  for (uint32_t x = area_.left; x < area_.right; x += kPlaneChunk) {
    const uint32_t count = std::min(kPlaneChunk, area_.right - x), from = column + x - area_.left;
    PixelChunk chunk;
    ColorChunk colors;
    if (halves_chroma(source().pixel())) {
      take_ycbcr(source(), from, row, count, chunk);
      adopt_numbers(numbers_, canvas, count, chunk);
    } else {
      take_colors(source(), from, row, count, colors);
      if (alpha && settings.premultiplied)
        encode_premultiplied(canvas, colors, count, chunk);
      else
        encode_colors(canvas, colors, count, chunk);
    }
    if (!alpha && opacity_ == 255) {
      std::memcpy(rows.y + x, chunk.y, size_t{count} * 2);
      std::memcpy(rows.u + x, chunk.u, size_t{count} * 2);
      std::memcpy(rows.v + x, chunk.v, size_t{count} * 2);
      continue;
    }
    if (!alpha) std::memset(colors.a, 255, count);
    weigh_alpha(colors.a, opacity_, count, chunk.weight);
    lay_numbers(chunk.y, chunk.weight, count, rows.y + x);
    lay_numbers(chunk.u, chunk.weight, count, rows.u + x);
    lay_numbers(chunk.v, chunk.weight, count, rows.v + x);
  }
}

// ---- all layers -------------------------------------------------------------------------------------------------

void PlaneComposer::set_layers(std::vector<LayerCell> cells) {
  cells_ = std::move(cells);
  layers_ = std::vector<PlaneLayer>(cells_.size());
  laid_.reserve(cells_.size());
}

void PlaneComposer::run(std::span<const ImageView* const> layers, const ComposeSettings& settings,
                        const ImageSpan& canvas) {
  const gpu::CanvasNumbers numbers = gpu::canvas_numbers(canvas.value().as.image);
  const std::array<uint8_t, 4>& color = settings.background;
  Uncovered uncovered(canvas);
  laid_.clear();
  // A plain layer may be painted before the others unless it lies over one of them.
  const auto is_painted = [&](const PlaneLayer& layer) {
    return layer.is_plain(canvas) && std::none_of(laid_.begin(), laid_.end(), [&](const PlaneLayer* other) {
             return overlaps(layer.blocks(), other->blocks());
           });
  };
  for (size_t i = 0; i < layers_.size(); ++i) {
    layers_[i].take(layers[i], cells_[i], settings, i == 0 ? uint8_t{255} : settings.opacity, canvas);
    if (!layers_[i].visible()) continue;
    if (!is_painted(layers_[i]))
      laid_.push_back(&layers_[i]);
    else
      uncovered.cover(layers_[i].area());
  }
  for (const Area& area : uncovered.areas())
    fill_planes(area, gpu::background_of(numbers, color[0], color[1], color[2]), canvas);
  auto next = laid_.begin();
  for (PlaneLayer& layer : layers_) {
    const bool is_laid = next != laid_.end() && *next == &layer, outside = is_empty(layer.area());
    if (is_laid) ++next;
    if (!layer.visible() || (outside && !settings.keep_last)) continue;
    is_laid || outside ? layer.prepare(settings, canvas) : layer.paint(settings, canvas);
  }
  std::erase_if(laid_, [](const PlaneLayer* layer) { return is_empty(layer->area()); });
  if (!laid_.empty()) lay_rows(settings, numbers, canvas);
}

void PlaneComposer::lay_rows(const ComposeSettings& settings, const gpu::CanvasNumbers& numbers,
                             const ImageSpan& canvas) {
  const size_t pitch = size_t{canvas.width()} + canvas.width() % 2;
  rows_.resize(6 * pitch);
  const auto rows_from = [&](size_t first) {
    uint16_t* at = rows_.data() + first * pitch;
    return PixelRows{at, at + pitch, at + 2 * pitch};
  };
  const PixelRows rows[2] = {rows_from(0), rows_from(3)};
  for (uint32_t y = 0; y < canvas.height(); y += 2) {
    uint32_t left = canvas.width(), right = 0;
    for (const PlaneLayer* layer : laid_) {
      const Area area = layer->blocks();
      if (y < area.top || y >= area.bottom) continue;
      left = std::min(left, area.left);
      right = std::max(right, std::min(area.right, canvas.width()));
    }
    if (left >= right) continue;
    take_rows(canvas, y, left, right, rows);
    for (const PlaneLayer* layer : laid_)
      for (uint32_t r = 0; r < 2; ++r)
        if (y + r >= layer->area().top && y + r < layer->area().bottom)
          layer->lay_row(y + r, settings, numbers, rows[r]);
    if (canvas.pixel() == Pixel::p010)
      put_rows<uint16_t>(canvas, y, left, right, rows);
    else
      put_rows<uint8_t>(canvas, y, left, right, rows);
  }
}

} // namespace millrace::handlers
