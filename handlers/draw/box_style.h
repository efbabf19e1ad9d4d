// How draw.boxes draws with its settings, in the bytes of a pixel format.
#pragma once

#include "handlers/draw/glyphs.h"
#include "handlers/draw/packed_sheet.h"
#include "handlers/gpu/box_marks.h"

namespace millrace::handlers {

struct BoxSettings {
  int64_t thickness = 2; // of the frame; pixels
  int64_t size = 14;     // of the labels' letters; pixels
  bool labels = true;
};

// `digits` holds the ten digits, and its bytes are at `copied` for whoever draws.
gpu::BoxStyle box_style(const BoxSettings& settings, Pixel pixel, const GlyphSet& glyphs, const PackedSheet& digits,
                        const void* copied);

} // namespace millrace::handlers
