// Draws a line of text on a dark plate, which keeps it readable on any picture.
#include "handlers/stats/readout.h"

#include <new>
#include <stdexcept>

#include "handlers/image/picture.h"

namespace millrace::handlers {
namespace {

constexpr Color kPlate = {0, 0, 0, 150};

} // namespace

bool can_show(Pixel pixel) { return is_interleaved8(pixel) || pixel == Pixel::nv12 || pixel == Pixel::i420; }

void draw_on_plate(const ImageSpan& picture, const GlyphSet& glyphs, std::string_view text, int64_t x, int64_t y,
                   Color color) {
  // The first plane of nv12 and i420 is a gray picture.
  const Pixel pixel = is_interleaved8(picture.pixel()) ? picture.pixel() : Pixel::gray8;
  const int64_t height = glyphs.ascent() + glyphs.descent(), padding = height / 4;
  const int64_t plate_width = glyphs.width(text) + 2 * padding;
  const int64_t left = x >= 0 ? x : picture.width() + x - plate_width;
  const int64_t top = y >= 0 ? y : picture.height() + y - height;
  fill_rectangle(picture, {left, top, left + plate_width, top + height}, ink_of(kPlate, pixel));
  glyphs.draw(picture, text, left + padding, top + glyphs.ascent(), ink_of(color, pixel));
}

Readout::Readout(Handler& owner)
    : draw_(owner, "draw", true, "write it on the picture, if the value is one", live),
      x_(owner, "x", 16, "left edge; negative: from the right", range(-65536, 65536), unit("px"), live),
      y_(owner, "y", 16, "top edge; negative: from the bottom", range(-65536, 65536), unit("px"), live),
      size_(owner, "size", 24, "of the letters", range(4, 512), unit("px")),
      color_(owner, "color", "#ffffff", "\"#rrggbb\" or \"#rrggbbaa\""),
      font_(owner, "font", "", "a font file; empty: DejaVu Sans", reads_path) {}

void Readout::configure(const Format& input) const {
  if (!parse_color(*color_))
    throw std::invalid_argument("color '" + *color_ + "' is neither \"#rrggbb\" nor \"#rrggbbaa\"");
  if (input.kind == MR_KIND_OBJECT) throw std::invalid_argument("an object of the process cannot be handed on here");
}

void Readout::start() {
  ink_color_ = parse_color(*color_).value_or(Color{});
  if (draw_) glyphs_ = GlyphSet(*font_, static_cast<uint32_t>(*size_));
}

ImageSpan Readout::pass(Tick& tick, const Input<Any>& input, const Output<Any>& output) const {
  if (tick.raw().host->modify(&tick.raw(), output.first(), input.first()) != MR_OK) throw std::bad_alloc();
  const mr_output& raw = output.raw(tick);
  return {raw.value, raw.data};
}

void Readout::show(const ImageSpan& value, std::string_view text) const {
  if (!draw_ || value.header().kind != MR_KIND_IMAGE || !can_show(value.pixel())) return;
  draw_on_plate(value, glyphs_, text, *x_, *y_, ink_color_);
}

} // namespace millrace::handlers
