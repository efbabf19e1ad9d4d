// Makes the style of draw.boxes. Inks are mixed once a tick, not once a box.
#include "handlers/draw/box_style.h"

namespace millrace::handlers {
namespace {

// Letters on a coloured plate are black or white, whichever is further from it.
Color letter_color(Color plate) {
  return 299 * plate.r + 587 * plate.g + 114 * plate.b > 140'000 ? Color{0, 0, 0} : Color{255, 255, 255};
}

} // namespace

draw::BoxStyle box_style(const BoxSettings& settings, const ColorForm& form, const GlyphSet& glyphs,
                         const PackedSheet& sheet, const void* copied, size_t name_count) {
  draw::BoxStyle style{};
  for (uint32_t i = 0; i < draw::kBoxColors; ++i) {
    style.plates[i] = ink_of(draw::box_color(i), form);
    style.letters[i] = ink_of(letter_color(draw::box_color(i)), form);
  }
  style.thickness = static_cast<int32_t>(settings.thickness);
  style.padding = static_cast<int32_t>(settings.size) / 5 + 1;
  style.ascent = glyphs.ascent();
  style.descent = glyphs.descent();
  style.labels = settings.labels;
  style.glyphs = sheet.sheet(copied);
  style.names = sheet.caption(copied);
  style.name_count = static_cast<uint32_t>(name_count);
  return style;
}

} // namespace millrace::handlers
