// Glyphs packed into one piece of memory, so that one copy takes them to a device.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "handlers/draw/caption.h"
#include "handlers/draw/glyphs.h"
#include "handlers/gpu/glyph_sheet.h"

namespace millrace::handlers {

// Owned by a handler. Its bytes stay where they are and what they are until it is assigned to, so a copy of them that
// was captured can be repeated.
class PackedSheet {
 public:
  PackedSheet() = default;
  // Glyph i stands for the i-th character of `letters`.
  PackedSheet(const GlyphSet& glyphs, std::string_view letters);
  // The glyphs of kNumberGlyphs come first, then those of the caption's own text; and the caption as a list of them.
  // With `outline`, the outlined() glyphs, those of all follow in the same order.
  PackedSheet(const GlyphSet& glyphs, const Caption& caption, const GlyphSet* outline = nullptr);

  const std::vector<uint8_t>& bytes() const { return bytes_; }
  // The sheet and the caption's list where the bytes were copied to; or at bytes().data(), on the host.
  gpu::GlyphSheet sheet(const void* copied) const;
  const uint16_t* caption(const void* copied) const;
  uint32_t caption_count() const { return caption_count_; }
  uint32_t outline_first() const { return outline_first_; } // 0: there are none
  // How far any of the glyphs goes up and down from the baseline; pixels.
  int32_t top() const { return top_; }
  int32_t bottom() const { return bottom_; }

 private:
  // A glyph, and whose masks it has.
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
