// Conversions by way of planar RGB: a chunk of a row is unpacked into three short arrays, and packed again by loops
// that vectorise. Chunks stay in the first-level cache.
#include "plugins/codec/ycbcr.h"

#include <algorithm>
#include <cmath>
#include <cstring>

// The compiler vectorises these loops at any optimisation level of the build. On x86 there is a second version for
// AVX2, chosen when the program is loaded; sanitizers do not work with that choice.
#if defined(__clang__) || !defined(__GNUC__)
#define CODEC_VECTORIZE
#elif defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define CODEC_VECTORIZE __attribute__((optimize("O3"), target_clones("avx2", "default")))
#else
#define CODEC_VECTORIZE __attribute__((optimize("O3")))
#endif

namespace millrace::codec {

namespace {

constexpr uint32_t kChunk = 256; // pixels; even, so that chunks begin at whole chroma samples

struct Chunk {
  alignas(64) uint8_t r[kChunk], g[kChunk], b[kChunk];
};

// The coefficients between RGB and YCbCr of 8 bits, in units of 1/65536. Each row to YCbCr has an exact sum, so that
// grays have no tint.
struct Matrix {
  int32_t black;                  // luma of black
  int32_t yr, yg, yb;             // RGB → Y
  int32_t ur, ug, ub, vr, vg, vb; // RGB → Cb, Cr
  int32_t gain, rv, gu, gv, bu;   // Y, Cr, Cb → RGB
};

int32_t fixed16(double value) { return static_cast<int32_t>(std::lround(value * 65536)); }

Matrix matrix_of(uint32_t color, uint32_t range) {
  double kr = 0.299, kb = 0.114;
  if (color == MR_COLOR_BT709) kr = 0.2126, kb = 0.0722;
  if (color == MR_COLOR_BT2020) kr = 0.2627, kb = 0.0593;
  const bool limited = range == MR_RANGE_LIMITED;
  const double luma = limited ? 219.0 / 255 : 1, chroma = limited ? 224.0 / 255 : 1;
  const double kg = 1 - kr - kb, cb = 2 * (1 - kb), cr = 2 * (1 - kr);
  Matrix m{};
  m.black = limited ? 16 : 0;
  m.yr = fixed16(kr * luma);
  m.yb = fixed16(kb * luma);
  m.yg = fixed16(luma) - m.yr - m.yb;
  m.ur = fixed16(-kr / cb * chroma);
  m.ub = fixed16((1 - kb) / cb * chroma);
  m.ug = -m.ur - m.ub;
  m.vr = fixed16((1 - kr) / cr * chroma);
  m.vb = fixed16(-kb / cr * chroma);
  m.vg = -m.vr - m.vb;
  m.gain = fixed16(1 / luma);
  m.rv = fixed16(cr / chroma);
  m.gu = fixed16(-cb * kb / kg / chroma);
  m.gv = fixed16(-cr * kr / kg / chroma);
  m.bu = fixed16(cb / chroma);
  return m;
}

// By value: loops with std::clamp, which returns a reference, are not vectorised.
uint8_t clamped(int32_t value) {
  const int32_t positive = value < 0 ? 0 : value;
  return static_cast<uint8_t>(positive > 255 ? 255 : positive);
}

// ---- unpacking ------------------------------------------------------------------------------------------------

using Bytes16 = uint8_t __attribute__((vector_size(16)));

Bytes16 load16(const uint8_t* bytes) {
  Bytes16 loaded;
  std::memcpy(&loaded, bytes, sizeof loaded);
  return loaded;
}
void store16(uint8_t* bytes, Bytes16 value) { std::memcpy(bytes, &value, sizeof value); }

// By shuffles, which the compiler does not find by itself.
CODEC_VECTORIZE void unpack3(const uint8_t* in, uint32_t count, uint8_t* first, uint8_t* second, uint8_t* third) {
  uint32_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const Bytes16 a = load16(in + 3 * i), b = load16(in + 3 * i + 16), c = load16(in + 3 * i + 32);
    const Bytes16 first11 = __builtin_shufflevector(a, b, 0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 0, 0, 0, 0, 0);
    const Bytes16 second11 = __builtin_shufflevector(a, b, 1, 4, 7, 10, 13, 16, 19, 22, 25, 28, 31, 0, 0, 0, 0, 0);
    const Bytes16 third10 = __builtin_shufflevector(a, b, 2, 5, 8, 11, 14, 17, 20, 23, 26, 29, 0, 0, 0, 0, 0, 0);
    store16(first + i, __builtin_shufflevector(first11, c, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 17, 20, 23, 26, 29));
    store16(second + i, __builtin_shufflevector(second11, c, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 18, 21, 24, 27, 30));
    store16(third + i, __builtin_shufflevector(third10, c, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 19, 22, 25, 28, 31));
  }
  for (; i < count; ++i) {
    first[i] = in[3 * i];
    second[i] = in[3 * i + 1];
    third[i] = in[3 * i + 2];
  }
}

CODEC_VECTORIZE void unpack4(const uint8_t* in, uint32_t count, uint8_t* first, uint8_t* second, uint8_t* third) {
  uint32_t i = 0;
  for (; i + 16 <= count; i += 16) {
    Bytes16 sorted[4]; // four first bytes, four second, four third and four fourth of four pixels
    for (uint32_t k = 0; k < 4; ++k) {
      const Bytes16 pixels = load16(in + 4 * i + 16 * k);
      sorted[k] = __builtin_shufflevector(pixels, pixels, 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    }
    const Bytes16 low =
        __builtin_shufflevector(sorted[0], sorted[1], 0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
    const Bytes16 high =
        __builtin_shufflevector(sorted[2], sorted[3], 0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
    store16(first + i, __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23));
    store16(second + i,
            __builtin_shufflevector(low, high, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31));
    const Bytes16 left =
        __builtin_shufflevector(sorted[0], sorted[1], 8, 9, 10, 11, 24, 25, 26, 27, 8, 9, 10, 11, 24, 25, 26, 27);
    const Bytes16 right =
        __builtin_shufflevector(sorted[2], sorted[3], 8, 9, 10, 11, 24, 25, 26, 27, 8, 9, 10, 11, 24, 25, 26, 27);
    store16(third + i, __builtin_shufflevector(left, right, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23));
  }
  for (; i < count; ++i) {
    first[i] = in[4 * i];
    second[i] = in[4 * i + 1];
    third[i] = in[4 * i + 2];
  }
}

CODEC_VECTORIZE void decode(const Matrix m, const uint8_t* y, const uint8_t* cb, const uint8_t* cr, uint32_t count,
                            Chunk& out) {
  for (uint32_t i = 0; i < count; ++i) {
    const int32_t luma = (y[i] - m.black) * m.gain + (1 << 15), u = cb[i] - 128, v = cr[i] - 128;
    out.r[i] = clamped((luma + m.rv * v) >> 16);
    out.g[i] = clamped((luma + m.gu * u + m.gv * v) >> 16);
    out.b[i] = clamped((luma + m.bu * u) >> 16);
  }
}

// These give both pixels of a pair its chroma.
CODEC_VECTORIZE void spread(const uint8_t* chroma, uint32_t pairs, uint8_t* out) {
  for (uint32_t i = 0; i < pairs; ++i) out[2 * i] = out[2 * i + 1] = chroma[i];
}
CODEC_VECTORIZE void spread_both(const uint8_t* chroma, uint32_t pairs, uint8_t* cb, uint8_t* cr) {
  for (uint32_t i = 0; i < pairs; ++i) {
    cb[2 * i] = cb[2 * i + 1] = chroma[2 * i];
    cr[2 * i] = cr[2 * i + 1] = chroma[2 * i + 1];
  }
}

void unpack_ycbcr(const Picture& picture, const Matrix& matrix, uint32_t x, uint32_t y, uint32_t count, Chunk& out) {
  alignas(64) uint8_t cb[kChunk], cr[kChunk];
  if (picture.pixel == Pixel::nv12) {
    spread_both(picture.row(y / 2, 1) + x, (count + 1) / 2, cb, cr);
  } else {
    spread(picture.row(y / 2, 1) + x / 2, (count + 1) / 2, cb);
    spread(picture.row(y / 2, 2) + x / 2, (count + 1) / 2, cr);
  }
  decode(matrix, picture.row(y) + x, cb, cr, count, out);
}

// `x` is even.
void unpack(const Picture& picture, const Matrix& matrix, uint32_t x, uint32_t y, uint32_t count, Chunk& out) {
  const uint8_t* in = picture.row(y) + size_t{x} * bytes_per_pixel(picture.pixel);
  switch (picture.pixel) {
    case Pixel::rgb8: return unpack3(in, count, out.r, out.g, out.b);
    case Pixel::bgr8: return unpack3(in, count, out.b, out.g, out.r);
    case Pixel::rgba8: return unpack4(in, count, out.r, out.g, out.b);
    case Pixel::bgra8: return unpack4(in, count, out.b, out.g, out.r);
    case Pixel::gray8:
      for (uint8_t* channel : {out.r, out.g, out.b}) std::memcpy(channel, in, count);
      return;
    default: return unpack_ycbcr(picture, matrix, x, y, count, out);
  }
}

// ---- packing --------------------------------------------------------------------------------------------------

// The matrix is passed by value: the bytes that are written could alias a reference.
CODEC_VECTORIZE void pack_luma(const Matrix m, const Chunk& in, uint32_t count, uint8_t* out) {
  for (uint32_t i = 0; i < count; ++i)
    out[i] = clamped((m.yr * in.r[i] + m.yg * in.g[i] + m.yb * in.b[i] + (m.black << 16) + (1 << 15)) >> 16);
}

// The sums of four pixels have two more bits than their mean.
CODEC_VECTORIZE void pack_chroma(const Matrix m, const Chunk& top, const Chunk& bottom, uint32_t pairs, uint8_t* cb,
                                 uint8_t* cr) {
  constexpr int32_t kMiddle = (128 << 18) + (1 << 17);
  for (uint32_t i = 0; i < pairs; ++i) {
    const int32_t r = top.r[2 * i] + top.r[2 * i + 1] + bottom.r[2 * i] + bottom.r[2 * i + 1];
    const int32_t g = top.g[2 * i] + top.g[2 * i + 1] + bottom.g[2 * i] + bottom.g[2 * i + 1];
    const int32_t b = top.b[2 * i] + top.b[2 * i + 1] + bottom.b[2 * i] + bottom.b[2 * i + 1];
    cb[i] = clamped((m.ur * r + m.ug * g + m.ub * b + kMiddle) >> 18);
    cr[i] = clamped((m.vr * r + m.vg * g + m.vb * b + kMiddle) >> 18);
  }
}

CODEC_VECTORIZE void pack3(const Chunk& in, uint32_t count, uint8_t* out) {
  for (uint32_t i = 0; i < count; ++i) {
    out[3 * i] = in.r[i];
    out[3 * i + 1] = in.g[i];
    out[3 * i + 2] = in.b[i];
  }
}

void repeat_last(Chunk& chunk, uint32_t count) {
  chunk.r[count] = chunk.r[count - 1];
  chunk.g[count] = chunk.g[count - 1];
  chunk.b[count] = chunk.b[count - 1];
}

// ---- whole pictures -------------------------------------------------------------------------------------------

void copy_row(const uint8_t* from, uint32_t count, uint8_t* to) {
  std::memcpy(to, from, count);
  if (count % 2) to[count] = from[count - 1];
}

// For pictures whose numbers mean the same already.
void copy_i420(const Picture& picture, const I420Planes& target) {
  const uint32_t pairs = (picture.width + 1) / 2, height = (picture.height + 1) / 2 * 2;
  for (uint32_t y = 0; y < height; ++y)
    copy_row(picture.row(std::min(y, picture.height - 1)), picture.width, target.y + y * target.y_stride);
  for (uint32_t y = 0; y < height / 2; ++y) {
    uint8_t *cb = target.cb + y * target.cb_stride, *cr = target.cr + y * target.cr_stride;
    if (picture.pixel == Pixel::i420) {
      std::memcpy(cb, picture.row(y, 1), pairs);
      std::memcpy(cr, picture.row(y, 2), pairs);
      continue;
    }
    const uint8_t* in = picture.row(y, 1);
    for (uint32_t i = 0; i < pairs; ++i) cb[i] = in[2 * i], cr[i] = in[2 * i + 1];
  }
}

} // namespace

void to_i420(const Picture& picture, const I420Planes& target) {
  const bool is_ycbcr = picture.pixel == Pixel::nv12 || picture.pixel == Pixel::i420;
  if (is_ycbcr && picture.color == MR_COLOR_BT709 && picture.range == MR_RANGE_LIMITED)
    return copy_i420(picture, target);
  const Matrix from = matrix_of(picture.color, picture.range), to = matrix_of(MR_COLOR_BT709, MR_RANGE_LIMITED);
  Chunk top, bottom;
  for (uint32_t y = 0; y < picture.height; y += 2) {
    for (uint32_t x = 0; x < picture.width; x += kChunk) {
      const uint32_t count = std::min(kChunk, picture.width - x), even = count + count % 2;
      unpack(picture, from, x, y, count, top);
      unpack(picture, from, x, std::min(y + 1, picture.height - 1), count, bottom);
      if (count % 2) repeat_last(top, count), repeat_last(bottom, count);
      pack_luma(to, top, even, target.y + y * target.y_stride + x);
      pack_luma(to, bottom, even, target.y + (y + 1) * target.y_stride + x);
      pack_chroma(to, top, bottom, even / 2, target.cb + y / 2 * target.cb_stride + x / 2,
                  target.cr + y / 2 * target.cr_stride + x / 2);
    }
  }
}

void to_rgb(const Picture& picture, uint8_t* target, size_t stride) {
  const Matrix from = matrix_of(picture.color, picture.range);
  Chunk chunk;
  for (uint32_t y = 0; y < picture.height; ++y)
    for (uint32_t x = 0; x < picture.width; x += kChunk) {
      const uint32_t count = std::min(kChunk, picture.width - x);
      unpack(picture, from, x, y, count, chunk);
      pack3(chunk, count, target + y * stride + size_t{3} * x);
    }
}

} // namespace millrace::codec
