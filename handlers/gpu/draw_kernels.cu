// Kernels of draw.boxes, draw.text and draw.waveform.
//
// Boxes and letters overlap in an order that must be kept, and they cover little of a picture. So each block has a tile
// of the picture. Its threads look at one box or letter each and keep those that touch the tile, in order, in shared
// memory; only then does every pixel go through them. A tile that nothing touches reads and writes no pixel.
#include "handlers/gpu/draw_kernels.h"

#include <algorithm>

#include "handlers/gpu/rounded_product.h"
#include "handlers/gpu/tiles.cuh"
#include "handlers/image/planes.h"

namespace millrace::handlers::gpu {

using namespace draw;

namespace {

// True if a thread paints the 2×2 pixels of a chroma sample.
bool has_quads(const DevicePicture& picture) { return halves_chroma(static_cast<Pixel>(picture.image.format)); }

// ---- boxes --------------------------------------------------------------------------------------------------------

constexpr int32_t kTile = 64; // pixels, both ways
constexpr int32_t kPixelsOfThread = kTile * kTile / static_cast<int32_t>(kThreads);
constexpr auto kWide = static_cast<int32_t>(kBlockWidth), kHigh = static_cast<int32_t>(kBlockHeight);

// A thread of draw_boxes() paints pixels of interleaved channels, which lie apart in the tile …
struct BoxPixels {
  __device__ static int32_t column(int32_t i) { return static_cast<int32_t>(threadIdx.x) + i % 2 * kWide; }
  __device__ static int32_t row(int32_t i) { return static_cast<int32_t>(threadIdx.y) + i / 2 * kHigh; }
  __device__ bool paint(const BoxMark& mark, const BoxStyle& style, int32_t, int32_t x, int32_t y,
                        const DevicePicture& picture) const {
    return paint_mark(mark, style, x, y, pixel_at(picture, x, y));
  }
  __device__ void lay(const DevicePicture&, int32_t, int32_t, uint32_t) const {}
};

// … or the pixels of chroma samples, over which the ink is laid in the end.
struct BoxQuads {
  static constexpr int32_t kQuads = kPixelsOfThread / 4;
  __device__ static int32_t column(int32_t i) { return 2 * static_cast<int32_t>(threadIdx.x) + i % 2; }
  __device__ static int32_t row(int32_t i) {
    return 2 * (static_cast<int32_t>(threadIdx.y) + i / 4 * kHigh) + i % 4 / 2;
  }
  __device__ bool paint(const BoxMark& mark, const BoxStyle& style, int32_t i, int32_t x, int32_t y,
                        const DevicePicture&) {
    return paint_mark(mark, style, x, y, ink[i / 4][i % 4]);
  }
  // `painted` has a bit for each pixel.
  __device__ void lay(const DevicePicture& picture, int32_t left, int32_t top, uint32_t painted) const {
    for (int32_t quad = 0; quad < kQuads; ++quad)
      if ((painted >> 4 * quad & 15) > 0)
        lay_quad(picture, static_cast<uint32_t>(left + column(4 * quad)), static_cast<uint32_t>(top + row(4 * quad)),
                 ink[quad]);
  }
  InkedPixel ink[kQuads][4];
};
static_assert(2 * kWide == kTile && 2 * kHigh * BoxQuads::kQuads == kTile);

// Goes from the last box to the first: the first one that covers a pixel is the visible one.
template <class Target>
__global__ void draw_boxes(const Box* boxes, const uint64_t* count, const __grid_constant__ BoxStyle style,
                           const __grid_constant__ DevicePicture picture) {
  await_inputs();
  __shared__ BoxMark marks[kThreads];
  const auto left = static_cast<int32_t>(blockIdx.x) * kTile, top = static_cast<int32_t>(blockIdx.y) * kTile;
  const auto width = static_cast<int32_t>(picture.image.width), height = static_cast<int32_t>(picture.image.height);
  const PixelArea tile = {left, top, min(left + kTile, width), min(top + kTile, height)};
  Target target;
  uint32_t painted = 0; // a bit for each of the thread's pixels
  for (uint64_t end = *count; end > 0;) {
    const uint64_t begin = end > kThreads ? end - kThreads : 0, index = begin + thread_index();
    BoxMark mark{};
    bool seen = false;
    if (index < end && drawable(boxes[index])) {
      mark = mark_of(boxes[index], style);
      seen = touches(mark, tile);
    }
    Votes kept[1];
    vote({seen}, kept);
    if (seen) marks[kept[0].before] = mark;
    __syncthreads();
    for (uint32_t m = kept[0].all; m-- > 0;)
      for (int32_t i = 0; i < kPixelsOfThread; ++i) {
        const int32_t x = left + Target::column(i), y = top + Target::row(i);
        if (painted >> i & 1 || !tile.holds(x, y)) continue;
        if (target.paint(marks[m], style, i, x, y, picture)) painted |= 1u << i;
      }
    __syncthreads();
    end = begin;
  }
  target.lay(picture, left, top, painted);
}

const char* boxes(void* stream, const Box* boxes, const uint64_t* count, const BoxStyle& style,
                  const DevicePicture& picture) {
  const dim3 tiles((picture.image.width + kTile - 1) / kTile, (picture.image.height + kTile - 1) / kTile);
  const auto kernel = has_quads(picture) ? draw_boxes<BoxQuads> : draw_boxes<BoxPixels>;
  launch({tiles, kBlock, 0, static_cast<cudaStream_t>(stream)}, kernel, boxes, count, style, picture);
  return launched();
}

// ---- text ---------------------------------------------------------------------------------------------------------

constexpr uint32_t kCaptionMax = 512; // glyphs; a caption has no more bytes

// The line of this tick in shared memory: its glyphs, and the pen's place for each.
struct SetLine {
  uint16_t glyphs[kLineGlyphsMax];
  int32_t pens[kLineGlyphsMax];
  uint32_t count;
  int32_t left, right; // x of the line's ends
};

// Called by all threads of a block. Every block sets the line for itself, which takes less time than a separate kernel
// before this one.
__device__ void set_line(const TextLine& text, const mr_device_tick& tick, uint32_t picture_width, SetLine& line) {
  __shared__ uint16_t caption[kCaptionMax];
  const uint32_t thread = thread_index(), caption_count = min(text.caption_count, kCaptionMax);
  for (uint32_t i = thread; i < caption_count; i += kThreads) caption[i] = text.caption[i];
  __syncthreads();
  if (thread == 0)
    line.count =
        fill_line({caption, caption_count, text.values, text.records}, tick.index, tick.media_time_ns, line.glyphs);
  __syncthreads();
  for (uint32_t i = thread; i < line.count; i += kThreads) line.pens[i] = text.sheet.glyphs[line.glyphs[i]].advance;
  __syncthreads();
  if (thread == 0) {
    int32_t width = 0;
    for (uint32_t i = 0; i < line.count; ++i) width += line.pens[i];
    int32_t pen = text.x >= 0 ? text.x : static_cast<int32_t>(picture_width) + text.x - width;
    line.left = pen;
    line.right = pen + width;
    for (uint32_t i = 0; i < line.count; ++i) {
      const int32_t advance = line.pens[i];
      line.pens[i] = pen;
      pen += advance;
    }
  }
  __syncthreads();
}

__device__ bool in_box(const TextLine& text, const SetLine& line, int32_t x, int32_t y) {
  return text.boxed && line.count > 0 && x >= line.left - text.padding && x < line.right + text.padding &&
         y >= text.box_top && y < text.box_bottom;
}

// A thread of draw_text() paints a pixel of interleaved channels, whose bytes change with each mark …
struct TextPixel {
  static constexpr int32_t kSide = 1;
  __device__ TextPixel(const DevicePicture& picture, int32_t left, int32_t top)
      : x(left), y(top), pixel(pixel_at(picture, x, y)) {}
  __device__ void fill(const TextLine& text, const SetLine& line) const {
    if (in_box(text, line, x, y)) blend(pixel, text.box, 255);
  }
  __device__ void add_letter(const TextLine& text, uint32_t glyph, int32_t pen, const Ink& ink) const {
    const uint32_t coverage = coverage_at(text.sheet, glyph, pen, text.baseline, x, y);
    if (coverage > 0) blend(pixel, ink, coverage);
  }
  __device__ void end_letters(const Ink&) const {}
  __device__ void lay(const DevicePicture&) const {}

