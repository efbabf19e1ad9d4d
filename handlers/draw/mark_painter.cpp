// Goes through a picture row by row, and in each row through the marks that meet it; see mark_painter.h.
//
// A mark looks only at the stretches of a row that it may cover. A frame has two, its sides. A pixel is loaded when the
// first mark covers it. Its channels stay in single precision until the row's end, where they are rounded and stored.
#include "handlers/draw/mark_painter.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace millrace::handlers {

using namespace draw;

namespace {

// Marks a loop over the columns of a stretch, which is compiled for AVX2 too. GCC computes eight square roots at a time
// only if none of them has to set errno.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__SANITIZE_ADDRESS__)
#define MR_COVER_LOOP \
  __attribute__((optimize("O3", "no-math-errno", "no-trapping-math"), target_clones("avx2", "default")))
#else
#define MR_COVER_LOOP
#endif

constexpr int32_t kLongStretch = 24; // columns; the coverages of a stretch that is as long are computed by such a loop
constexpr int32_t kRowsAhead = 2;    // the row whose bytes are fetched is so far below

// Turns distances to a path into coverages. One loop for both kinds of edges would have a branch in it.
MR_INTO_LOOPS void cover_lines(const MarkShape& shape, bool soft, int32_t count, float* values) {
  if (soft)
    for (int32_t i = 0; i < count; ++i) values[i] = line_coverage(shape, true, values[i]);
  else
    for (int32_t i = 0; i < count; ++i) values[i] = line_coverage(shape, false, values[i]);
}

// These compute the coverages of `count` columns. The first column has its middle at x. The shape is a copy, which no
// store can change.
MR_COVER_LOOP void cover_segment(MarkShape shape, bool soft, float x, float y, int32_t count, float* coverage) {
  for (int32_t i = 0; i < count; ++i) coverage[i] = distance_to_segment(shape, x + static_cast<float>(i), y);
  cover_lines(shape, soft, count, coverage);
}
MR_COVER_LOOP void cover_frame(MarkShape shape, bool soft, float x, float y, int32_t count, float* coverage) {
  for (int32_t i = 0; i < count; ++i) coverage[i] = fabsf(distance_to_box(shape, x + static_cast<float>(i), y));
  cover_lines(shape, soft, count, coverage);
}
MR_COVER_LOOP void cover_inside(MarkShape shape, float x, float y, int32_t count, float* coverage) {
  for (int32_t i = 0; i < count; ++i) coverage[i] = fill_coverage(distance_to_box(shape, x + static_cast<float>(i), y));
}

// Half of the width of an upright box in a row that is `off` above or below its middle, after all its sides were moved
// outwards by `by`. It is negative if the row misses the box.
float half_width_at(const MarkShape& box, float off, float by) {
  const float corner = larger(box.corner + by, 0), moved = box.corner + by - corner;
  const float beyond = off - box.down - moved;
  if (beyond > corner) return -1;
  return box.across + moved + (beyond <= 0 ? corner : std::sqrt(larger(corner * corner - beyond * beyond, 0)));
}

} // namespace

void MarkPainter::reserve(size_t marks, uint32_t width, uint32_t height) {
  shapes_.reserve(marks);
  by_top_.reserve(marks);
  active_.reserve(marks);
  row_begin_.reserve(size_t{height} + 2);
  for (std::vector<float>* of_columns : {&line_, &fill_, &most_line_.alpha, &most_fill_.alpha})
    of_columns->reserve(width);
  most_line_.piece.reserve(width);
  most_fill_.piece.reserve(width);
  row_.reserve(2 * marks, width);
}

void MarkPainter::begin(const ImageSpan& picture, const MarkStyle& style) {
  picture_ = picture;
  style_ = style;
  stroke_count_ = 0;
  shapes_.clear();
  const size_t width = picture.width();
  line_.resize(width);
  fill_.resize(width);
  most_line_.piece.resize(width);
  most_fill_.piece.resize(width);
  most_line_.alpha.assign(width, 0);
  most_fill_.alpha.assign(width, 0);
  row_.begin(picture.width(), style.adds);
}

PaintedShape MarkPainter::prepared(const MarkShape& mark) const {
  PaintedShape shape{mark, stroke_count_};
  if (!mark.is_box() && mark.dy != 0) {
    shape.slope = mark.dx / mark.dy;
    shape.aside = mark.reach / std::fabs(mark.dy);
    shape.moves = static_cast<int32_t>(clamped(shape.slope * kRowsAhead, -1e6f, 1e6f));
  } else if (mark.is_box() && mark.dy == 0) {
    shape.sides = stretches(shape, mark.y);
    shape.straight = mark.down + smaller(mark.corner - mark.reach, 0);
  }
  return shape;
}

uint64_t MarkPainter::add(std::span<const Mark> marks) {
  uint64_t skipped = 0;
  int32_t before = -1;
  for (const Mark& mark : marks) {
    if (!is_sound(mark)) {
      ++skipped;
      continue;
    }
    if (mark.stroke < 0 || mark.stroke != before) ++stroke_count_;
    before = mark.stroke;
    const MarkShape shape = shape_of(mark, style_, picture_.width(), picture_.height());
    if (shape.area.left >= shape.area.right) continue;
    if (shape.is_curve())
      add_pieces(shape);
    else
      shapes_.push_back(prepared(shape));
  }
  ++stroke_count_; // the next list's first mark is another stroke's
  return skipped;
}

