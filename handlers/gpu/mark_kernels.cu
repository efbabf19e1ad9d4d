// Kernels of draw.marks, marks.boxes, marks.dots, marks.lines and test.points.
//
// draw.marks is two kernels. The first computes the shape of each mark once. In the second each block has a tile of the
// picture. Its threads look at a few marks each and keep those that touch the tile, in order, in shared memory. Then
// they find which patches of the tile each of them touches. The warps share those patches out, and go through the marks
// of a patch from the first to the last. Its channels stay in registers until its last mark, so that they are rounded
// once. A patch that nothing touches is neither read nor written.
#include "handlers/gpu/mark_kernels.h"

#include <algorithm>

#include "handlers/gpu/kept_count.cuh"
#include "handlers/gpu/tiles.cuh"

namespace millrace::handlers::gpu {

using namespace draw;

namespace {

// ---- makers -------------------------------------------------------------------------------------------------------

constexpr uint32_t kMakerThreads = 128;

// One thread for each record that there may be.
LaunchShape for_records(void* stream, uint64_t most, uint32_t threads = kMakerThreads) {
  const auto blocks = static_cast<unsigned>((most + threads - 1) / threads);
  return {std::max(blocks, 1u), threads, 0, static_cast<cudaStream_t>(stream)};
}

__device__ uint32_t record_index() { return blockIdx.x * blockDim.x + threadIdx.x; }

__global__ void make_boxes(DeviceList<Box> boxes, DeviceList<Point> points, const __grid_constant__ BoxMarkStyle style,
                           MadeList<Mark> to) {
  await_inputs();
  const uint32_t number = record_index(), box_count = boxes.size(), count = box_count + points.size();
  const uint32_t each = marks_of_box(style);
  if (number == 0) *to.count = uint64_t{count} * each;
  if (number >= count) return;
  Mark* const marks = to.records + size_t{number} * each;
  if (number < box_count) return make_box_marks(boxes.records[number], 0, number, style, marks);
  const Point point = points.records[number - box_count];
  make_box_marks(box_around(point), point.age, number, style, marks);
}

__global__ void make_dots(DeviceList<Point> points, const __grid_constant__ DotStyle style, MadeList<Mark> to) {
  await_inputs();
  const uint32_t number = record_index(), count = points.size(), each = marks_of_dot(style);
  if (number == 0) *to.count = uint64_t{count} * each;
  if (number < count) make_dot_marks(points.records[number], number, style, to.records + size_t{number} * each);
}

__global__ void make_lines(DeviceList<Link> links, DeviceList<Point> points, const __grid_constant__ LineStyle style,
                           MadeList<Mark> to) {
  await_inputs();
  const uint32_t number = record_index(), point_count = points.size(), count = point_count > 0 ? links.size() : 0;
  if (number == 0) *to.count = count;
  if (number < count) make_line_mark(links.records[number], points.records, point_count, style, to.records[number]);
}

__global__ void make_points(MovingPoints points, const mr_device_tick* tick, uint32_t count, MadeList<Point> to) {
  await_inputs();
  const uint32_t number = record_index();
  if (number == 0) *to.count = count;
  if (number < count) to.records[number] = point_at(points, tick->index, number);
}

const char* boxes(void* stream, const DeviceList<Box>& boxes, const DeviceList<Point>& points,
                  const BoxMarkStyle& style, const MadeList<Mark>& marks) {
  launch(for_records(stream, uint64_t{boxes.most} + points.most), make_boxes, boxes, points, style, marks);
  return launched();
}

const char* dots(void* stream, const DeviceList<Point>& points, const DotStyle& style, const MadeList<Mark>& marks) {
  launch(for_records(stream, points.most), make_dots, points, style, marks);
  return launched();
}

const char* lines(void* stream, const DeviceList<Link>& links, const DeviceList<Point>& points, const LineStyle& style,
                  const MadeList<Mark>& marks) {
  launch(for_records(stream, links.most), make_lines, links, points, style, marks);
  return launched();
}

const char* moving_points(void* stream, const MovingPoints& points, const mr_device_tick* tick, uint32_t count,
                          const MadeList<Point>& made) {
  launch(for_records(stream, count), make_points, points, tick, count, made);
  return launched();
}

// ---- shapes -------------------------------------------------------------------------------------------------------

// True if a sound mark is the first of its stroke. Marks that are skipped do not part a stroke.
__device__ bool begins_stroke(const Mark* marks, uint32_t index) {
  if (marks[index].stroke < 0) return true;
  for (uint32_t before = index; before-- > 0;)
    if (is_sound(marks[before])) return marks[before].stroke != marks[index].stroke;
  return true;
}

// Blocks of one y have one list.
__global__ void prepare_marks(const __grid_constant__ MarkLists lists, MarkStyle style, uint32_t width, uint32_t height,
                              PreparedMarks to) {
  await_inputs();
  uint32_t first = 0;
  for (uint32_t list = 0; list < blockIdx.y; ++list) first += lists.lists[list].most;
  const DeviceList<Mark>& from = lists.lists[blockIdx.y];
  const uint32_t index = record_index();
  if (index >= from.size()) return;
  const Mark mark = from.records[index];
  const bool sound = is_sound(mark);
  if (!sound) atomicAdd(reinterpret_cast<unsigned long long*>(to.skipped), 1ull);
  const MarkShape shape = sound ? shape_of(mark, style, width, height) : MarkShape{};
  uint8_t stroke = 0;
  if (sound && begins_stroke(from.records, index)) stroke |= kBeginsStroke;
  if (sound && mark.stroke < 0 && !shape.runs) stroke |= kIsAlone;
  to.shapes[first + index] = shape;
  to.areas[first + index] = shape.area;
  to.strokes[first + index] = stroke;
}

// ---- choosing -----------------------------------------------------------------------------------------------------

constexpr int32_t kTile = 64;      // pixels, both ways
constexpr uint32_t kKeptMax = 256; // marks of a tile in shared memory
// A tile keeps all marks of a list of at most this size whose areas meet its own, if there is room for them: to drop a
// mark patch by patch costs less than to look twice at each. In a longer list too many areas meet.
constexpr uint32_t kByAreaMost = 2'048;
constexpr uint32_t kAtOnceFirst = 2; // marks that a thread looks at in one step, as long as all of a tile may fit
constexpr int32_t kPatch = 8;        // a warp paints this many pixels at a time, both ways
constexpr int32_t kRowsOfThread = 2; // pixels of a thread in a patch
constexpr int32_t kPatchesAcross = kTile / kPatch, kPatches = kPatchesAcross * kPatchesAcross;
constexpr float kPatchRadius = 4.9498f; // from the middle of a patch to the furthest middle of a pixel
constexpr uint32_t kBlocksOfProcessor = 4;
static_assert(kKeptMax >= kThreads && kPatch * kPatch == 32 * kRowsOfThread && kPatches == 64);

// Some of the pieces of a curve.
struct PieceRange {
  uint16_t first, end;
};

// The marks that a block has kept.
struct KeptMarks {
  MarkShape shapes[kKeptMax];
  uint32_t places[kKeptMax]; // in the prepared marks
  // Numbers of strokes, which rise from mark to mark, times 2; plus 1 for a stroke that is sure to be one mark.
  uint32_t strokes[kKeptMax];
  PieceRange pieces[kKeptMax]; // a curve's that may cover a pixel of the tile
};

// The patches of a tile, and the kept marks that touch each, as bits.
struct TouchedPatches {
  uint32_t marks[kPatches][kKeptMax / 32];
  uint32_t patches[kPatches]; // those that any mark touches
  uint32_t count;
};

// How far a block has looked at the marks; the same in all its threads.
struct Progress {
  uint32_t list = 0, index = 0; // the next mark's
  uint32_t first = 0;           // place of the list's first mark
  uint32_t strokes = 0;         // that have begun

