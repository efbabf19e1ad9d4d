// Mirrors, turns and transposes pictures: every pixel keeps its bytes and changes its place.
#pragma once

#include <millrace/payload.h>

#include <cstdint>

namespace millrace::handlers {

// What the picture does; `rotate90` is clockwise, `transpose` mirrors at the diagonal from the top left, `transverse`
// at the other one.
enum class Turn { horizontal, vertical, both, rotate90, rotate270, transpose, transverse };

// Whether width and height change places.
inline bool swaps_sides(Turn turn) { return turn >= Turn::rotate90; }

// Any format. The target has the source's format, its size (sides swapped where the turn does so), and other memory.
// Planes are turned one by one: where chroma is halved and a mirrored side is odd, chroma moves by one luma sample.
void turn_picture(Turn turn, const ImageView& source, const ImageSpan& target);

} // namespace millrace::handlers
