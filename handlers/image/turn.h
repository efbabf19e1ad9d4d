// Mirrors, turns and transposes pictures: every pixel moves, and keeps its bytes.
#pragma once

#include <millrace/payload.h>

#include <cstdint>

namespace millrace::handlers {

// The kinds of turns. `rotate90` is clockwise, `transpose` mirrors at the diagonal from the top left, `transverse` at
// the other one.
enum class Turn { horizontal, vertical, both, rotate90, rotate270, transpose, transverse };

// True if width and height are swapped.
inline bool swaps_sides(Turn turn) { return turn >= Turn::rotate90; }

// Turns a picture of any format. The target has the source's format and size (with swapped sides if the turn swaps
// them), and other memory. Planes are turned one by one: if chroma is halved and a mirrored side is odd, chroma moves
// by one luma sample.
void turn_picture(Turn turn, const ImageView& source, const ImageSpan& target);

} // namespace millrace::handlers