  // Goes on by so many marks of a list of this size.
  __device__ void pass(uint32_t marks, uint32_t size, const MarkLists& lists) {
    index += marks;
    if (index < size) return;
    first += lists.lists[list++].most;
    index = 0;
  }
};

// Two counts in one word.
__device__ uint32_t two_counts(uint32_t low, uint32_t high) { return low | high << 16; }

// All threads of a block call it, and each looks at kAtOnce marks in one step. Keeps the marks that touch the tile, or
// those whose areas meet its own (`by_area`; in short lists), and returns how many. Ends before a step that there is no
// room for; with one mark at once there is room for any.
template <uint32_t kAtOnce>
__device__ uint32_t keep_marks(const MarkLists& lists, const PreparedMarks& marks, const PixelArea& tile, bool by_area,
                               Progress& at, KeptMarks& kept) {
  __shared__ uint32_t of_warp[kWarps][kAtOnce]; // counts of marks that touch the tile, and of strokes that begin
  const uint32_t warp = threadIdx.y, lane = threadIdx.x, below = (1u << lane) - 1;
  uint32_t count = 0;
  while (at.list < lists.count) {
    const DeviceList<Mark>& list = lists.lists[at.list];
    const uint32_t thread = at.index + thread_index();
    PixelArea areas[kAtOnce];
    uint8_t strokes[kAtOnce];
    MR_UNROLL
    for (uint32_t n = 0; n < kAtOnce; ++n) { // also beyond the list's end, which is not known yet
      const uint32_t index = thread + n * kThreads;
      areas[n] = index < list.most ? marks.areas[at.first + index] : PixelArea{};
      strokes[n] = index < list.most ? marks.strokes[at.first + index] : 0;
    }
    const uint32_t size = list.size(), rounds = min(kAtOnce, (size - at.index + kThreads - 1) / kThreads);
    const bool is_enough = by_area && size <= kByAreaMost;
    uint32_t seen = 0; // a bit for each round
    bool any_begins = false;
    MR_UNROLL
    for (uint32_t n = 0; n < kAtOnce; ++n) {
      if (n >= rounds) break;
      const uint32_t index = thread + n * kThreads;
      if (index >= size) strokes[n] = 0;
      if (index < size && areas[n].meets(tile) && (is_enough || touches(marks.shapes[at.first + index], tile)))
        seen |= 1u << n;
      any_begins = any_begins || (strokes[n] & kBeginsStroke);
    }
    if (!__syncthreads_or(seen != 0)) {                   // as in most tiles
      at.strokes += __syncthreads_or(any_begins) ? 1 : 0; // a number that is not that of a stroke before
      at.pass(kAtOnce * kThreads, size, lists);
      continue;
    }
    uint32_t seen_votes[kAtOnce], stroke_votes[kAtOnce];
    MR_UNROLL
    for (uint32_t n = 0; n < kAtOnce; ++n) {
      if (n >= rounds) break;
      seen_votes[n] = __ballot_sync(0xffffffffu, seen >> n & 1);
      stroke_votes[n] = __ballot_sync(0xffffffffu, strokes[n] & kBeginsStroke);
      if (lane == n) of_warp[warp][n] = two_counts(__popc(seen_votes[n]), __popc(stroke_votes[n]));
    }
    __syncthreads();
    uint32_t all = two_counts(count, 0); // those before, of this step too
    uint32_t before_of[kAtOnce];
    MR_UNROLL
    for (uint32_t n = 0; n < kAtOnce; ++n) {
      if (n >= rounds) break;
      before_of[n] = all;
      MR_UNROLL
      for (uint32_t w = 0; w < kWarps; ++w) {
        before_of[n] += w < warp ? of_warp[w][n] : 0;
        all += of_warp[w][n];
      }
    }
    __syncthreads(); // before the next step writes
    if ((all & 0xffff) > kKeptMax) return count;
    MR_UNROLL
    for (uint32_t n = 0; n < kAtOnce; ++n) {
      if (!(seen >> n & 1)) continue;
      const uint32_t place = at.first + thread + n * kThreads;
      const uint32_t k = (before_of[n] & 0xffff) + __popc(seen_votes[n] & below);
      const uint32_t begun = (before_of[n] >> 16) + __popc(stroke_votes[n] & below) + (strokes[n] & kBeginsStroke);
      kept.shapes[k] = marks.shapes[place];
      kept.places[k] = place;
      kept.pieces[k] = {0, static_cast<uint16_t>(kept.shapes[k].pieces())};
      kept.strokes[k] = (at.strokes + begun) * 2 + (strokes[n] & kIsAlone ? 1 : 0);
    }
    count = all & 0xffff;
    at.strokes += all >> 16;
    at.pass(kAtOnce * kThreads, size, lists);
  }
  return count;
}

// ---- painting -----------------------------------------------------------------------------------------------------

// A place of a piece of a curve has the piece's number beside the place of the mark.
constexpr uint32_t kPieceShift = 19;
static_assert(kMarksMax * kMarkListsMax <= 1u << kPieceShift);

// True if a shape may cover a pixel of the patch that begins here.
__device__ bool may_cover_patch(const MarkShape& shape, int32_t left, int32_t top) {
  constexpr float kMiddle = 0.5f * kPatch, kFurthest = kMiddle - 0.5f;
  const float x = static_cast<float>(left) + kMiddle, y = static_cast<float>(top) + kMiddle;
  if (shape.kind != PaintedKind::segment) return may_cover(shape, x, y, kPatchRadius);
  // Along a segment and aside, no middle of a pixel is further from the patch's. The rest is for rounding.
  const float near = shape.reach + kFurthest * (fabsf(shape.dx) + fabsf(shape.dy)) + 0.01f +
                     1e-6f * (fabsf(x - shape.x) + fabsf(y - shape.y) + shape.length);
  const float along = distance_along(shape, x, y);
  return fabsf(distance_aside(shape, x, y)) <= near && along >= -near && along <= shape.length + near;
}

// The pixels of a patch that one thread has, while marks are painted onto them. kCurves: some of them may be curves.
template <uint32_t kBytes, bool kCurves>
class PatchPixels {
 public:
  __device__ PatchPixels(const DevicePicture& picture, const PixelArea& patch, const MarkStyle& style,
                         const PreparedMarks& marks)
      : style_(style),
        marks_(marks),
        x_(patch.left + static_cast<int32_t>(threadIdx.x) % kPatch),
        y_(patch.top + static_cast<int32_t>(threadIdx.x) / kPatch),
        middle_x_(static_cast<float>(x_) + 0.5f),
        middle_y_(static_cast<float>(y_) + 0.5f),
        inside_((patch.holds(x_, y_) ? 1u : 0u) | (patch.holds(x_, y_ + kRowStep) ? 2u : 0u)) {
    uchar4 bytes[kRowsOfThread] = {};
    MR_UNROLL
    for (int32_t row = 0; row < kRowsOfThread; ++row) {
      if (!(inside_ >> row & 1)) continue;
      const uint8_t* const from = pixel(picture, row);
      if constexpr (kBytes == 4) bytes[row] = *reinterpret_cast<const uchar4*>(from);
      if constexpr (kBytes < 4) bytes[row].x = from[0];
      if constexpr (kBytes == 3) bytes[row].y = from[1];
      if constexpr (kBytes == 3) bytes[row].z = from[2];
    }
    MR_UNROLL
    for (int32_t row = 0; row < kRowsOfThread; ++row) {
      const uint8_t channels[] = {bytes[row].x, bytes[row].y, bytes[row].z, bytes[row].w};
      MR_UNROLL
      for (uint32_t c = 0; c < kBytes; ++c) channels_[row][c] = channels[c];
    }
  }

