// Paints marks onto a picture on the CPU, row by row; the rule is in handlers/gpu/mark_shapes.h.
#pragma once

#include <millrace/payload.h>
#include <millrace/payload/marks.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "handlers/draw/mark_row.h"
#include "handlers/gpu/mark_shapes.h"

namespace millrace::handlers {

// Columns begin … end − 1 of a row.
struct Columns {
  int32_t begin, end;
};

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
  // These are for a segment. Its path moves by `slope` columns a row, and by `moves` columns to the row whose bytes are
  // fetched. Its edges are less than `aside` columns left and right of the path. Rows from `between_top` to
  // `between_bottom`, places in y, cross it where neither of its ends is near.
  float slope = 0, aside = 0;
  int32_t moves = 0;
  float between_top = INFINITY, between_bottom = -INFINITY;
  // These are for an upright box. Rows that are at most `straight` from its middle have the same stretches.
  float straight = -1;
  Stretches sides{};
};

// The line or the inside of a stroke that has several pieces. Each column has the largest coverage times alpha of all
// pieces, and the piece that has it.
class MostOfPieces {
 public:
  void reserve(size_t columns) {
    alphas_.reserve(columns);
    pieces_.reserve(columns);
  }
  void begin(size_t columns) {
    alphas_.assign(columns, 0);
    pieces_.resize(columns);
  }
  // Takes a piece's alphas in the four columns from this one on.
  void take(int32_t column, const draw::FourFloats& alphas, uint32_t piece) {
    for (int32_t i = 0; i < kFour; ++i) {
      const auto at = static_cast<size_t>(column + i);
      pieces_[at] = alphas[i] > alphas_[at] ? piece : pieces_[at];
    }
    float* const most = alphas_.data() + column;
    draw::store_four(draw::larger(draw::load_four(most), alphas), most);
  }
  // Gives the alphas of four columns and forgets them.
  draw::FourFloats leave(int32_t column) {
    float* const most = alphas_.data() + column;
    const draw::FourFloats alphas = draw::load_four(most);
    draw::store_four(draw::FourFloats{}, most);
    return alphas;
  }
  uint32_t piece(int32_t column) const { return pieces_[static_cast<size_t>(column)]; }

 private:
  std::vector<float> alphas_;
  std::vector<uint32_t> pieces_;
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
  static Stretches box_stretches(const PaintedShape& shape, float y);
  void activate(int32_t row);
  template <uint32_t kBytes>
  void paint_rows();
  template <uint32_t kBytes>
  void paint_mark(const PaintedShape& shape, int32_t row);
  template <uint32_t kBytes>
  void paint_stroke(std::span<const uint32_t> pieces, int32_t row);
  template <uint32_t kBytes, class Use>
  void each_four(const PaintedShape& shape, int32_t row, const Use& use);

  ImageSpan picture_;
  draw::MarkStyle style_{};
  uint32_t stroke_count_ = 0;
  std::vector<PaintedShape> shapes_; // this tick's, in order
  std::vector<uint32_t> by_top_;     // shapes by their first row
  std::vector<uint32_t> row_begin_;  // a row's begin in by_top_
  std::vector<uint32_t> active_;     // shapes that meet the row, in order
  MostOfPieces most_line_, most_fill_;
  MarkRow row_;
};

} // namespace millrace::handlers
