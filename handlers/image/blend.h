// Lays rows of pixels over others: eight modes, weighted by opacity and alpha.
//
// Formulas (W3C Compositing and Blending Level 1, sections 5.1, 5.8 and 10.1), for channels of 0…1, cb below and cs
// above:
//   B = over: cs, add: min(cb + cs, 1), subtract: max(cb − cs, 0), multiply: cb · cs, screen: cb + cs − cb · cs,
//       darken: min(cb, cs), lighten: max(cb, cs), difference: |cb − cs|
//   below opaque       c = (1 − as) · cb + as · B
//   below translucent  ao = as + ab − as · ab;  c = ((1 − as) · ab · cb + as · (1 − ab) · cs + as · ab · B) / ao
// with as the layer's alpha times its opacity, ab the alpha below; colours are not multiplied by their alpha. Products
// are 8-bit, each rounded to nearest: less than 1.5 from the real value, and less than 1 at full opacity. Over a
// translucent pixel the sums are single precision and at most 1 away.
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace::handlers {

enum class BlendMode { over, add, subtract, multiply, screen, darken, lighten, difference };

// Blends pixels of 1, 3 or 4 channels in the same order above and below. Below must be opaque, and stays so. With four
// channels the alpha above is the fourth; with fewer it is `alpha`, one byte a pixel, or null for an opaque layer.
// `below` is changed and overlaps nothing.
void blend_pixels(BlendMode mode, const uint8_t* above, const uint8_t* alpha, uint8_t opacity, uint32_t channels,
                  size_t count, uint8_t* below);

// The same for colours above that are already multiplied by their alpha, with the mode `over`. They are added directly:
// c = min(opacity · cs + (1 − as) · cb, 1).
void blend_premultiplied(const uint8_t* above, const uint8_t* alpha, uint8_t opacity, uint32_t channels, size_t count,
                         uint8_t* below);

// Divides the colours of premultiplied pixels of 4 channels by the fourth, rounded to nearest and at most 255. All
// other modes, and translucent pixels below, need that.
void straighten_pixels(const uint8_t* premultiplied, size_t count, uint8_t* straight);

// Blends pixels of 4 channels, the last of which is alpha, above and below; below may be translucent.
void blend_translucent(BlendMode mode, const uint8_t* above, uint8_t opacity, size_t count, uint8_t* below);

} // namespace millrace::handlers