  // Called by all threads of a warp, for the kept marks in order.
  __device__ void add(const KeptMarks& kept, uint32_t k) {
    const MarkShape& mark = kept.shapes[k];
    const uint32_t stroke = kept.strokes[k], place = kept.places[k];
    if (stroke != stroke_) blend_last_stroke();
    stroke_ = stroke;
    if (stroke & 1)
      blend_alone(mark, kept.pieces[k]);
    else if (kCurves && mark.is_curve())
      each_piece(mark, kept.pieces[k],
                 [&](const MarkShape& piece, uint32_t number) { take_piece(piece, place | number << kPieceShift); });
    else
      take_piece(mark, place);
  }

  __device__ void store(const DevicePicture& picture) {
    blend_last_stroke();
    MR_UNROLL
    for (int32_t row = 0; row < kRowsOfThread; ++row)
      if ((changed_ & inside_) >> row & 1) store_pixel(channels_[row], pixel(picture, row));
  }

 private:
  static constexpr int32_t kRowStep = 32 / kPatch; // rows from one pixel of a thread to the next

  __device__ uint8_t* pixel(const DevicePicture& picture, int32_t row) const {
    const mr_plane& plane = picture.image.planes[0];
    return picture.data + plane.offset + static_cast<size_t>(y_ + row * kRowStep) * plane.stride +
           static_cast<size_t>(x_) * kBytes;
  }

