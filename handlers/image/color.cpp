// Converts pixel formats by way of planar RGBA: a chunk of a row is unpacked into four short arrays, changed there by
// loops that vectorise, and packed again. Chunks live on the stack and stay in the first-level cache.
#include "handlers/image/color.h"

#include <algorithm>
#include <cstring>

#include "handlers/gpu/convert.h"
#include "handlers/image/bytes16.h"
#include "handlers/image/interleave.h"
#include "handlers/image/picture.h"
#include "handlers/image/planes.h"
#include "handlers/image/vectorize.h"

namespace millrace::handlers {
namespace {

// Even, so that chunks begin at whole chroma samples. All the arrays for 256 pixels fit a 32 KiB cache with room to
// spare.
constexpr uint32_t kColorChunk = 256;

struct RgbaChunk {
  alignas(64) uint8_t r[kColorChunk], g[kColorChunk], b[kColorChunk], a[kColorChunk];
};

using gpu::ColorMatrix;
using gpu::Decoding;

// p010 has its 10 bits in the upper bits of 16. numbers_at() gives column x of plane 0, or the chroma pair of column x
// (even) in plane 1.
constexpr int kDeepShift = 6;
const uint16_t* numbers_at(const ImageView& picture, uint32_t plane, uint32_t x, uint32_t y) {
  return reinterpret_cast<const uint16_t*>(picture.row(y, plane)) + x;
}
uint16_t* numbers_at(const ImageSpan& picture, uint32_t plane, uint32_t x, uint32_t y) {
  return reinterpret_cast<uint16_t*>(picture.row(y, plane)) + x;
}

// ---- unpacking ------------------------------------------------------------------------------------------------

MILLRACE_VECTORIZE void decode(const Decoding& d, const uint8_t* y, const uint8_t* u, const uint8_t* v, uint32_t count,
                               RgbaChunk& out) {
  for (uint32_t i = 0; i < count; ++i) {
    const gpu::Rgb pixel = gpu::decoded(d, y[i], u[i], v[i]);
    out.r[i] = pixel.r;
    out.g[i] = pixel.g;
    out.b[i] = pixel.b;
  }
}

// Decodes p010: numbers of 10 bits in the upper bits of 16, and chroma in pairs.
MILLRACE_VECTORIZE void decode_deep(const ColorMatrix& m, const uint16_t* y, const uint16_t* chroma, uint32_t count,
                                    RgbaChunk& out) {
  for (uint32_t i = 0; i < count; ++i) {
    const gpu::Rgb pixel =
        gpu::decoded_deep(m, y[i] >> kDeepShift, chroma[i & ~1u] >> kDeepShift, chroma[i | 1u] >> kDeepShift);
    out.r[i] = pixel.r;
    out.g[i] = pixel.g;
    out.b[i] = pixel.b;
  }
}

// Gives both pixels of a pair its chroma.
MILLRACE_VECTORIZE void double_chroma(const uint8_t* chroma, uint32_t pairs, uint8_t* out) {
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

void unpack_ycbcr(const ImageView& source, const ColorMatrix& matrix, uint32_t x, uint32_t y, uint32_t count,
                  RgbaChunk& out) {
  std::memset(out.a, 255, count);
  if (source.pixel() == Pixel::p010)
    return decode_deep(matrix, numbers_at(source, 0, x, y), numbers_at(source, 1, x, y / 2), count, out);
  alignas(64) uint8_t u[kColorChunk], v[kColorChunk];
  const uint32_t pairs = (count + 1) / 2;
  if (source.pixel() == Pixel::nv12) {
    spread_both(source.row(y / 2, 1) + x, pairs, u, v);
  } else {
    double_chroma(source.row(y / 2, 1) + x / 2, pairs, u);
    double_chroma(source.row(y / 2, 2) + x / 2, pairs, v);
  }
  decode(Decoding(matrix), source.row(y) + x, u, v, count, out);
}

void unpack(const ImageView& source, const ColorMatrix& matrix, uint32_t x, uint32_t y, uint32_t count,
            RgbaChunk& out) {
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

MILLRACE_VECTORIZE void pack_gray(const RgbaChunk& in, uint32_t count, uint8_t* out) {
  for (uint32_t i = 0; i < count; ++i) out[i] = gpu::gray_of(in.r[i], in.g[i], in.b[i]);
}

// The matrix is passed by value: the bytes that are written could alias a reference.
MILLRACE_VECTORIZE void pack_luma(const ColorMatrix m, const RgbaChunk& in, uint32_t count, uint8_t* out) {
  for (uint32_t i = 0; i < count; ++i) out[i] = static_cast<uint8_t>(gpu::luma_of(m, in.r[i], in.g[i], in.b[i]));
}

MILLRACE_VECTORIZE void pack_deep_luma(const ColorMatrix m, const RgbaChunk& in, uint32_t count, uint16_t* out) {
  for (uint32_t i = 0; i < count; ++i)
    out[i] = static_cast<uint16_t>(gpu::luma_of(m, in.r[i], in.g[i], in.b[i]) << kDeepShift);
}

// Packs the chroma of two rows with an even number of pixels.
template <class Number>
MILLRACE_VECTORIZE void pack_chroma(const ColorMatrix m, const RgbaChunk& top, const RgbaChunk& bottom, uint32_t pairs,
                                    Number* u, Number* v) {
  for (uint32_t i = 0; i < pairs; ++i) {
    const int32_t r = top.r[2 * i] + top.r[2 * i + 1] + bottom.r[2 * i] + bottom.r[2 * i + 1];
    const int32_t g = top.g[2 * i] + top.g[2 * i + 1] + bottom.g[2 * i] + bottom.g[2 * i + 1];
    const int32_t b = top.b[2 * i] + top.b[2 * i + 1] + bottom.b[2 * i] + bottom.b[2 * i + 1];
    u[i] = static_cast<Number>(gpu::cb_of(m, r, g, b));
    v[i] = static_cast<Number>(gpu::cr_of(m, r, g, b));
  }
}

void pack(const RgbaChunk& in, uint32_t x, uint32_t y, uint32_t count, const ImageSpan& target) {
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
void repeat_last(RgbaChunk& chunk, uint32_t count) {
  if (count % 2 == 0) return;
  chunk.r[count] = chunk.r[count - 1];
  chunk.g[count] = chunk.g[count - 1];
  chunk.b[count] = chunk.b[count - 1];
}

// Packs Cb and Cr as pairs: for nv12, and for p010, whose numbers are in the upper bits.
template <class Number>
void pack_chroma_pairs(const ColorMatrix& matrix, const RgbaChunk& top, const RgbaChunk& bottom, uint32_t pairs, int up,
                       Number* out) {
  Number u[kColorChunk / 2], v[kColorChunk / 2];
  pack_chroma(matrix, top, bottom, pairs, u, v);
  for (uint32_t i = 0; i < pairs; ++i) {
    out[2 * i] = static_cast<Number>(u[i] << up);
    out[2 * i + 1] = static_cast<Number>(v[i] << up);
  }
}

void pack_luma_row(const ColorMatrix& matrix, const RgbaChunk& in, uint32_t x, uint32_t y, uint32_t count,
                   const ImageSpan& target) {
  if (y >= target.height()) return;
  if (target.pixel() == Pixel::p010) return pack_deep_luma(matrix, in, count, numbers_at(target, 0, x, y));
  pack_luma(matrix, in, count, target.row(y) + x);
}

void pack_block_row(const ColorMatrix& matrix, RgbaChunk& top, RgbaChunk& bottom, uint32_t x, uint32_t y,
                    uint32_t count, const ImageSpan& target) {
  pack_luma_row(matrix, top, x, y, count, target);
  pack_luma_row(matrix, bottom, x, y + 1, count, target);
  repeat_last(top, count);
  repeat_last(bottom, count);
  const uint32_t pairs = (count + 1) / 2;
  if (target.pixel() == Pixel::i420)
    return pack_chroma(matrix, top, bottom, pairs, target.row(y / 2, 1) + x / 2, target.row(y / 2, 2) + x / 2);
  if (target.pixel() == Pixel::p010)
    return pack_chroma_pairs(matrix, top, bottom, pairs, kDeepShift, numbers_at(target, 1, x, y / 2));
  pack_chroma_pairs(matrix, top, bottom, pairs, 0, target.row(y / 2, 1) + x);
}

// ---- whole pictures -------------------------------------------------------------------------------------------

bool red_first(Pixel pixel) { return pixel == Pixel::rgb8 || pixel == Pixel::rgba8; }
bool is_colored8(Pixel pixel) { return red_first(pixel) || pixel == Pixel::bgr8 || pixel == Pixel::bgra8; }

ColorMatrix matrix_of(const ImageView& picture) { return gpu::color_matrix(picture.value().as.image); }

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

// luma_at() and the functions below read or write one number of a YCbCr picture of either depth; `which` is 0 for Cb
// and 1 for Cr.
int32_t luma_at(const ImageView& picture, uint32_t x, uint32_t y) {
  return picture.pixel() == Pixel::p010 ? *numbers_at(picture, 0, x, y) >> kDeepShift : picture.row(y)[x];
}
int32_t chroma_at(const ImageView& picture, uint32_t which, uint32_t x, uint32_t y) {
  if (picture.pixel() == Pixel::p010) return *numbers_at(picture, 1, 2 * x + which, y) >> kDeepShift;
  return picture.pixel() == Pixel::nv12 ? picture.row(y, 1)[2 * x + which] : picture.row(y, 1 + which)[x];
}
void set_luma(const ImageSpan& picture, uint32_t x, uint32_t y, int32_t number) {
  if (picture.pixel() == Pixel::p010)
    *numbers_at(picture, 0, x, y) = static_cast<uint16_t>(number << kDeepShift);
  else
    picture.row(y)[x] = static_cast<uint8_t>(number);
}
void set_chroma(const ImageSpan& picture, uint32_t which, uint32_t x, uint32_t y, int32_t number) {
  if (picture.pixel() == Pixel::p010)
    *numbers_at(picture, 1, 2 * x + which, y) = static_cast<uint16_t>(number << kDeepShift);
  else if (picture.pixel() == Pixel::nv12)
    picture.row(y, 1)[2 * x + which] = static_cast<uint8_t>(number);
  else
    picture.row(y, 1 + which)[x] = static_cast<uint8_t>(number);
}

// Converts between 8 and 10 bits.
void change_depth(const ImageView& source, const ImageSpan& target) {
  const gpu::Rescaling rescaling = gpu::rescaling(matrix_of(source), matrix_of(target), source.range());
  for (uint32_t y = 0; y < source.height(); ++y)
    for (uint32_t x = 0; x < source.width(); ++x)
      set_luma(target, x, y, gpu::rescaled_luma(rescaling, luma_at(source, x, y)));
  const uint32_t pairs = (source.width() + 1) / 2;
  for (uint32_t y = 0; y < source.rows(1); ++y)
    for (uint32_t x = 0; x < pairs; ++x)
      for (uint32_t which = 0; which < 2; ++which)
        set_chroma(target, which, x, y, gpu::rescaled_chroma(rescaling, chroma_at(source, which, x, y)));
}

MILLRACE_VECTORIZE void unpack_gray(const ColorMatrix& m, const uint8_t* y, uint32_t count, uint8_t* out) {
  for (uint32_t i = 0; i < count; ++i) out[i] = gpu::gray_of_luma(m, y[i]);
}

MILLRACE_VECTORIZE void unpack_deep_gray(const ColorMatrix& m, const uint16_t* y, uint32_t count, uint8_t* out) {
  for (uint32_t i = 0; i < count; ++i) out[i] = gpu::gray_of_luma(m, y[i] >> kDeepShift);
}

void luma_to_gray(const ImageView& source, const ImageSpan& target) {
  const ColorMatrix matrix = matrix_of(source);
  for (uint32_t y = 0; y < source.height(); ++y) {
    if (source.pixel() == Pixel::p010)
      unpack_deep_gray(matrix, numbers_at(source, 0, 0, y), source.width(), target.row(y));
    else
      unpack_gray(matrix, source.row(y), source.width(), target.row(y));
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
  const ColorMatrix matrix = matrix_of(source);
  RgbaChunk chunk;
  for (uint32_t y = 0; y < source.height(); ++y) {
    for (uint32_t x = 0; x < source.width(); x += kColorChunk) {
      const uint32_t count = std::min(kColorChunk, source.width() - x);
      unpack(source, matrix, x, y, count, chunk);
      pack(chunk, x, y, count, target);
    }
  }
}

void to_ycbcr(const ImageView& source, const ImageSpan& target) {
  const ColorMatrix from = matrix_of(source), to = matrix_of(target);
  RgbaChunk top, bottom;
  for (uint32_t y = 0; y < source.height(); y += 2) {
    for (uint32_t x = 0; x < source.width(); x += kColorChunk) {
      const uint32_t count = std::min(kColorChunk, source.width() - x);
      unpack(source, from, x, y, count, top);
      unpack(source, from, x, std::min(y + 1, source.height() - 1), count, bottom);
      pack_block_row(to, top, bottom, x, y, count, target);
    }
  }
}

} // namespace

bool can_convert(Pixel pixel) { return is_interleaved8(pixel) || halves_chroma(pixel); }

void convert_pixels(const ImageView& source, const ImageSpan& target) {
  if (!can_convert(source.pixel()) || !can_convert(target.pixel()))
    throw std::invalid_argument("there is no conversion from " + std::string(name_of(source.pixel())) + " to " +
                                std::string(name_of(target.pixel())));
  if (source.width() != target.width() || source.height() != target.height())
    throw std::invalid_argument("a conversion keeps the size of the picture");
  const bool same_numbers = gpu::same_numbers(source.value().as.image, target.value().as.image);
  if (source.pixel() == target.pixel() && same_numbers) {
    for (uint32_t plane = 0; plane < source.plane_count(); ++plane) copy_plane(source, target, plane);
  } else if (halves_chroma(source.pixel()) && same_numbers &&
             bytes_per_pixel(source.pixel()) != bytes_per_pixel(target.pixel())) {
    change_depth(source, target);
  } else if (halves_chroma(source.pixel()) && same_numbers) {
    copy_plane(source, target, 0);
    repack_chroma(source, target);
  } else if (halves_chroma(source.pixel()) && target.pixel() == Pixel::gray8) {
    const bool as_it_is = bytes_per_pixel(source.pixel()) == 1 && source.range() == MR_RANGE_FULL;
    as_it_is ? copy_plane(source, target, 0) : luma_to_gray(source, target);
  } else if (halves_chroma(target.pixel())) {
    to_ycbcr(source, target);
  } else {
    to_interleaved(source, target);
  }
}

} // namespace millrace::handlers
