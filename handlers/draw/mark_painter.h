// Paints marks onto a picture on the CPU, row by row; the rule is in handlers/gpu/mark_shapes.h.
#pragma once

#include <millrace/payload.h>
#include <millrace/payload/marks.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "handlers/draw/mark_row.h"
#include "handlers/gpu/mark_shapes.h"

namespace millrace::handlers {

// The columns of a row that a mark may cover: at most two stretches.
struct Stretches {
  Columns columns[2];
  uint32_t count = 0;
  void add(const Columns& found) {
    if (found.begin < found.end) columns[count++] = found;
  }
};

// A mark, and what its rows have in common.
struct PaintedShape {
  draw::MarkShape mark;
  uint32_t stroke; // marks of one stroke are next to each other
  // These are for a segment that is not level. Its middle moves by `slope` columns a row and by `moves` columns to the
  // row whose bytes are fetched. Its edges are `aside` columns left and right of the middle.
  float slope = 0, aside = 0;
  int32_t moves = 0;
  // These are for an upright box. Rows that are at most `straight` from its middle have the same stretches.
  float straight = -1;
  Stretches sides{};
};

// The line or the inside of a stroke that has several pieces. Each column has the largest coverage times alpha of all
// pieces, and the piece that has it.
struct MostOfPieces {
  std::vector<float> alpha;
  std::vector<uint32_t> piece;
  void take(int32_t column, float found, uint32_t of_piece) {
    if (found <= alpha[column]) return;
    alpha[column] = found;
    piece[column] = of_piece;
  }
};

// begin(), add() for each list in its order, paint(). None allocates for as many segments, boxes and columns as
// reserve() was told; a curve becomes some tens of segments.
class [[gnu::visibility("hidden")]] MarkPainter { // hidden like its members
 public:
  void reserve(size_t marks, uint32_t width, uint32_t height);

  // The style has the picture's pixel format.
  void begin(const ImageSpan& picture, const draw::MarkStyle& style);
  // Adds a list. Returns how many of its marks are skipped because they are not sound.
  uint64_t add(std::span<const Mark> marks);
  void paint();

 private:
  PaintedShape prepared(const draw::MarkShape& mark) const;
  void add_pieces(const draw::MarkShape& curve);
  Stretches stretches(const PaintedShape& shape, float y) const;
  void activate(int32_t row);
  template <uint32_t kBytes>
  void paint_rows();
  template <uint32_t kBytes>
  void paint_mark(const PaintedShape& shape, int32_t row);
  template <uint32_t kBytes>
  void paint_stroke(std::span<const uint32_t> pieces, int32_t row);
  template <uint32_t kBytes, class Use>
  void each_column(const PaintedShape& shape, int32_t row, const Use& use);

  ImageSpan picture_;
  draw::MarkStyle style_{};
  uint32_t stroke_count_ = 0;
  std::vector<PaintedShape> shapes_; // this tick's, in order
  std::vector<uint32_t> by_top_;     // shapes by their first row
  std::vector<uint32_t> row_begin_;  // a row's begin in by_top_
  std::vector<uint32_t> active_;     // shapes that meet the row, in order
  std::vector<float> line_, fill_;   // coverages in a long stretch
  MostOfPieces most_line_, most_fill_;
  MarkRow row_;
};

} // namespace millrace::handlers