// A curve is a stroke of segments.
void MarkPainter::add_pieces(const MarkShape& curve) {
  for (uint32_t piece = 0; piece < curve.pieces(); ++piece) {
    MarkShape shape = piece_of(curve, piece);
    const double end_x = double{shape.x} + shape.dx * shape.length, end_y = double{shape.y} + shape.dy * shape.length;
    shape.area =
        area_within(std::fmin(shape.x, end_x), std::fmin(shape.y, end_y), std::fmax(shape.x, end_x),
                    std::fmax(shape.y, end_y), double{shape.reach} + 0.01, picture_.width(), picture_.height());
    if (shape.area.left < shape.area.right) shapes_.push_back(prepared(shape));
  }
}

void MarkPainter::paint() {
  if (shapes_.empty()) return;
  row_begin_.assign(size_t{picture_.height()} + 2, 0);
  for (const PaintedShape& shape : shapes_) ++row_begin_[static_cast<size_t>(shape.mark.area.top) + 2];
  for (size_t row = 2; row < row_begin_.size(); ++row) row_begin_[row] += row_begin_[row - 1];
  by_top_.resize(shapes_.size());
  for (uint32_t s = 0; s < shapes_.size(); ++s)
    by_top_[row_begin_[static_cast<size_t>(shapes_[s].mark.area.top) + 1]++] = s;
  active_.clear();
  switch (bytes_per_pixel(picture_.pixel())) {
    case 1: return paint_rows<1>();
    case 3: return paint_rows<3>();
    default: return paint_rows<4>();
  }
}

// Takes in the marks that begin at the row, and leaves those that have ended; both lists are in order.
void MarkPainter::activate(int32_t row) {
  std::erase_if(active_, [&](uint32_t shape) { return shapes_[shape].mark.area.bottom <= row; });
  const auto at = static_cast<size_t>(row);
  const size_t old = active_.size();
  for (uint32_t i = row_begin_[at]; i < row_begin_[at + 1]; ++i) active_.push_back(by_top_[i]);
  if (old < active_.size() && old > 0 && active_[old - 1] > active_[old]) std::sort(active_.begin(), active_.end());
}

template <uint32_t kBytes>
void MarkPainter::paint_rows() {
  for (int32_t row = 0; row < static_cast<int32_t>(picture_.height()); ++row) {
    activate(row);
    if (active_.empty()) continue;
    row_.go_to(picture_.row(static_cast<uint32_t>(row)));
    for (size_t begin = 0, end = 0; begin < active_.size(); begin = end) {
      const PaintedShape& first = shapes_[active_[begin]];
      while (end < active_.size() && shapes_[active_[end]].stroke == first.stroke) ++end;
      if (end - begin == 1)
        paint_mark<kBytes>(first, row);
      else
        paint_stroke<kBytes>({active_.data() + begin, end - begin}, row);
    }
    row_.store<kBytes>();
  }
}

// Calls `use(column, line's coverage, inside's coverage)` with each column that the mark may cover, and notes those
// stretches.
template <uint32_t kBytes, class Use>
void MarkPainter::each_column(const PaintedShape& shape, int32_t row, const Use& use) {
  const MarkShape& mark = shape.mark;
  const bool soft = style_.soft;
  const float y = static_cast<float>(row) + 0.5f;
  const Stretches found = stretches(shape, y);
  for (uint32_t s = 0; s < found.count; ++s) {
    const Columns& columns = found.columns[s];
    row_.add(columns);
    // A picture's rows are far apart in memory. No processor foresees an access to the next one.
    const int32_t later = columns.begin + shape.moves;
    __builtin_prefetch(picture_.row(0) + (row + kRowsAhead) * static_cast<ptrdiff_t>(picture_.stride()) +
                           static_cast<ptrdiff_t>(later) * kBytes,
                       1);
    if (const int32_t count = columns.end - columns.begin; count >= kLongStretch) {
      const float x = static_cast<float>(columns.begin) + 0.5f;
      if (!mark.is_box()) cover_segment(mark, soft, x, y, count, line_.data());
      if (mark.is_box() && mark.has_line) cover_frame(mark, soft, x, y, count, line_.data());
      if (mark.has_fill) cover_inside(mark, x, y, count, fill_.data());
      for (int32_t i = 0; i < count; ++i)
        use(columns.begin + i, mark.has_line ? line_[i] : 0, mark.has_fill ? fill_[i] : 0);
    } else if (mark.is_box()) {
      for (int32_t x = columns.begin; x < columns.end; ++x) {
        const float distance = distance_to_box(mark, static_cast<float>(x) + 0.5f, y);
        use(x, mark.has_line ? line_coverage(mark, soft, fabsf(distance)) : 0,
            mark.has_fill ? fill_coverage(distance) : 0);
      }
    } else {
      for (int32_t x = columns.begin; x < columns.end; ++x)
        use(x, line_coverage(mark, soft, distance_to_segment(mark, static_cast<float>(x) + 0.5f, y)), 0.0f);
    }
  }
}