  int32_t x, y;
  uint8_t* pixel;
};

// … or the pixels of a chroma sample, over which the ink of all marks is laid in the end.
struct TextQuad {
  static constexpr int32_t kSide = 2;
  __device__ TextQuad(const DevicePicture&, int32_t left, int32_t top) : x(left), y(top) {}
  __device__ void fill(const TextLine& text, const SetLine& line) {
    MR_UNROLL
    for (int32_t i = 0; i < 4; ++i)
      if (in_box(text, line, x + i % 2, y + i / 2)) pixels[i].paint(text.box, share_of(255, text.box.alpha));
  }
  __device__ void add_letter(const TextLine& text, uint32_t glyph, int32_t pen, const Ink& ink) {
    MR_UNROLL
    for (int32_t i = 0; i < 4; ++i) {
      const uint32_t coverage = coverage_at(text.sheet, glyph, pen, text.baseline, x + i % 2, y + i / 2);
      shares[i] = share_of_both(shares[i], share_of(static_cast<uint8_t>(coverage), ink.alpha));
    }
  }
  __device__ void end_letters(const Ink& ink) {
    MR_UNROLL
    for (int32_t i = 0; i < 4; ++i) {
      pixels[i].paint(ink, shares[i]);
      shares[i] = 0;
    }
  }
  __device__ void lay(const DevicePicture& picture) const {
    lay_quad(picture, static_cast<uint32_t>(x), static_cast<uint32_t>(y), pixels);
  }

