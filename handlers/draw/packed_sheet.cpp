// Packs glyphs into one sheet. The masks come last, so that the words before them are aligned.
#include "handlers/draw/packed_sheet.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace millrace::handlers {
namespace {

// Stands for a letter if the font lacks both it and '?': nothing is drawn and the pen stays.
constexpr GlyphSet::Glyph kNothing = {};

const GlyphSet::Glyph* glyph_for(const GlyphSet& glyphs, uint32_t code_point) {
  const GlyphSet::Glyph* const found = glyphs.find(code_point);
  return found ? found : &kNothing;
}

// The index of the glyph in `chosen`; appends the glyph if it is missing.
uint16_t place_of(const GlyphSet::Glyph* glyph, std::vector<const GlyphSet::Glyph*>& chosen) {
  const auto at = std::find(chosen.begin(), chosen.end(), glyph);
  const auto place = static_cast<uint16_t>(at - chosen.begin());
  if (at == chosen.end()) chosen.push_back(glyph);
  return place;
}

} // namespace

PackedSheet::PackedSheet(const GlyphSet& glyphs, std::string_view letters, std::span<const std::string> names) {
  std::vector<const GlyphSet::Glyph*> all;
  for (char letter : letters) all.push_back(glyph_for(glyphs, static_cast<unsigned char>(letter)));
  std::vector<uint16_t> list(names.empty() ? 0 : names.size() + 1), of_names;
  for (size_t n = 0; n < list.size(); ++n) {
    const size_t begin = list.size() + of_names.size();
    if (begin > std::numeric_limits<uint16_t>::max())
      throw std::invalid_argument("the names of " + std::to_string(names.size()) +
                                  " classes are too long: they have more than 65,000 letters together");
    list[n] = static_cast<uint16_t>(begin);
    for (std::string_view rest = n < names.size() ? std::string_view(names[n]) : ""; !rest.empty();)
      of_names.push_back(place_of(glyph_for(glyphs, next_code_point(rest)), all));
  }
  list.insert(list.end(), of_names.begin(), of_names.end());
  std::vector<Chosen> chosen;
  for (const GlyphSet::Glyph* glyph : all) chosen.push_back({glyph, &glyphs});
  pack(chosen, list);
}

PackedSheet::PackedSheet(const GlyphSet& glyphs, const Caption& caption, const GlyphSet* outline) {
  std::vector<const GlyphSet::Glyph*> letters;
  std::vector<uint16_t> list;
  for (char letter : std::string_view(draw::kNumberGlyphs))
    letters.push_back(glyph_for(glyphs, static_cast<unsigned char>(letter)));
  for (const Caption::Piece& piece : caption.pieces()) {
    if (piece.kind == Caption::Kind::index) list.push_back(draw::kIndexPlace);
    if (piece.kind == Caption::Kind::time) list.push_back(draw::kTimePlace);
    if (piece.kind == Caption::Kind::value) list.push_back(static_cast<uint16_t>(draw::kFirstValuePlace + piece.value));
    if (piece.kind != Caption::Kind::text) continue;
    for (std::string_view text = piece.text; !text.empty();)
      list.push_back(place_of(glyph_for(glyphs, next_code_point(text)), letters));
  }
  std::vector<Chosen> chosen;
  for (const GlyphSet::Glyph* glyph : letters) chosen.push_back({glyph, &glyphs});
  outline_first_ = outline ? static_cast<uint32_t>(letters.size()) : 0;
  for (size_t i = 0; outline && i < letters.size(); ++i)
    chosen.push_back({letters[i] == &kNothing ? &kNothing : glyph_for(*outline, letters[i]->code_point), outline});
  pack(chosen, list);
}

void PackedSheet::pack(const std::vector<Chosen>& chosen, const std::vector<uint16_t>& caption) {
  glyph_count_ = static_cast<uint32_t>(chosen.size());
  caption_count_ = static_cast<uint32_t>(caption.size());
  const size_t head = chosen.size() * sizeof(draw::SheetGlyph) + caption.size() * sizeof(uint16_t);
  std::vector<draw::SheetGlyph> sheet;
  std::vector<uint8_t> masks;
  for (const auto& [glyph, set] : chosen) {
    const size_t size = size_t{glyph->width} * glyph->height;
    sheet.push_back(
        {glyph->left, glyph->top, glyph->width, glyph->height, glyph->advance, static_cast<uint32_t>(masks.size())});
    const auto mask = set->masks().begin() + static_cast<ptrdiff_t>(glyph->mask);
    masks.insert(masks.end(), mask, mask + static_cast<ptrdiff_t>(size));
    if (size == 0) continue;
    top_ = std::max(top_, glyph->top);
    bottom_ = std::max(bottom_, static_cast<int32_t>(glyph->height) - glyph->top);
  }
  bytes_.resize(head + masks.size());
  std::memcpy(bytes_.data(), sheet.data(), sheet.size() * sizeof(draw::SheetGlyph));
  if (!caption.empty())
    std::memcpy(bytes_.data() + sheet.size() * sizeof(draw::SheetGlyph), caption.data(),
                caption.size() * sizeof(uint16_t));
  std::copy(masks.begin(), masks.end(), bytes_.begin() + static_cast<ptrdiff_t>(head));
}

draw::GlyphSheet PackedSheet::sheet(const void* copied) const {
  const auto* const first = static_cast<const uint8_t*>(copied);
  return {static_cast<const draw::SheetGlyph*>(copied),
          first + size_t{glyph_count_} * sizeof(draw::SheetGlyph) + size_t{caption_count_} * sizeof(uint16_t)};
}

const uint16_t* PackedSheet::caption(const void* copied) const {
  return reinterpret_cast<const uint16_t*>(static_cast<const uint8_t*>(copied) +
                                           size_t{glyph_count_} * sizeof(draw::SheetGlyph));
}

} // namespace millrace::handlers