template <uint32_t kBytes>
void MarkPainter::paint_mark(const PaintedShape& shape, int32_t row) {
  const MarkShape& mark = shape.mark;
  const auto blend_line = row_.blender<kBytes>(mark.line_color), blend_fill = row_.blender<kBytes>(mark.fill_color);
  const float line_alpha = mark.line_color[3], fill_alpha = mark.fill_color[3];
  if (mark.runs) {
    each_column<kBytes>(shape, row, [&](int32_t x, float line, float) {
      float color[4];
      run_color(mark, static_cast<float>(x) + 0.5f, static_cast<float>(row) + 0.5f, color);
      if (line > 0) row_.blender<kBytes>(color)(x, line * color[3]);
    });
  } else if (!mark.has_fill) {
    each_column<kBytes>(shape, row, [=](int32_t x, float line, float) {
      if (line > 0) blend_line(x, line * line_alpha);
    });
  } else if (same_color(mark.line_color, mark.fill_color)) {
    each_column<kBytes>(shape, row, [=](int32_t x, float line, float fill) {
      if (line > 0 || fill > 0) blend_fill(x, larger(line, fill) * fill_alpha);
    });
  } else {
    each_column<kBytes>(shape, row, [=](int32_t x, float line, float fill) {
      if (fill > 0) blend_fill(x, fill * fill_alpha);
      if (line > 0) blend_line(x, line * line_alpha);
    });
  }
}

template <uint32_t kBytes>
void MarkPainter::paint_stroke(std::span<const uint32_t> pieces, int32_t row) {
  Columns all{INT32_MAX, INT32_MIN};
  const auto color_of_line = [&](const MarkShape& mark, int32_t x, float(&run)[4]) -> const float* {
    if (!mark.runs) return mark.line_color;
    run_color(mark, static_cast<float>(x) + 0.5f, static_cast<float>(row) + 0.5f, run);
    return run;
  };
  float run[4];
  for (const uint32_t piece : pieces) {
    const MarkShape& mark = shapes_[piece].mark;
    each_column<kBytes>(shapes_[piece], row, [&](int32_t x, float line, float fill) {
      all = {std::min(all.begin, x), std::max(all.end, x + 1)};
      if (line > 0) most_line_.take(x, line * color_of_line(mark, x, run)[3], piece);
      if (fill > 0) most_fill_.take(x, fill * mark.fill_color[3], piece);
    });
  }
  for (int32_t x = all.begin; x < all.end; ++x) {
    const float line = std::exchange(most_line_.alpha[x], 0.0f), fill = std::exchange(most_fill_.alpha[x], 0.0f);
    if (line <= 0 && fill <= 0) continue;
    const MarkShape& of_line = shapes_[line > 0 ? most_line_.piece[x] : pieces[0]].mark;
    const MarkShape& of_fill = shapes_[fill > 0 ? most_fill_.piece[x] : pieces[0]].mark;
    blend_stroke(color_of_line(of_line, x, run), line, of_fill.fill_color, fill,
                 [&](const float* color, float alpha) { row_.blender<kBytes>(color)(x, alpha); });
  }
}

Stretches MarkPainter::stretches(const PaintedShape& shape, float y) const {
  const MarkShape& mark = shape.mark;
  // Finds the columns whose middles lie between two places. `slack` is what rounding may take away.
  const float slack = 0.01f + 1e-6f * (std::fabs(mark.x) + mark.length + mark.across + mark.corner + shape.aside);
  const float most = static_cast<float>(mark.area.right) + 1;
  const auto column = [&](float place) { return static_cast<int32_t>(clamped(place, -1, most) + 1.5f) - 1; };
  const auto between = [&](float left, float right) {
    return Columns{std::max(column(left - slack), mark.area.left), std::min(column(right + slack), mark.area.right)};
  };
  Stretches found;
  if (!mark.is_box()) {
    const float middle = mark.x + (y - mark.y) * shape.slope;
    found.add(mark.dy == 0 ? Columns{mark.area.left, mark.area.right}
                           : between(middle - shape.aside, middle + shape.aside));
    return found;
  }
  if (mark.dy != 0) {
    found.add({mark.area.left, mark.area.right});
    return found;
  }
  const float off = std::fabs(y - mark.y);
  if (off <= shape.straight) return shape.sides;
  const float outer = half_width_at(mark, off, mark.reach);
  const float hole = mark.has_fill ? -1 : half_width_at(mark, off, -mark.reach) - 2 * slack;
  const Columns left = between(mark.x - outer, mark.x - hole), right = between(mark.x + hole, mark.x + outer);
  if (hole <= 0 || left.end > right.begin) {
    found.add(between(mark.x - outer, mark.x + outer));
  } else {
    found.add(left);
    found.add(right);
  }
  return found;
}

} // namespace millrace::handlers