  // The largest coverage times alpha of a stroke's pieces, and the piece that has it.
  struct Most {
    float alpha = 0;
    uint32_t place = 0;
    __device__ void take(float found, uint32_t piece) {
      if (found > alpha) *this = {found, piece};
    }
  };
  // Numbers of the pixels of one thread. They are computed together, since a thread waits for each by itself.
  using Rows = float[kRowsOfThread];

  __device__ float middle_y(int32_t row) const { return middle_y_ + static_cast<float>(row * kRowStep); }

  __device__ void line_coverages(const MarkShape& mark, const Rows& distances, Rows& coverages) const {
    if (style_.soft) {
      MR_UNROLL
      for (int32_t row = 0; row < kRowsOfThread; ++row) coverages[row] = line_coverage(mark, true, distances[row]);
    } else {
      MR_UNROLL
      for (int32_t row = 0; row < kRowsOfThread; ++row) coverages[row] = line_coverage(mark, false, distances[row]);
    }
  }
  __device__ void segment_alphas(const MarkShape& mark, Rows& line) const {
    Rows distances;
    MR_UNROLL
    for (int32_t row = 0; row < kRowsOfThread; ++row)
      distances[row] = distance_to_segment(mark, middle_x_, middle_y(row));
    line_coverages(mark, distances, line);
    const float from = mark.line_color[3], run = mark.runs ? mark.fill_color[3] - from : 0;
    MR_UNROLL
    for (int32_t row = 0; row < kRowsOfThread; ++row)
      line[row] *= mark.runs ? from + run * share_of_segment(mark, middle_x_, middle_y(row)) : from;
  }
  // A box that has no line or no inside has 0 there.
  __device__ void box_alphas(const MarkShape& mark, Rows& line, Rows& fill) const {
    Rows distances, from_path;
    MR_UNROLL
    for (int32_t row = 0; row < kRowsOfThread; ++row) {
      distances[row] = distance_to_box(mark, middle_x_, middle_y(row));
      from_path[row] = fabsf(distances[row]);
      line[row] = fill[row] = 0;
    }
    if (mark.has_line) {
      line_coverages(mark, from_path, line);
      MR_UNROLL
      for (int32_t row = 0; row < kRowsOfThread; ++row) line[row] *= mark.line_color[3];
    }
    if (!mark.has_fill) return;
    MR_UNROLL
    for (int32_t row = 0; row < kRowsOfThread; ++row) fill[row] = fill_coverage(distances[row]) * mark.fill_color[3];
  }

