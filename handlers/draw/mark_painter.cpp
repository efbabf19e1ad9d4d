// Goes through a picture row by row, and in each row through the marks that meet it; see mark_painter.h.
//
// A mark looks only at the stretches of a row that it may cover, four columns at a time. A frame has two stretches, its
// sides. Four pixels are loaded when the first mark covers one of them. Their channels stay in single precision until
// the row's end, where they are rounded and stored.
#include "handlers/draw/mark_painter.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace millrace::handlers {

using namespace draw;

namespace {

constexpr int32_t kRowsAhead = 2; // the row whose bytes are fetched is so far below

// A segment that rises less along its length counts as level. Its rows are looked at in the whole width of its area.
constexpr float kLevel = 1e-4f;

// The middles of four columns.
FourFloats middles_from(int32_t column) { return static_cast<float>(column) + FourFloats{0.5f, 1.5f, 2.5f, 3.5f}; }

// The columns of an area whose middles lie between two places.
Columns columns_between(const PixelArea& area, float left, float right) {
  const auto begin = static_cast<float>(area.left), end = static_cast<float>(area.right);
  return {static_cast<int32_t>(clamped(left + 0.5f, begin, end)),
          static_cast<int32_t>(clamped(right + 0.5f, begin, end))};
}

// Rounding moves a side of a shape by less than this, in pixels.
float slack_of(const MarkShape& mark) {
  return 0.01f + 1e-6f * (std::fabs(mark.x) + mark.length + mark.across + mark.corner);
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
  most_line_.reserve(width + 2 * kFour);
  most_fill_.reserve(width + 2 * kFour);
  row_.reserve(width);
}

void MarkPainter::begin(const ImageSpan& picture, const MarkStyle& style) {
  picture_ = picture;
  style_ = style;
  stroke_count_ = 0;
  shapes_.clear();
  most_line_.begin(picture.width() + 2 * kFour);
  most_fill_.begin(picture.width() + 2 * kFour);
  row_.begin(picture.width(), style.adds);
}

PaintedShape MarkPainter::prepared(const MarkShape& mark) const {
  PaintedShape shape{mark, stroke_count_};
  if (mark.is_box()) {
    if (mark.dy != 0) return shape;
    shape.sides = box_stretches(shape, mark.y);
    shape.straight = mark.down + smaller(mark.corner - mark.reach, 0);
  } else if (std::fabs(mark.dy) < kLevel) {
    shape.aside = 4 * kMarkPlaceMax;
  } else {
    shape.slope = mark.dx / mark.dy;
    shape.aside = (mark.reach / std::fabs(mark.dy)) * (1 + 1e-6f) + slack_of(mark);
    shape.moves = static_cast<int32_t>(shape.slope * kRowsAhead);
    // Along the segment, the pixels of a row are so far from the place where the row crosses it.
    const float along = shape.aside * std::fabs(mark.dx) + slack_of(mark);
    const float one = mark.y + along * mark.dy, other = mark.y + (mark.length - along) * mark.dy;
    if (2 * along < mark.length) {
      shape.between_top = smaller(one, other);
      shape.between_bottom = larger(one, other);
    }
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

// Leaves the marks that have ended and takes in those that begin at the row. Both lists are in order.
void MarkPainter::activate(int32_t row) {
  std::erase_if(active_, [&](uint32_t shape) { return shapes_[shape].mark.area.bottom <= row; });
  size_t left = active_.size();
  const uint32_t first = row_begin_[static_cast<size_t>(row)];
  uint32_t next = row_begin_[static_cast<size_t>(row) + 1];
  active_.resize(left + next - first);
  for (size_t to = active_.size(); next > first; --to)
    active_[to - 1] = left > 0 && active_[left - 1] > by_top_[next - 1] ? active_[--left] : by_top_[--next];
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

// Calls `use(column, line's coverages, inside's coverages)` for each four columns of which the mark may cover one.
template <uint32_t kBytes, class Use>
void MarkPainter::each_four(const PaintedShape& shape, int32_t row, const Use& use) {
  const MarkShape& mark = shape.mark;
  const bool soft = style_.soft;
  const float y = static_cast<float>(row) + 0.5f;
  // A picture's rows are far apart in memory. No processor foresees an access to the next one.
  const uint8_t* const later = picture_.row(0) + (row + kRowsAhead) * static_cast<ptrdiff_t>(picture_.stride());
  if (!mark.is_box()) {
    const float middle = mark.x + (y - mark.y) * shape.slope;
    const Columns columns = columns_between(mark.area, middle - shape.aside, middle + shape.aside);
    __builtin_prefetch(later + ptrdiff_t{columns.begin + shape.moves} * kBytes, 1);
    __builtin_prefetch(later + ptrdiff_t{columns.end + shape.moves} * kBytes, 1);
    const bool is_between = y >= shape.between_top && y <= shape.between_bottom;
    for (int32_t column = columns.begin; column < columns.end; column += kFour) {
      const FourFloats x = middles_from(column);
      const FourFloats line = line_coverage(
          mark, soft, is_between ? absolute(distance_aside(mark, x, y)) : distance_to_segment(mark, x, y));
      if (any_positive(line)) use(column, line, FourFloats{});
    }
    return;
  }
  const Stretches found = box_stretches(shape, y);
  for (uint32_t s = 0; s < found.count; ++s) {
    __builtin_prefetch(later + ptrdiff_t{found.columns[s].begin} * kBytes, 1);
    for (int32_t column = found.columns[s].begin; column < found.columns[s].end; column += kFour) {
      const FourFloats distance = distance_to_box(mark, middles_from(column), y);
      const FourFloats line = mark.has_line ? line_coverage(mark, soft, absolute(distance)) : FourFloats{};
      const FourFloats fill = mark.has_fill ? fill_coverage(distance) : FourFloats{};
      if (any_positive(line) || any_positive(fill)) use(column, line, fill);
    }
  }
}

template <uint32_t kBytes>
void MarkPainter::paint_mark(const PaintedShape& shape, int32_t row) {
  const MarkShape& mark = shape.mark;
  const Channels line_ink = ink_of_layer(mark.line_color), fill_ink = ink_of_layer(mark.fill_color);
  const float line_alpha = mark.line_color[3], fill_alpha = mark.fill_color[3];
  if (mark.runs) {
    each_four<kBytes>(shape, row, [&](int32_t column, const FourFloats& line, const FourFloats&) {
      const FourFloats shares = share_of_segment(mark, middles_from(column), static_cast<float>(row) + 0.5f);
      const FourFloats alphas = line * (line_alpha + (fill_alpha - line_alpha) * shares);
      row_.fetch<kBytes>(column);
#pragma GCC unroll 4
      for (int32_t i = 0; i < kFour; ++i)
        row_.blend_one(column + i, line_ink + (fill_ink - line_ink) * shares[i], alphas[i]);
    });
  } else if (!mark.has_fill) {
    each_four<kBytes>(shape, row, [=, this](int32_t column, const FourFloats& line, const FourFloats&) {
      row_.blend<kBytes>(column, line_ink, line * line_alpha);
    });
  } else {
    const bool is_one = same_color(mark.line_color, mark.fill_color);
    each_four<kBytes>(shape, row, [=, this](int32_t column, const FourFloats& line, const FourFloats& fill) {
      row_.blend<kBytes>(column, fill_ink, (is_one ? larger(line, fill) : fill) * fill_alpha);
      if (!is_one && any_positive(line)) row_.blend<kBytes>(column, line_ink, line * line_alpha);
    });
  }
}

template <uint32_t kBytes>
void MarkPainter::paint_stroke(std::span<const uint32_t> pieces, int32_t row) {
  const float y = static_cast<float>(row) + 0.5f;
  Columns all{INT32_MAX, INT32_MIN};
  const MarkShape& first = shapes_[pieces[0]].mark;
  bool is_plain = true; // all lines have one colour, and there are no insides
  for (const uint32_t piece : pieces) {
    const MarkShape& mark = shapes_[piece].mark;
    is_plain = is_plain && !mark.runs && !mark.has_fill && same_color(mark.line_color, first.line_color);
    each_four<kBytes>(shapes_[piece], row, [&](int32_t column, const FourFloats& line, const FourFloats& fill) {
      all = {std::min(all.begin, column), std::max(all.end, column + kFour)};
      FourFloats alphas = FourFloats{} + mark.line_color[3];
      if (mark.runs)
        alphas += (mark.fill_color[3] - mark.line_color[3]) * share_of_segment(mark, middles_from(column), y);
      most_line_.take(column, line * alphas, piece);
      if (mark.has_fill) most_fill_.take(column, fill * mark.fill_color[3], piece);
    });
  }
  const auto width = static_cast<int32_t>(picture_.width());
  for (int32_t column = all.begin; column < all.end; column += kFour) {
    const FourFloats lines = most_line_.leave(column), fills = most_fill_.leave(column);
    if (column >= width || (!any_positive(lines) && !any_positive(fills))) continue;
    if (is_plain) {
      row_.blend<kBytes>(column, ink_of_layer(first.line_color), lines);
      continue;
    }
    row_.fetch<kBytes>(column);
    for (int32_t i = 0; i < kFour; ++i) {
      if (lines[i] <= 0 && fills[i] <= 0) continue;
      const MarkShape& of_line = lines[i] > 0 ? shapes_[most_line_.piece(column + i)].mark : first;
      const MarkShape& of_fill = fills[i] > 0 ? shapes_[most_fill_.piece(column + i)].mark : first;
      float run[4];
      if (of_line.runs) run_color(of_line, static_cast<float>(column + i) + 0.5f, y, run);
      blend_stroke(of_line.runs ? run : of_line.line_color, lines[i], of_fill.fill_color, fills[i],
                   [&](const float* color, float alpha) { row_.blend_one(column + i, ink_of_layer(color), alpha); });
    }
  }
}

Stretches MarkPainter::box_stretches(const PaintedShape& shape, float y) {
  const MarkShape& mark = shape.mark;
  Stretches found;
  if (mark.dy != 0) {
    found.add({mark.area.left, mark.area.right});
    return found;
  }
  const float off = std::fabs(y - mark.y);
  if (off <= shape.straight) return shape.sides;
  const float slack = slack_of(mark);
  const auto between = [&](float left, float right) { return columns_between(mark.area, left - slack, right + slack); };
  const float outer = half_width_at(mark, off, mark.reach);
  const float hole = mark.has_fill ? -1 : half_width_at(mark, off, -mark.reach) - 2 * slack;
  const Columns left = between(mark.x - outer, mark.x - hole), right = between(mark.x + hole, mark.x + outer);
  // A side is painted in fours of columns. The last one must not reach the other side, which would be blended twice.
  const int32_t left_end = left.begin + (left.end - left.begin + kFour - 1) / kFour * kFour;
  if (hole <= 0 || left_end > right.begin) {
    found.add(between(mark.x - outer, mark.x + outer));
  } else {
    found.add(left);
    found.add(right);
  }
  return found;
}

} // namespace millrace::handlers
