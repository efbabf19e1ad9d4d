// Pixel formats meet in planar RGBA: a chunk of a row is spread into four short arrays, changed there by loops that
// vectorise, and packed again. Chunks live on the stack and stay in the first-level cache.
#include "handlers/image/color.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "handlers/image/bytes16.h"
#include "handlers/image/interleave.h"
#include "handlers/image/picture.h"
#include "handlers/image/vectorize.h"

namespace millrace::handlers {
namespace {

// Even, so that chunks begin at whole chroma samples; 256 pixels of all the arrays fit a 32 KiB cache with room to
// spare.
constexpr uint32_t kChunk = 256;

struct Chunk {
  alignas(64) uint8_t r[kChunk], g[kChunk], b[kChunk], a[kChunk];
};

// 16-bit fixed point of both directions; each row of encoding coefficients has an exact sum, so that grays have no
// tint.
struct Matrix {
  int32_t offset;                     // luma of black
  int32_t yr, yg, yb;                 // RGB → Y
  int32_t ur, ug, ub, vr, vg, vb;     // RGB → Cb, Cr
  int32_t y_gain, v_r, u_g, v_g, u_b; // Y, Cr, Cb → RGB
};

int32_t fixed16(double value) { return static_cast<int32_t>(std::lround(value * 65536)); }

Matrix matrix_of(uint32_t color, uint32_t range) {
  double kr = 0.299, kb = 0.114;
  if (color == MR_COLOR_BT709) kr = 0.2126, kb = 0.0722;
  if (color == MR_COLOR_BT2020) kr = 0.2627, kb = 0.0593;
  const bool limited = range == MR_RANGE_LIMITED;
  const double luma = limited ? 219.0 / 255 : 1, chroma = limited ? 224.0 / 255 : 1;
  const double u_scale = chroma / (2 * (1 - kb)), v_scale = chroma / (2 * (1 - kr));
  Matrix m{};
  m.offset = limited ? 16 : 0;
  m.yr = fixed16(kr * luma);
  m.yb = fixed16(kb * luma);
  m.yg = fixed16(luma) - m.yr - m.yb;
  m.ur = fixed16(-kr * u_scale);
  m.ub = fixed16((1 - kb) * u_scale);
  m.ug = -m.ur - m.ub;
  m.vr = fixed16((1 - kr) * v_scale);
  m.vb = fixed16(-kb * v_scale);
  m.vg = -m.vr - m.vb;
  const double kg = 1 - kr - kb;
  m.y_gain = fixed16(1 / luma);
  m.v_r = fixed16(2 * (1 - kr) / chroma);
  m.u_b = fixed16(2 * (1 - kb) / chroma);
  m.u_g = fixed16(-2 * (1 - kb) * kb / kg / chroma);
  m.v_g = fixed16(-2 * (1 - kr) * kr / kg / chroma);
  return m;
}

constexpr int32_t kHalf16 = 1 << 15;

inline uint8_t clamp8(int32_t value) { return static_cast<uint8_t>(std::min(std::max(value, 0), 255)); }

// ---- unpacking ------------------------------------------------------------------------------------------------

// The upper half of a product of 16 bits, one instruction for many; the rest is cut off.
inline int16_t high16(int16_t a, int16_t b) { return static_cast<int16_t>((int32_t{a} * b) >> 16); }

// Y, Cr, Cb → RGB in 1/32: as much is left in the upper half of 16 bits of luma in 1/128 times its gain in 1/16384, and
// of chroma in 1/256 times coefficients in 1/8192, which are up to 2.2. What three products cut off is 3/32 at most;
// the 1 that is added to the half is its mean.
struct Decoding {
  explicit Decoding(const Matrix& m)
      : offset(static_cast<int16_t>(m.offset)),
        y_gain(of(m.y_gain, 2)),
        v_r(of(m.v_r, 3)),
        u_g(of(m.u_g, 3)),
        v_g(of(m.v_g, 3)),
        u_b(of(m.u_b, 3)) {}
  static int16_t of(int32_t fixed, int bits) { return static_cast<int16_t>((fixed + (1 << bits >> 1)) >> bits); }
  int16_t offset, y_gain, v_r, u_g, v_g, u_b;
};

MILLRACE_VECTORIZE void decode(const Decoding& d, const uint8_t* y, const uint8_t* u, const uint8_t* v, uint32_t count,
                               Chunk& out) {
  constexpr int16_t kHalf5 = 16 + 1;
  const auto pixel = [](int sum) { return static_cast<uint8_t>(std::min(std::max(sum >> 5, 0), 255)); };
  for (uint32_t i = 0; i < count; ++i) {
    const auto luma = static_cast<int16_t>(high16(static_cast<int16_t>((y[i] - d.offset) << 7), d.y_gain) + kHalf5);
    const auto cb = static_cast<int16_t>((u[i] - 128) << 8), cr = static_cast<int16_t>((v[i] - 128) << 8);
    out.r[i] = pixel(static_cast<int16_t>(luma + high16(cr, d.v_r)));
    out.g[i] = pixel(static_cast<int16_t>(luma + high16(cb, d.u_g) + high16(cr, d.v_g)));
    out.b[i] = pixel(static_cast<int16_t>(luma + high16(cb, d.u_b)));
  }
}

// Gives both pixels of a pair its chroma.
MILLRACE_VECTORIZE void spread(const uint8_t* chroma, uint32_t pairs, uint8_t* out) {
  uint32_t i = 0;
  for (; i + 16 <= pairs; i += 16) {
    const Bytes16 c = load16(chroma + i);
    store16(out + 2 * i, __builtin_shufflevector(c, c, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7));
    store16(out + 2 * i + 16,
            __builtin_shufflevector(c, c, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15));
  }
  for (; i < pairs; ++i) out[2 * i] = out[2 * i + 1] = chroma[i];
}

MILLRACE_VECTORIZE void spread_both(const uint8_t* chroma, uint32_t pairs, uint8_t* u, uint8_t* v) {
  uint32_t i = 0;
  for (; i + 8 <= pairs; i += 8) {
    const Bytes16 c = load16(chroma + 2 * i);
    store16(u + 2 * i, __builtin_shufflevector(c, c, 0, 0, 2, 2, 4, 4, 6, 6, 8, 8, 10, 10, 12, 12, 14, 14));
    store16(v + 2 * i, __builtin_shufflevector(c, c, 1, 1, 3, 3, 5, 5, 7, 7, 9, 9, 11, 11, 13, 13, 15, 15));
  }
  for (; i < pairs; ++i) {
    u[2 * i] = u[2 * i + 1] = chroma[2 * i];
    v[2 * i] = v[2 * i + 1] = chroma[2 * i + 1];
  }
}

void unpack_ycbcr(const ImageView& source, const Matrix& matrix, uint32_t x, uint32_t y, uint32_t count, Chunk& out) {
  alignas(64) uint8_t u[kChunk], v[kChunk];
  const uint32_t pairs = (count + 1) / 2;
  if (source.pixel() == Pixel::nv12) {
    spread_both(source.row(y / 2, 1) + x, pairs, u, v);
  } else {
    spread(source.row(y / 2, 1) + x / 2, pairs, u);
    spread(source.row(y / 2, 2) + x / 2, pairs, v);
  }
  decode(Decoding(matrix), source.row(y) + x, u, v, count, out);
  std::memset(out.a, 255, count);
}

void unpack(const ImageView& source, const Matrix& matrix, uint32_t x, uint32_t y, uint32_t count, Chunk& out) {
  const uint8_t* in = source.row(y) + size_t{x} * bytes_per_pixel(source.pixel());
  switch (source.pixel()) {
    case Pixel::rgb8:
      unpack3(in, count, out.r, out.g, out.b);
      std::memset(out.a, 255, count);
      return;
    case Pixel::bgr8:
      unpack3(in, count, out.b, out.g, out.r);
      std::memset(out.a, 255, count);
      return;
    case Pixel::rgba8: return unpack4(in, count, out.r, out.g, out.b, out.a);
    case Pixel::bgra8: return unpack4(in, count, out.b, out.g, out.r, out.a);
    case Pixel::gray8:
      std::memcpy(out.r, in, count);
      std::memcpy(out.g, in, count);
      std::memcpy(out.b, in, count);
      std::memset(out.a, 255, count);
      return;
    default: return unpack_ycbcr(source, matrix, x, y, count, out);
  }
}

// ---- packing --------------------------------------------------------------------------------------------------

// 0.299, 0.587 and 0.114 in 15 bits; their sum is 32768, so gray pixels stay what they are.
MILLRACE_VECTORIZE void pack_gray(const Chunk& in, uint32_t count, uint8_t* out) {
  for (uint32_t i = 0; i < count; ++i)
    out[i] = static_cast<uint8_t>((9798 * in.r[i] + 19235 * in.g[i] + 3735 * in.b[i] + (1 << 14)) >> 15);
}

MILLRACE_VECTORIZE void pack_luma(const Matrix& m, const Chunk& in, uint32_t count, uint8_t* out) {
  const int32_t bias = (m.offset << 16) + kHalf16;
  for (uint32_t i = 0; i < count; ++i) out[i] = clamp8((m.yr * in.r[i] + m.yg * in.g[i] + m.yb * in.b[i] + bias) >> 16);
}

// Two rows, an even count of pixels. The sum of four pixels has two more bits than their mean.
MILLRACE_VECTORIZE void pack_chroma(const Matrix& m, const Chunk& top, const Chunk& bottom, uint32_t pairs, uint8_t* u,
                                    uint8_t* v) {
  const int32_t bias = (128 << 18) + (1 << 17);
  for (uint32_t i = 0; i < pairs; ++i) {
    const int32_t r = top.r[2 * i] + top.r[2 * i + 1] + bottom.r[2 * i] + bottom.r[2 * i + 1];
    const int32_t g = top.g[2 * i] + top.g[2 * i + 1] + bottom.g[2 * i] + bottom.g[2 * i + 1];
    const int32_t b = top.b[2 * i] + top.b[2 * i + 1] + bottom.b[2 * i] + bottom.b[2 * i + 1];
    u[i] = clamp8((m.ur * r + m.ug * g + m.ub * b + bias) >> 18);
    v[i] = clamp8((m.vr * r + m.vg * g + m.vb * b + bias) >> 18);
  }
}

void pack(const Chunk& in, uint32_t x, uint32_t y, uint32_t count, const ImageSpan& target) {
  uint8_t* out = target.row(y) + size_t{x} * bytes_per_pixel(target.pixel());
  switch (target.pixel()) {
    case Pixel::rgb8: return pack3(in.r, in.g, in.b, count, out);
    case Pixel::bgr8: return pack3(in.b, in.g, in.r, count, out);
    case Pixel::rgba8: return pack4(in.r, in.g, in.b, in.a, count, out);
    case Pixel::bgra8: return pack4(in.b, in.g, in.r, in.a, count, out);
    default: return pack_gray(in, count, out);
  }
}

// Gives a chunk of odd width the second pixel of its last pair.
void repeat_last(Chunk& chunk, uint32_t count) {
  if (count % 2 == 0) return;
  chunk.r[count] = chunk.r[count - 1];
  chunk.g[count] = chunk.g[count - 1];
  chunk.b[count] = chunk.b[count - 1];
}

void pack_block_row(const Matrix& matrix, Chunk& top, Chunk& bottom, uint32_t x, uint32_t y, uint32_t count,
                    const ImageSpan& target) {
  pack_luma(matrix, top, count, target.row(y) + x);
  if (y + 1 < target.height()) pack_luma(matrix, bottom, count, target.row(y + 1) + x);
  repeat_last(top, count);
  repeat_last(bottom, count);
  const uint32_t pairs = (count + 1) / 2;
  if (target.pixel() == Pixel::i420)
    return pack_chroma(matrix, top, bottom, pairs, target.row(y / 2, 1) + x / 2, target.row(y / 2, 2) + x / 2);
  uint8_t u[kChunk / 2], v[kChunk / 2];
  pack_chroma(matrix, top, bottom, pairs, u, v);
  uint8_t* out = target.row(y / 2, 1) + x;
  for (uint32_t i = 0; i < pairs; ++i) {
    out[2 * i] = u[i];
    out[2 * i + 1] = v[i];
  }
}

// ---- whole pictures -------------------------------------------------------------------------------------------

bool is_ycbcr(Pixel pixel) { return pixel == Pixel::nv12 || pixel == Pixel::i420; }

bool red_first(Pixel pixel) { return pixel == Pixel::rgb8 || pixel == Pixel::rgba8; }
bool is_colored8(Pixel pixel) { return red_first(pixel) || pixel == Pixel::bgr8 || pixel == Pixel::bgra8; }

void copy_plane(const ImageView& source, const ImageSpan& target, uint32_t plane) {
  const size_t bytes = plane_row_bytes(source.pixel(), source.width(), plane);
  for (uint32_t y = 0; y < source.rows(plane); ++y) std::memcpy(target.row(y, plane), source.row(y, plane), bytes);
}

void repack_chroma(const ImageView& source, const ImageSpan& target) {
  const uint32_t pairs = (source.width() + 1) / 2;
  for (uint32_t y = 0; y < source.rows(1); ++y) {
    if (source.pixel() == Pixel::nv12) {
      const uint8_t* in = source.row(y, 1);
      uint8_t *u = target.row(y, 1), *v = target.row(y, 2);
      for (uint32_t i = 0; i < pairs; ++i) u[i] = in[2 * i], v[i] = in[2 * i + 1];
    } else {
      const uint8_t *u = source.row(y, 1), *v = source.row(y, 2);
      uint8_t* out = target.row(y, 1);
      for (uint32_t i = 0; i < pairs; ++i) out[2 * i] = u[i], out[2 * i + 1] = v[i];
    }
  }
}

void luma_to_gray(const ImageView& source, const ImageSpan& target) {
  if (source.range() == MR_RANGE_FULL) return copy_plane(source, target, 0);
  const int32_t gain = fixed16(255.0 / 219);
  for (uint32_t y = 0; y < source.height(); ++y) {
    const uint8_t* in = source.row(y);
    uint8_t* out = target.row(y);
    for (uint32_t x = 0; x < source.width(); ++x) out[x] = clamp8(((in[x] - 16) * gain + kHalf16) >> 16);
  }
}

void to_interleaved(const ImageView& source, const ImageSpan& target) {
  if (is_colored8(source.pixel()) && is_colored8(target.pixel())) {
    const bool turns = red_first(source.pixel()) != red_first(target.pixel());
    for (uint32_t y = 0; y < source.height(); ++y)
      reorder(source.row(y), bytes_per_pixel(source.pixel()), source.width(), turns, target.row(y),
              bytes_per_pixel(target.pixel()));
    return;
  }
  const Matrix matrix = matrix_of(source.color(), source.range());
  Chunk chunk;
  for (uint32_t y = 0; y < source.height(); ++y) {
    for (uint32_t x = 0; x < source.width(); x += kChunk) {
      const uint32_t count = std::min(kChunk, source.width() - x);
      unpack(source, matrix, x, y, count, chunk);
      pack(chunk, x, y, count, target);
    }
  }
}

void to_ycbcr(const ImageView& source, const ImageSpan& target) {
  const Matrix from = matrix_of(source.color(), source.range()), to = matrix_of(target.color(), target.range());
  Chunk top, bottom;
  for (uint32_t y = 0; y < source.height(); y += 2) {
    for (uint32_t x = 0; x < source.width(); x += kChunk) {
      const uint32_t count = std::min(kChunk, source.width() - x);
      unpack(source, from, x, y, count, top);
      unpack(source, from, x, std::min(y + 1, source.height() - 1), count, bottom);
      pack_block_row(to, top, bottom, x, y, count, target);
    }
  }
}

} // namespace

bool can_convert(Pixel pixel) { return is_interleaved8(pixel) || is_ycbcr(pixel); }

void convert_pixels(const ImageView& source, const ImageSpan& target) {
  if (!can_convert(source.pixel()) || !can_convert(target.pixel()))
    throw std::invalid_argument("there is no conversion from " + std::string(name_of(source.pixel())) + " to " +
                                std::string(name_of(target.pixel())));
  if (source.width() != target.width() || source.height() != target.height())
    throw std::invalid_argument("a conversion keeps the size of the picture");
  const bool same_numbers = !is_ycbcr(source.pixel()) || (std::max(source.color(), uint32_t{MR_COLOR_BT601}) ==
                                                              std::max(target.color(), uint32_t{MR_COLOR_BT601}) &&
                                                          source.range() == target.range());
  if (source.pixel() == target.pixel() && same_numbers) {
    for (uint32_t plane = 0; plane < source.plane_count(); ++plane) copy_plane(source, target, plane);
  } else if (is_ycbcr(source.pixel()) && is_ycbcr(target.pixel()) && same_numbers) {
    copy_plane(source, target, 0);
    repack_chroma(source, target);
  } else if (is_ycbcr(source.pixel()) && target.pixel() == Pixel::gray8) {
    luma_to_gray(source, target);
  } else if (is_ycbcr(target.pixel())) {
    to_ycbcr(source, target);
  } else {
    to_interleaved(source, target);
  }
}

} // namespace millrace::handlers