  int32_t x, y;
  InkedPixel pixels[4];
  uint16_t shares[4] = {}; // taken by the letters of one ink
};

// Called by all threads of a block, whose first column is `left`. Draws the line's letters if `first` is 0, or the
// letters' outlines, which begin at glyph `first` of the sheet.
template <class Target>
__device__ void draw_letters(const TextLine& text, const SetLine& line, uint32_t first, const Ink& ink, int32_t left,
                             bool inside, Target& target) {
  __shared__ uint16_t seen[kThreads];
  for (uint32_t begin = 0; begin < line.count; begin += kThreads) {
    const uint32_t index = begin + thread_index();
    bool touches = false;
    if (index < line.count) {
      const SheetGlyph& shape = text.sheet.glyphs[first + line.glyphs[index]];
      const int32_t from = line.pens[index] + shape.left;
      const int32_t right = left + static_cast<int32_t>(kBlockWidth) * Target::kSide;
      touches = from < right && from + static_cast<int32_t>(shape.width) > left;
    }
    Votes kept[1];
    vote({touches}, kept);
    if (touches) seen[kept[0].before] = static_cast<uint16_t>(index);
    __syncthreads();
    for (uint32_t k = 0; k < kept[0].all && inside; ++k)
      target.add_letter(text, first + line.glyphs[seen[k]], line.pens[seen[k]], ink);
    __syncthreads();
  }
  if (inside) target.end_letters(ink);
}

// The first row that is painted: even if threads paint 2×2 pixels.
template <class Target>
MR_BOTH int32_t first_row(const TextLine& text) {
  return (text.top > 0 ? text.top : 0) / Target::kSide * Target::kSide;
}

template <class Target>
__global__ void draw_text(const __grid_constant__ TextLine text, const mr_device_tick* tick,
                          const __grid_constant__ DevicePicture picture) {
  await_inputs();
  __shared__ SetLine line;
  set_line(text, *tick, picture.image.width, line);
  const auto left = static_cast<int32_t>(blockIdx.x * kBlockWidth) * Target::kSide;
  const int32_t top = first_row<Target>(text) + static_cast<int32_t>(blockIdx.y * kBlockHeight) * Target::kSide;
  const int32_t x = left + static_cast<int32_t>(threadIdx.x) * Target::kSide;
  const int32_t y = top + static_cast<int32_t>(threadIdx.y) * Target::kSide;
  const bool inside = x < static_cast<int32_t>(picture.image.width) && y < static_cast<int32_t>(picture.image.height);
  Target target(picture, x, y);
  if (inside) target.fill(text, line);
  if (text.outline_first > 0) draw_letters(text, line, text.outline_first, text.outline, left, inside, target);
  draw_letters(text, line, 0, text.ink, left, inside, target);
  if (inside) target.lay(picture);
}

template <class Target>
const char* launch_text(void* stream, const TextLine& line, const mr_device_tick* tick, const DevicePicture& picture) {
  const int32_t top = first_row<Target>(line);
  const int32_t bottom = std::min(line.bottom, static_cast<int32_t>(picture.image.height));
  if (top >= bottom || picture.image.width == 0) return nullptr;
  const auto threads = [](uint32_t pixels) { return (pixels + Target::kSide - 1) / Target::kSide; };
  const dim3 blocks = blocks_for(threads(picture.image.width), threads(static_cast<uint32_t>(bottom - top)));
  launch({blocks, kBlock, 0, static_cast<cudaStream_t>(stream)}, draw_text<Target>, line, tick, picture);
  return launched();
}

const char* text(void* stream, const TextLine& line, const mr_device_tick* tick, const DevicePicture& picture) {
  return has_quads(picture) ? launch_text<TextQuad>(stream, line, tick, picture)
                            : launch_text<TextPixel>(stream, line, tick, picture);
}

// ---- waveform -----------------------------------------------------------------------------------------------------

// A block counts a strip of this many columns and rows in shared memory, and then adds the non-zero counts to the
// picture's. Only these additions are atomic operations on device memory.
constexpr uint32_t kStrip = kBlockWidth, kStripRows = 512;

__device__ uint32_t columns_of(const MonitorTrace& trace) {
  return static_cast<uint32_t>(trace.area.right - trace.area.left);
}

// The first of a trace's counts.
__device__ uint32_t* counts_of(const Monitor& monitor, uint32_t trace) {
  uint32_t* counts = monitor.counts;
  for (uint32_t t = 0; t < trace; ++t) counts += size_t{columns_of(monitor.traces[t])} * kLevelCount;
  return counts;
}

__device__ uint8_t level_of(const Rgb& color, LevelOf channel) {
  switch (channel) {
    case LevelOf::red: return color.r;
    case LevelOf::green: return color.g;
    case LevelOf::blue: return color.b;
    default: return luma_level(color.r, color.g, color.b);
  }
}
__device__ uint8_t level_at(const Monitor& monitor, const DevicePicture& picture, uint32_t x, uint32_t y,
                            LevelOf channel) {
  if (monitor.in_quads)
    return channel == LevelOf::luma ? gray_at(picture, monitor.form, x, y)
                                    : level_of(rgb_at(picture, monitor.form, x, y), channel);
  const uint8_t* pixel = pixel_at(picture, static_cast<int32_t>(x), static_cast<int32_t>(y));
  const auto format = static_cast<Pixel>(picture.image.format);
  if (format == Pixel::gray8) return pixel[0];
  const bool blue_first = format == Pixel::bgr8 || format == Pixel::bgra8;
  return level_of({pixel[blue_first ? 2 : 0], pixel[1], pixel[blue_first ? 0 : 2]}, channel);
}

__global__ void count_levels(const __grid_constant__ Monitor monitor, const __grid_constant__ DevicePicture picture) {
  await_inputs();
  __shared__ uint32_t counted[kLevelCount * kStrip]; // [level][stretch of columns, from the strip's first]
  const MonitorTrace& trace = monitor.traces[blockIdx.z];
  const uint32_t width = picture.image.width, columns = columns_of(trace);
  const auto stretch_of = [&](uint32_t x) { return static_cast<uint32_t>(uint64_t{x} * columns / width); };
  for (uint32_t i = thread_index(); i < kLevelCount * kStrip; i += kThreads) counted[i] = 0;
  __syncthreads();
  const uint32_t x = blockIdx.x * kStrip + threadIdx.x, first = stretch_of(blockIdx.x * kStrip);
  if (x < width) {
    const uint32_t stretch = stretch_of(x) - first, top = blockIdx.y * kStripRows;
    const uint32_t bottom = min(top + kStripRows, picture.image.height);
    for (uint32_t y = top + threadIdx.y; y < bottom; y += kBlockHeight) {
      const uint32_t level = level_at(monitor, picture, x, y, trace.channel);
      atomicAdd(&counted[level * kStrip + stretch], 1u);
    }
  }
  __syncthreads();
  uint32_t* counts = counts_of(monitor, blockIdx.z);
  for (uint32_t i = thread_index(); i < kLevelCount * kStrip; i += kThreads)
    if (counted[i] > 0) atomicAdd(&counts[size_t{i / kStrip} * columns + first + i % kStrip], counted[i]);
}

// The light of one trace in one pixel of its area.
__device__ uint32_t light_at(const uint32_t* counts, uint32_t columns, uint32_t column, uint32_t row, uint32_t rows,
                             float scale) {
  const LevelRange range = levels_of_row(row, rows);
  float sum = 0;
  for (uint32_t level = range.first; level < range.last; ++level) {
    const auto count = static_cast<float>(static_cast<int32_t>(counts[size_t{level} * columns + column]));
    sum += rounded_product(share_of_level(level, row, rows), count);
  }
  return light_of(rounded_product(sum, scale));
}

// Paints one pixel of the monitor's area, of interleaved channels.
__device__ void paint_pixel(const Monitor& monitor, int32_t x, int32_t y, uint32_t channels, uint8_t* pixel) {
  const auto rows = static_cast<uint32_t>(monitor.area.bottom - monitor.area.top);
  const auto row = static_cast<uint32_t>(y - monitor.area.top);
  const uint32_t line = is_line(row, rows) ? kLineLight : 0;
  for (uint32_t c = 0; c < channels; ++c) {
    const uint32_t ground = c == 3 ? 255 : monitor.opaque ? 0 : pixel[c] >> 1;
    pixel[c] = static_cast<uint8_t>(min(ground + line, 255u));
  }
  for (uint32_t t = 0; t < monitor.trace_count; ++t) {
    const MonitorTrace& trace = monitor.traces[t];
    if (x < trace.area.left || x >= trace.area.right) continue;
    const uint32_t light = light_at(counts_of(monitor, t), columns_of(trace),
                                    static_cast<uint32_t>(x - trace.area.left), row, rows, trace.scale);
    for (uint32_t c = 0; c < channels; ++c) pixel[c] = with_light(pixel[c], light, trace.ink.channels[c]);
  }
}

// A thread paints a pixel, or those of a chroma sample.
__global__ void paint_monitor(const __grid_constant__ Monitor monitor, const __grid_constant__ DevicePicture picture) {
  await_inputs();
  const int32_t side = monitor.in_quads ? 2 : 1;
  const int32_t x = monitor.area.left + static_cast<int32_t>(blockIdx.x * blockDim.x + threadIdx.x) * side;
  const int32_t y = monitor.area.top + static_cast<int32_t>(blockIdx.y * blockDim.y + threadIdx.y) * side;
  if (x >= monitor.area.right || y >= monitor.area.bottom) return;
  if (!monitor.in_quads)
    return paint_pixel(monitor, x, y, bytes_per_pixel(static_cast<Pixel>(picture.image.format)),
                       pixel_at(picture, x, y));
  change_quad(picture, monitor.form, static_cast<uint32_t>(x), static_cast<uint32_t>(y),
              [&](uint32_t column, uint32_t row, uint8_t* rgb) {
                paint_pixel(monitor, static_cast<int32_t>(column), static_cast<int32_t>(row), 3, rgb);
              });
}

const char* waveform(void* stream, const Monitor& monitor, const DevicePicture& picture) {
  const auto cuda_stream = static_cast<cudaStream_t>(stream);
  size_t columns = 0;
  for (uint32_t t = 0; t < monitor.trace_count; ++t)
    columns += static_cast<size_t>(monitor.traces[t].area.right - monitor.traces[t].area.left);
  if (columns > 0) {
    cudaMemsetAsync(monitor.counts, 0, columns * kLevelCount * sizeof(uint32_t), cuda_stream);
    const dim3 strips((picture.image.width + kStrip - 1) / kStrip, (picture.image.height + kStripRows - 1) / kStripRows,
                      monitor.trace_count);
    launch({strips, kBlock, 0, cuda_stream}, count_levels, monitor, picture);
    if (const char* sentence = launched()) return sentence;
  }
  const auto threads = [&](int32_t from, int32_t to) {
    const auto pixels = static_cast<uint32_t>(to - from);
    return monitor.in_quads ? (pixels + 1) / 2 : pixels;
  };
  const dim3 blocks =
      blocks_for(threads(monitor.area.left, monitor.area.right), threads(monitor.area.top, monitor.area.bottom));
  launch({blocks, kBlock, 0, cuda_stream}, paint_monitor, monitor, picture);
  return launched();
}

const char* upload(void* stream, void* to, const void* from, uint64_t bytes) {
  if (bytes == 0) return nullptr;
  const auto error = cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, static_cast<cudaStream_t>(stream));
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

} // namespace

const DrawKernels& draw_kernels() {
  static const DrawKernels kernels{&upload, &boxes, &text, &waveform};
  return kernels;
}

} // namespace millrace::handlers::gpu