  // Calls use(piece, number) for the pieces of a curve that may cover a pixel of the patch. Each thread of the warp
  // looks at one. All of them use those that are found.
  template <class Use>
  __device__ void each_piece(const MarkShape& curve, PieceRange pieces, const Use& use) const {
    const auto lane = static_cast<int32_t>(threadIdx.x);
    for (uint32_t begin = pieces.first; begin < pieces.end; begin += 32) {
      const uint32_t own = begin + threadIdx.x;
      const MarkShape piece = piece_of(curve, own);
      const bool is_near = own < pieces.end && may_cover_patch(piece, x_ - lane % kPatch, y_ - lane / kPatch);
      for (uint32_t votes = __ballot_sync(0xffffffffu, is_near); votes != 0; votes &= votes - 1) {
        const int from = __ffs(static_cast<int>(votes)) - 1;
        MarkShape found = piece;
        found.x = __shfl_sync(0xffffffffu, piece.x, from);
        found.y = __shfl_sync(0xffffffffu, piece.y, from);
        found.dx = __shfl_sync(0xffffffffu, piece.dx, from);
        found.dy = __shfl_sync(0xffffffffu, piece.dy, from);
        found.length = __shfl_sync(0xffffffffu, piece.length, from);
        if (curve.runs) {
          found.line_color[3] = __shfl_sync(0xffffffffu, piece.line_color[3], from);
          found.fill_color[3] = __shfl_sync(0xffffffffu, piece.fill_color[3], from);
        }
        use(found, begin + static_cast<uint32_t>(from));
      }
    }
  }

  __device__ void blend_rows(const float* color, const Rows& alphas) {
    MR_UNROLL
    for (int32_t row = 0; row < kRowsOfThread; ++row) blend(row, color, alphas[row]);
  }
  // Blends a stroke of one mark. All threads do the same, also where it covers nothing, which costs less than branches.
  __device__ void blend_alone(const MarkShape& mark, PieceRange pieces) {
    Rows line = {}, fill;
    if (kCurves && mark.is_curve()) {
      each_piece(mark, pieces, [&](const MarkShape& piece, uint32_t) {
        Rows its;
        segment_alphas(piece, its);
        MR_UNROLL
        for (int32_t row = 0; row < kRowsOfThread; ++row) line[row] = draw::larger(line[row], its[row]);
      });
      return blend_rows(mark.line_color, line);
    }
    if (!mark.is_box()) {
      segment_alphas(mark, line);
      return blend_rows(mark.line_color, line);
    }
    box_alphas(mark, line, fill);
    if (mark.has_fill && mark.has_line && same_color(mark.line_color, mark.fill_color)) {
      MR_UNROLL
      for (int32_t row = 0; row < kRowsOfThread; ++row) line[row] = draw::larger(line[row], fill[row]);
    } else if (mark.has_fill) {
      blend_rows(mark.fill_color, fill);
    }
    if (mark.has_line) blend_rows(mark.line_color, line);
  }

