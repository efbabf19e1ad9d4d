// Packs glyphs into one piece of memory, so that one copy takes them to a device.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "handlers/draw/caption.h"
#include "handlers/draw/glyphs.h"
#include "handlers/gpu/glyph_sheet.h"

namespace millrace::handlers {

// Owned by a handler. Its bytes keep their address and content until the sheet is assigned to, so a captured copy of
// them can be replayed.
class PackedSheet {
 public:
  PackedSheet() = default;
  // Glyph i stands for the i-th character of `letters`. The glyphs of the names follow, each once, and the names are a
  // list as draw::BoxStyle has it. Throws std::invalid_argument if the names are too long for such a list.
  PackedSheet(const GlyphSet& glyphs, std::string_view letters, std::span<const std::string> names = {});
  // The sheet holds the glyphs of kNumberGlyphs first, then those of the caption's own text. It also holds the caption
  // as a list of glyph indices and places of numbers. If `outline` is given (a set made by outlined()), the outline
  // glyphs of all of these follow in the same order.
  PackedSheet(const GlyphSet& glyphs, const Caption& caption, const GlyphSet* outline = nullptr);

  const std::vector<uint8_t>& bytes() const { return bytes_; }
  // The sheet and the list, of the caption or of names, at `copied`, the address that the bytes were copied to; on the
  // host, pass bytes().data().
  draw::GlyphSheet sheet(const void* copied) const;
  const uint16_t* caption(const void* copied) const;
  uint32_t caption_count() const { return caption_count_; }
  uint32_t outline_first() const { return outline_first_; } // 0: no outlines
  // How far any glyph extends above and below the baseline, in pixels.
  int32_t top() const { return top_; }
  int32_t bottom() const { return bottom_; }

 private:
  // A glyph and the set that holds its mask.
  struct Chosen {
    const GlyphSet::Glyph* glyph;
    const GlyphSet* set;
  };
  void pack(const std::vector<Chosen>& chosen, const std::vector<uint16_t>& caption);

  std::vector<uint8_t> bytes_; // glyphs, then the caption, then the masks
  uint32_t glyph_count_ = 0, caption_count_ = 0, outline_first_ = 0;
  int32_t top_ = 0, bottom_ = 0;
};

} // namespace millrace::handlers
