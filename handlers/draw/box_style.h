// The style of draw.boxes: its settings as colours and lengths, in the numbers of a picture.
#pragma once

#include "handlers/draw/glyphs.h"
#include "handlers/draw/packed_sheet.h"
#include "handlers/gpu/box_marks.h"

namespace millrace::handlers {

struct BoxSettings {
  int64_t thickness = 2; // thickness of the frame in pixels
  int64_t size = 14;     // height of the label font in pixels
  bool labels = true;
};

// `sheet` holds draw::kBoxGlyphs and the names of `name_count` classes; `copied` is the address of its bytes in the
// memory of the host or device that draws.
draw::BoxStyle box_style(const BoxSettings& settings, const ColorForm& form, const GlyphSet& glyphs,
                         const PackedSheet& sheet, const void* copied, size_t name_count = 0);

} // namespace millrace::handlers