  __device__ void take_piece(const MarkShape& mark, uint32_t place) {
    pending_ = true;
    Rows line, fill;
    if (mark.is_box()) {
      box_alphas(mark, line, fill);
      MR_UNROLL
      for (int32_t row = 0; row < kRowsOfThread; ++row) fill_[row].take(fill[row], place);
    } else {
      segment_alphas(mark, line);
    }
    MR_UNROLL
    for (int32_t row = 0; row < kRowsOfThread; ++row) line_[row].take(line[row], place);
  }

  __device__ void blend_last_stroke() {
    if (!pending_) return;
    pending_ = false;
    MR_UNROLL
    for (int32_t row = 0; row < kRowsOfThread; ++row) {
      const Most line = line_[row], fill = fill_[row];
      line_[row].alpha = fill_[row].alpha = 0;
      if (line.alpha <= 0 && fill.alpha <= 0) continue;
      const MarkShape of_line = shape_at(line.place);
      const MarkShape& of_fill = marks_.shapes[fill.place];
      float color[4] = {of_line.line_color[0], of_line.line_color[1], of_line.line_color[2], of_line.line_color[3]};
      if (of_line.runs) run_color(of_line, middle_x_, middle_y(row), color);
      blend_stroke(color, line.alpha, of_fill.fill_color, fill.alpha,
                   [&](const float* piece, float alpha) { blend(row, piece, alpha); });
    }
  }

  __device__ MarkShape shape_at(uint32_t place) const {
    if (!kCurves) return marks_.shapes[place];
    const MarkShape& mark = marks_.shapes[place & ((1u << kPieceShift) - 1)];
    return mark.is_curve() ? piece_of(mark, place >> kPieceShift) : mark;
  }

  __device__ void blend(int32_t row, const float* color, float alpha) {
    if (alpha > 0) changed_ |= 1u << row;
    const float kept = style_.adds ? 0 : 1;
    MR_UNROLL
    for (uint32_t c = 0; c < kBytes; ++c) {
      float& channel = channels_[row][c];
      channel += c == 3 ? (255 - channel) * alpha : (color[c] - kept * channel) * alpha;
    }
  }

  __device__ static uint8_t rounded_to_byte(float value) { return static_cast<uint8_t>(clamped(value, 0, 255) + 0.5f); }
  __device__ static void store_pixel(const float (&channels)[kBytes], uint8_t* to) {
    if constexpr (kBytes == 4)
      *reinterpret_cast<uchar4*>(to) = {rounded_to_byte(channels[0]), rounded_to_byte(channels[1]),
                                        rounded_to_byte(channels[2]), rounded_to_byte(channels[3])};
    else
      for (uint32_t c = 0; c < kBytes; ++c) to[c] = rounded_to_byte(channels[c]);
  }

  const MarkStyle& style_;
  const PreparedMarks& marks_;
  const int32_t x_, y_; // the first pixel
  const float middle_x_, middle_y_;
  const uint32_t inside_; // a bit for each pixel that is in the picture
  uint32_t stroke_ = 0;   // that of the last mark
  uint32_t changed_ = 0;  // a bit for each row
  bool pending_ = false;  // the last stroke is not blended yet
  float channels_[kRowsOfThread][kBytes];
  Most line_[kRowsOfThread], fill_[kRowsOfThread];
};

__device__ PixelArea clipped(int32_t left, int32_t top, int32_t width, int32_t height, const PixelArea& by) {
  return {left, top, min(left + width, by.right), min(top + height, by.bottom)};
}
__device__ bool is_empty(const PixelArea& area) { return area.left >= area.right || area.top >= area.bottom; }

__device__ PixelArea patch_of(const PixelArea& tile, uint32_t patch) {
  const auto n = static_cast<int32_t>(patch);
  return clipped(tile.left + n % kPatchesAcross * kPatch, tile.top + n / kPatchesAcross * kPatch, kPatch, kPatch, tile);
}
__device__ bool touches_patch(const MarkShape& mark, const PixelArea& patch) {
  return mark.area.meets(patch) && may_cover_patch(mark, patch.left, patch.top);
}

// All threads of a warp call it. Each looks at a few pieces of a curve, and at the patches around each. Returns the
// pieces that touch any patch.
__device__ PieceRange find_patches_of_pieces(const MarkShape& curve, uint32_t k, const PixelArea& tile,
                                             TouchedPatches& touched) {
  uint32_t first = curve.pieces(), end = 0;
  for (uint32_t p = threadIdx.x; p < curve.pieces(); p += 32) {
    const MarkShape piece = piece_of(curve, p);
    const float end_x = piece.x + piece.dx * piece.length, end_y = piece.y + piece.dy * piece.length;
    const float reach = piece.reach + 0.5f; // to the middle of a pixel, and for rounding
    const auto patch_at = [](float place, int32_t begin) {
      return static_cast<int32_t>(clamped((place - static_cast<float>(begin)) / kPatch, -1, kPatchesAcross));
    };
    const int32_t left = max(patch_at(fminf(piece.x, end_x) - reach, tile.left), 0);
    const int32_t right = min(patch_at(fmaxf(piece.x, end_x) + reach, tile.left), kPatchesAcross - 1);
    const int32_t top = max(patch_at(fminf(piece.y, end_y) - reach, tile.top), 0);
    const int32_t bottom = min(patch_at(fmaxf(piece.y, end_y) + reach, tile.top), kPatchesAcross - 1);
    for (int32_t row = top; row <= bottom; ++row)
      for (int32_t column = left; column <= right; ++column) {
        const uint32_t patch = static_cast<uint32_t>(row * kPatchesAcross + column);
        const PixelArea area = patch_of(tile, patch);
        if (is_empty(area) || !may_cover_patch(piece, area.left, area.top)) continue;
        atomicOr(&touched.marks[patch][k / 32], 1u << k % 32);
        first = min(first, p);
        end = p + 1;
      }
  }
  return {static_cast<uint16_t>(__reduce_min_sync(0xffffffffu, first)),
          static_cast<uint16_t>(__reduce_max_sync(0xffffffffu, end))};
}

// All threads of a block call it. Each looks at one patch and at every fourth mark.
template <bool kCurves>
__device__ void find_patches(KeptMarks& kept, uint32_t count, const PixelArea& tile, TouchedPatches& touched) {
  const uint32_t groups = (count + 31) / 32, thread = thread_index(), patch = thread % kPatches;
  for (uint32_t i = thread; i < kPatches * groups; i += kThreads) touched.marks[i % kPatches][i / kPatches] = 0;
  __syncthreads();
  const PixelArea area = patch_of(tile, patch);
  if (!is_empty(area))
    for (uint32_t k = thread / kPatches; k < count; k += kThreads / kPatches)
      if (!kept.shapes[k].is_curve() && touches_patch(kept.shapes[k], area))
        atomicOr(&touched.marks[patch][k / 32], 1u << k % 32);
  if (kCurves)
    for (uint32_t k = threadIdx.y; k < count; k += kWarps) { // a warp for each
      if (!kept.shapes[k].is_curve()) continue;
      const PieceRange pieces = find_patches_of_pieces(kept.shapes[k], k, tile, touched);
      if (threadIdx.x == 0) kept.pieces[k] = pieces;
    }
  __syncthreads();
  if (threadIdx.y == 0) { // a warp, each thread for two patches
    uint32_t before = 0;
    for (uint32_t p = threadIdx.x; p < kPatches; p += 32) {
      uint32_t any = 0;
      for (uint32_t group = 0; group < groups; ++group) any |= touched.marks[p][group];
      const uint32_t votes = __ballot_sync(0xffffffffu, any != 0);
      if (any != 0) touched.patches[before + __popc(votes & ((1u << threadIdx.x) - 1))] = p;
      before += __popc(votes);
    }
    if (threadIdx.x == 0) touched.count = before;
  }
  __syncthreads();
}

// All threads of a warp call it. `marks` are bits of those that begin at `begin`.
template <uint32_t kBytes, bool kCurves>
__device__ void add_marks(const KeptMarks& kept, uint32_t begin, uint32_t marks, PatchPixels<kBytes, kCurves>& pixels) {
  for (; marks != 0; marks &= marks - 1) pixels.add(kept, begin + __ffs(static_cast<int>(marks)) - 1);
}

// Paints a tile of which more marks are to be seen than a block can keep: each patch goes through all marks again. All
// threads of the block call it.
template <uint32_t kBytes>
__device__ __noinline__ void paint_part_by_part(const MarkLists& lists, const PreparedMarks& marks,
                                                const PixelArea& tile, const MarkStyle& style,
                                                const DevicePicture& picture, KeptMarks& kept) {
  for (uint32_t n = threadIdx.y; n < kPatches; n += kWarps) {
    const PixelArea patch = patch_of(tile, n);
    PatchPixels<kBytes, true> pixels(picture, patch, style, marks);
    for (Progress at; at.list < lists.count;) {
      __syncthreads(); // all warps are done with those that were kept before
      const uint32_t count = keep_marks<1>(lists, marks, tile, false, at, kept);
      __syncthreads();
      for (uint32_t begin = 0; begin < count && !is_empty(patch); begin += 32) {
        const uint32_t k = begin + threadIdx.x;
        add_marks(kept, begin, __ballot_sync(0xffffffffu, k < count && touches_patch(kept.shapes[k], patch)), pixels);
      }
    }
    pixels.store(picture);
  }
}

// Paints the marks that a block has kept. All its threads call it.
template <uint32_t kBytes, bool kCurves>
__device__ void paint_kept(KeptMarks& kept, uint32_t count, const PreparedMarks& marks, const PixelArea& tile,
                           const MarkStyle& style, const DevicePicture& picture, TouchedPatches& touched) {
  find_patches<kCurves>(kept, count, tile, touched);
  for (uint32_t n = threadIdx.y; n < touched.count; n += kWarps) {
    const uint32_t patch = touched.patches[n];
    PatchPixels<kBytes, kCurves> pixels(picture, patch_of(tile, patch), style, marks);
    for (uint32_t begin = 0; begin < count; begin += 32)
      add_marks(kept, begin, touched.marks[patch][begin / 32], pixels);
    pixels.store(picture);
  }
}

// A function of its own, so that tiles without curves keep their registers.
template <uint32_t kBytes>
__device__ __noinline__ void paint_with_curves(KeptMarks& kept, uint32_t count, const PreparedMarks& marks,
                                               const PixelArea& tile, const MarkStyle& style,
                                               const DevicePicture& picture, TouchedPatches& touched) {
  paint_kept<kBytes, true>(kept, count, marks, tile, style, picture, touched);
}

template <uint32_t kBytes>
__global__ void __launch_bounds__(kThreads, kBlocksOfProcessor)
    paint_marks(const __grid_constant__ MarkLists lists, const __grid_constant__ MarkStyle style,
                const __grid_constant__ PreparedMarks marks, const __grid_constant__ DevicePicture picture) {
  await_inputs();
  __shared__ KeptMarks kept;
  __shared__ TouchedPatches touched;
  const PixelArea whole = {0, 0, static_cast<int32_t>(picture.image.width), static_cast<int32_t>(picture.image.height)};
  const PixelArea tile =
      clipped(static_cast<int32_t>(blockIdx.x) * kTile, static_cast<int32_t>(blockIdx.y) * kTile, kTile, kTile, whole);
  Progress at;
  uint32_t count = 0;
  for (bool by_area = true;; by_area = false) {
    at = {};
    count = keep_marks<kAtOnceFirst>(lists, marks, tile, by_area, at, kept);
    if (at.list == lists.count || !by_area) break; // else there is not room for so many
  }
  if (at.list < lists.count) return paint_part_by_part<kBytes>(lists, marks, tile, style, picture, kept);
  if (count == 0) return;
  __syncthreads();
  const bool is_curve = thread_index() < count && kept.shapes[thread_index()].is_curve();
  if (__syncthreads_or(is_curve)) return paint_with_curves<kBytes>(kept, count, marks, tile, style, picture, touched);
  paint_kept<kBytes, false>(kept, count, marks, tile, style, picture, touched);
}

const char* paint(void* stream, const MarkLists& lists, const MarkStyle& style, const DevicePicture& picture,
                  void* scratch, uint64_t most) {
  if (most == 0 || picture.image.width == 0 || picture.image.height == 0) return nullptr;
  const PreparedMarks marks = prepared_marks(scratch, most);
  uint32_t longest = 0;
  for (uint32_t list = 0; list < lists.count; ++list) longest = std::max(longest, lists.lists[list].most);
  LaunchShape prepare = for_records(stream, longest, 32); // few marks, too, are shared out
  prepare.blocks.y = lists.count;
  launch(prepare, prepare_marks, lists, style, picture.image.width, picture.image.height, marks);
  if (const char* sentence = launched()) return sentence;
  const dim3 tiles((picture.image.width + kTile - 1) / kTile, (picture.image.height + kTile - 1) / kTile);
  by_sample_bytes(bytes_per_pixel(static_cast<Pixel>(picture.image.format)), [&](auto bytes) {
    launch({tiles, kBlock, 0, static_cast<cudaStream_t>(stream)}, paint_marks<bytes()>, lists, style, marks, picture);
  });
  return launched();
}

} // namespace

const MarkKernels& mark_kernels() {
  static const MarkKernels kernels{&boxes, &dots, &lines, &moving_points, &paint, kKeptCount};
  return kernels;
}

} // namespace millrace::handlers::gpu
